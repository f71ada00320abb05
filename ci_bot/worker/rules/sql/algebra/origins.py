"""Columns by where they come from, and everything that a value is computed from."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.worker.rules.sql.algebra.blocks import (
    Derived,
    Generated,
    SetOperation,
    TableRead,
    Values,
)
from ci_bot.worker.rules.sql.algebra.keys import KeyNames, Sealer
from ci_bot.worker.rules.sql.algebra.terms import Nested, QuerySource, SourceColumn, Term, walk


class Origins(KeyNames):
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


def below(term: Term) -> Iterator[Term]:
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
