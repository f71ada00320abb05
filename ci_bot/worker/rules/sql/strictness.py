"""Whether an audit got stricter or weaker, where its text tells.

An audit's query returns the rows that are wrong. It is stricter when it returns at least the rows
that it returned before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d

Strictness = Literal["stricter", "weaker", "unknown"]
_UPPER = (exp.GT, exp.GTE)
_LOWER = (exp.LT, exp.LTE)
# Arguments of SQLMesh's own audits that bound values from below and from above.
_MINIMUM = frozenset({"min_v", "min_value", "threshold", "min_count"})
_MAXIMUM = frozenset({"max_v", "max_value", "max_count"})


def compare_queries(old: str, new: str, dialect: str) -> Strictness:
    """The verdict on two versions of an audit's query."""
    before, after = _parsed(old, dialect), _parsed(new, dialect)
    if before is None or after is None:
        return "unknown"
    was, now = before.args.get("where"), after.args.get("where")
    if was is None or now is None:
        return "unknown"
    # Everything but the condition has to be the same, or nothing can be said.
    bare_before, bare_after = before.copy(), after.copy()
    bare_before.set("where", None)
    bare_after.set("where", None)
    if bare_before.sql() != bare_after.sql():
        return "unknown"
    return _conditions(was.this, now.this)


def _parsed(text: str, dialect: str) -> Any:
    try:
        tree = d.parse_one(text, dialect=dialect)
    except (SqlglotError, ValueError):
        return None
    return tree if isinstance(tree, exp.Select) else None


def _conditions(old: Any, new: Any) -> Strictness:
    """Conditions that pick wrong rows: more alternatives or fewer demands pick more of them."""
    before, after = _parts(old, exp.Or), _parts(new, exp.Or)
    if set(before) <= set(after):
        return "stricter"
    if set(after) < set(before):
        return "weaker"
    if len(before) == len(after) == 1:
        demands, later = _parts(old, exp.And), _parts(new, exp.And)
        if set(later) < set(demands):
            return "stricter"
        if set(demands) < set(later):
            return "weaker"
    gone, came = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    moved = [_bound(before[b], after[a]) for b, a in zip(gone, came, strict=False)]
    if moved and len(before) == len(after) and len(set(moved)) == 1:
        return moved[0]
    return "unknown"


def _parts(node: Any, kind: Any) -> dict[str, Any]:
    inner = node.unnest()
    parts = list(inner.flatten()) if isinstance(inner, kind) else [inner]
    return {part.unnest().sql().lower(): part.unnest() for part in parts}


def _bound(old: Any, new: Any) -> Strictness:
    """Two comparisons of the same value with different numbers."""
    if type(old) is not type(new) or not isinstance(old, (*_UPPER, *_LOWER)):
        return "unknown"
    before, after = _number(old.expression), _number(new.expression)
    if old.this.sql().lower() != new.this.sql().lower() or before is None or after is None:
        return "unknown"
    more = after > before if isinstance(old, _LOWER) else after < before
    return "stricter" if more else "weaker"


def _number(node: Any) -> float | None:
    sign = 1.0
    if isinstance(node, exp.Neg):
        sign, node = -1.0, node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign * float(node.this)
    return None


def compare_arguments(old: Mapping[str, Any], new: Mapping[str, Any]) -> Strictness:
    """The verdict on two calls of the same audit."""
    if set(old) != set(new):
        return "unknown"
    verdicts = {
        _argument(name, old[name], new[name]) for name in old if _sql(old[name]) != _sql(new[name])
    }
    return verdicts.pop() if len(verdicts) == 1 else "unknown"


def _argument(name: str, old: Any, new: Any) -> Strictness:
    before, after = _number(old), _number(new)
    if before is not None and after is not None and name in _MINIMUM | _MAXIMUM:
        return "stricter" if (after > before) == (name in _MINIMUM) else "weaker"
    if name == "is_in":
        was, now = _members(old), _members(new)
        return "stricter" if now <= was else "weaker" if was <= now else "unknown"
    if name == "columns":
        was, now = _members(old), _members(new)
        return "stricter" if was <= now else "weaker" if now <= was else "unknown"
    return "unknown"


def _members(value: Any) -> set[str]:
    inner = value.unnest() if isinstance(value, exp.Expression) else value
    items = getattr(inner, "expressions", None) or [inner]
    return {_sql(item) for item in items}


def _sql(value: Any) -> str:
    return str(value.sql()).lower() if hasattr(value, "sql") else str(value).lower()
