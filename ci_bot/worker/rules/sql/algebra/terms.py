"""Scalar expressions without names: trees whose leaves are columns of occurrences of sources.

A term says everything that its expression says, but for aliases, parentheses and the order of
operands where that order means nothing. Two terms with one key are one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

TermKey = int


class Order(Enum):
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
    """A column of one occurrence of a source; the name is in lower case, `*` for all columns."""

    source: QuerySource
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """A query within an expression; it may use columns of the queries around it."""

    block: Any  # a `Block`, which is made of terms and so comes after them


class Operation:
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
        order: Order = Order.MATTERS,
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


Term = Operation | SourceColumn | Nested


def leaf(kind: str, text: str) -> Operation:
    """A constant, or any other text that means the same wherever it stands."""
    return Operation(f"{kind}:{text}")


def is_ordered(term: Term) -> bool:
    return isinstance(term, Operation) and term.ordered


def is_windowed(term: Term) -> bool:
    return isinstance(term, Operation) and term.windowed


def is_aggregated(term: Term) -> bool:
    return isinstance(term, Operation) and term.aggregated


def walk(term: Term) -> Iterator[Term]:
    """The term and everything below it, without the insides of nested queries."""
    queue = [term]
    for item in queue:
        yield item
        if isinstance(item, Operation):
            queue.extend(item.parts)


TRUE = leaf("boolean", "true")
_OPPOSITE = {"eq": "neq", "neq": "eq", "lt": "gte", "gte": "lt"}


def comparison(op: str, left: Term, right: Term) -> Operation:
    """`left op right`, where op is one of eq, neq, lt, lte, gt, gte."""
    if op in {"eq", "neq"}:
        return Operation(op, (left, right), Order.FREE)
    if op in {"gt", "lte"}:
        # Two of the four are enough: a > b is b < a, and a <= b is b >= a.
        op, left, right = ("lt" if op == "gt" else "gte"), right, left
    return Operation(op, (left, right))


def junction(op: str, items: list[Term]) -> Term:
    """AND or OR of `items`, flat."""
    flat: list[Term] = []
    for item in items:
        if isinstance(item, Operation) and item.op == op:
            flat.extend(item.parts)
        else:
            flat.append(item)
    return flat[0] if len(flat) == 1 else Operation(op, tuple(flat), Order.FREE_AND_ONCE)


def negation(term: Term) -> Term:
    """NOT in three-valued logic, pushed down to where it stands before something else."""
    if isinstance(term, Operation):
        if term.op == "not":
            return term.parts[0]
        if term.op in {"and", "or"}:
            other = "or" if term.op == "and" else "and"
            return junction(other, [negation(part) for part in term.parts])
        if term.op in _OPPOSITE:
            return Operation(_OPPOSITE[term.op], term.parts, term.order)
    return Operation("not", (term,))


def conjuncts(term: Term) -> list[Term]:
    """The parts of a condition that all have to hold."""
    if isinstance(term, Operation):
        if term.op == "and":
            return [item for part in term.parts for item in conjuncts(part)]
        if term.op == TRUE.op:
            return []
    return [term]


class Naming(Protocol):
    """How columns and nested queries are called in keys.

    `known` keeps the keys of terms: a term that is used often is written out once. A term equals
    itself alone, and is held here, so that no other one gets its identity.
    """

    known: dict[Term, TermKey]

    def column(self, column: SourceColumn) -> tuple[object, ...]: ...

    def nested(self, nested: Nested) -> tuple[object, ...]: ...


class Interner:
    """Small numbers for structures: two structures have one number exactly if they are equal."""

    def __init__(self) -> None:
        self._keys: dict[tuple[object, ...], TermKey] = {}

    def key(self, structure: tuple[object, ...]) -> TermKey:
        return self._keys.setdefault(structure, len(self._keys))

    def of(self, term: Term, naming: Naming) -> TermKey:
        """The key of a term whose leaves are called as `naming` says."""
        known = naming.known.get(term)
        if known is None:
            known = naming.known[term] = self.key(self._structure(term, naming))
        return known

    def _structure(self, term: Term, naming: Naming) -> tuple[object, ...]:
        if isinstance(term, SourceColumn):
            return naming.column(term)
        if isinstance(term, Nested):
            return naming.nested(term)
        keys = [self.of(part, naming) for part in term.parts]
        if term.order is not Order.MATTERS:
            keys = sorted(set(keys) if term.order is Order.FREE_AND_ONCE else keys)
        return (term.op, *keys)
