"""Work of SQLMesh that a run skips: parsing queries that nobody asks for, and filling the cache for
a next run, because here the cache is thrown away.

Queries are parsed from their files on use: most models need only their text.

A project of a thousand models spends a third of a review on its cache: every model, every optimized
query and every stored snapshot is written into a file of its own, and all stored queries are
rendered ahead, although a plan needs only those of the changed models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.context import Context
from sqlmesh.core.dialect import JinjaQuery, parse
from sqlmesh.core.model import cache as model_cache
from sqlmesh.core.model import definition, meta
from sqlmesh.core.model.common import ParsableSql
from sqlmesh.core.model.definition import ExternalModel, SqlModel
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.core.snapshot import cache as snapshot_cache
from sqlmesh.core.state_sync.db import snapshot as snapshot_module
from sqlmesh.utils import cron
from sqlmesh.utils.metaprogramming import ExecutableKind

from ci_bot.worker.sqlmesh_compat.models_and_trees import list_tables_of_plain_query

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


class UnparsedSqlmeshQuery(ParsableSql):
    """A query whose tree, with comments and positions, is parsed again on use.

    The loading process had the tree, but does not send it to another process: a tree is four fifths
    of the bytes of a model.
    """

    _path: Path = Path()
    _file_dialect: str = ""
    _lists_columns: bool = False

    @property
    def lists_columns(self) -> bool:
        """Whether the tree lists its columns; see the function `lists_columns`."""
        return self._lists_columns

    def parse(self, dialect: str) -> Any:
        if self._parsed is None and self._parsed_dialect == dialect:
            self._parsed = self._parse_from_file()
        return super().parse(dialect)

    def _parse_from_file(self) -> Any:
        """Parses the tree from the file; None if the file has changed, and then the loaded text
        counts.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
            found = parse(text, default_dialect=self._file_dialect)
        except Exception:
            return None
        return next((query for query in found if _is_query_of_sqlmesh_text(query, self.sql)), None)


def leave_sqlmesh_query_in_file(model: SqlModel, *, file_dialect: str, lists_columns: bool) -> None:
    """Removes the tree from a SQL model that is the only one of its file.

    Args:
        file_dialect: The project's, for files that name none. (`load_sql_models`)
        lists_columns: see the function `lists_columns`.
    """
    whole = model.query_
    if _is_query_of_sqlmesh_text(whole._parsed, whole.sql):
        left = make_unparsed_sqlmesh_query(
            model, file_dialect=file_dialect, lists_columns=lists_columns
        )
        left._parsed_dialect = whole._parsed_dialect
        vars(model)["query_"] = left  # models are frozen


def make_unparsed_sqlmesh_query(
    model: SqlModel, *, file_dialect: str, lists_columns: bool
) -> UnparsedSqlmeshQuery:
    """Makes the query of a SQL model without its tree; the arguments are those of
    `leave_sqlmesh_query_in_file`.
    """
    whole = model.query_
    left = UnparsedSqlmeshQuery(sql=whole.sql, transaction=whole.transaction)
    left._path, left._file_dialect = Path(model._path or ""), file_dialect
    left._lists_columns, left._parsed_dialect = lists_columns, model.dialect
    return left


def _is_query_of_sqlmesh_text(found: Any, sql: str) -> bool:
    return isinstance(found, exp.Query) and found.meta.get("sql") == sql


# Facts of a model's definition that need no rendering.


def is_sqlmesh_model_pure(model: Model) -> TypeGuard[SqlModel]:
    """Whether only the model itself decides its query: code of the project can read a file or a
    clock, so its result is not known before it runs.
    """
    return (
        isinstance(model, SqlModel)
        and not model.kind.is_custom
        and (
            isinstance(model.query_, UnparsedSqlmeshQuery)
            or not isinstance(model.query, JinjaQuery)
        )
        and not model.jinja_macros.root_macros
        and not model.jinja_macros.packages
        and all(item.kind == ExecutableKind.VALUE for item in model.python_env.values())
    )


def lists_columns(model: SqlModel) -> bool:
    """Whether the query of a SQL model shows all its columns: each has a name of its own, and no
    star or macro may add others."""
    if isinstance(model.query_, UnparsedSqlmeshQuery):
        return model.query_.lists_columns
    if "@" in model.query_.sql or not isinstance(model.query, exp.Select):
        return False
    columns = model.query.expressions
    names = {column.output_name.lower() for column in columns}
    return bool(
        columns
        and all(type(column) in (exp.Alias, exp.Column) for column in columns)
        and len(names) == len(columns)
        and not names & {"", "*"}
    )


# The tables that a query without macros reads, found without the other work of rendering.


def set_sqlmesh_dependencies(model: Model) -> None:
    """Sets the model's dependencies, as `full_depends_on` finds them.

    SQLMesh renders the query to find them, which is half of the time to load a file: it prepares
    macros and times, copies the tree to search it for macros, and names all columns.
    """
    tables = _list_tables_of_plain_query(model) if isinstance(model, SqlModel) else None
    if tables is None:
        _ = model.full_depends_on
    else:
        model._full_depends_on = tables


def _list_tables_of_plain_query(model: SqlModel) -> set[str] | None:
    """Lists the tables of the query; None if it must be rendered, or if there is no query.

    (`_Model.full_depends_on`, `BaseExpressionRenderer._render`)
    """
    if model.depends_on_ or not model.extract_dependencies_from_query:
        return None
    text = model.query_.sql
    if "@" in text or model.macro_definitions or not is_sqlmesh_model_pure(model):
        return None
    # A comment may tell SQLGlot to leave the case of the names behind it.
    if "sqlglot.meta" in text or not isinstance(model.query, exp.Query):
        return None
    plain = list_tables_of_plain_query(model.query)
    if plain is not None and not any(map(_is_case_noted, plain)):
        # Normalizing only the names is half of the work: the rest is for columns.
        names = (
            tuple((part.name, bool(part.args.get("quoted"))) for part in t.parts) for t in plain
        )
        return {_normalize_table_name(n, model.default_catalog, model.dialect) for n in names}
    query = model.query.copy()
    try:
        with d.normalize_and_quote(query, model.dialect, model.default_catalog) as normalized:
            pass
        found: set[str] = d.find_tables(
            normalized, default_catalog=model.default_catalog, dialect=model.dialect
        )
    except Exception:
        return None  # rendering reports what is wrong with it
    return set(found)


# What BigQuery's parser notes at a name whose case depends on more than its text and its quotes.
_NOTED_OF_CASE = frozenset({"maybe_column", "quoted_table"})


def _is_case_noted(table: exp.Table) -> bool:
    return any(not _NOTED_OF_CASE.isdisjoint(node.meta) for node in (table, *table.parts))


@lru_cache(maxsize=16_384)
def _normalize_table_name(
    parts: tuple[tuple[str, bool], ...], default_catalog: str | None, dialect: str
) -> str:
    """Normalizes the parts of a name, of each its text and whether it is quoted.

    `normalize_model_name` remembers a table with its alias, and most queries give it another one.
    """
    own, *above = [exp.Identifier(this=name, quoted=quoted) for name, quoted in reversed(parts)]
    table = exp.Table(this=own, **dict(zip(("db", "catalog"), above, strict=False)))
    return str(d.normalize_model_name(table, default_catalog, dialect))


# How many steps of crons are remembered: a plan asks for the same ones for each model.
_MOMENTS = 100_000


def skip_sqlmesh_cache_writes(*, loaded_again: bool) -> None:
    """Skips cache writes that only another run would read. Call it before a project is loaded.

    Args:
        loaded_again: Whether another process of this run loads the same files, so that it pays
            to write a file for each model and query.
    """
    _skip_sqlmesh_snapshot_rendering()
    _let_sqlmesh_ignore_empty_arguments()
    _let_sqlmesh_compare_cache_entries()
    _cache_sqlmesh_cron_steps()
    if not loaded_again:
        _send_sqlmesh_models_through_pipe()


def _skip_sqlmesh_snapshot_rendering() -> None:
    """Reads stored snapshots from the state alone, and renders a query only on use.

    (`SnapshotCache.get_or_load` renders them all, in a pool of processes)
    """

    def get_or_load(
        self: Any, snapshot_ids: set[Any], loader: Callable[[set[Any]], Collection[Any]]
    ) -> tuple[dict[Any, Any], set[Any]]:
        found = {snapshot.snapshot_id: snapshot for snapshot in loader(snapshot_ids)}
        for snapshot in found.values():
            self._update_node_hash_cache(snapshot)
        return found, set()

    kind: Any = snapshot_cache.SnapshotCache
    kind.get_or_load = get_or_load
    kind.put = lambda self, snapshot: None


def _let_sqlmesh_ignore_empty_arguments() -> None:
    """Removes empty arguments before a diff of queries. A query that went through a file or a pipe
    has lost them, one that is rendered here has them. The `diff` of sqlglot 27 and 28 counts that
    as an edit, and SQLMesh then counts a new column as breaking. With SQLMesh's cache, both queries
    come from files. (`SqlModel.is_breaking_change`; since 0.236 without `diff`)
    """
    module: Any = definition
    if not hasattr(module, "diff"):
        return
    compare = module.diff

    def compare_trees(source: Any, target: Any, *args: Any, **more: Any) -> Any:
        for query in (source, target):
            for node in query.walk():
                for name in [name for name, value in node.args.items() if value in (None, [])]:
                    del node.args[name]
        return compare(source, target, *args, **more)

    module.diff = compare_trees


def _let_sqlmesh_compare_cache_entries() -> None:
    """Compares definitions by SQLMesh's cache entries. Two definitions with one entry share one
    rendered query: the project's, because it loads first. An entry's name ignores dialect and kind,
    so SQLMesh counts another dialect of the same text as metadata.
    (`OptimizedQueryCache._entry_name`, `SnapshotCache.get_or_load`)
    """
    kind: Any = SqlModel
    plain = kind.is_metadata_only_change
    name_of = model_cache.OptimizedQueryCache._entry_name

    def is_metadata_only_change(self: Any, previous: Any) -> bool:
        if (
            isinstance(previous, SqlModel)
            and self.query_.sql == previous.query_.sql
            and self.metadata_hash != previous.metadata_hash
            and name_of(self) == name_of(previous)
        ):
            query = self.render_query()
            previous._query_renderer.update_cache(
                query, self.violated_rules_for_query, optimized=query is not None
            )
        return bool(plain(self, previous))

    kind.is_metadata_only_change = is_metadata_only_change


def share_query_that_sqlmesh_rendered(before: Model, after: Model) -> bool:
    """Whether two definitions with different texts get one rendered query from the cache.

    A short generator makes an entry's name and leaves arguments out: `ELEMENT_AT(x, 1)`,
    `TRY_ELEMENT_AT(x, 1)` and `x[1]` have the same name. The query that was rendered first counts
    for both, so SQLMesh calls the edit metadata, although a run renders the new text.
    (`sqlglot.optimizer.simplify.gen`)
    """
    if not (isinstance(before, SqlModel) and isinstance(after, SqlModel)):
        return False
    name_of = model_cache.OptimizedQueryCache._entry_name
    texts = [model.query.sql(dialect=model.dialect, comments=False) for model in (before, after)]
    return (
        before.dialect == after.dialect
        and texts[0] != texts[1]
        and name_of(before) == name_of(after)
    )


def _send_sqlmesh_models_through_pipe() -> None:
    """Lets loader processes send models through the pool's pipe and not through files.

    (`load_sql_models` sends what `ModelCache.put` has not stored. In versions without
    `get_or_create_entry` the pool that renders answers with the name of a file; there
    `OptimizedQueryCache` stays as it is.)
    """

    def find_dependencies_only(self: Any, models: list[Any], name: str, entry_id: str = "") -> bool:
        for model in models:
            if isinstance(model, SqlModel | ExternalModel):
                set_sqlmesh_dependencies(model)  # here, in parallel with other processes
        return False

    models: Any = model_cache.ModelCache
    models.put = find_dependencies_only
    queries: Any = model_cache.OptimizedQueryCache
    if not hasattr(queries, "get_or_create_entry"):
        return

    def make_entry(self: Any, name: str, model: Model) -> Any:
        return model_cache.OptimizedQueryCacheEntry(
            optimized_rendered_query=model.render_query(),
            renderer_violations=model.violated_rules_for_query,
        )

    queries._put = make_entry


class _SqlmeshCronMoment:
    """A moment of a cron; its next and previous moments are computed once."""

    def __init__(self, expression: str, moment: Any = None) -> None:
        self._at = expression, moment

    def get_next(self) -> float:
        return (
            _step_sqlmesh_cron(*self._at, forward=True)
            if self._at[1]
            else _plain(self._at[0]).get_next()
        )

    def get_prev(self) -> float:
        return (
            _step_sqlmesh_cron(*self._at, forward=False)
            if self._at[1]
            else _plain(self._at[0]).get_prev()
        )


_plain: Any = cron.croniter


@lru_cache(maxsize=_MOMENTS)
def _step_sqlmesh_cron(expression: str, moment: Any, *, forward: bool) -> float:
    found = _plain(expression, moment)
    return float(found.get_next() if forward else found.get_prev())


def _cache_sqlmesh_cron_steps() -> None:
    """Makes SQLMesh remember the steps of crons. (`CroniterCache` makes a `croniter` per step)"""
    module: Any = cron
    module.croniter = _SqlmeshCronMoment


# Each text of a column type is parsed once, and copied for each column.
#
# A Python model declares its column types as texts: a project of 3,000 such models has 150,000
# texts, which are parsed twice each, and hardly a hundred of them differ.


@contextmanager
def cache_types_that_sqlglot_parses() -> Iterator[None]:
    """Caches the parsed texts of `DataType.build` and of column declarations in this block.

    (`exp.DataType.build`, `ModelMeta._columns_validator`)
    """
    kind, module = exp.DataType, vars(meta)
    plain, plain_parse = vars(kind)["build"], module.get("parse_one")
    built: dict[Any, exp.DataType] = {}
    parsed: dict[Any, Any] = {}

    def build_type(
        cls: Any, dtype: Any, dialect: Any = None, udt: bool = False, *rest: Any, **more: Any
    ) -> Any:
        known = isinstance(dtype, str) and isinstance(dialect, str | None) and not rest
        if not known or more:
            return plain.__func__(cls, dtype, dialect, udt, *rest, **more)
        key = cls, dtype, dialect, udt
        if key not in built:
            built[key] = plain.__func__(cls, dtype, dialect, udt)
        return built[key].copy()

    def parse_one(sql: Any, *rest: Any, **named: Any) -> Any:
        dialect = named.get("read")
        known = named.get("into") is kind and isinstance(dialect, str | None)
        if not known or rest or len(named) > 2:  # noqa: PLR2004 - these two
            return plain_parse(sql, *rest, **named)  # type: ignore[misc]
        key = sql, dialect
        if key not in parsed:
            parsed[key] = plain_parse(sql, **named)  # type: ignore[misc]
        return parsed[key].copy()

    changed: Any = kind
    changed.build = classmethod(build_type)
    if plain_parse is not None:
        module["parse_one"] = parse_one
    try:
        yield
    finally:
        changed.build = plain
        if plain_parse is not None:
            module["parse_one"] = plain_parse


# Stored snapshots of unchanged models, without parsing a second model from JSON.


@contextmanager
def let_sqlmesh_reuse_loaded_nodes(context: Context) -> Iterator[None]:
    """Gives a stored snapshot the loaded model if both have the same fingerprint.

    SQLMesh parses the stored one first and then puts the loaded one in its place.
    (`GenericContext._snapshots`, `ContextDiff.create`, `parse_snapshot`)
    """
    module: Any = snapshot_module
    project: Any = context
    make = project._nodes_to_snapshots
    made: dict[str, Snapshot] = {}

    def make_and_note_snapshots(nodes: Any) -> dict[str, Snapshot]:
        found: dict[str, Snapshot] = make(nodes)
        made.update(found)
        return found

    class SnapshotJson:
        """The module's `json`."""

        def __getattr__(self, name: str) -> Any:
            return getattr(json, name)

        def loads(self, text: str) -> Any:
            stored = json.loads(text)
            loaded = made.get(stored["name"])
            if loaded is not None and stored["fingerprint"] == loaded.fingerprint.dict():
                stored["node"] = loaded.node
            return stored

    project._nodes_to_snapshots, module.json = make_and_note_snapshots, SnapshotJson()
    try:
        yield
    finally:
        module.json = json
        del project._nodes_to_snapshots
