"""Replacements of Spark's analyzer, and forms that mean the same by definition.

A proof reads one form instead of the other. Source: the classes `RuntimeReplaceable` and
`RuntimeReplaceableAggregate` of Spark 3.5 and 4.x (https://spark.apache.org/docs/3.5.6/api/sql/
calls most of them "equivalent to"). The pairs `spark_replacements` hold each row, and pairs that
only look the same, with Spark as the judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sqlglot import exp

from ci_bot.worker.sql.equivalence.choices import (
    build_known_truth,
    find_truth,
    is_null,
    never_fail,
    replace_choice,
    replace_coalesce,
)
from ci_bot.worker.sql.equivalence.date_replacements import (
    is_typed,
    replace_added_days,
    replace_cast,
    replace_day,
    replace_days,
    replace_days_between,
    replace_extract,
    replace_to_date,
    replace_unit,
    replace_year,
)

# It takes an expression, and returns one or None. (The name of the common type differs by release.)
Replacement = Callable[[Any], Any]

# A FLOAT is compared as a FLOAT with a whole number, and as a DOUBLE beside a decimal.
_EXACT_WITH_DECIMALS = exp.DataType.NUMERIC_TYPES - {exp.DataType.Type.FLOAT}
_WILDCARD = re.compile(r"[%_\\]")
_TOTALS_OVER_KNOWN = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)


def replace_expression(node: exp.Expr, *, on_spark: bool) -> exp.Expr | None:
    """Returns the expression that a proof reads instead of `node`; None if that is `node` itself.

    It does not change the tree of `node`. With `on_spark`, Spark runs the query, and forms that
    only Spark defines are replaced, too.
    """
    find = (_REPLACEMENTS if on_spark else _REPLACEMENTS_IN_ANY).get(type(node))
    return find(node) if find is not None else None


def _test_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.Null())


def _replace_nvl2(node: exp.Expr) -> exp.Expr:
    condition = exp.Not(this=_test_null(node.this))
    false = node.args.get("false")
    return exp.If(
        this=condition, true=node.args["true"].copy(), false=false.copy() if false else None
    )


# A value, a constant to compare with, a result, a default.
_FEWEST_OF_DECODE = 4


def _replace_decode(node: exp.Expr) -> exp.Expr | None:
    """Replaces DECODE with a default; None without one, because Spark then gives a text."""
    if len(node.expressions) % 2 or len(node.expressions) < _FEWEST_OF_DECODE:
        return None
    value, *pairs = node.copy().expressions
    # With a constant on one side, `<=>` is true exactly if `=` is true.
    kinds = [exp.EQ if isinstance(one, exp.Literal) else exp.NullSafeEQ for one in pairs[:-1:2]]
    ifs = [
        exp.If(this=kind(this=value.copy(), expression=sought), true=result)
        for kind, sought, result in zip(kinds, pairs[:-1:2], pairs[1::2], strict=True)
    ]
    return exp.Case(ifs=ifs, default=pairs[-1])


def _replace_count_if(node: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.If(this=node.this.copy(), true=exp.Literal.number(1)), big_int=True)


def _replace_filter(node: exp.Expr) -> exp.Expr | None:
    """Replaces FILTER of a total that ignores NULL: the rows that it leaves out become NULL."""
    # SQLMesh leaves out a condition that is always true, and keeps FILTER.
    total = node.this
    is_plain = isinstance(total, _TOTALS_OVER_KNOWN) and not total.expressions
    if node.expression is None or not is_plain or isinstance(total.this, exp.Distinct):
        return None
    chosen: exp.Expr = total.copy()
    counted = exp.Literal.number(1) if isinstance(total.this, exp.Star) else chosen.this
    chosen.set("this", exp.If(this=node.expression.this.copy(), true=counted))
    return chosen


def compares_one_by_one(node: exp.In) -> bool:
    """Whether IN compares with each constant as `=` does: all are of the value's own kind.

    If there are other kinds, IN casts all of them to one type.
    """
    items = node.expressions
    texts = all(isinstance(one, exp.Literal) and one.is_string for one in items)
    numbers = all(_is_number(one) for one in items)
    return (texts and is_typed(node.this, *exp.DataType.TEXT_TYPES)) or (
        numbers and is_typed(node.this, *_EXACT_WITH_DECIMALS)
    )


def has_type_of_query(value: exp.Expr, query: exp.Expr) -> bool:
    """Whether a value and the only column of a query are known to have one type."""
    select = query.unnest()
    columns = select.selects if isinstance(select, exp.Select) else []
    return (
        len(columns) == 1
        and value.type is not None
        and not value.type.is_type(exp.DataType.Type.UNKNOWN)
        and value.type == columns[0].type
    )


def _is_number(node: exp.Expr) -> bool:
    bare = node.this if isinstance(node, exp.Neg) else node
    # A number with an exponent is a double, and IN makes all others doubles, too.
    return (
        isinstance(bare, exp.Literal)
        and not bare.is_string
        and re.fullmatch(r"[0-9.]+", str(bare.this)) is not None
    )


def is_written_as_text(item: exp.Expr) -> bool:
    """Whether a concatenation casts a value to text, or does not need to."""
    item = item.unnest()
    if isinstance(item, exp.Literal):
        return True
    if isinstance(item, exp.Concat | exp.DPipe):
        parts = item.expressions if isinstance(item, exp.Concat) else [item.left, item.right]
        return all(is_written_as_text(part) for part in parts)
    kind = item.to if isinstance(item, exp.Cast | exp.TryCast) else item.type
    return kind is not None and kind.is_type(
        *exp.DataType.TEXT_TYPES, *exp.DataType.INTEGER_TYPES, exp.DataType.Type.DATE
    )


def _replace_ilike(node: exp.Expr) -> exp.Expr | None:
    pattern = _read_pattern(node)
    if pattern is None or not pattern.isascii():
        return None
    lowered = exp.Literal.string(pattern.lower())
    return _negate_as(node, exp.Like(this=exp.Lower(this=node.this.copy()), expression=lowered))


def _replace_like(node: exp.Expr) -> exp.Expr | None:
    """Replaces LIKE by `=` if the pattern has no wildcard."""
    pattern = _read_pattern(node)
    is_text = is_typed(node.this, exp.DataType.Type.TEXT)
    if pattern is None or not is_text or _WILDCARD.search(pattern):
        return None
    return _negate_as(node, exp.EQ(this=node.this.copy(), expression=node.expression.copy()))


def _read_pattern(node: exp.Expr) -> str | None:
    """Reads the pattern of LIKE or ILIKE; None if it is not a constant, or has its own ESCAPE."""
    pattern = node.expression
    is_constant = isinstance(pattern, exp.Literal) and pattern.is_string
    return str(pattern.this) if is_constant and not isinstance(node.parent, exp.Escape) else None


def _negate_as(node: exp.Expr, replaced: exp.Expr) -> exp.Expr:
    return exp.Not(this=replaced) if node.args.get("negate") else replaced


def _replace_text_search(node: exp.Expr, pattern: str) -> exp.Expr | None:
    """Replaces STARTSWITH, ENDSWITH and CONTAINS of a constant by LIKE with a `pattern`."""
    text, sought = node.this, node.expression
    is_text = isinstance(sought, exp.Literal) and sought.is_string
    if not is_text or not is_typed(text, *exp.DataType.TEXT_TYPES):
        return None
    if not sought.this or _WILDCARD.search(str(sought.this)):
        return None
    return exp.Like(this=text.copy(), expression=exp.Literal.string(pattern.format(sought.this)))


def _replace_truth(node: exp.Expr) -> exp.Expr | None:
    """Replaces a comparison of a boolean with TRUE or FALSE by the boolean, or by NOT.

    (BooleanSimplification)
    """
    value, constant = node.this.unnest(), node.expression.unnest()
    if isinstance(value, exp.Boolean):
        value, constant = constant, value
    if not isinstance(constant, exp.Boolean) or not is_typed(value, exp.DataType.Type.BOOLEAN):
        return None
    is_kept = bool(constant.this) is isinstance(node, exp.EQ)
    return value.copy() if is_kept else exp.Not(this=value.copy())


def _replace_null_safe(node: exp.Expr) -> exp.Expr | None:
    """Replaces `<=>` with a constant by: equal, and not NULL."""
    sides = [node.this, node.expression]
    for value, constant in (sides, reversed(sides)):
        if isinstance(constant, exp.Literal | exp.Boolean):
            known = _replace_test(exp.Is(this=value.copy(), expression=constant.copy()))
            if known is not None:
                return known
            equal = exp.EQ(this=value.copy(), expression=constant.copy())
            return exp.And(this=equal, expression=exp.Not(this=_test_null(value)))
    return None


def _replace_equal(node: exp.Expr) -> exp.Expr | None:
    return _replace_truth(node) or replace_day(node) or replace_year(node)


def _replace_test(node: exp.Expr) -> exp.Expr | None:
    """IS TRUE and IS FALSE of a boolean."""
    truth = find_truth(node.expression)
    if truth is None or not is_typed(node.this, exp.DataType.Type.BOOLEAN):
        return None
    return build_known_truth(node.this if truth else exp.Not(this=exp.paren(node.this.copy())))


def _drop_distinct(node: exp.Expr) -> exp.Expr | None:
    """The greatest and the least value are those of the distinct ones."""
    distinct = node.this
    if not isinstance(distinct, exp.Distinct) or len(distinct.expressions) != 1:
        return None
    if isinstance(node.parent, exp.Window | exp.Filter):  # Spark refuses DISTINCT in a window
        return None
    return None if node.expressions else type(node)(this=distinct.expressions[0].copy())


def _replace_or(node: exp.Expr) -> exp.Expr | None:
    """What all sides of OR ask, asked once before it."""
    sides = [list(side.unnest().flatten()) for side in node.flatten() if _is_and(side.unnest())]
    if len(sides) < len(("one", "other")) or len(sides) < len(list(node.flatten())):
        return None
    common = [one for one in sides[0] if all(one in side for side in sides[1:])]
    rests = [[one for one in side if one not in common] for side in sides]
    if not common or not all(rests) or not never_fail(node):
        return None
    alternatives = exp.or_(*(exp.and_(*(one.copy() for one in rest)) for rest in rests))
    return exp.and_(*(one.copy() for one in common), alternatives)


def _is_and(node: exp.Expr) -> bool:
    return isinstance(node, exp.And)


def _replace_right(node: exp.Expr) -> exp.Expr | None:
    """RIGHT of a number of characters that is above zero: SUBSTRING from the end."""
    length = node.expression
    if not isinstance(length, exp.Literal) or not re.fullmatch("[1-9][0-9]*", length.name):
        return None
    return exp.Substring(this=node.this.copy(), start=exp.Neg(this=length.copy()))


def _replace_logical(node: exp.Expr, build: type[exp.Func]) -> exp.Expr | None:
    is_plain = is_typed(node.this, exp.DataType.Type.BOOLEAN)
    return build(this=node.this.copy()) if is_plain else None


def _replace_moved(node: exp.Expr) -> exp.Expr | None:
    """Drops the offset 1 and the default NULL of LAG and LEAD, which are their defaults."""
    offset, default = node.args.get("offset"), node.args.get("default")
    drops_offset = offset == exp.Literal.number(1)
    if not drops_offset and not is_null(default):
        return None
    shorter = node.copy()
    if drops_offset:
        shorter.set("offset", None)
    if is_null(default):
        shorter.set("default", None)
    return shorter


def _replace_round(node: exp.Expr) -> exp.Expr | None:
    """Drops the number of digits 0 of ROUND, which is its default."""
    more = [name for name, value in node.args.items() if value and name not in {"this", "decimals"}]
    if more or node.args.get("decimals") != exp.Literal.number(0):
        return None
    return exp.Round(this=node.this.copy())


def _replace_digest(node: exp.Expr) -> exp.Expr | None:
    """Replaces the length 0 of SHA2, which means 256."""
    if node.args.get("length") != exp.Literal.number(0):
        return None
    return exp.SHA2(this=node.this.copy(), length=exp.Literal.number(256))


def _replace_named(node: exp.Expr) -> exp.Expr | None:
    """Replaces functions of Spark for which the parser has no class."""
    items = node.expressions
    if node.name.lower() == "date_part" and len(items) == len(("field", "source")):
        field = exp.Var(this=items[0].name.upper())
        is_constant = isinstance(items[0], exp.Literal) and items[0].is_string
        return exp.Extract(this=field, expression=items[1].copy()) if is_constant else None
    build = _BY_NAME.get(node.name.lower())
    return build(items[0]) if build is not None and len(items) == 1 else None


_BY_NAME: Mapping[str, Callable[[exp.Expr], exp.Expr]] = {
    "isnull": _test_null,
    "isnotnull": lambda value: exp.Not(this=_test_null(value)),
    "mean": lambda value: exp.Avg(this=value.copy()),
    "cardinality": lambda value: exp.ArraySize(this=value.copy()),
    "std": lambda value: exp.Stddev(this=value.copy()),
    "every": lambda value: exp.LogicalAnd(this=value.copy()),
    "some": lambda value: exp.LogicalOr(this=value.copy()),
}
# By the parser's class; a release of SQLGlot without that class reads the function by its name.
_RULES: Mapping[str, Replacement] = {
    "Add": replace_days,
    "Anonymous": _replace_named,
    "Between": replace_days_between,
    "Case": replace_choice,
    "Cast": replace_cast,
    "Coalesce": replace_coalesce,
    "Contains": lambda node: _replace_text_search(node, "%{}%"),
    "CountIf": _replace_count_if,
    "DateTrunc": replace_unit,
    "DayOfMonth": lambda node: exp.Day(this=node.this.copy()),
    "DecodeCase": _replace_decode,
    "EndsWith": lambda node: _replace_text_search(node, "%{}"),
    "EQ": _replace_equal,
    "EqualNull": lambda node: exp.NullSafeEQ(
        this=node.this.copy(), expression=node.expression.copy()
    ),
    "Extract": replace_extract,
    "Filter": _replace_filter,
    "GT": replace_day,
    "GTE": replace_day,
    "If": replace_choice,
    "ILike": _replace_ilike,
    "Lag": _replace_moved,
    "Lead": _replace_moved,
    "Left": lambda node: exp.Substring(
        this=node.this.copy(), start=exp.Literal.number(1), length=node.expression.copy()
    ),
    "Is": _replace_test,
    "Like": _replace_like,
    "LogicalAnd": lambda node: _replace_logical(node, exp.Min),
    "LogicalOr": lambda node: _replace_logical(node, exp.Max),
    "LT": replace_day,
    "LTE": replace_day,
    "Max": _drop_distinct,
    "Median": lambda node: exp.Quantile(this=node.this.copy(), quantile=exp.Literal.number("0.5")),
    "Min": _drop_distinct,
    "NEQ": _replace_equal,
    "NullSafeEQ": _replace_null_safe,
    "NullSafeNEQ": lambda node: exp.Not(
        this=exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy())
    ),
    "Nvl2": _replace_nvl2,
    "Or": _replace_or,
    "Right": _replace_right,
    "Round": _replace_round,
    "SHA2": _replace_digest,
    "StddevSamp": lambda node: exp.Stddev(this=node.this.copy()),
    "StartsWith": lambda node: _replace_text_search(node, "{}%"),
    "Sub": replace_days,
    "TimestampTrunc": replace_unit,
    "TryCast": replace_cast,
    "TsOrDsAdd": replace_added_days,
    "TsOrDsToDate": replace_to_date,
}
# All others are Spark's definitions; another engine may give another result.
_IN_ANY_ENGINE = (
    "Case", "Coalesce", "CountIf", "DayOfMonth", "Filter", "If",
    "NullSafeEQ", "NullSafeNEQ", "Nvl2",
)  # fmt: skip
_REPLACEMENTS = {getattr(exp, name): rule for name, rule in _RULES.items() if hasattr(exp, name)}
_RULES_OF_ANY: Mapping[str, Replacement] = {
    **_RULES,
    **dict.fromkeys(("Case", "If"), partial(replace_choice, on_spark=False)),
}
_REPLACEMENTS_IN_ANY = {
    getattr(exp, n): _RULES_OF_ANY[n] for n in _IN_ANY_ENGINE if hasattr(exp, n)
}
