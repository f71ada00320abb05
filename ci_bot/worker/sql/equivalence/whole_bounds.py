"""Bounds of whole numbers and of days: `a > 1` is `a >= 2`, and a last day is before the next."""

from __future__ import annotations

from datetime import date, timedelta

from ci_bot.worker.sql.equivalence.blocks import Term, TermOperation, make_leaf
from ci_bot.worker.sql.equivalence.known_types import find_known_type

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
# Beyond it a constant has another type.
_LAST = 2**31 - 2


def settle_bound(comparison: Term) -> Term:
    """A comparison of whole numbers or days with a constant, as `>=` or `<` of that constant."""
    if not isinstance(comparison, TermOperation) or comparison.op not in {"lt", "gte"}:
        return comparison
    constant, value = comparison.parts
    kind = find_known_type(value)
    following = (
        _make_next_number(constant)
        if kind in _WHOLE
        else _make_next_day(constant)
        if kind == "DATE"
        else None
    )
    if following is None:
        return comparison
    return TermOperation("gte" if comparison.op == "lt" else "lt", (value, following))


def _make_next_number(constant: Term) -> Term | None:
    is_negative = isinstance(constant, TermOperation) and constant.op == "neg(this)"
    bare = constant.parts[0] if isinstance(constant, TermOperation) and is_negative else constant
    digits = bare.op.removeprefix("number:") if isinstance(bare, TermOperation) else ""
    if not digits.isdecimal() or int(digits) > _LAST:
        return None
    number = (-int(digits) if is_negative else int(digits)) + 1
    leaf = make_leaf("number", str(abs(number)))
    return leaf if number >= 0 else TermOperation("neg(this)", (leaf,))


def _make_next_day(constant: Term) -> Term | None:
    if not isinstance(constant, TermOperation) or find_known_type(constant) != "DATE":
        return None
    text, *rest = constant.parts
    written = text.op.removeprefix("string:") if isinstance(text, TermOperation) else ""
    try:
        day = date.fromisoformat(written)
        following = day + timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    if day.isoformat() != written:
        return None
    return TermOperation(constant.op, (make_leaf("string", following.isoformat()), *rest))
