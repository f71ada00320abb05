"""What a query does, so that two versions can be compared whatever their spelling.

Aliases, CTE names, nesting and the order of operands do not change what a query means. Each column
is followed to the stored column, or the expression, that it comes from; what is left are filters,
joins, groupings, unions and results that are equal exactly where they mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlglot import exp

from ci_bot.worker.rules.sql.algebra.blocks import (
    Block,
    Derived,
    Generated,
    QuerySource,
    SetOperation,
    TableRead,
    Values,
)
from ci_bot.worker.rules.sql.algebra.keys import KeyNames, Sealer
from ci_bot.worker.rules.sql.algebra.reader import QueryTooLargeError, Reader
from ci_bot.worker.rules.sql.algebra.terms import (
    Interner,
    Nested,
    Operation,
    SourceColumn,
    Term,
    TermKey,
    walk,
)
from ci_bot.worker.rules.sql.interval import is_interval_predicate
from ci_bot.worker.rules.sql.queries import Query


@dataclass(frozen=True)
class Join:
    """One join: what is joined, how, and on which conditions.

    `places` are, for each condition, the (target, column) pairs that it compares, where all of
    them are columns of queries.
    """

    target: str
    how: str
    on: frozenset[TermKey]
    node: Any = field(compare=False, hash=False, default=None)
    places: Mapping[TermKey, frozenset[tuple[str, str]]] = field(
        compare=False, hash=False, default_factory=dict
    )

    @property
    def is_inner(self) -> bool:
        return self.how in {"INNER", "CROSS"}


@dataclass
class Meaning:
    """What a query does, as sets and bags that do not depend on names or order.

    Keys can be compared with those of a meaning that was made with the same `Interner`; `show`
    turns one back into SQL for a reader.

    Attributes:
        gaps: what was not understood, in words. Where there is any, nothing is proved.
        reads: what stands in FROM or is joined by inner joins, and how often.
        columns: the columns of queries that are joined, by what these read.
        grouped_by: the results that tell one row from every other; empty where none are known to.
        totals: for each result the aggregates that its value goes through.
        quotients: for each result what it divides by, and how many quotients are whole.
    """

    dialect: str
    gaps: list[str]
    filters: Counter[TermKey] = field(default_factory=Counter)
    joins: list[Join] = field(default_factory=list)
    groups: list[frozenset[TermKey]] = field(default_factory=list)
    distincts: int = 0
    unions: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    columns: Mapping[str, set[str]] = field(default_factory=dict)
    grouped_by: frozenset[str] = frozenset()
    results: dict[str, TermKey] = field(default_factory=dict)
    totals: dict[str, Counter[str]] = field(default_factory=dict)
    quotients: dict[str, Counter[TermKey | str]] = field(default_factory=dict)
    nodes: dict[TermKey, Any] = field(default_factory=dict)
    rows: TermKey | None = None

    @cached_property
    def inner_conditions(self) -> frozenset[TermKey]:
        """The conditions of inner joins, which filter like a WHERE."""
        return frozenset(key for join in self.joins if join.is_inner for key in join.on)

    def show(self, key: TermKey) -> str:
        """The SQL that `key` stands for, without quotes."""
        return unquoted(self.nodes[key].sql(dialect=self.dialect, comments=False))

    def proves_same(self, other: Meaning) -> bool:
        """Whether both give the same rows on any data, up to the order of rows and columns."""
        return (
            not self.gaps
            and not other.gaps
            and self.rows is not None
            and self.rows == other.rows
            and self.results == other.results
        )


def meaning(
    query: Query,
    dialect: str,
    keys: Interner | None = None,
    new_names: Mapping[str, str] | None = None,
) -> Meaning | None:
    """The meaning of a query; None where it cannot be taken apart.

    Args:
        keys: shared by the meanings that are to be compared.
        new_names: tables that only got another name, so that both sides call them alike.
    """
    if query.rendered is None:
        return None
    return meaning_of(query.rendered, dialect, keys or Interner(), new_names or {})


def meaning_of(
    tree: Any, dialect: str, keys: Interner, new_names: Mapping[str, str]
) -> Meaning | None:
    """See `meaning`; `tree` is the query as the parser gives it."""
    reader = Reader(new_names)
    try:
        block = reader.read(tree)
        return _Teller(reader, block, dialect, keys).tell()
    except (RecursionError, QueryTooLargeError):
        return None


class _Teller:
    def __init__(self, reader: Reader, block: Block, dialect: str, keys: Interner) -> None:
        self.reader = reader
        self.block = block
        self.keys = keys
        self.sealer = Sealer(keys)
        self.told = Meaning(dialect, reader.gaps)

    def tell(self) -> Meaning:
        self._prove()
        self._count_turns()
        names = _Origins(self.sealer)
        notes, told = self.reader.notes, self.told
        for term, node in notes.filters:
            if not is_interval_predicate(node):
                told.filters[self._key(term, node, names)] += 1
        for join in notes.joins:
            on = {self._key(term, node, names): places for term, node, places in join.on}
            told.joins.append(Join(join.target, join.how, frozenset(on), join.node, on))
        for group in notes.groups:
            told.groups.append(frozenset(self._key(term, node, names) for term, node in group))
        told.distincts, told.unions, told.columns = notes.distincts, notes.unions, notes.columns
        told.reads = notes.reads
        told.grouped_by = self._grouped_by(names)
        for name, term in self.block.outputs.items():
            told.totals[name] = Counter(_totals(term))
            told.quotients[name] = self._quotients(term, names)
        return told

    def _prove(self) -> None:
        if any("#" in name for name in self.block.outputs):
            self.told.gaps.append("two results of one name")
        try:
            sealed = self.sealer.seal(self.block)
        except KeyError:  # a column of a query around one that cannot see it
            self.told.gaps.append("a column from outside")
            return
        self.told.rows, self.told.results = sealed.rows, dict(sealed.outputs)

    def _count_turns(self) -> None:
        """Numbers the occurrences of one thing in a SELECT, as they stand in it."""
        for block in self.reader.notes.blocks:
            met: Counter[TermKey] = Counter()
            for source in block.part.sources():
                try:
                    base = self.sealer.base(source)
                except KeyError:
                    base = self.keys.key(("unknown", id(source)))
                met[base] += 1
                source.turn = met[base]

    def _key(self, term: Term, node: Any, names: _Origins) -> TermKey:
        key = self.keys.of(term, names)
        self.told.nodes.setdefault(key, node)
        return key

    def _grouped_by(self, names: _Origins) -> frozenset[str]:
        group = self.block.group
        if group is None or group.sets:
            return frozenset()
        keys = {self.keys.of(term, names) for term in group.keys}
        results = {name: self.keys.of(term, names) for name, term in self.block.outputs.items()}
        if not keys <= set(results.values()):
            return frozenset()
        return frozenset(name for name, key in results.items() if key in keys)

    def _quotients(self, term: Term, names: _Origins) -> Counter[TermKey | str]:
        found: Counter[TermKey | str] = Counter()
        for node in _below(term):
            if isinstance(node, Operation) and node.op.startswith(("div(", "intdiv(")):
                found["whole"] += int(node.op.startswith("intdiv("))
                found[self.keys.of(_unguarded(node.parts[1]), names)] += 1
        return found


class _Origins(KeyNames):
    """Columns by where they come from, whatever stands between."""

    def __init__(self, sealer: Sealer) -> None:
        self.known = {}
        self._sealer = sealer
        self._open: set[int] = set()

    def label(self, source: QuerySource) -> object:
        if isinstance(source, TableRead):
            return ("table", source.name, source.version, source.turn)
        if isinstance(source, Derived):
            return ("query", self._sealer.shape(source.block, self), source.turn)
        if isinstance(source, SetOperation):
            shapes = [self._sealer.shape(branch, self) for branch in source.branches]
            return (source.kind, source.distinct, *shapes)
        if isinstance(source, Generated):
            return ("generated", self._sealer.keys.of(source.call, self))
        if isinstance(source, Values):
            return ("values", self._sealer.keys.of(source.rows, self))
        raise AssertionError(f"unreachable: {type(source).__name__} has no columns")

    def column(self, column: SourceColumn) -> tuple[object, ...]:
        source, keys = column.source, self._sealer.keys
        if isinstance(source, Derived):
            term = source.block.output(column.name)
            if term is not None:
                return ("from", source.turn, keys.of(term, self))
        if isinstance(source, SetOperation):
            terms = [list(branch.outputs.values())[int(column.name)] for branch in source.branches]
            return ("from", source.turn, *sorted({keys.of(term, self) for term in terms}))
        return ("column", self.label(source), column.name)

    def nested(self, nested: Nested) -> tuple[object, ...]:
        outputs = [self._sealer.keys.of(term, self) for term in nested.block.outputs.values()]
        return ("nested", self._sealer.shape(nested.block, self), *outputs)


def _below(term: Term) -> Iterator[Term]:
    """The term and everything that it is computed from, each part once."""
    queue: list[Term] = [term]
    seen: set[tuple[int, str] | int] = set()
    while queue:
        for item in walk(queue.pop()):
            mark = (id(item.source), item.name) if isinstance(item, SourceColumn) else id(item)
            if mark in seen:
                continue
            seen.add(mark)
            yield item
            if isinstance(item, SourceColumn):
                queue += _behind(item)


def _behind(column: SourceColumn) -> list[Term]:
    source = column.source
    if isinstance(source, Derived):
        term = source.block.output(column.name)
        return [term] if term is not None else []
    if isinstance(source, SetOperation):
        return [list(branch.outputs.values())[int(column.name)] for branch in source.branches]
    return []


def _totals(term: Term) -> Iterator[str]:
    for node in _below(term):
        if isinstance(node, Operation) and node.aggregate:
            inner = node.parts[0] if node.parts else None
            distinct = isinstance(inner, Operation) and inner.op.startswith("distinct(")
            name = node.op.partition("(")[0].upper()
            yield f"{name}{' DISTINCT' if distinct else ''}"


def _unguarded(term: Term) -> Term:
    """A denominator without its guard against zero, which changes no quotient."""
    while isinstance(term, Operation):
        guard = term.parts[1] if term.op.startswith("nullif(") else None
        is_guarded = isinstance(guard, Operation) and guard.op in {"number:0", "number:0.0"}
        if not is_guarded and not term.op.startswith(("cast(", "trycast(")):
            break
        term = term.parts[0]
    return term


def conjuncts(condition: Any) -> list[Any]:
    """The parts of a condition that all have to hold."""
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def unquoted(text: str) -> str:
    """SQL without the quotes of identifiers: views are rendered without, tables with them."""
    return text.replace("`", "").replace('"', "")
