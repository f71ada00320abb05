"""Models that are defined as in prod are not optimized: they keep the columns of prod's state.

To load a project, SQLMesh renders and optimizes every query, because it needs the columns that each
model gives to its readers. If a model gets the same columns from its parents as in prod, and has
prod's hashes with them, then it also gives prod's columns. So its query waits until it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot
import sqlmesh
from sqlglot import exp
from sqlglot.schema import MappingSchema, nested_get, nested_set
from sqlmesh.core import constants as c
from sqlmesh.core import context as context_module
from sqlmesh.core import loader
from sqlmesh.core.model.definition import SqlModel, _Model
from sqlmesh.core.snapshot import SnapshotFingerprint
from sqlmesh.core.state_sync.db.utils import fetchall, snapshot_id_filter
from sqlmesh.utils import UniqueKeyDict

from ci_bot.worker.sqlmesh_compat.skipped_work import (
    UnparsedSqlmeshQuery,
    is_sqlmesh_model_pure,
    leave_sqlmesh_query_in_file,
    lists_columns,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model

# Prod's models in the state, and whether a loaded model equals one of them.


# Columns by table, below schemas and catalogs: nested as deeply as table names have parts.
ColumnMapping = dict[str, Any]
# The number of snapshots in one query.
_BATCH = 1_000


@dataclass(frozen=True)
class StoredModel:
    """A model of prod: its fingerprint, the columns that it was given for each table that it reads,
    and the whole record of its snapshot as the state has it."""

    fingerprint: SnapshotFingerprint
    schema: ColumnMapping
    text: str


def read_stored_sqlmesh_models(context: Context) -> dict[str, StoredModel]:
    """Reads prod's models by name; empty if another version of SQLMesh or sqlglot may have written
    them, with other column types, or if they cannot be read, which the plan reports.

    Nothing stays in the state's cache, because a plan needs its own current intervals.
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
                found[name] = StoredModel(infos[name].fingerprint, schema, text)
    except Exception:
        return {}
    return found


def has_hashes_of_fingerprint(model: SqlModel, fingerprint: SnapshotFingerprint) -> bool:
    """Whether these are the model's own hashes in the fingerprint.

    Values that would need the optimized query are guessed first: column comments, and that a
    partition needs no types (`_Model.partitioned_by` hands them over in any case). A wrong guess
    gives another hash.
    """
    if model.column_descriptions_ is None:
        model.__dict__["column_descriptions"] = _read_column_comments(model.query)
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
        return False  # what is wrong with the model is reported when it is computed
    finally:
        model._columns_to_types = None


def adopt_sqlmesh_fingerprint(model: SqlModel, fingerprint: SnapshotFingerprint) -> None:
    """Sets the model's hashes, which are those of the fingerprint."""
    model._data_hash, model._metadata_hash = fingerprint.data_hash, fingerprint.metadata_hash


def _read_column_comments(query: Any) -> dict[str, str]:
    """Reads the comments of columns from the text. (`SqlModel.column_descriptions`)"""
    selects: Iterable[Any] = query.selects if isinstance(query, exp.Query) else ()
    return {one.alias_or_name: one.comments[-1].strip() for one in selects if one.comments}


def set_sqlmesh_mapping_schema(model: _Model, schema: Mapping[str, Any]) -> None:
    """Sets the columns of a model's parents, and clears results that depend on others."""
    copied = _copy_sqlmesh_schema(schema)
    model.mapping_schema.clear()
    model.mapping_schema.update(copied)
    model._data_hash = model._metadata_hash = None
    if isinstance(model, SqlModel):
        for worked_out in ("_query_renderer", "column_descriptions"):
            model.__dict__.pop(worked_out, None)
        model._columns_to_types = None


def _copy_sqlmesh_schema(schema: Mapping[str, Any]) -> ColumnMapping:
    return {
        key: _copy_sqlmesh_schema(value) if isinstance(value, Mapping) else value
        for key, value in schema.items()
    }


# Loader processes also compare models with prod's, and send those that are defined as in prod
# without their query trees.


_load = loader.load_sql_models
# The pool's forked processes read this from memory, because the pool finds the function by its
# name.
_stored: dict[str, StoredModel] = {}


@contextmanager
def compare_while_sqlmesh_loads(stored: Mapping[str, StoredModel]) -> Iterator[None]:
    """Makes every process that loads files in this block compare models with prod's. A model that
    is defined as in prod comes with a `UnparsedSqlmeshQuery`, prod's columns, and no hashes.
    """
    module: Any = loader
    _stored.update(stored)
    module.load_sql_models = load_sqlmesh_models_and_compare
    try:
        yield
    finally:
        module.load_sql_models = _load
        _stored.clear()


def load_sqlmesh_models_and_compare(path: Path) -> list[Any]:
    """Loads the models of a file, and compares them with prod's. (`load_sql_models`)"""
    models: list[Any] = _load(path)
    # One process sends nothing; in a file of several models nobody knows whose a query is.
    if len(models) == 1 and parent_process() is not None:
        (model,) = models
        stored = _stored.get(model.fqn)
        if stored is not None and is_sqlmesh_model_pure(model):
            set_sqlmesh_mapping_schema(model, stored.schema)
            if has_hashes_of_fingerprint(model, stored.fingerprint):
                defaults: Any = loader._defaults
                leave_sqlmesh_query_in_file(
                    model,
                    file_dialect=defaults["dialect"] or "",
                    lists_columns=lists_columns(model),
                )
            else:
                set_sqlmesh_mapping_schema(model, {})
    return models


# Each round computes the models that read changed columns of the previous round. After the last
# round everything is computed.
_ROUNDS = 5

EnterForLoad = Callable[[Mapping[str, StoredModel]], AbstractContextManager[None]]


@contextmanager
def let_sqlmesh_reuse_prod_models(
    context: Context, beside: EnterForLoad = lambda _stored: nullcontext()
) -> Iterator[None]:
    """Skips optimizing models that are defined as in prod, for the load in this block.

    (`update_model_schemas` optimizes, `validate_definition` asks for the optimized query)

    Args:
        beside: Another context to enter for the load, with prod's models.
    """
    stored = read_stored_sqlmesh_models(context)
    if not stored:
        yield
        return
    module: Any = context_module
    kind: Any = SqlModel
    plain, validate = module.update_model_schemas, kind.validate_definition
    spared: set[int] = set()

    def update_needed_models(dag: Any, models: Any, cache_dir: Any) -> None:
        spared.clear()

        def work_out(some: Mapping[str, Any]) -> None:
            plain(dag, models=UniqueKeyDict("models", **some), cache_dir=cache_dir)

        load = _SqlmeshModelLoad(models, stored)
        for _ in range(_ROUNDS):
            if not load.waiting:
                break
            work_out(load.waiting)
            load.compare_models()
        if load.waiting:
            load.abandon_reuse()
            work_out(models)
        spared.update(id(model) for model in load.standing.values())

    def validate_others(self: Any) -> None:
        if id(self) not in spared:
            validate(self)

    module.update_model_schemas, kind.validate_definition = update_needed_models, validate_others
    try:
        with compare_while_sqlmesh_loads(stored), beside(stored):
            yield
    finally:
        module.update_model_schemas, kind.validate_definition = plain, validate


class _SqlmeshModelLoad:
    """One load's models: those that equal prod's, and those that wait to be computed."""

    def __init__(self, models: Mapping[str, Model], stored: Mapping[str, StoredModel]) -> None:
        self._models, self._stored = models, stored
        self._tables: dict[str, _SqlmeshSchemaTable] = {}
        self.standing = {
            name: model
            for name, model in models.items()
            if name in stored and self._is_as_in(model, stored[name])
        }
        rest = {name: model for name, model in models.items() if name not in self.standing}
        # The models that they read are computed, too: this shows whether prod's columns are still
        # right.
        self._read = {
            name for model in rest.values() for name in model.depends_on if name in self.standing
        }
        for name in self._read:
            set_sqlmesh_mapping_schema(models[name], models[name].mapping_schema)
        self.waiting = rest | {name: models[name] for name in self._read}

    def compare_models(self) -> None:
        """Keeps computed models; those whose parents' columns changed wait to be computed."""
        fresh, self.waiting = self.waiting, {}
        for name in fresh.keys() & self.standing.keys():
            # A model of the same round may have changed its columns. (Their order matters for a
            # star.)
            if str(fresh[name].mapping_schema) != str(self._stored[name].schema):
                del self.standing[name]
        for name, model in self._models.items():
            news = {}
            for parent in model.depends_on & fresh.keys():
                table = self._find_schema_table(parent)
                columns = table.columns_for_dialect(fresh[parent].columns_to_types, model.dialect)
                if not _is_same_sqlmesh_schema(
                    columns, table.list_columns_of(model.mapping_schema)
                ):
                    news[parent] = columns
            if not news:
                continue
            if any(parent in self._read and parent in self.standing for parent in news):
                # The same model had other columns in prod, so no stored columns are reliable.
                self.waiting = dict(self._models)
                return
            set_sqlmesh_mapping_schema(model, model.mapping_schema)
            for parent, columns in news.items():
                self._find_schema_table(parent).add_columns(model.mapping_schema, columns)
            self.waiting[name] = model
        for name in self.waiting:
            self.standing.pop(name, None)

    def abandon_reuse(self) -> None:
        """Resets every model to its state before the comparison with prod."""
        for model in self._models.values():
            set_sqlmesh_mapping_schema(model, {})
        self.standing = {}

    def _is_as_in(self, model: Model, stored: StoredModel) -> bool:
        """Whether the model has prod's hashes with prod's schemas; if so, it keeps these."""
        if not isinstance(model, SqlModel):
            return False
        compared = isinstance(model.query_, UnparsedSqlmeshQuery)
        if not compared and (not is_sqlmesh_model_pure(model) or model.mapping_schema):
            return False  # one that has schemas already comes from the state, of another project
        reads_what_is_gone = any(
            self._find_schema_table(name).list_columns_of(stored.schema)
            for name in model.depends_on
            if name not in self._models
        )
        if not reads_what_is_gone:
            if compared:
                adopt_sqlmesh_fingerprint(
                    model, stored.fingerprint
                )  # a process forgets hashes that it sends
                return True
            set_sqlmesh_mapping_schema(model, stored.schema)
            if has_hashes_of_fingerprint(model, stored.fingerprint):
                return True
        set_sqlmesh_mapping_schema(model, {})
        return False

    def _find_schema_table(self, name: str) -> _SqlmeshSchemaTable:
        if name not in self._tables:
            self._tables[name] = _SqlmeshSchemaTable(name)
        return self._tables[name]


class _SqlmeshSchemaTable:
    """A model's name as schemas use it."""

    def __init__(self, name: str) -> None:
        self._table = exp.to_table(name)
        self._parts = [part.sql(copy=False) for part in self._table.parts]

    def list_columns_of(self, schema: ColumnMapping) -> dict[str, str] | None:
        """Returns the columns that this schema has for the model, with their types."""
        path = ((part, part) for part in self._parts)
        return nested_get(schema, *path, raise_on_missing=False) or None

    def add_columns(self, schema: ColumnMapping, columns: dict[str, str] | None) -> None:
        nested_set(schema, self._parts, columns or {})

    def columns_for_dialect(self, columns: Any, dialect: Any) -> dict[str, str] | None:
        """Returns the columns as a reader of this dialect gets them. (`_Model.update_schema`)"""
        if not columns:
            return None
        schema = MappingSchema(normalize=False)
        schema.add_table(self._table, columns, dialect=dialect)
        found = schema.find(self._table) or {}
        return {name: kind.sql(dialect=dialect) for name, kind in found.items()} or None


def _is_same_sqlmesh_schema(columns: dict[str, str] | None, others: dict[str, str] | None) -> bool:
    """Whether columns are equal, also in order, which a star keeps."""
    return list((columns or {}).items()) == list((others or {}).items())
