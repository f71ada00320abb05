"""What a query's columns and rows depend on, followed through CTEs, subqueries and set operations.

Which rows there are is decided by filters, joins, groupings, DISTINCT, LIMIT with its order and set
operations; a column that stands in one of these decides about rows. What is not understood counts
as depending on all that it can see, or as doubtful, and never as independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from ci_bot.worker.sql.lineage.expressions import ExpressionReader, ProjectionList, UnreadableError
from ci_bot.worker.sql.lineage.scopes import (
    ANY,
    DOUBT,
    ORDER,
    ROWS,
    LineageAtom,
    LineageRowset,
    LineageTerms,
    NameScope,
    TracedValue,
    make_opaque_relation,
    map_columns_by_name,
)
from ci_bot.worker.sql.lineage.sources import FromClause, KnownColumns, ModelDefinition, StoredTable
from ci_bot.worker.sql.spark_sql import read_as_spark
from ci_bot.worker.sqlmesh_compat import FROM, WITH, Tree

_READ = frozenset(
    {WITH, FROM, "joins", "laterals", "expressions", "where", "group", "having", "qualify"}
    | {"windows", "distinct", "order", "limit", "offset"}
)
# They choose neither rows nor values. `exclude` takes columns away, which are kept here.
_WITHOUT_EFFECT = frozenset(
    {"hint", "locks", "into", "operation_modifiers", "settings", "format", "options", "exclude"}
    | {"distribute", "sort", "cluster"}
)

_GROUPING_SETS = ("grouping_sets", "cube", "rollup")
_OF_SETS = frozenset({"this", "expression", "distinct", "by_name"})


class QueryReader:
    """Reads queries of one dialect; `stored` gives the tables that they read."""

    def __init__(self, terms: LineageTerms, stored: StoredTable, *, strict: bool) -> None:
        self.terms = terms
        self._strict = strict
        self._expressions = ExpressionReader(terms, self._read_node)
        self._sources = FromClause(self._expressions, self._read_node, stored)

    def read_query(self, query: exp.Expr) -> LineageRowset:
        """The content of a query's result.

        Raises:
            UnreadableError: It is no query that is known here.
            RecursionError: It is nested too deeply.
        """
        return self._read_node(query, NameScope(self.terms, self._strict), root=True)

    def _read_node(self, node: exp.Expr, outer: NameScope, *, root: bool = False) -> LineageRowset:
        if isinstance(node, exp.Select):
            return self._read_select(node, outer, root=root)
        around = outer.open_inner(ctes=self._read_ctes(node, outer))
        if isinstance(node, exp.SetOperation):
            relation = self._set_operation(node, around)
            return self._read_modifiers(relation, node, around, _OF_SETS, root=root)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            relation = self._sources.pivot_relation(
                self._read_node(node.this, around, root=root), node
            )
            return self._read_modifiers(
                relation, node, around, {"this", "alias", "pivots"}, root=root
            )
        raise UnreadableError(type(node).__name__)

    def _read_ctes(self, node: exp.Expr, outer: NameScope) -> Mapping[str, LineageRowset]:
        clause = node.args.get(WITH)
        if clause is None:
            return outer.ctes
        known = dict(outer.ctes)
        frame = outer.open_inner(ctes=known)
        for cte in clause.expressions:
            name = cte.alias.lower()
            names = [column.name.lower() for column in cte.args["alias"].columns]
            if not isinstance(cte.this, exp.Query):
                value = self._expressions.trace_value(cte.this, frame)
                known[name] = make_opaque_relation(self.terms, value, names, frozenset())
            elif clause.args.get("recursive") and _reads_name(cte.this, name):
                known[name] = self._read_recursive(cte.this, name, names, frame)
            else:
                relation = self._read_node(cte.this, frame)
                known[name] = self._sources.rename_relation(relation, names) if names else relation
        return known

    def _read_recursive(
        self, query: exp.Query, name: str, names: list[str], frame: NameScope
    ) -> LineageRowset:
        """A query that reads itself: everything in it may depend on all that it reads."""
        names = names or [item.output_name.lower() for item in query.selects]
        itself = TracedValue(0, self.terms.computation_key("recursion", len(frame.ctes)))
        known = {**frame.ctes, name: make_opaque_relation(self.terms, itself, names, frozenset())}
        inside = frame.open_inner(ctes=known)
        found = self._read_node(query, inside)
        return make_opaque_relation(self.terms, found.trace_whole(self.terms), names, found.tables)

    def _set_operation(self, node: exp.SetOperation, around: NameScope) -> LineageRowset:
        left, right = self._read_node(node.left, around), self._read_node(node.right, around)
        kind = type(node).__name__
        distinct = bool(node.args.get("distinct"))
        tables = left.tables | right.tables
        pairs: list[tuple[str, TracedValue]] = []
        if node.args.get("by_name"):
            for name in dict.fromkeys((*left.columns, *right.columns)):
                sides = [v for side in (left, right) if (v := side.find_column(name)) is not None]
                pairs.append((name, self.terms.combine_values("union", sides, len(sides))))
        elif left.unplaced or right.unplaced:
            pass
        elif len(left.list_columns()) == len(right.list_columns()):
            order = left.order | right.order
            for (name, one), (_, other) in zip(
                left.list_columns(), right.list_columns(), strict=True
            ):
                both = self.terms.combine_values("union", [one, other])
                pairs.append((name, TracedValue(both.deps | order, both.key)))
        if left.missing or right.missing or not pairs:
            whole = self.terms.combine_values(
                "union", [left.trace_whole(self.terms), right.trace_whole(self.terms)]
            )
            return make_opaque_relation(self.terms, whole, left.columns, tables)
        parts = [left.rows, right.rows]
        if kind != "Union" or distinct:
            parts += [
                value
                for side in (pairs, left.list_columns(), right.list_columns())
                for _, value in side
            ]
        rows = self.terms.combine_values(kind, parts, distinct)
        columns, repeated = map_columns_by_name(self.terms, pairs)
        branches = self.terms.combine_values("branches", [left.rows, right.rows])
        return LineageRowset(
            columns=columns,
            rows=rows,
            order=left.order | right.order,
            tables=tables,
            clauses={
                "set operation": self.terms.computation_key(kind, distinct),
                "branches": branches.key,
            },
            repeated=repeated,
        )

    def _read_modifiers(
        self,
        relation: LineageRowset,
        node: exp.Expr,
        around: NameScope,
        known: Iterable[str],
        *,
        root: bool,
    ) -> LineageRowset:
        """A relation under the ORDER BY and LIMIT that stand behind a set operation or brackets."""
        frame = around.open_beside()
        frame.add_entry(frozenset({""}), relation)
        ends = {"order", "limit", "offset", WITH}
        left_over = {
            name
            for name, argument in node.args.items()
            if argument and name not in ends | _WITHOUT_EFFECT | set(known)
        }
        if left_over:
            whole = self.terms.combine_values(
                "modified",
                [relation.trace_whole(self.terms), *self._trace_clauses(node, left_over, frame)],
            )
            return make_opaque_relation(self.terms, whole, relation.columns, relation.tables)
        chosen = self._trace_limit(node, frame, list(relation.columns.values()), root=root)
        if chosen is None:
            return relation
        rows = self.terms.combine_values("limited", [relation.rows, chosen])
        return replace(
            relation, rows=rows, clauses={**relation.clauses, "limit and order": chosen.key}
        )

    def _read_select(self, node: exp.Expr, outer: NameScope, *, root: bool) -> LineageRowset:
        frame = NameScope(self.terms, self._strict, outer=outer, ctes=self._read_ctes(node, outer))
        joins = self._sources.read_sources(node, frame)
        left_over = {
            name
            for name, argument in node.args.items()
            if argument and name not in _READ and name not in _WITHOUT_EFFECT
        }
        if node.args.get("windows"):
            frame.windows = self.terms.combine_values(
                "windows", self._trace_clauses(node, {"windows"}, frame)
            )
        outputs = ProjectionList(self._expressions, node, frame)
        frame.behind = True
        clauses: dict[str, TracedValue] = {"sources": frame.trace_rows()}
        if joins:
            clauses["joins"] = self.terms.combine_values("joins", joins)
        filters = self._trace_clauses(node, ("where", "having", "qualify"), frame)
        if filters:
            clauses["filter"] = self.terms.combine_values("filter", filters)
        if node.args.get("group") is not None:
            clauses["grouping"] = self._trace_group(node, frame, outputs)
        if outputs.multiplied:
            clauses["generator"] = self.terms.combine_values("generator", outputs.multiplied)
        if node.args.get("distinct") is not None:
            parts = self._trace_clauses(node, ("distinct", "order"), frame)
            clauses["distinct"] = self.terms.combine_values("distinct", [*outputs.values, *parts])
        limit = self._trace_limit(node, frame, outputs.values, root=root)
        if limit is not None:
            clauses["limit and order"] = limit
        rows = self.terms.combine_values("select", clauses.values(), *clauses)
        if left_over or frame.mixed or outputs.spread:
            return outputs.make_mixed_relation(rows, self._trace_clauses(node, left_over, frame))
        kept = {FROM, "joins", "laterals", "where", "expressions", WITH, "windows", "order"}
        # Without GROUP BY, aggregates give one row of any input.
        one_row = outputs.aggregated and not outputs.multiplied
        if one_row and not {n for n, a in node.args.items() if a} - kept:
            return outputs.make_relation(
                TracedValue(0, self.terms.computation_key("one row")), also=rows
            )
        return outputs.make_relation(
            rows, clauses={name: value.key for name, value in clauses.items()}
        )

    def _trace_clauses(
        self, node: exp.Expr, names: Iterable[str], frame: NameScope
    ) -> list[TracedValue]:
        """The values of some clauses, each with its name."""
        found = []
        for name in sorted(names):
            argument = node.args.get(name)
            items = argument if isinstance(argument, list) else [argument]
            parts = [self._expressions.trace_value(i, frame) for i in items if isinstance(i, Tree)]
            if parts:
                found.append(self.terms.combine_values(name, parts))
        return found

    def _trace_group(
        self, node: exp.Expr, frame: NameScope, outputs: ProjectionList
    ) -> TracedValue:
        group = node.args["group"]
        keys = [outputs.trace_ordinal(item, frame) for item in group.expressions]
        keys += self._trace_clauses(group, _GROUPING_SETS, frame)
        if group.args.get("all"):
            keys += outputs.ungrouped
        flags = [name for name in ("all", "totals") if group.args.get(name)]
        sets = [item for name in _GROUPING_SETS for item in group.args.get(name) or ()]
        if any(isinstance(part, exp.Literal) for item in sets for part in item.walk()):
            keys += outputs.values  # it may be a position
        if not sets:
            keys = sorted(set(keys), key=lambda value: value.key)  # else their order counts
        return self.terms.combine_values("group", keys, *flags)

    def _trace_limit(
        self, node: exp.Expr, frame: NameScope, columns: list[TracedValue], *, root: bool
    ) -> TracedValue | None:
        """Which rows a LIMIT keeps; None if all are kept, in an order that nobody reads.

        Inside of a query the order may be read, by an aggregate that collects values.
        """
        order = node.args.get("order")
        bounds = self._trace_clauses(node, ("limit", "offset"), frame)
        if not bounds and (root or order is None):
            return None
        keys: list[TracedValue] = []
        for item in order.expressions if order is not None else ():
            inner = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(inner, exp.Literal | exp.Var):  # a position, or ALL
                keys += columns
            keys.append(self._expressions.trace_value(item, frame))
        return self.terms.combine_values("limit", [*bounds, *(keys or columns)], bool(keys))


def _reads_name(query: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name for table in query.find_all(exp.Table))


# A model's query, read: for each column and for the rows, on what of which table it depends.


@dataclass(frozen=True)
class ModelDependencies:
    """What a model's columns and rows depend on, as bits over `atoms`."""

    atoms: list[LineageAtom]
    columns: dict[str, int]
    rows: int
    order: int
    unlisted: int


class StoredTables:
    """The stored tables of one model as its queries name them."""

    def __init__(self, terms: LineageTerms, known: Iterable[str], columns: KnownColumns) -> None:
        self._terms = terms
        self._known = list(known)
        self._columns = columns
        self._relations: dict[str, LineageRowset] = {}

    def read_relation(self, name: str) -> LineageRowset:
        """The table that a query calls `name`, with or without its catalog."""
        if name not in self._relations:
            self._relations[name] = self._read_table(name)
        return self._relations[name]

    def _read_table(self, name: str) -> LineageRowset:
        found = self._list_matching(name)
        if len(found) > 1:
            deps = 0
            for table in found:
                deps |= self._terms.atom_bit(table, DOUBT)
            value = TracedValue(deps, self._terms.computation_key("table", name))
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
                terms.atom_bit(table, name), terms.computation_key("column", table, name)
            )

        return LineageRowset(
            columns={name: column(name) for name in listed or ()},
            rows=TracedValue(terms.atom_bit(table, ROWS), terms.computation_key("rows", table)),
            missing=column if listed is None else None,
            order=terms.atom_bit(table, ORDER),
            tables=frozenset({table}),
        )


@dataclass(frozen=True)
class DefinitionRelations:
    """A definition's results: of the rendered tree, and of the others where those were read.

    Attributes:
        gaps: what Spark may compute otherwise than it stands in the tree, in words: it depends on
            what it is made of anyway.
    """

    rendered: LineageRowset
    written: LineageRowset | None
    gaps: tuple[str, ...] = ()
    incremental: LineageRowset | None = None

    @property
    def later(self) -> LineageRowset:
        """What a run gives that finds what earlier runs left."""
        return self.incremental if self.incremental is not None else self.rendered


def read_definition(
    definition: ModelDefinition, terms: LineageTerms, tables: StoredTables, *, with_written: bool
) -> DefinitionRelations:
    """Reads a query.

    Args:
        with_written: also as it stands in the file, in which names may lead nowhere.

    Raises:
        UnreadableError: It is of a kind that is not known here, or too deeply nested.
    """
    try:
        if definition.rendered is None:
            raise UnreadableError(definition.opaque or "no query")
        reading = read_as_spark(definition.rendered)
        rendered = QueryReader(terms, tables.read_relation, strict=True).read_query(reading.tree)
        gaps, written = set(reading.gaps), None
        if with_written and definition.written is not None:
            reading = read_as_spark(definition.written)
            written = QueryReader(terms, tables.read_relation, strict=False).read_query(
                reading.tree
            )
            gaps |= set(reading.gaps)
        incremental = None
        if definition.incremental is not None:
            reading = read_as_spark(definition.incremental)
            incremental = QueryReader(terms, tables.read_relation, strict=True).read_query(
                reading.tree
            )
            gaps |= set(reading.gaps)
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("it nests too deeply to be read") from None
    except Exception as error:  # a tree of a shape that nobody foresaw must not pass as harmless
        raise UnreadableError(f"reading it ended with {type(error).__name__}") from None
    return DefinitionRelations(rendered, written, tuple(sorted(gaps)), incremental)


def read_dependencies(relations: DefinitionRelations, terms: LineageTerms) -> ModelDependencies:
    """Reads the dependencies of all trees together: one tree may show what another lacks."""
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
        # A macro among the projections: it stands for columns that only the rendering names.
        unnamed = 0
        for name in [name for name in columns if name.startswith("\n")]:
            unnamed |= columns.pop(name)
        named = relations.written.columns.keys()
        columns = {n: deps if n in named else deps | unnamed for n, deps in columns.items()}
    return ModelDependencies(terms.atoms, columns, rows, order, unlisted)
