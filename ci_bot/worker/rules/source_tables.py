"""The tables that queries read, with the types of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.worker.execution import (
    SourceTable,
    UntriedError,
    ValueType,
    parse_plain,
    read_columns,
    write_query,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.sql import ModelQueries, plain_name, table_name
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

TypesByColumn = Mapping[str, ValueType]
# SQLGlot's word for an unknown type.
_UNKNOWN = "unknown"
# Clauses of a SELECT that give no column its type.
_CHOOSING_CLAUSES = ("where", "having", "qualify", "order", "limit", "offset", "sort")
# The type of a column is followed through at most so many models.
_MOST_LEVELS = 6


class SourceTables:
    """Reads the columns of tables: from SQLMesh, and then from the queries of their models.

    If no model declares a type, SQLMesh takes SQLGlot's. SQLGlot knows no type for many
    expressions, and has a wrong one for some (a product of decimals has more digits in Spark). The
    judge knows Spark's types, so they come from a model's own query, down to tables with declared
    types.
    """

    def __init__(self, inputs: RuleInputs, queries: ModelQueries) -> None:
        self._inputs = inputs
        self._queries = queries
        # The type of a column from a model's query, by model, column and levels that are left: many
        # readers need the same columns.
        self._known: dict[tuple[int, str, int], ValueType | None] = {}

    def read_tables(
        self,
        models: Iterable[Model],
        queries: Iterable[exp.Expr],
        new_names: Mapping[str, str],
    ) -> dict[str, TypesByColumn]:
        """Reads the columns of all tables that models read, by the tables' names.

        If the change gives a column another type, the column has no type here.

        Args:
            models: the readers.
            queries: the readers' queries; only the columns that they name are followed.
            new_names: of models that got another name.
        """
        used = _UsedColumns()
        for query in queries:
            used.add_query(query)
        return self._read_tables(models, used, new_names, _MOST_LEVELS)

    def _read_tables(
        self,
        models: Iterable[Model],
        used: _UsedColumns,
        new_names: Mapping[str, str],
        levels: int,
    ) -> dict[str, TypesByColumn]:
        found: dict[str, dict[str, ValueType]] = {}
        for model in models:
            for name, columns in iterate_schema_tables(model.mapping_schema):
                known = found.setdefault(new_names.get(name, name), {})
                for column, kind in read_columns(columns).items():
                    if known.setdefault(column, kind) != kind:
                        known[column] = ValueType(f"{known[column]} and {kind}")
        for name, columns in found.items():
            guessed = used.list_to_verify(name, columns) if levels else set()
            if guessed:
                read = self._read_definitions(name, guessed, levels - 1)
                columns |= {one: read[one] for one in guessed if one in read}
        return dict(found)

    def _read_definitions(self, name: str, wanted: set[str], levels: int) -> dict[str, ValueType]:
        """Reads the types of columns from the queries of a model, if both versions agree."""
        sides = [
            self._read_definition(model, wanted, levels)
            for models in self._models_by_name
            if (model := models.get(name)) is not None
        ]
        if not sides:
            return {}
        return {
            column: kind
            for column, kind in sides[0].items()
            if all(side.get(column) == kind for side in sides)
        }

    def _read_definition(self, model: Model, wanted: set[str], levels: int) -> dict[str, ValueType]:
        """Reads the types of columns from a model's query; each is derived once."""
        missing = {one for one in wanted if (id(model), one, levels) not in self._known}
        if missing:
            found = self._derive_types(model, missing, levels)
            if found is None and len(missing) > 1:
                # A column that the judge does not know does not hide the others.
                found = {}
                for column in sorted(missing):
                    found |= self._derive_types(model, {column}, levels) or {}
            self._known |= {(id(model), one, levels): (found or {}).get(one) for one in missing}
        known_types = {one: self._known[id(model), one, levels] for one in wanted}
        return {one: kind for one, kind in known_types.items() if kind is not None}

    def _derive_types(
        self, model: Model, wanted: set[str], levels: int
    ) -> dict[str, ValueType] | None:
        """Derives the types of some columns; None if the judge does not know all that they need."""
        query = self._queries.query_of(model)
        # SQLMesh casts columns to the types that a model declares.
        if query is None or query.rendered_apart is None or model.columns_to_types_ is not None:
            return {}
        tree = _drop_conditions(_keep_columns(query.rendered_apart, wanted))
        used = _UsedColumns()
        used.add_query(tree)
        tables = self._read_tables([model], used, {}, levels)
        sources = {name: SourceTable(name, columns) for name, columns in tables.items()}
        try:
            written = write_query(parse_plain(tree.sql(dialect="spark", comments=False)), sources)
        except UntriedError:
            return None
        return {name.lower(): kind for name, kind in written.columns}

    @cached_property
    def _models_by_name(self) -> list[dict[str, Model]]:
        """The models of the head, and those of the base that differ from it, by plain name."""
        before, after = self._inputs.before, self._inputs.after
        changed = {name: model for name, model in before.items() if after.get(name) is not model}
        return [{plain_name(name): one for name, one in side.items()} for side in (after, changed)]


def _keep_columns(query: exp.Query, wanted: set[str]) -> exp.Query:
    """Drops the other columns of a query if its meaning stays the same."""
    kept = [item for item in query.selects if item.alias_or_name.lower() in wanted]
    if not isinstance(query, exp.Select) or query.args.get("distinct") or not kept:
        return query
    return query.select(*kept, append=False)


def _drop_conditions(query: exp.Query) -> exp.Query:
    """The query without what chooses and orders rows, for which no type of a column counts: each
    column that a condition names would have to be followed through the models above.
    """
    copied = query.copy()
    for select in list(copied.find_all(exp.Select)):
        for clause in _CHOOSING_CLAUSES:
            select.set(clause, None)
        for join in select.args.get("joins") or ():
            if join.args.get("on") is not None:
                join.set("on", exp.true())
    return copied


class _UsedColumns:
    """The columns that queries use, by table: `""` for columns of which the table is not known."""

    def __init__(self) -> None:
        self._named: dict[str, set[str]] = {}
        # Those that more is done with than a cast to a number, so that their own digits count.
        self._computed: dict[str, set[str]] = {}

    def add_query(self, query: exp.Expr) -> None:
        """Adds the columns of a query whose names are qualified, as SQLMesh renders it."""
        sources = {id(one): _map_aliases_to_tables(one) for one in query.find_all(exp.Select)}
        for column in query.find_all(exp.Column):
            table = _find_table(column, sources)
            if table is None:
                continue
            self._named.setdefault(table, set()).add(column.name.lower())
            if not _is_cast_to_number(column.parent):
                self._computed.setdefault(table, set()).add(column.name.lower())

    def list_to_verify(self, table: str, columns: TypesByColumn) -> set[str]:
        """Those of `columns` whose types SQLGlot may have guessed, and that count."""
        found: set[str] = set()
        for key in ("", table):
            named, computed = self._named.get(key, set()), self._computed.get(key, set())
            found |= {one for one in named & columns.keys() if columns[one].name == _UNKNOWN}
            found |= {one for one in computed & columns.keys() if columns[one].is_numeric}
        return found


def _is_cast_to_number(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Cast | exp.TryCast) and node.to.is_type(*exp.DataType.NUMERIC_TYPES)


def _map_aliases_to_tables(select: exp.Select) -> dict[str, str | None]:
    """The tables that a SELECT reads, by alias; None for a query in their place."""
    first = select.args.get(FROM)
    nodes = [first.this] if first is not None else []
    nodes += [join.this for join in select.args.get("joins") or ()]
    return {
        node.alias_or_name.lower(): table_name(node) if isinstance(node, exp.Table) else None
        for node in nodes
    }


def _find_table(column: exp.Column, sources: Mapping[int, Mapping[str, str | None]]) -> str | None:
    """The table of a column: None if a query stands in its place, `""` if it is not known."""
    alias, select = column.table.lower(), column.find_ancestor(exp.Select)
    while select is not None:
        known = sources.get(id(select), {})
        if alias in known:
            return known[alias]
        select = select.find_ancestor(exp.Select)
    return ""


def iterate_schema_tables(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields (name, columns by name) from SQLMesh's mapping of catalogs, schemas and tables."""
    for name, inner in schema.items():
        if not isinstance(inner, Mapping):
            continue
        if any(isinstance(one, Mapping) for one in inner.values()):
            for rest, columns in iterate_schema_tables(inner):
                yield f"{plain_name(name)}.{rest}", columns
        else:
            yield plain_name(name), inner
