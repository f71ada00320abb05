"""What Spark's analyzer puts in place of an expression before it plans, and forms that mean the
same by definition: each proof sees one of them.

Source: the classes `RuntimeReplaceable` and `RuntimeReplaceableAggregate` of Spark 3.5 and 4.x
(https://spark.apache.org/docs/3.5.6/api/sql/ says of most of them "equivalent to"). The pairs
`spark_replacements` hold each row, and what only looks like it, with Spark as the judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from sqlglot import exp

from ci_bot.worker.sql.equivalence.choices import is_null, replace_choice, replace_coalesce

# Takes an expression, and gives one or None. (What all of them are called differs by release.)
Replacement = Callable[[Any], Any]

# A FLOAT is compared as a FLOAT with a whole number, and as a DOUBLE beside a decimal.
_EXACT_WITH_DECIMALS = exp.DataType.NUMERIC_TYPES - {exp.DataType.Type.FLOAT}
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
_UNITS_OF_DAYS = ("DAY", "DAYS")
_PERIODS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    **{"QUARTER": "QUARTER", "WEEK": "WEEK"},
}


def replace_expression(node: exp.Expr, *, on_spark: bool) -> exp.Expr | None:
    """The expression that a proof reads in place of `node`; None if that is `node` itself.

    The tree that `node` belongs to stays as it is. With `on_spark`, Spark runs the query, and what
    only Spark defines is replaced, too.
    """
    find = (_REPLACEMENTS if on_spark else _REPLACEMENTS_IN_ANY).get(type(node))
    return find(node) if find is not None else None


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


# A value, one that it is compared with, a result, a default.
_FEWEST_OF_DECODE = 4


def _replace_decode(node: exp.Expr) -> exp.Expr | None:
    """DECODE with a default: without one Spark gives a text."""
    if len(node.expressions) % 2 or len(node.expressions) < _FEWEST_OF_DECODE:
        return None
    value, *pairs = node.copy().expressions
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
    # SQLMesh leaves out a condition that is always true, and keeps FILTER.
    total = node.this
    is_plain = isinstance(total, _TOTALS_OVER_KNOWN) and not total.expressions
    if node.expression is None or not is_plain or isinstance(total.this, exp.Distinct):
        return None
    chosen: exp.Expr = total.copy()
    counted = exp.Literal.number(1) if isinstance(total.this, exp.Star) else chosen.this
    chosen.set("this", exp.If(this=node.expression.this.copy(), true=counted))
    return chosen


def _replace_extract(node: exp.Expr) -> exp.Expr | None:
    unit = node.name.upper()
    if unit in _FIELDS_OF_DATES:
        return _FIELDS_OF_DATES[unit](this=exp.TsOrDsToDate(this=node.expression.copy()))
    return _FIELDS_OF_TIMES[unit](this=node.expression.copy()) if unit in _FIELDS_OF_TIMES else None


def compares_one_by_one(node: exp.In) -> bool:
    """Whether IN compares with each constant as `=` does: all are of the value's own kind.

    Of other kinds, IN casts all to one type.
    """
    items = node.expressions
    texts = all(isinstance(one, exp.Literal) and one.is_string for one in items)
    numbers = all(_is_number(one) for one in items)
    return (texts and _is_typed(node.this, *exp.DataType.TEXT_TYPES)) or (
        numbers and _is_typed(node.this, *_EXACT_WITH_DECIMALS)
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
    """Whether a concatenation casts a value to text, or has no need to."""
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
    """A pattern without a wildcard is a text."""
    pattern = _read_pattern(node)
    is_text = _is_typed(node.this, exp.DataType.Type.TEXT)
    if pattern is None or not is_text or _WILDCARD.search(pattern):
        return None
    return _negate_as(node, exp.EQ(this=node.this.copy(), expression=node.expression.copy()))


def _read_pattern(node: exp.Expr) -> str | None:
    """The pattern of LIKE or ILIKE; None if it is no constant, or has an ESCAPE of its own."""
    pattern = node.expression
    is_constant = isinstance(pattern, exp.Literal) and pattern.is_string
    return str(pattern.this) if is_constant and not isinstance(node.parent, exp.Escape) else None


def _negate_as(node: exp.Expr, replaced: exp.Expr) -> exp.Expr:
    return exp.Not(this=replaced) if node.args.get("negate") else replaced


def _replace_text_search(node: exp.Expr, pattern: str) -> exp.Expr | None:
    """STARTSWITH, ENDSWITH and CONTAINS of a constant, as LIKE with `pattern` around it."""
    text, sought = node.this, node.expression
    is_text = isinstance(sought, exp.Literal) and sought.is_string
    if not is_text or not _is_typed(text, *exp.DataType.TEXT_TYPES):
        return None
    if not sought.this or _WILDCARD.search(str(sought.this)):
        return None
    return exp.Like(this=text.copy(), expression=exp.Literal.string(pattern.format(sought.this)))


def _replace_truth(node: exp.Expr) -> exp.Expr | None:
    """A boolean that is compared with TRUE or FALSE: itself, or NOT (BooleanSimplification)."""
    value, constant = node.this.unnest(), node.expression.unnest()
    if isinstance(value, exp.Boolean):
        value, constant = constant, value
    if not isinstance(constant, exp.Boolean) or not _is_typed(value, exp.DataType.Type.BOOLEAN):
        return None
    is_kept = bool(constant.this) is isinstance(node, exp.EQ)
    return value.copy() if is_kept else exp.Not(this=value.copy())


def _replace_null_safe(node: exp.Expr) -> exp.Expr | None:
    """`<=>` with a constant: equal, and known."""
    sides = [node.this, node.expression]
    for value, constant in (sides, reversed(sides)):
        if isinstance(constant, exp.Literal | exp.Boolean):
            equal = exp.EQ(this=value.copy(), expression=constant.copy())
            return exp.And(this=equal, expression=exp.Not(this=_test_null(value)))
    return None


def _replace_day(node: exp.Expr) -> exp.Expr | None:
    """A comparison of a date with a text that is a day: Spark reads the text as a date."""
    sides = [node.this, node.expression]
    for place, side in enumerate(sides):
        if _is_day(side) and _is_typed(sides[1 - place], exp.DataType.Type.DATE):
            changed = node.copy()
            changed.set("expression" if place else "this", _build_day(side))
            return changed
    return None


def _replace_days_between(node: exp.Expr) -> exp.Expr | None:
    ends = {name: node.args[name] for name in ("low", "high") if _is_day(node.args[name])}
    if not ends or not _is_typed(node.this, exp.DataType.Type.DATE):
        return None
    changed = node.copy()
    for name, end in ends.items():
        changed.set(name, _build_day(end))
    return changed


def _is_day(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Literal) or not node.is_string:
        return False
    try:
        return date.fromisoformat(str(node.this)).isoformat() == str(node.this)
    except ValueError:
        return False


def _build_day(node: exp.Expr) -> exp.Expr:
    built = exp.Cast(this=node.copy(), to=exp.DataType.build("DATE"))
    built.type = exp.DataType.build("DATE")
    return built


def _replace_equal(node: exp.Expr) -> exp.Expr | None:
    return _replace_truth(node) or _replace_day(node)


def _replace_moved(node: exp.Expr) -> exp.Expr | None:
    """LAG and LEAD by one row, and with NULL, which are what is left out."""
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


def _replace_days(node: exp.Expr) -> exp.Expr | None:
    """A date and an interval of whole days, or a number of them."""
    amount = node.expression
    if not _is_typed(node.this, exp.DataType.Type.DATE):
        return None
    if isinstance(amount, exp.Interval):
        unit = amount.args.get("unit")
        amount = amount.this if unit is not None and unit.name.upper() in _UNITS_OF_DAYS else None
    elif isinstance(amount, exp.Literal) and amount.is_string:
        return None
    if not isinstance(amount, exp.Literal) or not re.fullmatch("[0-9]{1,6}", str(amount.this)):
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
    """A day that is written out, or the first one of a period: DATE_TRUNC as a date."""
    if isinstance(node, exp.TryCast) and _is_day(node.this) and node.to.is_type("DATE"):
        return _build_day(node.this)
    cut = node.this
    if not isinstance(cut, exp.TimestampTrunc) or not node.args["to"].is_type(
        exp.DataType.Type.DATE
    ):
        return None
    moments = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP)
    period = _PERIODS.get(cut.args["unit"].name.upper())
    if period is None or not _is_typed(cut.this, *moments):
        return None
    return exp.func("TRUNC", cut.this.copy(), exp.Literal.string(period), dialect="spark")


def _replace_unit(node: exp.Expr) -> exp.Expr | None:
    """TRUNC and DATE_TRUNC, which Spark takes several names of a period for."""
    unit = node.args.get("unit")
    name = unit.name if isinstance(unit, exp.Literal | exp.Var) else ""
    period = _PERIODS.get(name.upper(), name)
    if period == name:
        return None
    named = node.copy()
    named.args["unit"].set("this", period)
    return named


def _replace_to_date(node: exp.Expr) -> exp.Expr | None:
    """TO_DATE without a format, which is a cast."""
    if node.args.get("format") is not None:
        return None
    return exp.TryCast(this=node.this.copy(), to=exp.DataType.build("DATE"))


def _replace_digest(node: exp.Expr) -> exp.Expr | None:
    """SHA2, of which a length of 0 is 256."""
    if node.args.get("length") != exp.Literal.number(0):
        return None
    return exp.SHA2(this=node.this.copy(), length=exp.Literal.number(256))


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
    "Between": _replace_days_between,
    "Case": replace_choice,
    "Cast": _replace_cast,
    "Coalesce": replace_coalesce,
    "Contains": lambda node: _replace_text_search(node, "%{}%"),
    "CountIf": _replace_count_if,
    "DateTrunc": _replace_unit,
    "DayOfMonth": lambda node: exp.Day(this=node.this.copy()),
    "DecodeCase": _replace_decode,
    "EndsWith": lambda node: _replace_text_search(node, "%{}"),
    "EQ": _replace_equal,
    "EqualNull": lambda node: exp.NullSafeEQ(
        this=node.this.copy(), expression=node.expression.copy()
    ),
    "Extract": _replace_extract,
    "Filter": _replace_filter,
    "GT": _replace_day,
    "GTE": _replace_day,
    "If": replace_choice,
    "ILike": _replace_ilike,
    "Lag": _replace_moved,
    "Lead": _replace_moved,
    "Left": lambda node: exp.Substring(
        this=node.this.copy(), start=exp.Literal.number(1), length=node.expression.copy()
    ),
    "Like": _replace_like,
    "LT": _replace_day,
    "LTE": _replace_day,
    "NEQ": _replace_equal,
    "NullSafeEQ": _replace_null_safe,
    "NullSafeNEQ": lambda node: exp.Not(
        this=exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy())
    ),
    "Nvl2": _replace_nvl2,
    "SHA2": _replace_digest,
    "StartsWith": lambda node: _replace_text_search(node, "{}%"),
    "Sub": _replace_days,
    "TimestampTrunc": _replace_unit,
    "TryCast": _replace_cast,
    "TsOrDsAdd": _replace_added_days,
    "TsOrDsToDate": _replace_to_date,
}
# All others are Spark's definitions; another engine may compute something else.
_IN_ANY_ENGINE = (
    *("Case", "Coalesce", "CountIf", "DayOfMonth", "Filter", "If"),
    *("NullSafeEQ", "NullSafeNEQ", "Nvl2"),
)
_REPLACEMENTS = {getattr(exp, name): rule for name, rule in _RULES.items() if hasattr(exp, name)}
_REPLACEMENTS_IN_ANY = {getattr(exp, n): _RULES[n] for n in _IN_ANY_ENGINE if hasattr(exp, n)}
