"""Prod's models as its state has them, and whether a model that was loaded is one of those."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
import sqlmesh
from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.model.definition import SqlModel, _Model
from sqlmesh.core.snapshot import SnapshotFingerprint
from sqlmesh.core.state_sync.db.utils import fetchall, snapshot_id_filter

# How many snapshots are asked for in one query.
_BATCH = 1_000


@dataclass(frozen=True)
class Stored:
    """A model of prod: its fingerprint, the columns that it was told of what it reads, and the
    whole record of its snapshot as the state has it."""

    fingerprint: SnapshotFingerprint
    schema: dict[str, Any]
    text: str


def in_prod(context: Any) -> dict[str, Stored]:
    """Prod's models by name; none where another version of SQLMesh or sqlglot may have written
    them, whose columns could be of other types, or where they cannot be read, which the plan says.

    Nothing stays in the state's cache: a plan wants the intervals of its own moment.
    (`SnapshotState.snapshots_table`)
    """
    try:
        versions = context.state_reader.get_versions(validate=False)
        ours = sqlmesh.__version__, sqlglot.__version__
        if (versions.sqlmesh_version, versions.sqlglot_version) != ours:
            return {}
        prod = context.state_reader.get_environment(c.PROD)
        infos = {info.name: info for info in prod.snapshots if info.is_model} if prod else {}
        store: Any = getattr(context.state_sync, "state_sync", context.state_sync)
        adapter, table = store.engine_adapter, store.snapshot_state.snapshots_table
        found = {}
        for where in snapshot_id_filter(adapter, infos.values(), batch_size=_BATCH):
            query = exp.select("name", "snapshot").from_(table).where(where)
            for name, text in fetchall(adapter, query):
                schema = json.loads(text)["node"].get("mapping_schema", {})
                found[name] = Stored(infos[name].fingerprint, schema, text)
    except Exception:
        return {}
    return found


def has_hashes(model: Any, fingerprint: SnapshotFingerprint) -> bool:
    """Whether these are the model's own hashes in the fingerprint.

    What would ask for the optimized query is guessed first: the comments of columns, and that a
    partition needs no types (`_Model.partitioned_by` hands them over in any case). A wrong guess
    gives another hash.
    """
    if model.column_descriptions_ is None:
        model.__dict__["column_descriptions"] = _described(model.query)
    model._columns_to_types = {}
    try:
        if model.data_hash != fingerprint.data_hash:
            return False
        if model.metadata_hash == fingerprint.metadata_hash:
            return True
        model.__dict__.pop("column_descriptions", None)
        model._columns_to_types = model._metadata_hash = None
        return bool(model.metadata_hash == fingerprint.metadata_hash)
    except Exception:
        return False  # what is wrong with the model is said where it is worked out
    finally:
        model._columns_to_types = None


def adopt(model: Any, fingerprint: SnapshotFingerprint) -> None:
    """Gives the model its hashes, which are the fingerprint's."""
    model._data_hash, model._metadata_hash = fingerprint.data_hash, fingerprint.metadata_hash


def _described(query: Any) -> dict[str, str]:
    """The comments of columns as they stand in the text. (`SqlModel.column_descriptions`)"""
    selects: Iterable[Any] = query.selects if isinstance(query, exp.Query) else ()
    return {one.alias_or_name: one.comments[-1].strip() for one in selects if one.comments}


def tell(model: _Model, schema: Mapping[str, Any]) -> None:
    """Tells the model the columns of what it reads; what it worked out of others is forgotten."""
    copied = _copy(schema)
    model.mapping_schema.clear()
    model.mapping_schema.update(copied)
    model._data_hash = model._metadata_hash = None
    if isinstance(model, SqlModel):
        for worked_out in ("_query_renderer", "column_descriptions"):
            model.__dict__.pop(worked_out, None)
        model._columns_to_types = None


def _copy(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _copy(value) if isinstance(value, Mapping) else value for key, value in schema.items()
    }
