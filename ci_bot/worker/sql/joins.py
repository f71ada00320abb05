"""Joins, also those in brackets, and the parts of a row that is their result.

`a LEFT JOIN (b JOIN c ON ...) ON ...` and `a JOIN b JOIN c ON ... ON ...` have joins inside of a
join: SQLGlot keeps them with the first source of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

# Joins that only ask whether there is a partner.
_ASKING = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True)
class ScopedJoin:
    """A join, perhaps in brackets.

    Attributes:
        target: the joined source; the first one if there are several in brackets.
        aliases: the aliases of all sources that it joins.
    """

    node: exp.Join
    target: exp.Expr
    aliases: frozenset[str]

    @property
    def alias(self) -> str:
        return self.target.alias_or_name.lower()

    @property
    def conditions(self) -> list[exp.Expr]:
        """The parts of ON, without brackets."""
        return split_conditions(self.node.args.get("on"))

    @property
    def using(self) -> list[str]:
        """The columns of USING."""
        return [key.name.lower() for key in self.node.args.get("using") or ()]

    @property
    def keeps_left(self) -> bool:
        """Whether all rows before the join stay, because it adds NULL for a partner."""
        return self.node.side in {"LEFT", "FULL"} and self.node.kind not in _ASKING

    @property
    def adds_columns(self) -> bool:
        """Whether the partner's rows become a part of the result: not in LEFT SEMI and ANTI."""
        return self.node.kind not in _ASKING


@dataclass(frozen=True)
class RowParts:
    """The parts of a row of FROM and its joins: sources that have a row, and conditions."""

    sources: tuple[exp.Expr, ...]
    conditions: tuple[exp.Expr, ...] = ()


def split_conditions(condition: exp.Expr | None) -> list[exp.Expr]:
    """Splits a condition at AND, without brackets: all parts must hold."""
    if condition is None:
        return []
    if isinstance(condition, exp.Paren):
        return split_conditions(condition.this)
    if isinstance(condition, exp.And):
        return [*split_conditions(condition.this), *split_conditions(condition.expression)]
    return [condition]


def enter_brackets(node: exp.Expr) -> exp.Expr:
    """Returns the first source in brackets that only contain joins."""
    while isinstance(node, exp.Subquery) and not node.alias and _holds_joins(node):
        node = node.this
    return node


def _holds_joins(node: exp.Subquery) -> bool:
    return isinstance(node.this, exp.Table | exp.Subquery)


def list_joins_in_brackets(node: exp.Expr) -> list[exp.Join]:
    """Lists the joins that belong to a source itself."""
    found = list(node.args.get("joins") or ())
    if isinstance(node, exp.Subquery) and not node.alias and _holds_joins(node):
        found = [*list_joins_in_brackets(node.this), *found]
    return found


def iterate_joins(joins: Iterable[exp.Join]) -> Iterator[ScopedJoin]:
    for join in joins:
        inner = list(iterate_joins(list_joins_in_brackets(join.this)))
        first = enter_brackets(join.this)
        aliases = {first.alias_or_name.lower(), *(one.alias for one in inner)}
        yield ScopedJoin(join, first, frozenset(aliases))
        yield from inner


def list_row_parts(start: exp.Expr, joins: Iterable[exp.Join]) -> list[RowParts]:
    found = [RowParts((start,))]
    for join in joins:
        right = list_row_parts(enter_brackets(join.this), list_joins_in_brackets(join.this))
        on = tuple(split_conditions(join.args.get("on")))
        if join.side == "FULL":
            found += right
        elif join.side == "RIGHT":
            found = right
        elif join.kind != "ANTI" and (join.side != "LEFT" or join.kind == "SEMI"):
            found = [
                RowParts((*one.sources, *other.sources), (*one.conditions, *other.conditions, *on))
                for one in found
                for other in right
            ]
    return found


def find_outer_join(before: set[str], joins: Iterable[exp.Join], alias: str) -> str:
    found = ""
    for node in joins:
        join = next(iterate_joins([node]))
        if (alias in join.aliases and node.side in {"LEFT", "FULL"}) or (
            alias in before and node.side in {"RIGHT", "FULL"}
        ):
            found = f"{node.side} JOIN"
        elif alias in join.aliases:
            found = find_outer_join({join.alias}, list_joins_in_brackets(node.this), alias)
        before = before | join.aliases
    return found
