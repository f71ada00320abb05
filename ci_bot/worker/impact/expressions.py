"""What an expression depends on, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlglot import exp

from ci_bot.worker.compat.parsing.trees import Tree
from ci_bot.worker.impact.frames import NameScope
from ci_bot.worker.impact.values import Rowset, Terms, Traced

ReadQuery = Callable[[Any, NameScope], Rowset]

_SWAPPED = {exp.GT: "LT", exp.GTE: "LTE"}
_BOTH_SIDES = frozenset({exp.LT, exp.LTE})
_CONNECTORS = frozenset({exp.And, exp.Or})
# Sums are none of them: SQLGlot reads `a + b % 2` as `(a + b) % 2`, and writes it without brackets.
_ANY_ORDER = _CONNECTORS | {exp.EQ, exp.NEQ, exp.NullSafeEQ}
# Functions that make several rows of one, where they stand among the projections.
_GENERATORS = (exp.Explode, exp.Inline, exp.Unnest, exp.UDTF, exp.Aliases)
_GENERATOR_NAMES = frozenset({"stack", "inline_outer", "json_tuple", "flatten"})


class UnreadableError(Exception):
    """A query of a kind that is not read here."""


def _by_key(value: Traced) -> int:
    return value.key


class Expressions:
    """Reads expressions; nested queries are read by `read_query`."""

    def __init__(self, terms: Terms, read_query: ReadQuery) -> None:
        self.terms = terms
        self._read_query = read_query

    def value(self, node: Any, frame: NameScope) -> Traced:  # noqa: PLR0911 - one line for each kind
        """The value of `node`, with the names of `frame`."""
        if isinstance(node, exp.Column):
            return self._column(node, frame)
        if isinstance(node, exp.Alias | exp.Paren):
            return self.value(node.this, frame)
        if isinstance(node, exp.Literal):
            return Traced(0, self.terms.key("literal", node.is_string, node.this))
        if isinstance(node, exp.Identifier):
            return Traced(0, self.terms.key("name", node.name.lower()))
        if isinstance(node, exp.Query):
            return self._subquery(node, frame)
        if isinstance(node, exp.Star):
            return self.terms.value("star", [frame.everything(), self._node(node, frame)])
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            return self.terms.value("exists", [self._read_query(node.this, frame).rows])
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return Traced(0, self.terms.key("count of rows"))
        if isinstance(node, exp.Lambda):
            bound = frozenset(name.name.lower() for name in node.expressions)
            return self._node(node, frame.inner(bound=bound))
        if isinstance(node, exp.Comprehension):
            return self._node(node, frame.inner(bound=frozenset({node.expression.name.lower()})))
        if isinstance(node, exp.Table):
            raise UnreadableError("a table inside of an expression")
        if isinstance(node, exp.TableColumn):
            return frame.resolve([node.name.lower()])
        return self._generic(node, frame)

    def _generic(self, node: Any, frame: NameScope) -> Traced:
        kind = type(node)
        if kind in _SWAPPED:
            sides = [node.expression, node.this]
            return self.terms.value(_SWAPPED[kind], [self.value(side, frame) for side in sides])
        if kind in _BOTH_SIDES:
            sides = [node.this, node.expression]
            return self.terms.value(kind.__name__, [self.value(side, frame) for side in sides])
        if kind in _ANY_ORDER:
            operands = node.flatten() if kind in _CONNECTORS else (node.this, node.expression)
            values = [self.value(operand, frame) for operand in operands]
            return self.terms.value(kind.__name__, sorted(values, key=_by_key))
        found = self._node(node, frame)
        if kind is exp.Window and node.args.get("alias") and frame.windows is not None:
            return self.terms.value("named window", [found, frame.windows])
        return found

    def _node(self, node: Any, frame: NameScope) -> Traced:
        """A node by all of its arguments, each with its name."""
        deps = 0
        parts: list[Any] = [type(node).__name__]
        for name, argument in node.args.items():
            if argument is None or argument is False or argument == []:
                continue
            values = [
                self._argument(item, frame)
                for item in (argument if isinstance(argument, list) else [argument])
            ]
            for value in values:
                deps |= value.deps
            parts.append((name, *(value.key for value in values)))
        return Traced(deps, self.terms.key(*parts))

    def _argument(self, item: Any, frame: NameScope) -> Traced:
        if isinstance(item, Tree):
            return self.value(item, frame)
        return Traced(0, self.terms.key("text", str(item)))

    def _column(self, node: Any, frame: NameScope) -> Traced:
        parts = [part.name.lower() for part in node.parts]
        if isinstance(node.this, exp.Star):
            return frame.resolve(parts[:-1])
        return frame.resolve(parts)

    def _subquery(self, node: Any, frame: NameScope) -> Traced:
        return self.terms.value("query", [self._read_query(node, frame).whole(self.terms)])


class Traits(NamedTuple):
    """What a projection does besides computing one value of one row.

    Attributes:
        aggregates: it makes one row of many, and not as a window.
        mixes: it does, and has columns that no aggregate takes in.
        multiplies: it makes several rows of one.
        spreads: it stands for several columns, whose names it does not list.
    """

    aggregates: bool
    mixes: bool
    multiplies: bool
    spreads: bool


def traits(node: Any) -> Traits:
    """See `Traits`; nested queries are not looked into."""
    aggregates = multiplies = spreads = False
    for found in node.walk(prune=_is_query):
        if isinstance(found, exp.AggFunc):
            aggregates = aggregates or not _in_window(found)
        elif isinstance(found, _GENERATORS):
            multiplies = True
        elif isinstance(found, exp.Columns):
            spreads = True
        elif isinstance(found, exp.Anonymous):
            multiplies = multiplies or found.name.lower() in _GENERATOR_NAMES
    mixes = aggregates and any(
        isinstance(found, exp.Column | exp.Query) for found in node.walk(prune=_takes_in)
    )
    return Traits(aggregates, mixes, multiplies, spreads)


def _is_query(node: Any) -> bool:
    return isinstance(node, exp.Query)


def _takes_in(node: Any) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Query)


def _in_window(node: Any) -> bool:
    while isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"
