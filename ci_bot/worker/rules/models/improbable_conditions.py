"""Conditions whose brackets are missing, and conditions that are the same for each row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from ci_bot.protocol.plan import Severity

_CHOOSING = (exp.Where, exp.Having, exp.Qualify)
_VALUES = (exp.Case, exp.If, exp.Select)
_ALTERNATIVES = 2
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TRUTHS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.Is,
    exp.And, exp.Or, exp.RegexpLike,
)  # fmt: skip


def find_loose_or(node: exp.Or) -> tuple[str, str, Severity | None] | None:
    """Describes an OR of which AND, without brackets, takes a part: AND binds first.

    If each alternative has an AND of its own, it is a list of whole alternatives. In ON each of
    them must tie the two tables.
    """
    if isinstance(node.parent, exp.Or):
        return None
    parts = list(node.flatten(unnest=False))
    if not any(isinstance(part, exp.And) for part in parts):
        return None
    clause = _find_clause(node)
    whole = all(isinstance(part.unnest(), exp.And) for part in parts)
    if whole and not (clause == "ON" and any(not _ties_tables(part) for part in parts)):
        return None
    return (
        f"is without brackets{f' in {clause}' if clause else ''}: AND binds before OR, so the "
        "conditions beside AND do not hold for the rows that OR lets in",
        "brackets say which conditions belong together",
        None if clause else "medium",
    )


def _find_clause(node: exp.Expr) -> str | None:
    """Names the clause that a condition chooses rows in; None inside a value."""
    above = node.parent
    while above is not None and not isinstance(above, _VALUES):
        if isinstance(above, _CHOOSING):
            return type(above).__name__.upper()
        if isinstance(above, exp.Join):
            return "ON"
        above = above.parent
    return None


def _ties_tables(part: exp.Expr) -> bool:
    tables = {column.table for column in part.find_all(exp.Column)}
    return len(tables) >= _ALTERNATIVES or "" in tables


def describe_condition(node: exp.Expr) -> tuple[str, str] | None:
    """Describes a condition that is the same for each row, or a COUNT of it."""
    if isinstance(node, exp.Count):
        return _describe_count(node)
    if isinstance(node, exp.Between):
        return _describe_range(node)
    if isinstance(node.parent, type(node)):
        return None
    parts = [part.unnest() for part in node.flatten()]
    if isinstance(node, exp.Or) and _list_rivals(parts, exp.NEQ):
        return "is always true: a value differs from one of them", "AND or NOT IN is used"
    if isinstance(node, exp.And) and _list_rivals(parts, exp.EQ):
        return "is never true: one value cannot equal both", "IN is used"
    return None


def _list_rivals(parts: Sequence[exp.Expr], kind: type[exp.Expr]) -> list[str]:
    """Lists columns that are compared with two different constants."""
    values: dict[str, set[str]] = {}
    for part in parts:
        if isinstance(part, kind):
            for side, other in ((part.this, part.expression), (part.expression, part.this)):
                if isinstance(side, exp.Column) and isinstance(other, exp.Literal):
                    values.setdefault(side.sql().lower(), set()).add(other.sql())
    return [column for column, of in values.items() if len(of) >= _ALTERNATIVES]


def _describe_range(node: exp.Between) -> tuple[str, str] | None:
    low, high = map(_read_constant, list(node.iter_expressions())[1:])
    reversed_ = (
        low is not None and high is not None and type(low) is type(high) and low > high  # type: ignore[operator]
    )
    if not reversed_ or node.args.get("symmetric"):
        return None
    return "is never true: its lower end is above its upper end", "the lower end comes first"


def _read_constant(node: exp.Expr | None) -> Decimal | str | None:
    """Reads a number, or a day as text; None for anything else."""
    if isinstance(node, exp.Cast | exp.TryCast | exp.Paren):
        return _read_constant(node.this)
    if isinstance(node, exp.Neg):
        number = _read_constant(node.this)
        return -number if isinstance(number, Decimal) else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name if _DAY.match(node.name) else None
    return Decimal(node.name)


def _describe_count(node: exp.Count) -> tuple[str, str] | None:
    counted = node.this.unnest() if isinstance(node.this, exp.Expression) else None
    if counted is None or node.expressions or not _is_never_null(counted):
        return None
    return (
        "counts each row: FALSE and 0 are values, and COUNT leaves out only NULL",
        "COUNT_IF is used, or the CASE has no ELSE",
    )


def _is_never_null(node: exp.Expr) -> bool:
    """Whether a value tells rows apart by something else than NULL, as a condition does."""
    if isinstance(node, exp.Not):
        return _is_never_null(node.this.unnest())
    if isinstance(node, exp.Case):
        results = [one.args.get("true") for one in node.args.get("ifs") or ()]
        return all(isinstance(one, exp.Literal) for one in [*results, node.args.get("default")])
    if isinstance(node, exp.If):
        return all(isinstance(node.args.get(name), exp.Literal) for name in ("true", "false"))
    return isinstance(node, _TRUTHS)
