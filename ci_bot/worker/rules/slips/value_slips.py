"""Comparisons with values that a column never has, and totals over values that only fill a gap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import split_column_name_into_words
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import (
    PERCENT_WORDS,
    drop_hundred,
    find_end_of_range,
    list_written_constants,
    read_constant_number_or_day,
)
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_expression

_COMPARING = (exp.EQ, exp.NEQ, exp.In, exp.Case)
_PREDICATES = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Where, exp.Having,
    exp.Join, exp.Qualify, exp.Order, exp.Case, exp.If, exp.Filter,
)  # fmt: skip
# The parts of a time and their values, by Spark's documentation of its functions.
_PARTS: dict[type[exp.Expr] | str, tuple[int, int]] = {
    exp.Month: (1, 12), exp.Quarter: (1, 4), exp.Hour: (0, 23), exp.Minute: (0, 59),
    exp.Day: (1, 31), exp.DayOfMonth: (1, 31), exp.DayOfWeek: (1, 7), exp.DayOfYear: (1, 366),
    exp.WeekOfYear: (1, 53), "WEEKDAY": (0, 6),
}  # fmt: skip
_CONVERSIONS = (
    exp.Cast, exp.TryCast, exp.Paren, exp.TsOrDsToDate, exp.Date, exp.StrToUnix, exp.Timestamp,
)  # fmt: skip
# Days that nothing happened on: they fill a gap.
_FIRST_YEAR, _LAST_YEAR = 1901, 2999
_YEAR = re.compile(r"(\d{4})-")
_SPANS = (exp.DateDiff, exp.TimestampDiff, exp.DatetimeDiff, exp.MonthsBetween)
_WEEKS = {"WEEKOFYEAR": "WEEK", "W": "WEEK", "WEEKS": "WEEK", "Y": "YEAR", "YR": "YEAR"}
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
_WHOLE_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_COMPARED_DAYS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
# Texts of days that begin with the day or the month do not have the order of time.
_SMALL_FIRST = frozenset({"%d", "%m", "%e", "%b"})
# Measures of which 0 is a value of its own, and not "nothing of it".
_MEASURES = frozenset({
    "price", "rate", "score", "rating", "temperature", "age", "weight", "height", "duration",
    "latency", "percent", "pct", "ratio", "margin", "speed", "hours", "days", "minutes", "seconds",
})  # fmt: skip

_SHARES = PERCENT_WORDS | {"share", "ratio", "rate"}
# A text whose name ends with such a word holds numbers: measures, their units, and quantities.
_AMOUNTS = _MEASURES - {"rating", "rate"} | {
    "amount", "quantity", "qty", "volume", "length", "width", "depth", "distance", "pressure",
    "voltage", "power", "energy", "count", "total", "eur", "usd", "kg", "grams", "km", "cm", "mm",
    "nm", "ml", "kw", "kwh", "mw", "mwh", "bar", "psi", "rpm", "celsius", "ms",
}  # fmt: skip


def iterate_value_slips(
    query: ModelQuery, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields comparisons that hold for no row, and totals over values that fill a gap."""
    written = list_written_constants(query)
    for select in query.root.selects:
        for node in select.find_all(*_COMPARING):
            yield from _iterate_impossible_values(select, node, origins, written)
        for node in select.find_all(*_SPANS, exp.Sub):
            yield from _iterate_filled_days(select, node, origins)
        for node in select.find_all(exp.Avg, exp.Min, exp.Count):
            yield from _iterate_filled_totals(select, node, origins)
        for node in select.find_all(exp.Sum, exp.Avg):
            yield from _iterate_totals_of_results(select, node, origins)
        for node in select.find_all(exp.Cast):
            yield from _iterate_unreadable_casts(select, node, origins)
        yield from _iterate_weeks_of_other_years(select)
        for node in select.find_all(exp.Coalesce, exp.Nullif, exp.Div, exp.Max, exp.Min):
            yield from _iterate_idle_functions(select, node, types)
        for node in select.find_all(exp.Literal):
            yield from _iterate_missing_days(node)
        yield from _iterate_shares_of_themselves(select)
        for join in select.joins:
            for part in join.conditions:
                yield from _iterate_shared_days(select, part.unnest(), origins)


def _iterate_impossible_values(
    select: ScopedSelect, node: exp.Expr, origins: ValueOrigins, written: frozenset[str] | None
) -> Iterator[QuerySlip]:
    """Yields comparisons with constants that the other side never is.

    Args:
        written: the constants of the file, if it can be read. Any other one is of a variable, for
            example in a model of each site, which may have no rows yet.
    """
    for side, value in _iterate_compared(node):
        if written is not None and value.name not in written:
            continue
        if value.is_string:
            known = origins.find_texts(select, side) if not isinstance(side, exp.Literal) else None
            if known is None or known.includes_text(value.name):
                continue
            why = f"it is {known.why}"
        else:
            _, made = origins.find_expression(select, side)
            limits = _find_limits(made)
            if limits is None or limits[0] <= Decimal(value.name) <= limits[1]:
                continue
            why = f"it is from {limits[0]} to {limits[1]}"
        yield QuerySlip(
            node,
            f"compares with {value.sql()}, which the value never is: {why}",
            "the constant is one of its values",
        )
        return


def _iterate_compared(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Literal]]:
    """Yields a value with each constant that it is compared with for equality."""
    if isinstance(node, exp.Case):
        branches = (node.args.get("ifs") or ()) if node.this is not None else ()
        pairs = [(node.this, branch.this) for branch in branches]
    elif isinstance(node, exp.In):
        pairs = [(node.this, one) for one in node.expressions]
    else:
        pairs = [(node.this, node.expression), (node.expression, node.this)]
    for side, value in pairs:
        if isinstance(value.unnest(), exp.Literal):
            yield side.unnest(), value.unnest()


def _find_limits(node: exp.Expr) -> tuple[int, int] | None:
    if isinstance(node, exp.Anonymous):
        return _PARTS.get(node.name.upper())
    return _PARTS.get(type(node))


def _iterate_shared_days(
    select: ScopedSelect, part: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields periods up to the start of the next one, with that day: it is in both of them."""
    end = find_end_of_range(part) if not isinstance(part, exp.LT | exp.GT) else None
    column = enter_expression(end, exp.Paren, exp.Cast, exp.Coalesce) if end is not None else None
    if not isinstance(column, exp.Column):
        return
    _, made = origins.find_expression(select, column)
    window = enter_expression(made, exp.Paren, exp.Cast, exp.Coalesce)
    lead = window.this if isinstance(window, exp.Window) else None
    order = window.args.get("order") if isinstance(lead, exp.Lead) else None
    if lead is not None and order is not None and order.expressions[0].this == lead.this:
        yield QuerySlip(
            part,
            f"has `{column.name}` in two periods: LEAD is the start of the next one",
            f"the end is left out, as in `< {column.name}`",
        )


def _iterate_filled_days(
    select: ScopedSelect, node: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields durations from or to a day that only fills a gap, such as 1900-01-01."""
    if _is_compared(node, select):
        return
    for side in (node.this, node.expression):
        _, made = origins.find_expression(select, _enter_conversions(side))
        filled = made.expressions[-1:] if isinstance(made, exp.Coalesce) else []
        day = read_constant_number_or_day(_enter_conversions(filled[0])) if filled else None
        year = _YEAR.match(day) if isinstance(day, str) else None
        if year is not None and not _FIRST_YEAR < int(year[1]) < _LAST_YEAR:
            yield QuerySlip(
                node,
                f"measures the time from or to {day}, which only fills a gap: that is no duration",
                "the duration is NULL if one of its ends is",
            )
            return


def _is_compared(node: exp.Expr, select: ScopedSelect) -> bool:
    """Whether a value chooses rows or a branch, and is not shown or added up."""
    above = node.find_ancestor(*_PREDICATES, exp.Select)
    return above is not select.node


def _enter_conversions(node: exp.Expr) -> exp.Expr:
    return enter_expression(node, *_CONVERSIONS)


def _iterate_filled_totals(
    select: ScopedSelect, node: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields averages, minima and counts that take in a value for "unknown"."""
    counted = node.this
    is_distinct = isinstance(counted, exp.Distinct)
    if is_distinct:
        counted = counted.expressions[0] if len(counted.expressions) == 1 else None
    if not isinstance(counted, exp.Expression) or is_distinct != isinstance(node, exp.Count):
        return
    owner, made = origins.find_expression(select, counted.unnest())
    if not isinstance(made, exp.Coalesce) or not _is_constant(made.expressions[-1]):
        return
    if is_distinct:
        yield QuerySlip(
            node,
            f"counts {made.expressions[-1].sql()}, which only fills a gap, as one value more",
            "COUNT(DISTINCT ...) reads the column itself: it leaves out NULL",
        )
        return
    value = _enter_conversions(made.this)
    names = split_column_name_into_words(value.name) if isinstance(value, exp.Column) else []
    is_measure = not _MEASURES.isdisjoint(names) or value.find(*_SPANS, exp.Div) is not None
    # Without a partner there was nothing: no hours of a stop, for example.
    if any(owner.find_outer_join(column.table) for column in value.find_all(exp.Column)):
        return
    if is_measure and read_constant_number_or_day(made.expressions[-1]) == 0:
        yield QuerySlip(
            node,
            "takes what is not known for 0, which is a value as any other",
            "AVG and MIN read the column itself: they leave out NULL",
        )


def _is_constant(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner.this if isinstance(inner, exp.Neg) else inner, exp.Literal)


def _iterate_totals_of_results(
    select: ScopedSelect, node: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields sums of whole numbers that were fractions, and averages that know no weights."""
    added = node.this
    if not isinstance(added, exp.Expression):
        return
    cut = added.unnest()
    inner = cut.this.unnest() if isinstance(cut, exp.Floor | exp.Cast) else cut
    is_whole = isinstance(cut, exp.Floor) or (
        isinstance(cut, exp.Cast) and cut.to.this in exp.DataType.INTEGER_TYPES
    )
    if isinstance(inner, exp.IntDiv) or (is_whole and isinstance(inner, exp.Div)):
        yield QuerySlip(
            node,
            "adds up what is left after the fraction of each row is cut off",
            "the sum is divided, and not each row",
        )
        return
    below, made = origins.find_expression(select, cut)
    if not isinstance(node, exp.Avg) or below is select:
        return
    if isinstance(cut, exp.Column) and _is_share_of_totals(cut.name, below, made, origins):
        yield QuerySlip(
            node,
            "is an average of shares: a share of one in two has the weight of one of thousands",
            "the totals are added up and then divided: both are beside the share",
        )
        return
    if not _is_average(made):
        return
    counts = [name for name, value in below.results if value.find(exp.Count, exp.Sum) is not None]
    if any(name for name in counts if below.find_result(name) is not made):
        yield QuerySlip(
            node,
            "is an average of averages: a group of one row has the weight of a group of thousand",
            "the sums are divided by the counts, or the average is weighted by the count",
        )


def _is_average(node: exp.Expr) -> bool:
    value = node.unnest()
    if isinstance(value, exp.Div):
        return value.this.find(exp.Sum, exp.Count) is not None and (
            value.expression.find(exp.Count, exp.Sum) is not None
        )
    return isinstance(value, exp.Avg)


def _is_share_of_totals(
    name: str, select: ScopedSelect, made: exp.Expr, origins: ValueOrigins
) -> bool:
    """Whether a value is a total of a group, divided by a value that the query shows as well."""
    if _SHARES.isdisjoint(split_column_name_into_words(name)):
        return False
    quotient = drop_hundred(made)
    if not isinstance(quotient, exp.Div):
        return False
    total = drop_hundred(quotient.this)
    whole = enter_expression(quotient.expression, exp.Paren, exp.Cast, exp.Nullif)
    shown = [value for _, value in select.results]
    if total not in shown or whole not in shown:
        return False
    _, source = origins.find_expression(select, total)
    return isinstance(source, exp.Sum | exp.Count | exp.CountIf)


def _iterate_unreadable_casts(
    select: ScopedSelect, node: exp.Cast, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields casts of a text to a number where some of the known texts are none."""
    if node.to.this not in exp.DataType.NUMERIC_TYPES or not isinstance(node.this, exp.Column):
        return
    known = origins.find_texts(select, node.this)
    wrong = sorted(text for text in (known and known.texts) or () if not _NUMBER.fullmatch(text))
    if known is not None and wrong:
        yield QuerySlip(
            node,
            f"makes NULL of '{wrong[0]}', or stops the run: the text is {known.why}",
            "the value stays a text, or the cast reads only the texts that are numbers",
        )


def _iterate_weeks_of_other_years(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields the calendar's year beside the week of ISO, whose first days are of another year."""
    found: dict[str, dict[str, exp.Expr]] = {}
    for node in select.find_all(exp.Year, exp.WeekOfYear, exp.Extract, exp.Month):
        part, of = type(node).__name__.upper(), node.this
        if isinstance(node, exp.Extract):
            part, of = node.this.name.upper(), node.expression
        found.setdefault(_enter_conversions(of).sql(), {}).setdefault(_WEEKS.get(part, part), node)
    for parts in found.values():
        if {"YEAR", "WEEK"} <= parts.keys() and "MONTH" not in parts:
            yield QuerySlip(
                parts["YEAR"],
                "is the year of the calendar beside the week of ISO: the last days of December may "
                "be in week 1, and are then counted a year too early",
                "the week is DATE_TRUNC('WEEK', ...), or its year is EXTRACT(YEAROFWEEK FROM ...)",
            )


def _iterate_idle_functions(
    select: ScopedSelect, node: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields calls whose arguments are the other way round, and extremes in the order of texts."""
    first = node.this.unnest() if isinstance(node.this, exp.Expression) else None
    if isinstance(node, exp.Coalesce | exp.Nullif) and isinstance(first, exp.Literal):
        if not any(one.find(exp.Column) for one in (node.expression, *node.expressions) if one):
            return  # a macro has put constants in
        yield QuerySlip(
            node,
            "begins with a constant, so the other values do not count",
            "the column comes first",
        )
    elif isinstance(node, exp.Div):
        divisor = node.expression.unnest()
        if isinstance(divisor, exp.Coalesce) and (
            read_constant_number_or_day(divisor.expressions[-1]) == 0
        ):
            yield QuerySlip(
                node,
                "divides by 0 where there was NULL, which stops the run or gives NULL again",
                "the divisor stays NULL, by NULLIF(..., 0)",
            )
    elif isinstance(node, exp.Max | exp.Min) and first is not None:
        yield from _iterate_extremes_of_texts(select, node, first, types)


def _iterate_extremes_of_texts(
    select: ScopedSelect, node: exp.Expr, value: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    is_day_first = isinstance(value, exp.TimeToStr) and value.text("format")[:2] in _SMALL_FIRST
    is_number = False
    if isinstance(value, exp.Column) and split_column_name_into_words(value.name)[-1] in _AMOUNTS:
        kind = types.find_type(select, value)
        is_number = kind is not None and kind.this in exp.DataType.TEXT_TYPES
    elif isinstance(value, exp.Cast) and value.to.this in exp.DataType.TEXT_TYPES:
        kind = types.find_type(select, value.this)
        is_number = kind is not None and kind.this in exp.DataType.NUMERIC_TYPES
    if is_day_first or is_number:
        yield QuerySlip(
            node,
            "compares texts: '9' is above '10', and '31.01.' is above '01.12.'",
            "the number or the date is compared, and its result made a text",
        )


def _iterate_missing_days(node: exp.Literal) -> Iterator[QuerySlip]:
    """Yields days that no calendar has."""
    if not node.is_string or not _WHOLE_DAY.fullmatch(node.name):
        return
    if not isinstance(node.parent, (exp.Cast, *_COMPARED_DAYS)):
        return
    try:
        date.fromisoformat(node.name)
    except ValueError:
        yield QuerySlip(
            node, "is no day of the calendar: the run stops, or the value is NULL", "it is a day"
        )


def _iterate_shares_of_themselves(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields shares of a total over the same group, which are always 1."""
    keys = {key.sql() for key in select.list_group_keys()}
    for node in select.find_all(exp.Div) if keys else ():
        window = node.expression.unnest()
        if not isinstance(window, exp.Window) or window.args.get("order") is not None:
            continue
        by = {part.sql() for part in window.args.get("partition_by") or ()}
        if isinstance(window.this, exp.Sum) and window.this.this == node.this and keys <= by:
            yield QuerySlip(
                node,
                "is always 1: the window has one row for each group",
                "PARTITION BY names fewer columns than GROUP BY",
            )
