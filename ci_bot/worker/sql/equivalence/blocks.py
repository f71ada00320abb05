"""One SELECT in normal form: sources, conditions, groups, results.

Inner joins are sources side by side with conditions among the others, as a cross product with a
filter is the same as they are; what hangs on them (outer, semi and anti joins, lateral views) is
kept with its own conditions. That says which must come first, as far as it matters: a LEFT JOIN
that another one's condition needs is named in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

# Scalar expressions without names: trees whose leaves are columns of occurrences of sources.
#
# A term says everything that its expression says, but for aliases, parentheses and the order of
# operands where that order means nothing. Two terms with one key are one value.


TermKey = int


class ArgumentOrder(Enum):
    """Whether the parts of a node stand in an order that means something."""

    MATTERS = 0
    FREE = 1
    FREE_AND_ONCE = 2  # saying a part twice is saying it once


@dataclass(eq=False)
class QuerySource:
    """One occurrence of something that rows come from.

    Attributes:
        turn: the how manieth occurrence of the same thing it is in its SELECT, from 1.
    """

    turn: int = field(default=1, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class SourceColumn:
    """A column of one occurrence of a source; the name is in lower case, `*` for all columns.

    Attributes:
        kind: its type, if equal values of that type are one value; empty if not, or if unknown.
    """

    source: QuerySource
    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class NestedQuery:
    """A query within an expression; it may use columns of the queries around it."""

    block: QueryBlock


class TermOperation:
    """An operation on other terms.

    Attributes:
        op: the operation and the names of its arguments; equal ops mean the same operation.
        ordered: it depends on the order in which rows come, here or below.
        windowed, aggregated: there is a window function, or an aggregate outside of one.
    """

    __slots__ = ("aggregate", "aggregated", "op", "order", "ordered", "parts", "windowed")

    def __init__(
        self,
        op: str,
        parts: tuple[Term, ...] = (),
        order: ArgumentOrder = ArgumentOrder.MATTERS,
        *,
        ordered: bool = False,
        windowed: bool = False,
        aggregate: bool = False,
    ) -> None:
        self.op = op
        self.parts = parts
        self.order = order
        self.aggregate = aggregate
        self.ordered: bool = ordered or any(is_ordered(part) for part in parts)
        self.windowed: bool = windowed or any(is_windowed(part) for part in parts)
        self.aggregated: bool = aggregate or any(is_aggregated(part) for part in parts)


Term = TermOperation | SourceColumn | NestedQuery


def make_leaf(kind: str, text: str) -> TermOperation:
    """A constant, or any other text that means the same wherever it stands."""
    return TermOperation(f"{kind}:{text}")


def is_ordered(term: Term) -> bool:
    return isinstance(term, TermOperation) and term.ordered


def is_windowed(term: Term) -> bool:
    return isinstance(term, TermOperation) and term.windowed


def is_aggregated(term: Term) -> bool:
    return isinstance(term, TermOperation) and term.aggregated


def walk_term(term: Term) -> Iterator[Term]:
    """The term and everything below it, without the insides of nested queries."""
    queue = [term]
    for item in queue:
        yield item
        if isinstance(item, TermOperation):
            queue.extend(item.parts)


TRUE = make_leaf("boolean", "true")

_OPPOSITE = {"eq": "neq", "neq": "eq", "lt": "gte", "gte": "lt"}


def make_comparison(op: str, left: Term, right: Term) -> TermOperation:
    """`left op right`, where op is one of eq, neq, lt, lte, gt, gte."""
    if op in {"eq", "neq"}:
        return TermOperation(op, (left, right), ArgumentOrder.FREE)
    if op in {"gt", "lte"}:
        # Two of the four are enough: a > b is b < a, and a <= b is b >= a.
        op, left, right = ("lt" if op == "gt" else "gte"), right, left
    return TermOperation(op, (left, right))


def make_junction(op: str, items: list[Term]) -> Term:
    """The items, flat, under one `and` or `or`."""
    flat: list[Term] = []
    for item in items:
        if isinstance(item, TermOperation) and item.op == op:
            flat.extend(item.parts)
        else:
            flat.append(item)
    return (
        flat[0] if len(flat) == 1 else TermOperation(op, tuple(flat), ArgumentOrder.FREE_AND_ONCE)
    )


def negate_term(term: Term) -> Term:
    """NOT in three-valued logic, pushed down to where it stands before something else."""
    if isinstance(term, TermOperation):
        if term.op == "not":
            return term.parts[0]
        if term.op in {"and", "or"}:
            other = "or" if term.op == "and" else "and"
            return make_junction(other, [negate_term(part) for part in term.parts])
        if term.op in _OPPOSITE:
            return TermOperation(_OPPOSITE[term.op], term.parts, term.order)
    return TermOperation("not", (term,))


def split_conjuncts(term: Term) -> list[Term]:
    """The parts of a condition that all have to hold."""
    if isinstance(term, TermOperation):
        if term.op == "and":
            return [item for part in term.parts for item in split_conjuncts(part)]
        if term.op == TRUE.op:
            return []
    return [term]


class KeyNaming(Protocol):
    """How columns and nested queries are called in keys.

    `known` keeps the keys of terms: a term that is used often is written out once. A term equals
    itself alone, and is held here, so that no other one gets its identity.
    """

    known: dict[Term, TermKey]

    def column_key(self, column: SourceColumn) -> tuple[object, ...]: ...

    def nested_key(self, nested: NestedQuery) -> tuple[object, ...]: ...


class KeyInterner:
    """Small numbers for structures: two structures have one number exactly if they are equal."""

    def __init__(self) -> None:
        self._keys: dict[tuple[object, ...], TermKey] = {}

    def intern_structure(self, structure: tuple[object, ...]) -> TermKey:
        return self._keys.setdefault(structure, len(self._keys))

    def key_of_term(self, term: Term, naming: KeyNaming) -> TermKey:
        """The key of a term whose leaves are called as `naming` says."""
        known = naming.known.get(term)
        if known is None:
            known = naming.known[term] = self.intern_structure(self._term_structure(term, naming))
        return known

    def _term_structure(self, term: Term, naming: KeyNaming) -> tuple[object, ...]:
        if isinstance(term, SourceColumn):
            return naming.column_key(term)
        if isinstance(term, NestedQuery):
            return naming.nested_key(term)
        keys = [self.key_of_term(part, naming) for part in term.parts]
        if term.order is not ArgumentOrder.MATTERS:
            keys = sorted(set(keys) if term.order is ArgumentOrder.FREE_AND_ONCE else keys)
        return (term.op, *keys)


SetKind = Literal["union", "intersect", "except"]

Hanging = Literal["left", "semi", "anti", "lateral", "lateral outer"]


@dataclass(eq=False)
class TableRead(QuerySource):
    """A stored table; `version` is the text of a time travel."""

    name: str
    version: str = ""


@dataclass(eq=False)
class DerivedTable(QuerySource):
    """A query whose rows are read as those of a table."""

    block: QueryBlock


@dataclass(eq=False)
class ValuesTable(QuerySource):
    """Rows that are written out; columns are called by their place."""

    rows: Term


@dataclass(eq=False)
class GeneratedRows(QuerySource):
    """Rows that a function makes of each row before it; columns are called by their place."""

    call: Term


@dataclass(eq=False)
class SetOperation(QuerySource):
    """Rows of several queries. `names` are the columns, by place, of every branch.

    `loose` says that branches may change places although there are more than two, and
    `converts_nothing` that each column has one type, so that no value is converted on the way.
    """

    kind: SetKind
    distinct: bool
    branches: list[QueryBlock]
    names: list[str]
    loose: bool = False
    converts_nothing: bool = False


@dataclass(eq=False)
class OuterJoin(QuerySource):
    """A RIGHT or FULL JOIN of two parts: `kept` with `other`, either of which may have no match."""

    kept: SourcePart
    other: SourcePart
    full: bool
    on: list[Term]


def _is_null_test(term: Term) -> bool:
    """Whether a condition is `a IS NOT NULL`."""
    inner = term.parts[0] if isinstance(term, TermOperation) and term.op == "not" else None
    if not isinstance(inner, TermOperation) or not inner.op.startswith("is("):
        return False
    tested = inner.parts[1]
    return isinstance(tested, TermOperation) and tested.op.startswith("null(")


def _find_tested_column(term: Term) -> SourceColumn | None:
    """The column of a condition `a IS NULL`; None if it is another condition."""
    column = term.parts[0] if isinstance(term, TermOperation) and term.parts else None
    is_test = isinstance(column, SourceColumn) and _is_null_test(TermOperation("not", (term,)))
    return column if is_test and isinstance(column, SourceColumn) else None


def _list_strict_columns(term: Term) -> list[SourceColumn]:
    """The columns whose NULL keeps a condition from being true, as far as that is plain."""
    if not isinstance(term, TermOperation):
        return []
    sides = term.parts if term.op in {"eq", "neq", "lt", "gte"} else ()
    if _is_null_test(term) and isinstance(term.parts[0], TermOperation):
        sides = term.parts[0].parts
    return [side for side in sides if isinstance(side, SourceColumn)]


@dataclass
class DependentSource:
    """A source that hangs on others: its conditions filter its own rows and not theirs."""

    source: QuerySource
    how: Hanging
    on: list[Term]


@dataclass
class SourcePart:
    """Sources side by side, what hangs on them, and conditions on all of it."""

    inner: list[QuerySource] = field(default_factory=list)
    hung: list[DependentSource] = field(default_factory=list)
    where: list[Term] = field(default_factory=list)

    def add_part(self, other: SourcePart) -> None:
        self.inner += other.inner
        self.hung += other.hung
        self.where += other.where

    def make_filtered_joins_inner(self) -> None:
        """Makes a LEFT JOIN an inner one where a condition drops all rows without a match, and
        leaves out tests for NULL that another condition makes needless."""
        # From the last to the first: a join that becomes inner filters what its condition names.
        for hung in [one for one in reversed(self.hung) if one.how == "left"]:
            strict = [column for term in self.where for column in _list_strict_columns(term)]
            if any(column.source is hung.source for column in strict):
                self.hung.remove(hung)
                self.inner.append(hung.source)
                self.where += hung.on
        compared = {
            (column.source, column.name)
            for term in self.where
            if not _is_null_test(term)
            for column in _list_strict_columns(term)
        }
        self.where = [
            term
            for term in self.where
            if not _is_null_test(term)
            or not any((one.source, one.name) in compared for one in _list_strict_columns(term))
        ]

    def list_equal_columns(self) -> list[tuple[SourceColumn, SourceColumn]]:
        """Pairs of columns of inner sources that hold one value in each row that is left."""
        inner = set(self.inner)
        return [
            (left, right)
            for term in self.where
            if isinstance(term, TermOperation) and term.op == "eq"
            for left, right in [term.parts]
            if isinstance(left, SourceColumn)
            and isinstance(right, SourceColumn)
            and {left.source, right.source} <= inner
            and left.kind == right.kind != ""
        ]

    def iterate_sources(self) -> Iterator[QuerySource]:
        """Every occurrence that has columns, in the order in which they stand."""
        for source in self.inner:
            if isinstance(source, OuterJoin):
                yield from source.kept.iterate_sources()
                yield from source.other.iterate_sources()
            else:
                yield source
        for hung in self.hung:
            yield hung.source

    def iterate_terms(self) -> Iterator[Term]:
        yield from self.where
        for hung in self.hung:
            yield from hung.on
        for source in self.inner:
            if isinstance(source, OuterJoin):
                yield from source.on
                yield from source.kept.iterate_terms()
                yield from source.other.iterate_terms()


@dataclass
class GroupClause:
    """GROUP BY: its keys, and ROLLUP, CUBE or GROUPING SETS. No keys at all: one group."""

    keys: list[Term] = field(default_factory=list)
    sets: list[Term] = field(default_factory=list)


@dataclass(eq=False)
class QueryBlock:
    """A SELECT, or a set operation as the one source of a SELECT.

    Attributes:
        generators: results that make another number of rows.
        distinct: what DISTINCT tells rows apart by; None without it.
        order: ORDER BY; `has_whole_order` says that rows which it cannot tell apart are equal.
            `layout` is what only says where rows are stored, and hints: neither changes a row, so
            both count only if the query depends on the order of its rows
            (https://spark.apache.org/docs/3.5.6/sql-ref-syntax-qry-select-hints.html).
        outputs: results by name in lower case; `*`, `*1` and so on for stars that stay.
    """

    part: SourcePart = field(default_factory=SourcePart)
    group: GroupClause | None = None
    having: list[Term] = field(default_factory=list)
    qualify: list[Term] = field(default_factory=list)
    generators: list[Term] = field(default_factory=list)
    distinct: list[Term] | None = None
    order: list[Term] = field(default_factory=list)
    has_whole_order: bool = False
    limits: list[Term] = field(default_factory=list)
    layout: list[Term] = field(default_factory=list)
    outputs: dict[str, Term] = field(default_factory=dict)

    def find_output(self, name: str) -> Term | None:
        """The result called `name`, also by way of a star over one table."""
        if name in self.outputs:
            return self.outputs[name]
        stars = [term for key, term in self.outputs.items() if key.startswith("*")]
        if len(stars) == 1 and isinstance(stars[0], SourceColumn):
            return SourceColumn(stars[0].source, name)
        return None

    @property
    def has_star(self) -> bool:
        return any(name.startswith("*") for name in self.outputs)

    @property
    def is_windowed(self) -> bool:
        terms = (*self.outputs.values(), *(self.distinct or ()), *self.qualify)
        return any(is_windowed(term) for term in terms)

    @property
    def is_simple(self) -> bool:
        """Whether it only joins, filters and computes row by row."""
        more = (self.having, self.qualify, self.generators, self.order, self.limits, self.layout)
        plain = self.group is None and self.distinct is None and not any(more)
        return plain and not self.is_windowed

    @property
    def depends_on_order(self) -> bool:
        """Whether its rows depend on the order in which those below come."""
        cut = bool(self.limits) and not self.has_whole_order
        return cut or any(is_ordered(term) for term in self.iterate_terms())

    def iterate_terms(self) -> Iterator[Term]:
        """Every term of its own."""
        yield from self.part.iterate_terms()
        if self.group is not None:
            yield from self.group.keys
            yield from self.group.sets
        for terms in (self.having, self.qualify, self.generators, self.order, self.limits):
            yield from terms
        yield from self.layout
        yield from self.distinct or ()
        yield from self.outputs.values()

    def add_filters(self, conditions: list[Term]) -> None:
        """Filters its results, after everything else that it does but for a limit."""
        if self.is_windowed:
            self.qualify += conditions
        elif self.group is not None:
            self.having += conditions
        else:
            self.part.where += conditions

    def push_conditions_down(self) -> None:
        """Moves conditions to the earliest place that means the same."""
        told = self.distinct
        if told is not None and self.group is None and not (self.generators or self.is_windowed):
            # DISTINCT is GROUP BY of every result.
            self.distinct, self.group = None, GroupClause(keys=told)
        if self.qualify and not self.is_windowed:
            waiting, self.qualify = self.qualify, []
            self.add_filters(waiting)
        if self.group is not None and self.group.keys and not self.group.sets:
            early = [term for term in self.having if _is_of_keys(term)]
            self.having = [term for term in self.having if not _is_of_keys(term)]
            self.part.where += early
        self.part.where = [item for term in self.part.where for item in split_conjuncts(term)]
        self.part.where = [term for term in self.part.where if not self._filter_branches(term)]
        self._make_unmatched_joins_anti()

    def _filter_branches(self, condition: Term) -> bool:
        """Filters the branches of a UNION instead of all its rows, if that means the same."""
        sources = {one.source for one in walk_term(condition) if isinstance(one, SourceColumn)}
        source = sources.pop() if len(sources) == 1 else None
        if not isinstance(source, SetOperation) or source not in self.part.inner:
            return False
        is_plain = not any(isinstance(one, NestedQuery) for one in walk_term(condition))
        is_one_type = source.kind == "union" and source.converts_nothing
        if not (is_one_type and is_plain and all(map(_takes_filters, source.branches))):
            return False
        for branch in source.branches:
            results = list(branch.outputs.values())
            branch.add_filters([_replace_columns(condition, results)])
            branch.push_conditions_down()
        return True

    def _make_unmatched_joins_anti(self) -> None:
        """Makes a LEFT JOIN an anti join if only rows without a match are left of it."""
        terms = list(self.iterate_terms())
        if any(isinstance(item, NestedQuery) for term in terms for item in walk_term(term)):
            return
        for hung in [one for one in self.part.hung if one.how == "left"]:
            compared = {
                column.name
                for term in hung.on
                if not _is_null_test(term)
                for column in _list_strict_columns(term)
                if column.source is hung.source
            }
            tests = [
                term
                for term in self.part.where
                for column in [_find_tested_column(term)]
                if column is not None and column.source is hung.source and column.name in compared
            ]
            own = {id(term) for term in (*hung.on, *tests)}
            is_read = any(
                isinstance(item, SourceColumn) and item.source is hung.source
                for term in terms
                if id(term) not in own
                for item in walk_term(term)
            )
            if tests and not is_read:
                hung.how = "anti"
                self.part.where = [term for term in self.part.where if id(term) not in own]


def _takes_filters(block: QueryBlock) -> bool:
    """Whether a filter of its rows may come before all else that follows in it."""
    return not (block.limits or block.order or block.generators or block.has_star)


def _replace_columns(term: Term, results: list[Term]) -> Term:
    """A condition on columns by their places, as one on what these places hold."""
    if isinstance(term, SourceColumn):
        return results[int(term.name)]
    if isinstance(term, NestedQuery):
        return term
    parts = tuple(_replace_columns(part, results) for part in term.parts)
    return TermOperation(term.op, parts, term.order, ordered=term.ordered)


def _is_of_keys(term: Term) -> bool:
    """Whether a condition on groups is one on their keys: it has no aggregate."""
    return not is_aggregated(term) and not any(
        isinstance(item, NestedQuery) for item in walk_term(term)
    )
