"""Forms of dates and times that mean the same by definition: each proof sees one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from sqlglot import exp

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

# How many days, and how many months, a unit has.
_DAYS = {"DAY": 1, "DAYS": 1, "WEEK": 7, "WEEKS": 7}

_MONTHS = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12}

_DAYS_OF_TIMES = ("DAY", "DD")

_PERIODS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "QUARTER": "QUARTER",
    "WEEK": "WEEK",
}

_LAST_YEAR = 9998


def is_typed(node: exp.Expr, *kinds: exp.DType) -> bool:
    """Whether an expression is known to have one of the types."""
    kind = node.to if isinstance(node, exp.Cast | exp.TryCast) else node.type
    return kind is not None and kind.is_type(*kinds)


def replace_extract(node: exp.Expr) -> exp.Expr | None:
    """EXTRACT of a field that has a function of its own."""
    unit = node.name.upper()
    if unit in _FIELDS_OF_DATES:
        return _FIELDS_OF_DATES[unit](this=exp.TsOrDsToDate(this=node.expression.copy()))
    return _FIELDS_OF_TIMES[unit](this=node.expression.copy()) if unit in _FIELDS_OF_TIMES else None


def replace_day(node: exp.Expr) -> exp.Expr | None:
    """Replaces a text that is a day and is compared with a date: Spark reads it as a date."""
    sides = [node.this, node.expression]
    for place, side in enumerate(sides):
        if _is_day(side) and is_typed(sides[1 - place], exp.DataType.Type.DATE):
            changed = node.copy()
            changed.set("expression" if place else "this", _build_day(side))
            return changed
    return None


def replace_days_between(node: exp.Expr) -> exp.Expr | None:
    """BETWEEN of a date and texts that are days."""
    ends = {name: node.args[name] for name in ("low", "high") if _is_day(node.args[name])}
    if not ends or not is_typed(node.this, exp.DataType.Type.DATE):
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


def replace_year(node: exp.Expr) -> exp.Expr | None:
    """A date's year that is compared with a constant: from its first day to before the next."""
    year, constant = node.this, node.expression
    if isinstance(year, exp.Literal):
        year, constant = constant, year
    is_equal = isinstance(node, exp.EQ) and isinstance(year, exp.Year)
    if not is_equal or not re.fullmatch("[1-9][0-9]{3}", constant.name) or constant.is_string:
        return None
    day = year.this.this if isinstance(year.this, exp.TsOrDsToDate) else year.this
    number = int(constant.name)
    is_date = isinstance(day, exp.Column) and is_typed(day, exp.DataType.Type.DATE)
    if not is_date or number > _LAST_YEAR:
        return None
    first, next_ = (_build_day(exp.Literal.string(f"{n}-01-01")) for n in (number, number + 1))
    return exp.And(
        this=exp.GTE(this=day.copy(), expression=first),
        expression=exp.LT(this=day.copy(), expression=next_),
    )


def replace_days(node: exp.Expr) -> exp.Expr | None:
    """Replaces a date and an interval of whole days, or a number of days, by one form."""
    amount, unit = node.expression, "DAY"
    if not is_typed(node.this, exp.DataType.Type.DATE):
        return None
    if isinstance(amount, exp.Interval):
        unit = amount.text("unit").upper()
        amount = amount.this
    elif isinstance(amount, exp.Literal) and amount.is_string:
        return None
    if not isinstance(amount, exp.Literal) or not re.fullmatch("[0-9]{1,6}", str(amount.this)):
        return None
    count = int(amount.this) * (_DAYS.get(unit) or _MONTHS.get(unit) or 0)
    moved: exp.Expr = exp.Literal.number(count)
    if isinstance(node, exp.Sub):
        moved = exp.Neg(this=moved)
    if unit in _MONTHS:
        return exp.AddMonths(this=node.this.copy(), expression=moved)
    if unit not in _DAYS:
        return None
    return exp.TsOrDsAdd(this=node.this.copy(), expression=moved, unit=exp.Var(this="DAY"))


def replace_added_days(node: exp.Expr) -> exp.Expr | None:
    """Replaces DATE_SUB as the parser writes it: days times minus one."""
    amount = node.expression
    if not isinstance(amount, exp.Mul) or amount.expression != exp.Neg(this=exp.Literal.number(1)):
        return None
    negated = node.copy()
    negated.set("expression", exp.Neg(this=amount.this.copy()))
    return negated


def replace_cast(node: exp.Expr) -> exp.Expr | None:
    """Replaces a day that is written out, or DATE_TRUNC as a date: the first day of a period."""
    if isinstance(node, exp.TryCast) and _is_day(node.this) and node.to.is_type("DATE"):
        return _build_day(node.this)
    cut = node.this
    if not isinstance(cut, exp.TimestampTrunc) or not node.args["to"].is_type(
        exp.DataType.Type.DATE
    ):
        return None
    moments = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP)
    unit = cut.args["unit"].name.upper()
    period = _PERIODS.get(unit)
    if not is_typed(cut.this, *moments, exp.DataType.Type.TIMESTAMPTZ):
        return None
    if unit in _DAYS_OF_TIMES:
        return exp.TryCast(this=cut.this.copy(), to=node.args["to"].copy())
    if period is None or not is_typed(cut.this, *moments):
        return None
    return exp.func("TRUNC", cut.this.copy(), exp.Literal.string(period), dialect="spark")


def replace_unit(node: exp.Expr) -> exp.Expr | None:
    """Replaces the name of a period in TRUNC and DATE_TRUNC, for which Spark has several names."""
    unit = node.args.get("unit")
    name = unit.name if isinstance(unit, exp.Literal | exp.Var) else ""
    period = _PERIODS.get(name.upper(), name)
    if period == name:
        return None
    named = node.copy()
    named.args["unit"].set("this", period)
    return named


def replace_to_date(node: exp.Expr) -> exp.Expr | None:
    """Replaces TO_DATE without a format by a cast."""
    if node.args.get("format") is not None:
        return None
    return exp.TryCast(this=node.this.copy(), to=exp.DataType.build("DATE"))
