"""The files of a loaded project that a later run can count as known, with their digests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.model.definition import SqlModel

from ci_bot.protocol.review_inputs import MOST_FILES, KnownFile
from ci_bot.worker.sqlmesh_compat.base_cache_read import (
    digest_stored_model,
    is_plain_dialect,
    note_load_settings,
    parse_stored_model,
)
from ci_bot.worker.sqlmesh_compat.lazy_queries import is_pure, lists_columns
from ci_bot.worker.sqlmesh_compat.reuse_prod_snapshots import (
    StoredModel,
    has_hashes,
    read_prod_models,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model

_MACROS = (d.MacroFunc, d.MacroSQL, d.MacroStrReplace, d.MacroDef)
# Moments, which stand in a query as they are until it runs.
_MOMENTS = tuple(
    f"{edge}_{unit}"
    for edge in ("start", "end", "execution")
    for unit in ("date", "ds", "ts", "tstz", "hour", "epoch", "millis", "dt", "dtntz")
)
_STATEMENTS = ("pre_statements_", "post_statements_", "on_virtual_update_")


@dataclass
class NotedFiles:
    """The settings of each loaded project: the digest, and its audits by name."""

    settings: dict[Path, tuple[bytes, Mapping[str, Any]]] = field(default_factory=dict)


@contextmanager
def note_loaded_files() -> Iterator[NotedFiles]:
    """Notes it while projects are loaded inside this block; `list_known_files` wants it."""
    made = NotedFiles()

    def note(project: Path, settings: bytes, audits: Mapping[str, Any]) -> None:
        made.settings[project] = settings, audits

    with note_load_settings(note):
        yield made


def list_known_files(context: Context, found: NotedFiles, repository: Path) -> list[KnownFile]:
    """Lists the files that define exactly one model, which equals prod's record in every field.

    Only if the file and its noted surroundings decide the model: one that uses code, a template, or
    a macro other than a time may read anything.
    """
    stored = read_prod_models(context)
    models = [(model, model._path) for model in context.models.values() if model._path is not None]
    of_path = Counter(path for _, path in models)
    made: list[KnownFile] = []
    for model, path in models:
        record = stored.get(model.fqn)
        if record is None or of_path[path] > 1 or len(made) == MOST_FILES:
            continue
        project = next((root for root in found.settings if root in path.parents), None)
        if project is None or not path.is_relative_to(repository):
            continue
        settings, audits = found.settings[project]
        if _is_defined_by_its_file(model, path) and _is_as_stored(model, record, audits):
            made.append(_make_known_file(model, path, record, settings, repository))
    return made


def _make_known_file(
    model: SqlModel, path: Path, record: StoredModel, settings: bytes, repository: Path
) -> KnownFile:
    return KnownFile(
        path=path.relative_to(repository).as_posix(),
        content=hashlib.sha256(path.read_bytes()).hexdigest(),
        model=model.fqn,
        record=digest_stored_model(settings, record),
        depends_on=sorted(model.full_depends_on),
        lists_columns=lists_columns(model),
    )


def _is_defined_by_its_file(model: Model, path: Path) -> TypeGuard[SqlModel]:
    """Whether the file and the settings alone decide the model."""
    if not is_pure(model) or not is_plain_dialect(model.dialect):
        return False
    if any(getattr(model, name, None) for name in _STATEMENTS):
        return False  # their trees come from the file, too, and nothing brings them from there
    text = path.read_text(encoding="utf-8")
    parts = d.parse(text, default_dialect=model.dialect)
    definition = next((part for part in parts if isinstance(part, d.Model)), None)
    heads = [part for part in parts if isinstance(part, d.Model)]
    if definition is None or len(heads) > 1:
        return False
    if any(definition.find_all(*_MACROS, d.MacroVar)):
        return False
    query = model.query
    if not isinstance(query, exp.Query) or any(query.find_all(*_MACROS, d.Jinja)):
        return False
    return all(
        found.name.lower() in _MOMENTS and found.find_ancestor(exp.Table) is None
        for found in query.find_all(d.MacroVar)
    )


def _is_as_stored(model: SqlModel, record: StoredModel, audits: Mapping[str, Any]) -> bool:
    """Whether prod's record restores exactly this model."""
    back = parse_stored_model(record)
    if back is None or back.fqn != model.fqn or type(model) is not SqlModel:
        return False
    if (model.data_hash, model.metadata_hash) != (
        record.fingerprint.data_hash,
        record.fingerprint.metadata_hash,
    ):
        return False
    if not has_hashes(back, record.fingerprint):
        return False
    if any(
        name not in audits or not _is_same(audit, audits[name]) or not _is_same(audit, other)
        for name, audit in model.audit_definitions.items()
        for other in [back.audit_definitions.get(name)]
    ):
        return False
    return all(
        _is_same(getattr(model, name), getattr(back, name))
        for name in type(model).model_fields
        if name not in ("query_", "audit_definitions")
    ) and (model.query_.sql, model.query_.transaction) == (back.query_.sql, back.query_.transaction)


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is date and isinstance(other, str):
        return str(one) == other  # YAML makes a date of a model's start, and the state its text
    if type(one) is not type(other):
        return False
    if isinstance(one, exp.Expression):
        return bool(one == other and one.sql(comments=True) == other.sql(comments=True))
    if hasattr(one, "json"):
        return bool(one.json() == other.json())
    return bool(one == other)
