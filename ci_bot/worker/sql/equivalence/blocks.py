"""One SELECT in normal form: sources, conditions, groups, results.

Inner joins are sources side by side, because a cross product with a filter gives the same rows.
Outer, semi and anti joins and lateral views depend on these, and keep their own conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

# Two terms with one key are one value: all of their expressions is the same, except aliases,
# parentheses and an order without a meaning. Leaves are columns of occurrences of sources.
TermKey = int


class ArgumentOrder(Enum):
    """Whether the order of a node's parts has a meaning."""

    MATTERS = 0
    FREE = 1
    FREE_AND_ONCE = 2  # a part that occurs twice counts once


@dataclass(eq=False)
class QuerySource:
    """One occurrence of something that gives rows.

    Attributes:
        turn: the number of this occurrence among those of the same thing in its SELECT, from 1.
    """

    turn: int = field(default=1, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class SourceColumn:
    """A column of one occurrence of a source; the name is in lower case, `*` for all columns.

    Attributes:
        kind: its type, if equal values of this type cannot be distinguished; empty if they can, or
            if it is unknown.
        stored_type: its type in its table; empty if it is computed, or if it is unknown.
    """

    source: QuerySource
    name: str
    kind: str = ""
    stored_type: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class NestedQuery:
    """A query within an expression; it may use columns of the queries around it."""

    block: QueryBlock


class TermOperation:
    """An operation on other terms.

    Attributes:
        op: the operation and the names of its arguments; equal ops mean the same operation.
        ordered: it depends on the order of rows, itself or in a part of it.
        windowed, aggregated: it contains a window function, or an aggregate outside of one.
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


class UnknownName(TermOperation):
    """A name whose origin is unknown: perhaps a column of a table that is read here."""

    __slots__ = ()


Term = TermOperation | SourceColumn | NestedQuery


def make_leaf(kind: str, text: str) -> TermOperation:
    """Makes a constant, or any other text that means the same in every place."""
    return TermOperation(f"{kind}:{text}")


def is_ordered(term: Term) -> bool:
    return isinstance(term, TermOperation) and term.ordered


def is_windowed(term: Term) -> bool:
    return isinstance(term, TermOperation) and term.windowed


def is_aggregated(term: Term) -> bool:
    return isinstance(term, TermOperation) and term.aggregated


def walk_term(term: Term) -> Iterator[Term]:
    """Yields the term and all terms below it, without the insides of nested queries."""
    queue = [term]
    for item in queue:
        yield item
        if isinstance(item, TermOperation):
            queue.extend(item.parts)


TRUE = make_leaf("boolean", "true")

_TRUTHS = {"boolean:true": "false", "boolean:false": "true"}
_OPPOSITE = {"eq": "neq", "neq": "eq", "lt": "gte", "gte": "lt"}


def make_comparison(op: str, left: Term, right: Term) -> TermOperation:
    """Makes `left op right`; op is one of eq, neq, lt, lte, gt, gte."""
    if op in {"eq", "neq"}:
        return TermOperation(op, (left, right), ArgumentOrder.FREE)
    if op in {"gt", "lte"}:
        # Two of the four are enough: a > b is b < a, and a <= b is b >= a.
        op, left, right = ("lt" if op == "gt" else "gte"), right, left
    return TermOperation(op, (left, right))


def make_junction(op: str, items: list[Term]) -> Term:
    """Makes one `and` or `or` of all items, without nesting."""
    flat: list[Term] = []
    for item in items:
        if isinstance(item, TermOperation) and item.op == op:
            flat.extend(item.parts)
        else:
            flat.append(item)
    return (
        flat[0] if len(flat) == 1 else TermOperation(op, tuple(flat), ArgumentOrder.FREE_AND_ONCE)
    )


def _is_truth(term: Term) -> bool:
    """Whether a value is a truth, and no text that is read as one."""
    if not isinstance(term, TermOperation):
        return isinstance(term, SourceColumn) and term.stored_type == "BOOLEAN"
    if term.op in {"and", "or", "not"}:
        return all(map(_is_truth, term.parts))
    return term.op in {*_OPPOSITE, *_TRUTHS} or term.op.startswith("is(")


def negate_term(term: Term) -> Term:
    """Negates a term in three-valued logic, and moves NOT down if possible."""
    if isinstance(term, TermOperation):
        if term.op == "not":
            return term.parts[0]
        if term.op in {"and", "or"}:
            other = "or" if term.op == "and" else "and"
            return make_junction(other, [negate_term(part) for part in term.parts])
        if term.op in _OPPOSITE:
            return TermOperation(_OPPOSITE[term.op], term.parts, term.order)
        if term.op == "coalesce" and all(map(_is_truth, term.parts)):  # one of them is first
            return TermOperation("coalesce", tuple(map(negate_term, term.parts)))
        if term.op in _TRUTHS:
            return make_leaf("boolean", _TRUTHS[term.op])
    return TermOperation("not", (term,))


def split_conjuncts(term: Term) -> list[Term]:
    """Lists the parts of a condition that must all hold."""
    if isinstance(term, TermOperation):
        if term.op == "and":
            return [item for part in term.parts for item in split_conjuncts(part)]
        if term.op == TRUE.op:
            return []
    return [term]


class KeyNaming(Protocol):
    """The names of columns and nested queries in keys.

    `known` keeps the keys of terms, so a term that is used often is written out once. A term equals
    only itself, and stays alive here, so no other term gets its identity.
    """

    known: dict[Term, TermKey]

    def column_key(self, column: SourceColumn) -> tuple[object, ...]: ...

    def nested_key(self, nested: NestedQuery) -> tuple[object, ...]: ...


class KeyInterner:
    """Numbers for structures: two structures have the same number exactly if they are equal."""

    def __init__(self) -> None:
        self._keys: dict[tuple[object, ...], TermKey] = {}

    def intern_structure(self, structure: tuple[object, ...]) -> TermKey:
        return self._keys.setdefault(structure, len(self._keys))

    def key_of_term(self, term: Term, naming: KeyNaming) -> TermKey:
        """Returns the key of a term whose leaves have the names of `naming`."""
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


SetKind = Literal["union", "intersect", "except", "other"]


@dataclass(eq=False)
class TableRead(QuerySource):
    """A stored table; `version` is the text of a time travel."""

    name: str
    version: str = ""


@dataclass(eq=False)
class DerivedTable(QuerySource):
    """A query whose rows are read like those of a table."""

    block: QueryBlock


@dataclass(eq=False)
class ValuesTable(QuerySource):
    """Rows that are written out in the query; the names of columns are their places."""

    rows: Term


@dataclass(eq=False)
class GeneratedRows(QuerySource):
    """Rows that a function makes from each row before it; the names of columns are their places."""

    call: Term


@dataclass(eq=False)
class SetOperation(QuerySource):
    """Rows of several queries; `names` are the columns of every branch, by place.

    With `loose`, branches may change places although there are more than two. With
    `converts_nothing`, each column has one type, so no value is converted.
    """

    kind: SetKind
    distinct: bool
    branches: list[QueryBlock]
    names: list[str]
    loose: bool = False
    by_name: bool = False
    converts_nothing: bool = False


@dataclass(eq=False)
class MadeRows(QuerySource):
    """Rows of which only the origin is known: any column may depend on all of it.

    With `names`, they are the rows of one source, and these are the names of its first columns.
    """

    kind: str
    sources: list[QuerySource] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass(eq=False)
class OuterJoin(QuerySource):
    """A RIGHT or FULL JOIN of two parts, `kept` and `other`.

    Rows of `other` may have no match, and in a FULL JOIN rows of both parts.
    """

    kept: SourcePart
    other: SourcePart
    full: bool
    on: list[Term]


@dataclass
class DependentSource:
    """A source that depends on others: its conditions filter its own rows and not theirs.

    `how` is left, semi, anti, lateral or lateral outer; in a block that is as it was written, any
    words of a join.
    """

    source: QuerySource
    how: str
    on: list[Term]


@dataclass
class SourcePart:
    """Sources side by side, the sources that depend on them, and conditions on all of these."""

    inner: list[QuerySource] = field(default_factory=list)
    hung: list[DependentSource] = field(default_factory=list)
    where: list[Term] = field(default_factory=list)

    def add_part(self, other: SourcePart) -> None:
        self.inner += other.inner
        self.hung += other.hung
        self.where += other.where

    def list_equal_columns(self) -> list[tuple[SourceColumn, SourceColumn]]:
        """Lists pairs of columns of inner sources that have one value in each row that is left."""
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

    @property
    def only_source(self) -> QuerySource | None:
        """The only source of this part; None if there are several, or others depend on it."""
        is_one = len(self.inner) == 1 and not self.hung
        return None if not is_one or isinstance(self.inner[0], OuterJoin) else self.inner[0]

    def iterate_sources(self) -> Iterator[QuerySource]:
        """Yields every occurrence that has columns, in written order."""
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
    """GROUP BY: its keys, and ROLLUP, CUBE or GROUPING SETS; without keys there is one group.

    `is_written` is false if only aggregates or HAVING put all rows into one group.
    """

    keys: list[Term] = field(default_factory=list)
    sets: list[Term] = field(default_factory=list)
    is_written: bool = True


@dataclass(eq=False)
class StarRead:
    """A star over one source, and the changes of EXCEPT, RENAME and REPLACE to its columns."""

    source: QuerySource
    left_out: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, Term] = field(default_factory=dict)
    is_open: bool = True


@dataclass
class WrittenResults:
    """The results of a SELECT as they are written.

    Attributes:
        columns: names in lower case, or a line break and the place, with their terms, by place.
        stars: the stars; some of their columns may not be listed.
        more: other terms that decide about the result in a way that is not understood.
        is_mixed: any column may depend on everything that is read.
        is_unplaced: a star shows columns of USING or NATURAL; dialects put them at other places.
    """

    columns: list[tuple[str, Term]] = field(default_factory=list)
    stars: list[StarRead] = field(default_factory=list)
    more: list[Term] = field(default_factory=list)
    is_mixed: bool = False
    is_unplaced: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there may be more columns than the listed ones."""
        return self.is_mixed or any(star.is_open for star in self.stars)


@dataclass(eq=False)
class QueryBlock:
    """A SELECT, or a set operation as the only source of a SELECT.

    Attributes:
        generators: results that make another number of rows.
        distinct: the terms by which DISTINCT compares rows; None without it.
        order: ORDER BY; with `has_whole_order`, rows that it leaves in any order are equal.
        layout: clauses that only decide where rows are stored, and hints. Neither changes a row, so
            both count only if the query depends on the order of its rows
            (https://spark.apache.org/docs/3.5.6/sql-ref-syntax-qry-select-hints.html).
        outputs: results by name in lower case; `*`, `*1` and so on for stars that stay.
        written: the results as they are written.
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
    written: WrittenResults = field(default_factory=WrittenResults)

    def find_output(self, name: str) -> Term | None:
        """Returns the result called `name`, also from a star over one table; None without one."""
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
        """Whether the block only joins, filters and computes row by row."""
        more = (self.having, self.qualify, self.generators, self.order, self.limits, self.layout)
        plain = self.group is None and self.distinct is None and not any(more)
        return plain and not self.is_windowed

    @property
    def depends_on_order(self) -> bool:
        """Whether the block's rows depend on the order of the rows that it reads."""
        cut = bool(self.limits) and not self.has_whole_order
        return cut or any(is_ordered(term) for term in self.iterate_terms())

    def iterate_terms(self) -> Iterator[Term]:
        """Yields every term of the block itself."""
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
        """Filters the block's results, after all its other steps except a limit."""
        if self.is_windowed:
            self.qualify += conditions
        elif self.group is not None:
            self.having += conditions
        else:
            self.part.where += conditions
