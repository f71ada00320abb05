"""The dependencies of a model's query: for each column and for the rows, columns of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ci_bot.worker.sql.equivalence.select_notes import UnreadableError
from ci_bot.worker.sql.equivalence.translate_query import QueryTranslator
from ci_bot.worker.sql.lineage.block_dependencies import BlockTracer
from ci_bot.worker.sql.lineage.rowsets import (
    ANY,
    DOUBT,
    ORDER,
    ROWS,
    LineageAtom,
    LineageRowset,
    LineageTerms,
    TracedValue,
    make_opaque_relation,
)
from ci_bot.worker.sql.lineage.sources import KnownColumns, ModelDefinition
from ci_bot.worker.sql.selects import table_name
from ci_bot.worker.sql.spark_sql import read_as_spark


@dataclass(frozen=True)
class ModelDependencies:
    """The dependencies of a model's columns and rows, as bits over `atoms`."""

    atoms: list[LineageAtom]
    columns: dict[str, int]
    rows: int
    order: int
    unlisted: int


class StoredTables:
    """The stored tables of one model, by the names in its queries."""

    def __init__(self, terms: LineageTerms, known: Iterable[str], columns: KnownColumns) -> None:
        self._terms = terms
        self._known = list(known)
        self._columns = columns
        self._relations: dict[str, LineageRowset] = {}

    def read_relation(self, name: str) -> LineageRowset:
        """Returns the table that a query calls `name`, with or without its catalog."""
        if name not in self._relations:
            self._relations[name] = self._read_table(name)
        return self._relations[name]

    def list_columns(self, name: str) -> Sequence[str] | None:
        """Lists the columns of a table; None if they are not known."""
        relation = self.read_relation(name)
        return list(relation.columns) if relation.missing is None else None

    def _read_table(self, name: str) -> LineageRowset:
        found = self._list_matching(name)
        if len(found) > 1:
            deps = 0
            for table in found:
                deps |= self._terms.find_atom_bit(table, DOUBT)
            value = TracedValue(deps, self._terms.make_key("table", name))
            return make_opaque_relation(self._terms, value, (), frozenset(found))
        return self._stored_relation(found[0] if found else name)

    def _list_matching(self, name: str) -> list[str]:
        if name in self._known:
            return [name]
        found = [table for table in self._known if table.endswith(f".{name}")]
        last = name.rpartition(".")[2]
        return found or [table for table in self._known if table.rpartition(".")[2] == last]

    def _stored_relation(self, table: str) -> LineageRowset:
        terms, listed = self._terms, self._columns.get(table)

        def column(name: str) -> TracedValue:
            return TracedValue(
                terms.find_atom_bit(table, name), terms.make_key("column", table, name)
            )

        return LineageRowset(
            columns={name: column(name) for name in listed or ()},
            rows=TracedValue(terms.find_atom_bit(table, ROWS), terms.make_key("rows", table)),
            missing=column if listed is None else None,
            order=terms.find_atom_bit(table, ORDER),
            tables=frozenset({table}),
        )


@dataclass(frozen=True)
class DefinitionRelations:
    """The results of a definition: of the rendered tree, and of the others that were read.

    Attributes:
        gaps: the parts that Spark may compute in another way than the tree shows, in words. Their
            dependencies are known anyway.
    """

    rendered: LineageRowset
    written: LineageRowset | None
    gaps: tuple[str, ...] = ()
    incremental: LineageRowset | None = None

    @property
    def later(self) -> LineageRowset:
        """The result of a run that finds the results of earlier runs."""
        return self.incremental if self.incremental is not None else self.rendered


def read_definition(
    definition: ModelDefinition, terms: LineageTerms, tables: StoredTables, *, with_written: bool
) -> DefinitionRelations:
    """Reads the queries of a definition.

    Args:
        with_written: also reads the tree of the file, in which names may be unknown.

    Raises:
        UnreadableError: A query is of an unknown kind, nested too deeply, or cannot be read.
    """
    gaps: set[str] = set()

    def read_rows(tree: exp.Expr | None, *, strict: bool = True) -> LineageRowset | None:
        if tree is None:
            return None
        reading = read_as_spark(tree)
        gaps.update(reading.gaps)
        reader = QueryTranslator({}, on_spark=False, list_columns=tables.list_columns)
        block = reader.translate_query(reading.tree)
        named = {cte.alias for cte in reading.tree.find_all(exp.CTE)}
        for table in reading.tree.find_all(exp.Table) if named else ():
            if table.db or table.name not in named:
                tables.read_relation(table_name(table))  # perhaps in a CTE that nothing reads
        return BlockTracer(terms, tables.read_relation, strict=strict).trace_block(block, root=True)

    try:
        rendered = read_rows(definition.rendered)
        if rendered is None:
            raise UnreadableError(definition.opaque or "no query")
        written = read_rows(definition.written, strict=False) if with_written else None
        incremental = read_rows(definition.incremental)
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("it nests too deeply to be read") from None
    except Exception as error:  # a tree of an unforeseen shape must not count as harmless
        raise UnreadableError(f"reading it ended with {type(error).__name__}") from None
    return DefinitionRelations(rendered, written, tuple(sorted(gaps)), incremental)


def read_dependencies(relations: DefinitionRelations, terms: LineageTerms) -> ModelDependencies:
    """Reads the dependencies of all trees together: one may show columns that another hides."""
    columns: dict[str, int] = {}
    rows = order = unlisted = 0
    for relation in (relations.rendered, relations.written, relations.incremental):
        if relation is None:
            continue
        for name, value in relation.columns.items():
            columns[name] = columns.get(name, 0) | value.deps
        rows |= relation.rows.deps
        order |= relation.order
        if relation.missing is not None:
            unlisted |= relation.missing(ANY).deps
    if relations.written is not None:
        # A macro among the projections means columns that only the rendering names.
        unnamed = 0
        for name in [name for name in columns if name.startswith("\n")]:
            unnamed |= columns.pop(name)
        named = relations.written.columns.keys()
        columns = {n: deps if n in named else deps | unnamed for n, deps in columns.items()}
    return ModelDependencies(terms.atoms, columns, rows, order, unlisted)
