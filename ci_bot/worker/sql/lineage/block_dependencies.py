"""The dependencies of a block's columns and rows; `equivalence` reads the block, as it is written.

Filters, joins, groupings, DISTINCT, LIMIT with its order and set operations decide which rows there
are, and so does each column in one of these. A part that is not understood depends on everything
that it can see, or is doubtful; it never counts as independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ci_bot.worker.sql.equivalence.blocks import (
    ArgumentOrder,
    DerivedTable,
    GeneratedRows,
    MadeRows,
    NestedQuery,
    QueryBlock,
    QuerySource,
    SetOperation,
    SourceColumn,
    StarRead,
    TableRead,
    Term,
    UnknownName,
    ValuesTable,
)
from ci_bot.worker.sql.lineage.rowsets import (
    ANY,
    ANYWHERE,
    DOUBT,
    FromEntry,
    LineageRowset,
    LineageTerms,
    TracedValue,
    list_tables,
    make_opaque_relation,
    map_columns_by_name,
    rename_relation,
)

StoredTable = Callable[[str], LineageRowset]


class BlockTracer:
    """A tracer of the blocks of one query.

    Args:
        stored: returns the tables that they read.
        strict: a name of unknown origin makes everything doubtful; otherwise it is left out.
    """

    def __init__(self, terms: LineageTerms, stored: StoredTable, *, strict: bool) -> None:
        self._terms = terms
        self._stored = stored
        self._strict = strict
        self._depth = 0  # a source of this query is not one of the query around it
        self._entries: dict[QuerySource, FromEntry] = {}
        self._values: dict[Term, TracedValue] = {}
        self._blocks: dict[QueryBlock, LineageRowset] = {}

    def trace_block(self, block: QueryBlock, *, root: bool = False) -> LineageRowset:
        """Traces the content of a query's result."""
        known = self._blocks.get(block)
        if known is None:
            self._depth += 1
            known = self._blocks[block] = self._trace_select(block, root=root)
            self._depth -= 1
        return known

    def _trace_select(self, block: QueryBlock, *, root: bool) -> LineageRowset:
        entries = self._enter_sources(block.part.iterate_sources())
        written = block.written
        listed = [(name, self._trace_term(term)) for name, term in written.columns]
        values = [value for _, value in listed]
        clauses = self._trace_clauses(block, entries, values, root=root)
        rows = self._terms.combine_values("select", clauses.values(), *clauses)
        tables = list_tables(entries)
        if written.is_mixed:
            more = self._trace_all(written.more)
            everything = [
                self._terms.combine_values("everything", map(self._trace_content, entries))
            ]
            value = self._terms.combine_values("mixed", [*everything, rows, *values, *more])
            return make_opaque_relation(self._terms, value, dict(listed), tables)
        named = {name: value.key for name, value in clauses.items()}
        if _gives_one_row(block):
            listed = [
                (name, self._terms.combine_values("aggregate", [value, rows]))
                for name, value in listed
            ]
            rows, named = TracedValue(0, self._terms.make_key("one row")), {}
        columns, repeated = map_columns_by_name(self._terms, listed)
        open_stars = [star for star in written.stars if star.is_open]
        order = 0
        for star in written.stars:
            order |= self._entries[star.source].relation.order
        return LineageRowset(
            columns=columns,
            rows=rows,
            missing=self._make_missing(open_stars) if open_stars else None,
            order=order,
            tables=tables,
            clauses=_replace_rows_by_branches(entries, named),
            repeated=repeated,
            unplaced=written.is_unplaced,
        )

    def _trace_clauses(
        self,
        block: QueryBlock,
        entries: Sequence[FromEntry],
        values: list[TracedValue],
        *,
        root: bool,
    ) -> dict[str, TracedValue]:
        """Traces the clauses that decide which rows there are, by kind of clause."""
        combine = self._terms.combine_values
        rows = (entry.mark_value(entry.relation.rows, self._terms) for entry in entries)
        clauses = {"sources": combine("sources", rows)}
        if block.part.hung:
            joins = [self._trace_set("join", hung.on, hung.how) for hung in block.part.hung]
            clauses["joins"] = combine("joins", joins)
        filters = {"where": block.part.where, "having": block.having, "qualify": block.qualify}
        if any(filters.values()):
            parts = [self._trace_set(name, terms) for name, terms in filters.items()]
            clauses["filter"] = combine("filter", parts)
        group = block.group
        if group is not None and group.is_written:
            keys = combine("group", self._trace_all(group.keys))
            if not group.sets:
                keys = self._trace_set("group", group.keys)  # else their order counts
            clauses["grouping"] = combine("grouping", [keys, *self._trace_all(group.sets)])
        if block.generators:
            clauses["generator"] = combine("generator", self._trace_all(block.generators))
        order = self._trace_all(block.order)
        if block.distinct is not None:
            compared = self._trace_all(block.distinct)
            clauses["distinct"] = combine("distinct", [*values, *compared, *order])
        # Inside of a query the order may have an effect, if an aggregate collects values.
        if block.limits or (order and not root):
            bounds = [*self._trace_all(block.limits), *(order or values)]
            clauses["limit and order"] = combine("limit", bounds, bool(order))
        return clauses

    def _make_missing(self, stars: Sequence[StarRead]) -> Callable[[str], TracedValue]:
        def find_missing(name: str) -> TracedValue:
            found = [self._find_in_star(star, name) for star in stars]
            return self._terms.combine_values("open", [one for one in found if one is not None])

        return find_missing

    def _find_in_star(self, star: StarRead, name: str) -> TracedValue | None:
        """Finds the column that a star over a source without a list of columns shows as `name`."""
        entry = self._entries[star.source]
        if name == ANY:
            every = entry.find_unlisted(ANY, self._terms)
            replaced = self._trace_all(star.replaced.values())
            changes = (*sorted(star.left_out), *sorted(star.renamed.items()), *star.replaced)
            parts = [*([every] if every is not None else ()), *replaced]
            return self._terms.combine_values("star", parts, *changes) if changes else every
        if name in star.replaced:
            return self._trace_term(star.replaced[name])
        old = next((old for old, new in star.renamed.items() if new == name), name)
        if name in star.left_out or (old == name and name in star.renamed):
            return None
        return entry.find_unlisted(old, self._terms)

    def _enter_sources(self, sources: Iterable[QuerySource]) -> list[FromEntry]:
        """Enters the sources of a SELECT; each has a label of its own."""
        seen: Counter[frozenset[str]] = Counter()
        entries = []
        for source in sources:
            relation = self._read_source(source)
            seen[relation.tables] += 1
            label = ("source", self._depth, relation.tables, seen[relation.tables])
            entry = FromEntry(source, relation, self._terms.make_key(*label))
            self._entries[source] = entry
            entries.append(entry)
        return entries

    def _read_source(self, source: QuerySource) -> LineageRowset:
        if isinstance(source, TableRead):
            return self._stored(source.name)
        if isinstance(source, DerivedTable):
            return self.trace_block(source.block)
        if isinstance(source, SetOperation):
            return self._trace_set_operation(source)
        if isinstance(source, MadeRows) and source.names:
            return rename_relation(self._terms, self._read_source(source.sources[0]), source.names)
        parts: list[TracedValue] = []
        tables: frozenset[str] = frozenset()
        if isinstance(source, MadeRows):
            self._depth += 1
            entries = self._enter_sources(source.sources)
            parts = [
                one.mark_value(one.relation.trace_whole(self._terms), self._terms)
                for one in entries
            ]
            parts += self._trace_all(source.terms)
            self._depth -= 1
            tables = list_tables(entries)
        elif isinstance(source, ValuesTable):
            parts = [self._trace_term(source.rows)]
        elif isinstance(source, GeneratedRows):
            parts = [self._trace_term(source.call)]
        kind = source.kind if isinstance(source, MadeRows) else type(source).__name__
        value = self._terms.combine_values(kind, parts)
        return make_opaque_relation(self._terms, value, (), tables)

    def _trace_set_operation(self, source: SetOperation) -> LineageRowset:
        left, right = (self.trace_block(branch) for branch in source.branches)
        tables, kind = left.tables | right.tables, (source.kind, source.distinct)
        pairs: list[TracedValue] = []
        if source.by_name:
            for name in source.names:
                sides = [v for side in (left, right) if (v := side.columns.get(name)) is not None]
                pairs.append(self._terms.combine_values("union", sides, len(sides)))
        elif not (left.unplaced or right.unplaced):
            columns = left.list_columns(), right.list_columns()
            is_matched = len(columns[0]) == len(columns[1])
            for (_, one), (_, other) in zip(*columns, strict=True) if is_matched else ():
                both = self._terms.combine_values("union", [one, other])
                pairs.append(TracedValue(both.deps | left.order | right.order, both.key))
        if left.missing or right.missing or not pairs:
            wholes = [side.trace_whole(self._terms) for side in (left, right)]
            whole = self._terms.combine_values("union", wholes, *kind)
            return make_opaque_relation(self._terms, whole, (), tables)
        parts = [left.rows, right.rows]
        branches = self._terms.combine_values("branches", parts)
        if source.kind != "union" or source.distinct:
            parts += [*pairs, *(v for side in (left, right) for _, v in side.list_columns())]
        return LineageRowset(
            columns={str(place): value for place, value in enumerate(pairs)},
            rows=self._terms.combine_values("set operation", parts, *kind),
            order=left.order | right.order,
            tables=tables,
            clauses={
                "set operation": self._terms.make_key(*kind),
                "branches": branches.key,
            },
        )

    def _trace_all(self, terms: Iterable[Term]) -> list[TracedValue]:
        return [self._trace_term(term) for term in terms]

    def _trace_set(self, kind: str, terms: Iterable[Term], *more: str) -> TracedValue:
        """Traces terms whose order has no meaning."""
        values = sorted(set(self._trace_all(terms)), key=lambda value: value.key)
        return self._terms.combine_values(kind, values, *more)

    def _trace_term(self, term: Term) -> TracedValue:
        known = self._values.get(term)
        if known is None:
            known = self._values[term] = self._trace_new_term(term)
        return known

    def _trace_new_term(self, term: Term) -> TracedValue:
        if isinstance(term, SourceColumn):
            return self._trace_column(term)
        if isinstance(term, NestedQuery):
            whole = self.trace_block(term.block).trace_whole(self._terms)
            return self._terms.combine_values("query", [whole])
        if isinstance(term, UnknownName):
            # It is perhaps a part of a dialect's syntax, or a name that another table should have.
            deps = self._terms.find_atom_bit(ANYWHERE, DOUBT) if self._strict else 0
            return TracedValue(deps, self._terms.make_key("name", term.op))
        if term.order is ArgumentOrder.FREE_AND_ONCE:
            return self._trace_set(term.op, term.parts)
        values = self._trace_all(term.parts)
        if term.order is ArgumentOrder.FREE:
            values.sort(key=lambda value: value.key)
        return self._terms.combine_values(term.op, values)

    def _trace_column(self, column: SourceColumn) -> TracedValue:
        entry = self._entries[column.source]
        if column.name == "*":
            return self._trace_content(entry)
        found = entry.find_column(column.name, self._terms)
        found = found or entry.find_unlisted(column.name, self._terms)
        return found if found is not None else self._trace_content(entry)

    def _trace_content(self, entry: FromEntry) -> TracedValue:
        return entry.mark_value(entry.relation.trace_content(self._terms), self._terms)


def _gives_one_row(block: QueryBlock) -> bool:
    """Whether a block gives one row for any input, by aggregates without GROUP BY."""
    if block.group is None or block.group.is_written or block.distinct is not None:
        return False
    return not (block.having or block.qualify or block.generators or block.limits)


def _replace_rows_by_branches(
    entries: Sequence[FromEntry], clauses: dict[str, int]
) -> dict[str, int]:
    """Names the clauses that make the rows; for a set operation alone, its branches instead."""
    if len(entries) != 1 or not isinstance(entries[0].source, SetOperation) or not clauses:
        return clauses
    rest = {name: key for name, key in clauses.items() if name != "sources"}
    return {**(entries[0].relation.clauses or clauses), **rest}
