"""Conditions that rows have to meet: NULL keeps a row out as FALSE does, so more forms are one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal

from sqlglot import exp

from ci_bot.worker.sql.equivalence.choices import find_truth, is_null, read_choice


def simplify_condition(node: exp.Expr) -> exp.Expr:
    """A condition that is true for the same rows; for the others it may be FALSE or NULL.

    The tree of `node` stays as it is.
    """
    bare = node.unnest()
    if isinstance(bare, exp.And | exp.Or):
        return _simplify_sides(node, bare)
    inner = _find_asked(bare) or _drop_default(bare)
    if inner is not None:
        return simplify_condition(inner)
    if isinstance(bare, exp.In) and bare.args.get("query") is None and not bare.args.get("unnest"):
        known = [one for one in bare.expressions if not is_null(one)]
        if known and len(known) < len(bare.expressions):
            shorter = bare.copy()
            shorter.set("expressions", [one.copy() for one in known])
            return shorter
    return node


def _simplify_sides(node: exp.Expr, junction: exp.Expr) -> exp.Expr:
    written = list(junction.flatten())
    sides = [simplify_condition(side) for side in written]
    if isinstance(junction, exp.Or):
        sides = [side for side in sides if not is_null(side)]
        equal = _find_equal_or_both_null(sides)
        if equal is not None:
            return equal
    if not sides or list(map(id, sides)) == list(map(id, written)):
        return node
    first, *rest = [side.copy() for side in sides]
    for side in rest:
        first = type(junction)(this=exp.paren(first, copy=False), expression=exp.paren(side))
    return first


def _find_asked(node: exp.Expr) -> exp.Expr | None:
    """The condition that is true where `node` is, where `node` only makes its NULL a FALSE."""
    asked, kept = _split_test(node)
    return asked if kept else None


def _split_test(node: exp.Expr) -> tuple[exp.Expr | None, bool]:
    """What is asked, and whether nothing else makes `node` true."""
    if isinstance(node, exp.Is | exp.EQ):
        return node.this, bool(find_truth(node.expression)) and _is_truth(node.this)
    if isinstance(node, exp.Coalesce):
        return node.this, [*map(find_truth, node.expressions)] == [False]
    choice = read_choice(node)
    if choice is None or len(choice.branches) != 1 or not find_truth(choice.branches[0].given):
        return None, False
    otherwise = choice.otherwise
    is_out = otherwise is None or is_null(otherwise) or find_truth(otherwise) is False
    return choice.branches[0].condition, is_out


_NUMBERS: Mapping[type, Callable[[Decimal, Decimal], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}


def _drop_default(node: exp.Expr) -> exp.Expr | None:
    """A comparison of COALESCE that is not true of the constant that NULL is replaced with."""
    compare = _NUMBERS.get(type(node))
    value, constant = node.this, node.expression
    if compare is None or not isinstance(value, exp.Coalesce) or len(value.expressions) != 1:
        return None
    (default,) = value.expressions
    if not isinstance(default, exp.Literal) or not isinstance(constant, exp.Literal):
        return None
    if default.is_string and constant.is_string:
        is_out = isinstance(node, exp.EQ) and default.name != constant.name
        is_kind = value.this.type is not None and value.this.type.is_type(exp.DataType.Type.TEXT)
    elif default.is_string or constant.is_string:
        return None
    else:
        is_out = not compare(Decimal(default.name), Decimal(constant.name))
        kinds = exp.DataType.INTEGER_TYPES | {exp.DataType.Type.DECIMAL}
        is_kind = value.this.type is not None and value.this.type.is_type(*kinds)
    if not is_out or not is_kind:
        return None
    return type(node)(this=value.this.copy(), expression=constant.copy())


def _is_truth(node: exp.Expr) -> bool:
    return node.type is not None and node.type.is_type(exp.DataType.Type.BOOLEAN)


def _find_equal_or_both_null(sides: list[exp.Expr]) -> exp.Expr | None:
    """`a = b OR (a IS NULL AND b IS NULL)`, which is `a <=> b`."""
    if len(sides) != len(("equal", "both null")):
        return None
    for one, other in (sides, reversed(sides)):
        equal, both = one.unnest(), other.unnest()
        if isinstance(equal, exp.EQ) and isinstance(both, exp.And):
            tests = [part.unnest() for part in both.flatten()]
            nulls = [t.this for t in tests if isinstance(t, exp.Is) and is_null(t.expression)]
            pair = [equal.this, equal.expression]
            if len(nulls) == len(tests) == len(pair) and nulls in (pair, pair[::-1]):
                return exp.NullSafeEQ(this=pair[0].copy(), expression=pair[1].copy())
    return None
