"""The base cache: known files give prod's recorded models, so that loading parses no SQL of them.

A run on the default branch notes the files that a later run can count as known, with their digests.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import sqlglot
import sqlmesh
from pydantic import BaseModel
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlmesh.core import constants as c
from sqlmesh.core import dialect as d
from sqlmesh.core import loader as loader_module
from sqlmesh.core.loader import SqlMeshLoader
from sqlmesh.core.model.definition import SqlModel

import ci_bot
from ci_bot.protocol.review_inputs import MOST_FILES, KnownFile
from ci_bot.worker.sqlmesh_compat.reuse_prod_snapshots import (
    StoredModel,
    has_hashes_of_fingerprint,
    read_stored_sqlmesh_models,
)
from ci_bot.worker.sqlmesh_compat.skipped_work import (
    is_sqlmesh_model_pure,
    lists_columns,
    make_unparsed_sqlmesh_query,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model


# The digest of everything that decides a model, except its SQL file.


# Folders that SQLMesh runs or reads before the models, and that could change how it reads these.
_DIRECTORIES = (c.MACROS, c.AUDITS, c.SIGNALS, c.MATERIALIZATIONS)
# In a default these would run code of the project for each model.
_TEMPLATES = ("@", "{{", "{%")


class _UnknownError(Exception):
    """A value without a reliable text."""


def digest_sqlmesh_load_settings(
    loader: Any,
    *,
    macros: Mapping[str, Any],
    jinja_macros: Any,
    audits: Mapping[str, Any],
    signals: Mapping[str, Any],
) -> bytes | None:
    """Makes the digest of the arguments that `SqlMeshLoader._load_sql_models` loads each file with.

    Returns:
        The digest; None if it cannot be computed, and then no file of the project is known.
    """
    if type(loader) is not SqlMeshLoader:
        return None
    config, context = loader.config, loader.context
    defaults = config.model_defaults.dict()
    if not is_dialect_of_sqlglot(config.model_defaults.dialect):
        return None
    rendered = {name: value for name, value in defaults.items() if name != "cron"}
    try:
        if any(sign in _render_sqlmesh_value(rendered) for sign in _TEMPLATES):
            return None
        settings = [
            [ci_bot.__version__, platform.python_version()],
            [sqlmesh.__version__, sqlglot.__version__],
            defaults,
            config.variables,
            {name: gateway.variables for name, gateway in config.gateways.items()},
            [context.selected_gateway, context.default_catalog],
            context.default_catalog_per_gateway,
            [config.project, config.time_column_format, config.model_naming.infer_names],
            config.physical_schema_mapping,
            config.virtual_environment_mode,
            # A model that uses code is never known; but the name of a macro can hide another one.
            [sorted(macros), sorted(audits), sorted(signals)],
            [sorted(jinja_macros.root_macros), sorted(jinja_macros.packages)],
        ]
        digest = hashlib.sha256(_render_sqlmesh_value(settings).encode())
        for path in _list_files_that_sqlmesh_loads(loader.config_path):
            name = path.relative_to(loader.config_path).as_posix()
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"\0{name}\0{content}".encode())
    except (_UnknownError, OSError, AttributeError):
        return None
    return digest.digest()


def is_dialect_of_sqlglot(name: str | None) -> bool:
    """Whether a dialect is sqlglot's own; one of another package can change on its own."""
    try:
        found = type(Dialect.get_or_raise(name))
    except ValueError:
        return False
    return found is Dialect or found.__module__.startswith("sqlglot.dialects.")


def _list_files_that_sqlmesh_loads(project: Path) -> list[Path]:
    folders = [project / name for name in _DIRECTORIES]
    found = [path for folder in folders for path in folder.rglob("*")]
    kept = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return sorted([*kept, *project.glob("config.*")])


def _render_sqlmesh_value(value: Any) -> str:
    return json.dumps(_convert_sqlmesh_value(value), sort_keys=True)


def _convert_sqlmesh_value(value: Any) -> Any:  # noqa: PLR0911 - one return per type
    if value is None or isinstance(value, str | int | float | bool):
        return value if not isinstance(value, Enum) else value.value
    if isinstance(value, Enum):
        return _convert_sqlmesh_value(value.value)
    if isinstance(value, Mapping):
        return [
            [_convert_sqlmesh_value(key), _convert_sqlmesh_value(found)]
            for key, found in value.items()
        ]
    if isinstance(value, list | tuple):
        return [_convert_sqlmesh_value(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(_render_sqlmesh_value(one) for one in value)
    if isinstance(value, BaseModel):
        return [type(value).__name__, _convert_sqlmesh_value(dict(value))]
    if isinstance(value, exp.Expression):
        return value.sql(comments=True)
    if isinstance(value, date):
        return [type(value).__name__, value.isoformat()]
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    raise _UnknownError


# Up to this number, loading files in one process is faster than forking processes for them.
_FEW = 40

OnSettings = Callable[[Path, bytes, Mapping[str, Any]], None]


def digest_stored_sqlmesh_model(settings: bytes, stored: StoredModel) -> str:
    """Makes the digest of prod's record of a model and of everything that it was loaded with,
    except its file.

    Nobody can guess the settings from the cached digest: prod's record includes its creation time.
    """
    return hashlib.sha256(settings + stored.text.encode()).hexdigest()


@contextmanager
def load_known_files_into_sqlmesh(
    known: Mapping[str, KnownFile], stored: Mapping[str, StoredModel], repository: Path
) -> Iterator[None]:
    """Takes the models of known files from prod's records while a project loads in this block.

    A file counts as known if it, its settings and prod's record are the same as in the run that
    noted it; every other file loads as usual. (`SqlMeshLoader._load_sql_models` asks its cache for
    each file first)

    Args:
        known: Files by their path, relative to `repository`.
        stored: Prod's models by name, with their texts.
    """
    if not known or not stored:
        yield
        return

    def cache_of(given: Any, loader: Any, settings: bytes, audits: Mapping[str, Any]) -> Any:
        return _SqlmeshModelCache(given, loader, known, stored, repository, settings, audits)

    with _replace_sqlmesh_model_cache(cache_of):
        yield


@contextmanager
def note_sqlmesh_load_settings(note: OnSettings) -> Iterator[None]:
    """Calls `note` for each project that loads in this block: its directory, the digest of its
    settings, and its audits by name.
    """

    def cache_of(given: Any, loader: Any, settings: bytes, audits: Mapping[str, Any]) -> Any:
        note(loader.config_path, settings, audits)
        return given

    with _replace_sqlmesh_model_cache(cache_of):
        yield


@contextmanager
def _replace_sqlmesh_model_cache(cache_of: Callable[..., Any]) -> Iterator[None]:
    kind: Any = loader_module.SqlMeshLoader
    plain = kind._load_sql_models
    constants: Any = c
    processes = constants.MAX_FORK_WORKERS

    def load_with_known_files(
        self: Any,
        macros: Any,
        jinja_macros: Any,
        audits: Any,
        signals: Any,
        cache: Any,
        *rest: Any,
        **more: Any,
    ) -> Any:
        settings = digest_sqlmesh_load_settings(
            self, macros=macros, jinja_macros=jinja_macros, audits=audits, signals=signals
        )
        if settings is not None:
            cache = cache_of(cache, self, settings, audits)
        try:
            return plain(self, macros, jinja_macros, audits, signals, cache, *rest, **more)
        finally:
            constants.MAX_FORK_WORKERS = processes

    kind._load_sql_models = load_with_known_files
    try:
        yield
    finally:
        kind._load_sql_models = plain


class _SqlmeshModelCache:
    """A loader's cache that first looks for known files."""

    def __init__(
        self,
        given: Any,
        loader: Any,
        known: Mapping[str, KnownFile],
        stored: Mapping[str, StoredModel],
        repository: Path,
        settings: bytes,
        audits: Mapping[str, Any],
    ) -> None:
        self._given = given
        self._known, self._stored = known, stored
        self._repository, self._settings, self._audits = repository, settings, audits
        self._dialect = loader.config.model_defaults.dialect or ""
        self._unknown = 0
        self._processes = c.MAX_FORK_WORKERS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)

    def get(self, path: Path) -> list[Any]:
        """Returns the models of a file; empty if it must be loaded. (`CacheBase.get`)"""
        model = self._find_model_of_file(path)
        if model is not None:
            return [model]
        self._unknown += 1
        constants: Any = c
        constants.MAX_FORK_WORKERS = 1 if self._unknown <= _FEW else self._processes
        found: list[Any] = self._given.get(path)
        return found

    def _find_model_of_file(self, path: Path) -> Any:
        if not path.is_relative_to(self._repository):
            return None
        file = self._known.get(path.relative_to(self._repository).as_posix())
        stored = self._stored.get(file.model) if file else None
        if file is None or stored is None:
            return None
        try:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            if (
                content != file.content
                or digest_stored_sqlmesh_model(self._settings, stored) != file.record
            ):
                return None
            return self._take_from_prod(path, file, stored)
        except Exception:
            return None  # loading the file reports what is wrong with it

    def _take_from_prod(self, path: Path, file: KnownFile, stored: StoredModel) -> SqlModel | None:
        model = parse_stored_sqlmesh_model(stored)
        if model is None or model.fqn != file.model or not model.enabled:
            return None
        for name in model.audit_definitions:
            model.audit_definitions[name] = self._audits[name]
        model._path = path
        model._full_depends_on = set(file.depends_on)
        vars(model)["query_"] = make_unparsed_sqlmesh_query(
            model, file_dialect=self._dialect, lists_columns=file.lists_columns
        )
        return model


def parse_stored_sqlmesh_model(stored: StoredModel) -> SqlModel | None:
    """Parses the SQL model of prod's record; None if it is not a SQL model."""
    node = json.loads(stored.text)["node"]
    return SqlModel.parse_obj(node) if node.get("source_type") == "sql" else None


_MACROS = (d.MacroFunc, d.MacroSQL, d.MacroStrReplace, d.MacroDef)
# Macros for times, which stay in a query as they are until it runs.
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
def note_files_that_sqlmesh_loads() -> Iterator[NotedFiles]:
    """Notes the settings of projects that load inside this block, for
    `list_known_files_of_sqlmesh`.
    """
    made = NotedFiles()

    def note_settings(project: Path, settings: bytes, audits: Mapping[str, Any]) -> None:
        made.settings[project] = settings, audits

    with note_sqlmesh_load_settings(note_settings):
        yield made


def list_known_files_of_sqlmesh(
    context: Context, found: NotedFiles, repository: Path
) -> list[KnownFile]:
    """Lists the files that define exactly one model, which equals prod's record in every field.

    A file is listed only if it and the noted settings alone decide the model: one that uses code, a
    template, or a macro other than a time may read anything. At most `MOST_FILES` are listed.
    """
    stored = read_stored_sqlmesh_models(context)
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
        if _is_sqlmesh_model_defined_by_file(model, path) and _is_sqlmesh_model_as_stored(
            model, record, audits
        ):
            made.append(_make_known_file(model, path, record, settings, repository))
    return made


def _make_known_file(
    model: SqlModel, path: Path, record: StoredModel, settings: bytes, repository: Path
) -> KnownFile:
    return KnownFile(
        path=path.relative_to(repository).as_posix(),
        content=hashlib.sha256(path.read_bytes()).hexdigest(),
        model=model.fqn,
        record=digest_stored_sqlmesh_model(settings, record),
        depends_on=sorted(model.full_depends_on),
        lists_columns=lists_columns(model),
    )


def _is_sqlmesh_model_defined_by_file(model: Model, path: Path) -> TypeGuard[SqlModel]:
    """Whether the file and the settings alone decide the model."""
    if not is_sqlmesh_model_pure(model) or not is_dialect_of_sqlglot(model.dialect):
        return False
    if any(getattr(model, name, None) for name in _STATEMENTS):
        return False  # their trees come from the file, too, and nothing reads them from there
    text = path.read_text(encoding="utf-8")
    parts = d.parse(text, default_dialect=model.dialect)
    heads = [part for part in parts if isinstance(part, d.Model)]
    if len(heads) != 1:
        return False
    if any(heads[0].find_all(*_MACROS, d.MacroVar)):
        return False
    query = model.query
    if not isinstance(query, exp.Query) or any(query.find_all(*_MACROS, d.Jinja)):
        return False
    return all(
        found.name.lower() in _MOMENTS and found.find_ancestor(exp.Table) is None
        for found in query.find_all(d.MacroVar)
    )


def _is_sqlmesh_model_as_stored(
    model: SqlModel, record: StoredModel, audits: Mapping[str, Any]
) -> bool:
    """Whether prod's record restores exactly this model."""
    back = parse_stored_sqlmesh_model(record)
    if back is None or back.fqn != model.fqn or type(model) is not SqlModel:
        return False
    if (model.data_hash, model.metadata_hash) != (
        record.fingerprint.data_hash,
        record.fingerprint.metadata_hash,
    ):
        return False
    if not has_hashes_of_fingerprint(back, record.fingerprint):
        return False
    if any(
        name not in audits
        or not _is_same_sqlmesh_value(audit, audits[name])
        or not _is_same_sqlmesh_value(audit, other)
        for name, audit in model.audit_definitions.items()
        for other in [back.audit_definitions.get(name)]
    ):
        return False
    return all(
        _is_same_sqlmesh_value(getattr(model, name), getattr(back, name))
        for name in type(model).model_fields
        if name not in ("query_", "audit_definitions")
    ) and (model.query_.sql, model.query_.transaction) == (back.query_.sql, back.query_.transaction)


def _is_same_sqlmesh_value(one: Any, other: Any) -> bool:
    if type(one) is date and isinstance(other, str):
        return str(one) == other  # a model's start is a date in YAML, and a text in the state
    if type(one) is not type(other):
        return False
    if isinstance(one, exp.Expression):
        return bool(one == other and one.sql(comments=True) == other.sql(comments=True))
    if hasattr(one, "json"):
        return bool(one.json() == other.json())
    return bool(one == other)
