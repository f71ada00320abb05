"""Columns whose name says another thing than the window, the sum or the unit that makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import make_singular, split_column_name_into_words
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import (
    ROUNDING_WRAPPERS,
    VALUE_WRAPPERS,
    list_words_of_columns,
    read_constant_number_or_day,
)
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_expression

_ADDING = (exp.Sum, exp.Avg, exp.Count)
_MOST_DIGITS = 9
_PERIOD = re.compile(r"(?:^|_)(\d{1,4})_?(d|days?|rows?)(?:_|$)")
_BEFORE = frozenset({"ago", "prior", "previous", "prev", "before", "lag"})
# Refunds are left out, because many tables have them below zero.
_DEDUCTIONS = frozenset({"tax", "vat", "fee", "discount", "cost", "commission"})
_COSTS = frozenset({"cost", "cogs", "expense"})
_INCOME = frozenset({"revenue", "sale", "price", "amount", "income"})
_NEWEST = frozenset({"last", "latest", "newest", "recent", "current"})
_OLDEST = frozenset({"first", "initial", "earliest", "oldest"})
_TIME_WORDS = frozenset({"date", "at", "on", "day", "time", "ts", "timestamp"})
_SHARES = frozenset({"share", "pct", "percent", "percentage", "ratio"})
_INSIDE = re.compile(r"_(of|in|within|per)_(\w+)$")
_SECONDS = {
    "millisecond": Fraction(1, 1000), "milli": Fraction(1, 1000), "second": Fraction(1),
    "sec": Fraction(1), "minute": Fraction(60), "hour": Fraction(3600), "hr": Fraction(3600),
    "day": Fraction(86_400),
}  # fmt: skip
_SPOKEN = {
    Fraction(1, 1000): "milliseconds", Fraction(1): "seconds", Fraction(60): "minutes",
    Fraction(3600): "hours", Fraction(86_400): "days",
}  # fmt: skip
_AVERAGES = frozenset({"avg", "average", "mean"})
_QUANTILES = (exp.Quantile, exp.ApproxQuantile)
_PERCENTILE = re.compile(r"(?:^|_)p(\d\d)(?:_|$)")
_YEARLY = frozenset({"arr", "annual", "annually", "yearly", "annualized", "annualised", "year"})
_MONTHLY = frozenset({"mrr", "monthly", "month"})
_MONTHS = Decimal(12)
_CALENDAR: dict[str, tuple[type[exp.Expr], ...]] = {
    "month": (exp.Month,),
    "quarter": (exp.Quarter,),
    "week": (exp.WeekOfYear, exp.Week),
    "day": (exp.Day, exp.DayOfMonth),
}


def iterate_misnamed_slips(
    query: ModelQuery, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields values that are not what the name of their column says."""
    for select in query.root.selects:
        for name, item in select.results:
            written = split_column_name_into_words(name)
            words = frozenset([*written, *map(make_singular, written)])
            value = enter_expression(item, *ROUNDING_WRAPPERS)
            yield from _iterate_other_frames(select, name, value, types)
            yield from _iterate_wrong_signs(words, value)
            yield from _iterate_other_ends(select, words, value, types)
            yield from _iterate_picked_rows(select, words, value, origins, types)
            yield from _iterate_other_totals(select, name, value)
            yield from _iterate_other_durations(name, value)
            yield from _iterate_other_averages(name, words, value)
            yield from _iterate_turned_years(words, value)
            yield from _iterate_numbers_of_any_year(query, select, name, item, origins)


def _list_words(node: exp.Expr) -> frozenset[str]:
    """Lists the words of the names of all columns in a value, as singulars."""
    return frozenset(map(make_singular, list_words_of_columns(node)))


# Windows.


def _iterate_other_frames(
    select: ScopedSelect, name: str, value: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields `avg_7d` over 7 rows before the current one and that row itself."""
    named = _PERIOD.search(name)
    spec = value.args.get("spec") if isinstance(value, exp.Window) else None
    if named is None or spec is None or not isinstance(value.this, _ADDING):
        return
    if not _BEFORE.isdisjoint(split_column_name_into_words(name)):
        return
    start, wanted = spec.args.get("start"), int(named[1])
    if spec.text("start_side").upper() != "PRECEDING" or spec.text("end").upper() != "CURRENT ROW":
        return
    unit = "rows"
    if spec.text("kind").upper() == "RANGE":
        order = value.args.get("order")
        first = order.expressions[0].this if order is not None else None
        kind = types.find_type(select, first) if isinstance(first, exp.Column) else None
        is_days = not isinstance(start, exp.Interval) or start.text("unit").upper() in {
            "DAY",
            "DAYS",
        }
        # Seven times 24 hours before a moment are seven days.
        if kind is None or kind.this != exp.DataType.Type.DATE or not is_days:
            return
        start, unit = (start.this if isinstance(start, exp.Interval) else start), "days"
    if isinstance(start, exp.Literal) and start.name == str(wanted):
        yield QuerySlip(
            value,
            f"has {wanted + 1} {unit} with the current one, and `{name}` says {wanted}",
            f"the frame begins at {wanted - 1} PRECEDING",
        )


def _iterate_other_totals(select: ScopedSelect, name: str, value: exp.Expr) -> Iterator[QuerySlip]:
    """Yields ranks and shares in a country among all of them."""
    words = frozenset(split_column_name_into_words(name))
    is_share = not words.isdisjoint(_SHARES) and isinstance(value, exp.Div)
    whole = (
        enter_expression(value.expression, *ROUNDING_WRAPPERS, exp.Nullif) if is_share else value
    )
    if not isinstance(whole, exp.Window):
        return
    inside = _INSIDE.search(name)
    if inside is None or whole.args.get("partition_by"):
        return
    item = select.find_result(inside[2])
    # Alone, the share of a country may be its part of the world.
    is_part = len(select.list_group_keys()) > 1 or select.node.args.get("group") is None
    is_wanted = is_part and is_share if inside[1] == "of" else True
    is_rank = isinstance(whole.this, exp.Rank | exp.DenseRank | exp.RowNumber)
    if isinstance(item, exp.Column) and is_wanted and is_part and (is_share or is_rank):
        yield QuerySlip(
            whole,
            f"reads the rows of all values of `{inside[2]}`, and `{name}` means those of one",
            f"the window has PARTITION BY {item.name}",
        )


# The newest and the oldest.


def _iterate_other_ends(
    select: ScopedSelect, words: frozenset[str], value: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields `MAX_BY(x, day) AS first_x`, and FIRST_VALUE in the other order."""
    if isinstance(value, exp.ArgMax | exp.ArgMin):
        is_newest, column = isinstance(value, exp.ArgMax), value.expression
    elif isinstance(value, exp.Window) and isinstance(
        enter_expression(value.this, exp.IgnoreNulls, exp.RespectNulls), exp.FirstValue
    ):
        order = value.args.get("order")
        if order is None:
            return
        is_newest, column = bool(order.expressions[0].args.get("desc")), order.expressions[0].this
    else:
        return
    read = enter_expression(value.this, exp.IgnoreNulls, exp.RespectNulls, exp.FirstValue)
    is_time = types.is_time(select, column, _TIME_WORDS)
    if is_time and _is_other_end(words, _list_words(read), is_newest):
        yield _describe_other_end(value, column, is_newest)


def _iterate_picked_rows(
    select: ScopedSelect,
    words: frozenset[str],
    value: exp.Expr,
    origins: ValueOrigins,
    types: ModelValueTypes,
) -> Iterator[QuerySlip]:
    """Yields `last_x` of the row that ROW_NUMBER calls 1 in the order from the oldest."""
    if not isinstance(value, exp.Column) or words.isdisjoint(_NEWEST | _OLDEST):
        return
    conditions = [
        *select.list_clause_conditions("where", "qualify"),
        *(part for join in select.joins for part in join.conditions),
    ]
    for part in conditions:
        if not isinstance(part, exp.EQ) or read_constant_number_or_day(part.expression) != 1:
            continue
        number = part.this.unnest()
        is_named = isinstance(number, exp.Column)
        if is_named and not number.table:
            number = select.find_result(number.name) or number
        elif is_named and number.table != value.table:
            continue
        below, window = origins.find_expression(select, number)
        order = window.args.get("order") if isinstance(window, exp.Window) else None
        if order is None or not isinstance(window.this, exp.RowNumber):
            continue
        column, is_newest = order.expressions[0].this, bool(order.expressions[0].args.get("desc"))
        is_time = types.is_time(below, column, _TIME_WORDS)
        if is_time and _is_other_end(words, _list_words(value), is_newest):
            yield _describe_other_end(value, column, is_newest)
            return


def _is_other_end(words: frozenset[str], read: frozenset[str], is_newest: bool) -> bool:
    wanted, other = (_OLDEST, _NEWEST) if is_newest else (_NEWEST, _OLDEST)
    is_clear = read.isdisjoint(wanted | other) and "name" not in words
    return is_clear and not words.isdisjoint(wanted) and words.isdisjoint(other)


def _describe_other_end(node: exp.Expr, column: exp.Expr, is_newest: bool) -> QuerySlip:
    found, wanted = ("newest", "oldest") if is_newest else ("oldest", "newest")
    return QuerySlip(
        node,
        f"is of the {found} row by `{column.name}`, and its name says the {wanted}",
        f"the row is picked from the {wanted} one",
    )


# Amounts.


def _iterate_wrong_signs(words: frozenset[str], value: exp.Expr) -> Iterator[QuerySlip]:
    """Yields net amounts with the tax added, gross ones without it, and profits with the costs."""
    node = enter_expression(value, *ROUNDING_WRAPPERS, exp.Sum)
    if not isinstance(node, exp.Add | exp.Sub):
        return
    sides = [
        enter_expression(side, *ROUNDING_WRAPPERS, exp.Sum) for side in (node.this, node.expression)
    ]
    if not all(isinstance(side, exp.Column) for side in sides):
        return
    first, second = map(_list_words, sides)
    column = sides[1].name
    if isinstance(node, exp.Sub):
        if "gross" in words and "net" in first and not second.isdisjoint({"tax", "vat"}):
            yield QuerySlip(
                node,
                f"subtracts `{column}`, and a gross amount includes it",
                "it is added",
            )
        return
    taken = second & _DEDUCTIONS
    is_net = "net" in words and words.isdisjoint(_DEDUCTIONS) and first.isdisjoint(_DEDUCTIONS)
    is_profit = not words.isdisjoint({"profit", "margin"}) and not first.isdisjoint(_INCOME)
    if (is_net and taken and "net" not in first) or (is_profit and not second.isdisjoint(_COSTS)):
        yield QuerySlip(
            node,
            f"adds `{column}` to the amount, and its name says that this is taken away",
            f"`{column}` is subtracted",
        )


def _iterate_turned_years(words: frozenset[str], value: exp.Expr) -> Iterator[QuerySlip]:
    """Yields a value of a month by 12 as that of a year, and the reverse."""
    if not words.isdisjoint(_AVERAGES | {"per"}) or not isinstance(value, exp.Div | exp.Mul):
        return
    if read_constant_number_or_day(value.expression) != _MONTHS:
        return
    read = _list_words(value)
    is_year, is_month = not words.isdisjoint(_YEARLY), not words.isdisjoint(_MONTHLY)
    if is_year == is_month:
        return
    of_month, of_year = not read.isdisjoint(_MONTHLY), not read.isdisjoint(_YEARLY)
    if isinstance(value, exp.Div) and is_year and not of_year and (of_month or "arr" in words):
        if "month" not in read or not value.this.find(exp.Mul):
            yield QuerySlip(
                value, "is a twelfth, and its name says the value of a year", "it is times 12"
            )
    elif isinstance(value, exp.Mul) and is_month and of_year and not of_month:
        yield QuerySlip(
            value, "is twelve times a year, and its name says a month", "it is divided by 12"
        )


# Units and averages.


def _iterate_other_durations(name: str, value: exp.Expr) -> Iterator[QuerySlip]:
    """Yields `seconds / 60 AS hours`."""
    words = split_column_name_into_words(name)
    named = {_SECONDS[one] for one in map(make_singular, words) if one in _SECONDS}
    scaled = _read_duration(value)
    if len(named) != 1 or scaled is None or "per" in words:
        return
    wanted = next(iter(named))
    unit, factor = scaled
    known = {one / other for one in _SPOKEN for other in _SPOKEN} - {Fraction(1)}
    right = unit / wanted
    if unit != wanted and factor in known and factor != right:
        sign, number = ("*", right) if right > 1 else ("/", 1 / right)
        yield QuerySlip(
            value,
            f"does not make {_SPOKEN[wanted]} of {_SPOKEN[unit]}",
            f"it is {sign} {number}, or the column has another name",
        )


def _read_duration(node: exp.Expr) -> tuple[Fraction, Fraction] | None:
    """Reads the unit of a duration, in seconds, and the factor with which it is multiplied."""
    value = enter_expression(node, *ROUNDING_WRAPPERS, exp.Sum, exp.Avg, exp.Max, exp.Min)
    if isinstance(value, exp.Column):
        last = make_singular(split_column_name_into_words(value.name)[-1])
        # A `day` or an `hour` is a date or a part of one.
        is_duration = last in _SECONDS and value.name.lower().endswith("s")
        return (_SECONDS[last], Fraction(1)) if is_duration else None
    if isinstance(value, exp.TimestampDiff):
        unit = make_singular(value.text("unit").lower())
        return (_SECONDS[unit], Fraction(1)) if unit in _SECONDS else None
    if not isinstance(value, exp.Div | exp.Mul):
        return None
    inner, number = _read_duration(value.this), read_constant_number_or_day(value.expression)
    # A fraction of 1e99999999 would fill the memory.
    if inner is None or not isinstance(number, Decimal) or abs(number.adjusted()) > _MOST_DIGITS:
        return None
    if not number:
        return None
    factor = Fraction(number)
    return inner[0], inner[1] / factor if isinstance(value, exp.Div) else inner[1] * factor


def _iterate_other_averages(
    name: str, words: frozenset[str], value: exp.Expr
) -> Iterator[QuerySlip]:
    """Yields an average that is called a median, a sum that is called an average, and the like."""
    is_average, is_median = not words.isdisjoint(_AVERAGES), "median" in words
    read = _list_words(value)
    quantile = value.this if isinstance(value, exp.WithinGroup) else value
    number: Decimal | str | None = None
    if isinstance(quantile, _QUANTILES):
        number = read_constant_number_or_day(quantile.args.get("quantile"))
    elif isinstance(quantile, exp.PercentileCont | exp.PercentileDisc):
        number = read_constant_number_or_day(quantile.this)
    elif isinstance(quantile, exp.Median):
        number = Decimal("0.5")
    named = _PERCENTILE.search(name)
    wanted = Decimal(named[1]) / 100 if named else Decimal("0.5") if is_median else None
    if isinstance(value, exp.Avg) and wanted is not None and not is_average:
        if "median" not in read and _PERCENTILE.search(value.sql()) is None:
            yield QuerySlip(value, f"is the average, and `{name}` is not", "PERCENTILE is used")
    elif isinstance(number, Decimal) and wanted is not None and number != wanted:
        if number <= 1:
            yield QuerySlip(
                value, f"is the percentile {number}, and `{name}` says {wanted}", f"it is {wanted}"
            )
    elif isinstance(number, Decimal) and is_average and wanted is None:
        yield QuerySlip(value, f"is a percentile, and `{name}` says an average", "AVG is used")
    elif (
        isinstance(value, exp.Sum)
        and isinstance(value.this, exp.Column)
        and is_average
        and read.isdisjoint(_AVERAGES)
        and words.isdisjoint({"total", "sum"})
    ):
        yield QuerySlip(value, f"is a sum, and `{name}` says an average", "AVG is used")


# Months of all years.


def _iterate_numbers_of_any_year(
    query: ModelQuery, select: ScopedSelect, name: str, item: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields groups by the number of a month, which the rows of all years share."""
    kinds = _CALENDAR.get(name.lower())
    keys = select.list_group_keys()
    if kinds is None or item not in keys:
        return
    _, made = origins.find_expression(select, item)
    number = enter_expression(made, *VALUE_WRAPPERS)
    moment = next(number.find_all(exp.Column), None) if isinstance(number, kinds) else None
    if moment is None:
        return
    larger = {"year"} | ({"month"} if name.lower() == "day" else set())
    for key in keys:
        _, value = origins.find_expression(select, key)
        is_larger = value.find(exp.Year, exp.DateTrunc, exp.TimestampTrunc, exp.TimeToStr)
        if is_larger or (key is not item and not larger.isdisjoint(_list_words(key))):
            return
    for where in query.rendered_tree.find_all(exp.Where):
        if where.find(exp.Year) or not _list_words(where).isdisjoint(
            {"year", *_list_words(moment)}
        ):
            return
    yield QuerySlip(
        item,
        f"is the number of the {name.lower()}, so its rows of all years are one group",
        f"TRUNC gives the first day of each {name.lower()}, or the year is a key, too",
    )
