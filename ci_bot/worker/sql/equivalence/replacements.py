"""What Spark's analyzer puts in place of an expression before it plans, and forms that mean the
same by definition: each proof sees one of them.

Source: the classes `RuntimeReplaceable` and `RuntimeReplaceableAggregate` of Spark 3.5 and 4.x
(https://spark.apache.org/docs/3.5.6/api/sql/ says of most of them "equivalent to"). The pairs
`spark_replacements` hold each row, and what only looks like it, with Spark as the judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

# Takes an expression, and gives one or None. (What all of them are called differs by release.)
Replacement = Callable[[Any], Any]

_NUMBERS = (*exp.DataType.NUMERIC_TYPES,)
_WILDCARD = re.compile(r"[%_\\]")
_TOTALS_OVER_KNOWN = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)
# Fields whose function takes a date, and those whose function takes a time.
_FIELDS_OF_DATES: Mapping[str, type[exp.Func]] = {
    "YEAR": exp.Year,
    "QUARTER": exp.Quarter,
    "MONTH": exp.Month,
    "WEEK": exp.WeekOfYear,
    "DAY": exp.Day,
    "DOW": exp.DayOfWeek,
    "DAYOFWEEK": exp.DayOfWeek,
    "DOY": exp.DayOfYear,
}
_FIELDS_OF_TIMES: Mapping[str, type[exp.Func]] = {"HOUR": exp.Hour, "MINUTE": exp.Minute}
_PERIODS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    **{"QUARTER": "QUARTER", "WEEK": "WEEK"},
}


def replace_as_spark(node: exp.Expr) -> exp.Expr | None:
    """The expression that a proof reads in place of `node`; None if that is `node` itself.

    The tree that `node` belongs to stays as it is.
    """
    find = _REPLACEMENTS.get(type(node))
    return find(node) if find is not None else None


def _is_null(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Null)


def _is_typed(node: exp.Expr, *kinds: exp.DType) -> bool:
    kind = node.to if isinstance(node, exp.Cast | exp.TryCast) else node.type
    return kind is not None and kind.is_type(*kinds)


def _test_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.Null())


def _replace_nvl2(node: exp.Expr) -> exp.Expr:
    condition = exp.Not(this=_test_null(node.this))
    false = node.args.get("false")
    return exp.If(
        this=condition, true=node.args["true"].copy(), false=false.copy() if false else None
    )


def _replace_decode(node: exp.Expr) -> exp.Expr | None:
    """DECODE with a default: without one Spark gives a text."""
    value, *pairs = node.copy().expressions
    if len(pairs) % 2 == 0:
        return None
    # With a constant on one side, `<=>` is true where `=` is.
    kinds = [exp.EQ if isinstance(one, exp.Literal) else exp.NullSafeEQ for one in pairs[:-1:2]]
    ifs = [
        exp.If(this=kind(this=value.copy(), expression=sought), true=result)
        for kind, sought, result in zip(kinds, pairs[:-1:2], pairs[1::2], strict=True)
    ]
    return exp.Case(ifs=ifs, default=pairs[-1])


def _replace_count_if(node: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.If(this=node.this.copy(), true=exp.Literal.number(1)), big_int=True)


def _replace_filter(node: exp.Expr) -> exp.Expr | None:
    """FILTER of a total that passes over NULL: what the condition leaves out is NULL."""
    total, condition = node.this.copy(), node.expression.this.copy()
    if not isinstance(total, _TOTALS_OVER_KNOWN) or total.expressions:
        return None
    counted = exp.Literal.number(1) if isinstance(total.this, exp.Star) else total.this
    if isinstance(counted, exp.Distinct):
        return None
    total.set("this", exp.If(this=condition, true=counted))
    return total


def _replace_extract(node: exp.Expr) -> exp.Expr | None:
    unit = node.name.upper()
    if unit in _FIELDS_OF_DATES:
        return _FIELDS_OF_DATES[unit](this=exp.TsOrDsToDate(this=node.expression.copy()))
    return _FIELDS_OF_TIMES[unit](this=node.expression.copy()) if unit in _FIELDS_OF_TIMES else None


def _replace_equal_null(node: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy())


def _replace_in(node: exp.Expr) -> exp.Expr | None:
    """IN of constants of the value's own kind. Of other kinds, IN casts all to one type."""
    items = node.expressions
    if node.args.get("query") is not None or not items:
        return None
    texts = all(isinstance(one, exp.Literal) and one.is_string for one in items)
    numbers = all(_is_number(one) for one in items)
    fits = (texts and _is_typed(node.this, *exp.DataType.TEXT_TYPES)) or (
        numbers and _is_typed(node.this, *_NUMBERS)
    )
    if not fits:
        return None
    return exp.or_(
        *(exp.EQ(this=node.this.copy(), expression=one.copy()) for one in items), copy=False
    )


def _is_number(node: exp.Expr) -> bool:
    bare = node.this if isinstance(node, exp.Neg) else node
    # A number with an exponent is a double, and IN makes all others doubles, too.
    return isinstance(bare, exp.Literal) and re.fullmatch(r"[0-9.]+", str(bare.this)) is not None


def _replace_choice(node: exp.Expr) -> exp.Expr | None:
    """A choice by one condition that is a default for NULL, or NULLIF, written out."""
    branches = node.args.get("ifs") or [node]
    otherwise = node.args.get("default") or node.args.get("false")
    if len(branches) != 1 or (isinstance(node, exp.Case) and node.this) or otherwise is None:
        return None
    condition, given = branches[0].this.unnest(), branches[0].args["true"]
    if isinstance(condition, exp.EQ) and _is_null(given):
        return _build_nullif(condition, otherwise)
    is_negated = isinstance(condition, exp.Not)
    test = condition.this.unnest() if is_negated else condition
    if not isinstance(test, exp.Is) or not _is_null(test.expression):
        return None
    value, default = (given, otherwise) if is_negated else (otherwise, given)
    if value != test.this or _is_null(default):
        return None
    return exp.Coalesce(this=value.copy(), expressions=[default.copy()])


def _build_nullif(equal: exp.EQ, value: exp.Expr) -> exp.Expr | None:
    sides = [equal.this, equal.expression]
    if value not in sides:
        return None
    other = sides[1 - sides.index(value)]
    return exp.Nullif(this=value.copy(), expression=other.copy())


def _replace_coalesce(node: exp.Expr) -> exp.Expr | None:
    """Defaults in defaults, if all have one type."""
    items = [node.this, *node.expressions]
    flat = [
        part
        for item in items
        for part in ([item.this, *item.expressions] if isinstance(item, exp.Coalesce) else [item])
    ]
    kinds = {item.type.sql() for item in flat if item.type is not None}
    is_one = len(kinds) == 1 and all(item.type is not None for item in flat)
    if len(flat) == len(items) or not is_one or "UNKNOWN" in kinds:
        return None
    return exp.Coalesce(this=flat[0].copy(), expressions=[item.copy() for item in flat[1:]])


def _replace_ilike(node: exp.Expr) -> exp.Expr | None:
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or not isinstance(pattern, exp.Literal):
        return None
    if not str(pattern.this).isascii():
        return None
    lowered = exp.Literal.string(str(pattern.this).lower())
    like = exp.Like(this=exp.Lower(this=node.this.copy()), expression=lowered)
    return exp.Not(this=like) if node.args.get("negate") else like


def _replace_like(node: exp.Expr) -> exp.Expr | None:
    """A pattern without a wildcard is a text."""
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or not isinstance(pattern, exp.Literal):
        return None
    is_text = _is_typed(node.this, exp.DataType.Type.TEXT)
    if not is_text or not pattern.is_string or _WILDCARD.search(str(pattern.this)):
        return None
    equal = exp.EQ(this=node.this.copy(), expression=pattern.copy())
    return exp.Not(this=equal) if node.args.get("negate") else equal


def _replace_moved(node: exp.Expr) -> exp.Expr | None:
    """LAG and LEAD by one row, and with NULL, which are what is left out."""
    given = {name: node.args.get(name) for name in ("offset", "default")}
    is_one = isinstance(given["offset"], exp.Literal) and given["offset"].this == "1"
    drops = [
        name for name, said in (("offset", is_one), ("default", _is_null(given["default"]))) if said
    ]
    if not drops:
        return None
    shorter = node.copy()
    for name in drops:
        shorter.set(name, None)
    return shorter


def _replace_days(node: exp.Expr) -> exp.Expr | None:
    """A date and an interval of whole days."""
    interval = node.expression
    if not isinstance(interval, exp.Interval) or not _is_typed(node.this, exp.DataType.Type.DATE):
        return None
    amount, unit = interval.this, interval.args.get("unit")
    if unit is None or unit.name.upper() != "DAY" or not isinstance(amount, exp.Literal):
        return None
    if not re.fullmatch("[0-9]{1,6}", str(amount.this)):
        return None
    days: exp.Expr = exp.Literal.number(amount.this)
    if isinstance(node, exp.Sub):
        days = exp.Neg(this=days)
    return exp.TsOrDsAdd(this=node.this.copy(), expression=days, unit=exp.Var(this="DAY"))


def _replace_added_days(node: exp.Expr) -> exp.Expr | None:
    """DATE_SUB, as the parser writes it: days times minus one."""
    amount = node.expression
    if not isinstance(amount, exp.Mul) or amount.expression != exp.Neg(this=exp.Literal.number(1)):
        return None
    negated = node.copy()
    negated.set("expression", exp.Neg(this=amount.this.copy()))
    return negated


def _replace_cast(node: exp.Expr) -> exp.Expr | None:
    """The first day of a period: DATE_TRUNC of a date or time as a date."""
    cut = node.this
    if not isinstance(cut, exp.TimestampTrunc) or not node.args["to"].is_type(
        exp.DataType.Type.DATE
    ):
        return None
    moments = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP)
    period = _PERIODS.get(cut.args["unit"].name.upper())
    if period is None or not _is_typed(cut.this, *moments):
        return None
    return _build_trunc(cut.this, period)


def _replace_trunc(node: exp.Expr) -> exp.Expr | None:
    unit = node.args["unit"].name
    period = _PERIODS.get(unit.upper(), unit)
    if period == unit:
        return None
    return _build_trunc(node.this, period)


def _build_trunc(value: exp.Expr, period: str) -> exp.Expr:
    return exp.func("TRUNC", value.copy(), exp.Literal.string(period), dialect="spark")


def _replace_substring(node: exp.Expr) -> exp.Expr | None:
    """Spark counts from 1, and takes 0 for 1."""
    start = node.args.get("start")
    if not isinstance(start, exp.Literal) or str(start.this) != "0":
        return None
    counted = node.copy()
    counted.set("start", exp.Literal.number(1))
    return counted


def _replace_named(node: exp.Expr) -> exp.Expr | None:
    """Functions of Spark that the parser has no class for."""
    items = node.expressions
    build = _BY_NAME.get(node.name.lower())
    return build(items[0]) if build is not None and len(items) == 1 else None


_BY_NAME: Mapping[str, Callable[[exp.Expr], exp.Expr]] = {
    "isnull": _test_null,
    "isnotnull": lambda value: exp.Not(this=_test_null(value)),
    "mean": lambda value: exp.Avg(this=value.copy()),
    "std": lambda value: exp.Stddev(this=value.copy()),
    "every": lambda value: exp.LogicalAnd(this=value.copy()),
    "some": lambda value: exp.LogicalOr(this=value.copy()),
}
# By the parser's class; a release of SQLGlot that lacks one reads the function by its name.
_RULES: Mapping[str, Replacement] = {
    "Add": _replace_days,
    "Anonymous": _replace_named,
    "Case": _replace_choice,
    "Cast": _replace_cast,
    "Coalesce": _replace_coalesce,
    "CountIf": _replace_count_if,
    "DateTrunc": _replace_trunc,
    "DayOfMonth": lambda node: exp.Day(this=node.this.copy()),
    "DecodeCase": _replace_decode,
    "EqualNull": _replace_equal_null,
    "Extract": _replace_extract,
    "Filter": _replace_filter,
    "ILike": _replace_ilike,
    "If": _replace_choice,
    "In": _replace_in,
    "Lag": _replace_moved,
    "Lead": _replace_moved,
    "Like": _replace_like,
    "Nvl2": _replace_nvl2,
    "Sub": _replace_days,
    "Substring": _replace_substring,
    "TryCast": _replace_cast,
    "TsOrDsAdd": _replace_added_days,
}
_REPLACEMENTS = {getattr(exp, name): rule for name, rule in _RULES.items() if hasattr(exp, name)}
