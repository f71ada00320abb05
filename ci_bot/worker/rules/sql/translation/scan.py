"""What a SELECT's own clauses mention, found by one walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from ci_bot.worker.compat.parsing.trees import FROM, WITH
from ci_bot.worker.rules.sql.algebra.functions import is_aggregate, makes_rows

# Clauses that are read on their own: their names are not those of this SELECT.
_ELSEWHERE = frozenset({WITH, FROM})


@dataclass
class Mentions:
    """What the clauses of a SELECT name and do, without the queries that it reads from.

    Attributes:
        columns: per alias the columns that are used, also within subqueries.
        bare: columns without an alias.
        all_of: aliases whose every column is used; "" for all aliases.
    """

    columns: dict[str, set[str]] = field(default_factory=dict)
    bare: set[str] = field(default_factory=set)
    all_of: set[str] = field(default_factory=set)
    aggregates: bool = False
    windows: bool = False
    generators: bool = False

    def of(self, alias: str) -> frozenset[str] | None:
        """The columns of `alias` that may be used; None for all of them."""
        if self.all_of & {"", alias}:
            return None
        return frozenset(self.columns.get(alias, set()) | self.bare)


def mentions(select: Any) -> Mentions:
    """The names and kinds of functions in the clauses of `select`."""
    found = Mentions(all_of={_starred(item) for item in select.expressions if item.is_star})
    for node, is_own in _clauses(select):
        kind = _kind_of(node)
        if kind == "column":
            table = node.args.get("table")
            if table is None:
                found.bare.add(node.name.lower())
            else:
                found.columns.setdefault(table.this.lower(), set()).add(node.name.lower())
        elif not kind or not is_own:
            continue
        elif kind == "window":
            found.windows = True
        elif kind == "generator":
            found.generators = True
        else:
            found.aggregates = found.aggregates or not _is_of_a_window(node)
    for join in select.args.get("joins") or []:
        for key in join.args.get("using") or []:
            found.bare.add(key.name.lower())
    return found


def _starred(item: Any) -> str:
    """The alias whose columns a star means; "" for all."""
    return item.table.lower() if isinstance(item, exp.Column) else ""


def _kind_of(node: Any) -> str:
    """What kind of node it is, as far as that is of interest; mostly its type tells."""
    kind = _KINDS.get(type(node))
    if kind is None:
        kind = (
            "column"
            if isinstance(node, exp.Column)
            else "window"
            if isinstance(node, exp.Window)
            else "generator"
            if makes_rows(node)
            else "aggregate"
            if is_aggregate(node)
            else ""
        )
        if not isinstance(node, exp.Anonymous):
            _KINDS[type(node)] = kind
    return kind


_KINDS: dict[type, str] = {}


def does(node: Any, what: Any) -> bool:
    """Whether `what` holds of an expression or a part of it, leaving out subqueries."""
    return any(what(part) for part, is_own in _walk([(node, True)]) if is_own)


def _clauses(select: Any) -> Iterator[tuple[Any, bool]]:
    queue: list[tuple[Any, bool]] = []
    for name, value in select.args.items():
        if name in _ELSEWHERE or value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                # A function that makes rows uses columns of what stands before it.
                made = None if isinstance(item.this, exp.Table | exp.Subquery) else item.this
                queue += [(part, False) for part in (item.args.get("on"), made) if part is not None]
            elif isinstance(item, exp.Expression):
                queue.append((item, name != "laterals"))
    yield from _walk(queue)


def _walk(queue: list[tuple[Any, bool]]) -> Iterator[tuple[Any, bool]]:
    while queue:
        node, is_own = queue.pop()
        yield node, is_own
        is_own = is_own and not isinstance(node, exp.Query)
        for value in node.args.values():
            if isinstance(value, exp.Expression):
                queue.append((value, is_own))
            elif isinstance(value, list):
                queue += [(item, is_own) for item in value if isinstance(item, exp.Expression)]


def _is_of_a_window(node: Any) -> bool:
    """Whether a function is the one that a window computes, and not in its order or partition."""
    while isinstance(
        node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup
    ):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"
