"""Values in another unit than the arithmetic around them: percents as parts of one, whole days as
hours, hours of UTC beside days of another time zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.mixed_types import TIMES_OF_DAY, ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import (
    HUNDRED,
    PERCENT_WORDS,
    VALUE_WRAPPERS,
    drop_hundred,
    read_constant_number_or_day,
)
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_expression

_ONE = Decimal(1)
# A seed shows whether these are percents or parts of one; their names do not.
_RATES = frozenset({"rate", "vat", "tax", "discount"})
# A markup may be 150 %, but hardly any rate of a tax or a discount is twice the amount.
_LARGEST_PART = Decimal(2)
# Hours, minutes and seconds of a day.
_PARTS_OF_A_DAY = {Decimal(24): "hours", Decimal(1_440): "minutes", Decimal(86_400): "seconds"}
# Parts of a date or a time, and those that begin again with them.
_LARGER: dict[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    exp.Month: (exp.Year,),
    exp.Quarter: (exp.Year,),
    exp.WeekOfYear: (exp.Year,),
    exp.Day: (exp.Month, exp.DayOfYear),
    exp.DayOfMonth: (exp.Month, exp.DayOfYear),
    exp.Hour: (exp.Day, exp.DayOfMonth, exp.DayOfYear),
    exp.Minute: (exp.Hour,),
    exp.Second: (exp.Minute,),
}
# Words of columns that hold a time, with the unit; and of those that hold a part of one.
_TIME_UNITS = {
    word: unit
    for unit, words in (
        ("seconds", ("seconds", "secs", "sec")),
        ("minutes", ("minutes", "mins", "min")),
        ("hours", ("hours", "hrs")),
        ("days", ("days",)),
    )
    for word in words
}
_SHARES = PERCENT_WORDS | {
    "share", "ratio", "fraction", "utilisation", "utilization", "occupancy", "efficiency",
}  # fmt: skip
_TOTALS = (*VALUE_WRAPPERS, exp.Nullif, exp.Sum, exp.Avg, exp.Max, exp.Min)
_DAY_CASTS = (exp.TsOrDsToDate, exp.Paren)
_PASSING_TIMES = (exp.Paren, exp.Cast, exp.TryCast, exp.Timestamp, exp.TimeStrToTime)


def iterate_unit_slips(
    query: ModelQuery, project: ProjectView, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields arithmetic that takes a value for one of another unit."""
    for select in query.root.selects:
        for node in select.find_all(exp.Add, exp.Sub):
            yield from _iterate_percents_as_parts(select, node, project, origins)
        for node in select.find_all(exp.Sub):
            yield from _iterate_parts_of_other_days(node)
        for node in select.find_all(exp.Mul):
            yield from _iterate_days_as_hours(select, node, types)
        yield from _iterate_hours_of_another_zone(select, origins)
        for name, item in select.results:
            yield from _iterate_shares_of_other_units(name, item)


def _iterate_percents_as_parts(
    select: ScopedSelect, node: exp.Expr, project: ProjectView, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields `1 + vat_pct` of a percentage: 1 and 21 make 22."""
    sides = (node.this, node.expression)
    column = enter_expression(sides[1], *VALUE_WRAPPERS)
    if read_constant_number_or_day(sides[0]) != _ONE:
        column = enter_expression(sides[0], *VALUE_WRAPPERS)
        if not isinstance(node, exp.Add) or read_constant_number_or_day(sides[1]) != _ONE:
            return
    if not isinstance(column, exp.Column):
        return
    why = _find_percent_reason(select, column, project, origins)
    if why is not None:
        yield QuerySlip(
            node,
            f"takes `{column.name}` for a part of 1: {why}",
            f"it is divided by 100, as in 1 + {column.name} / 100",
        )


def _find_percent_reason(
    select: ScopedSelect, column: exp.Column, project: ProjectView, origins: ValueOrigins
) -> str | None:
    """Finds a fact of the project that shows a value from 0 to 100; None without one."""
    words = frozenset(split_column_name_into_words(column.name))
    is_percent = not words.isdisjoint(PERCENT_WORDS)
    if not is_percent and words.isdisjoint(_RATES):
        return None
    below, made = origins.find_expression(select, column)
    value = enter_expression(made, *VALUE_WRAPPERS)
    if isinstance(value, exp.Mul | exp.Div):
        factors = [one for part in value.find_all(exp.Mul) for one in part.iter_expressions()]
        is_multiplied = HUNDRED in map(read_constant_number_or_day, factors)
        return "it is multiplied by 100 where it is made" if is_multiplied and is_percent else None
    if not isinstance(value, exp.Column):
        return None
    largest = origins.find_largest_number_of_seed(below, value)
    if largest is not None:
        is_large = largest > (_ONE if is_percent else _LARGEST_PART)
        return f"its seed has {largest.normalize():f}" if is_large else None
    names = {column.name.lower(), value.name.lower()}
    return _find_reader_of_percents(names, project) if is_percent else None


def _find_reader_of_percents(names: set[str], project: ProjectView) -> str | None:
    """Finds a query that divides a column of this name by 100, or takes it from 100."""
    for model in project.models.values():
        query = project.queries.query_of(model)
        for node in query.rendered_tree.find_all(exp.Div, exp.Sub) if query is not None else ():
            sides = (node.expression, node.this)
            number, other = sides if isinstance(node, exp.Div) else sides[::-1]
            column = enter_expression(other, *VALUE_WRAPPERS)
            if read_constant_number_or_day(number) != HUNDRED:
                continue
            if isinstance(column, exp.Column) and column.name.lower() in names:
                return f"`{project.name_of_table(model.fqn)}` takes it for one of 100"
    return None


def _iterate_days_as_hours(
    select: ScopedSelect, node: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields whole days between two moments that are multiplied to hours or minutes."""
    for side, factor in ((node.this, node.expression), (node.expression, node.this)):
        span = enter_expression(side, exp.Paren, exp.Cast)
        unit = _PARTS_OF_A_DAY.get(_read_number(factor))
        if unit is None or not isinstance(span, exp.DateDiff):
            continue
        if span.text("unit").upper() not in {"", "DAY"}:
            continue
        ends = [enter_expression(one, *_DAY_CASTS) for one in (span.this, span.expression)]
        kinds = [types.find_type(select, one) for one in ends]
        if any(kind is not None and kind.this not in TIMES_OF_DAY for kind in kinds):
            continue  # two dates are whole days apart
        if any(kind is not None for kind in kinds):
            yield QuerySlip(
                node,
                f"makes {unit} of whole days: DATEDIFF counts midnights, so what begins and ends "
                "on one day took 0",
                f"TIMESTAMPDIFF counts {unit}, or UNIX_TIMESTAMP of both ends is compared",
            )


def _iterate_parts_of_other_days(node: exp.Expr) -> Iterator[QuerySlip]:
    """Yields `MONTH(a) - MONTH(b)` of two moments, which forgets the years between them."""
    first, second = (enter_expression(one, exp.Paren, exp.Cast) for one in node.iter_expressions())
    if type(first) is not type(second) or not isinstance(first, tuple(_LARGER)):
        return
    read = [list(side.find_all(exp.Column)) for side in (first, second)]
    if not all(read) or read[0] == read[1]:
        return
    whole = node
    while isinstance(whole.parent, exp.Binary | exp.Paren) and not isinstance(
        whole.parent, exp.Predicate
    ):
        whole = whole.parent
    # (YEAR(a) - YEAR(b)) * 12 + (MONTH(a) - MONTH(b)) has both.
    larger = _LARGER[type(first)]
    if whole.find(*larger, exp.DateDiff, exp.TimestampDiff) is not None:
        return
    yield QuerySlip(
        node,
        f"counts backwards from one {larger[0].__name__.lower()} to the next: it is the difference "
        "of two numbers of the calendar or the clock",
        "MONTHS_BETWEEN, DATEDIFF or TIMESTAMPDIFF counts from one moment to the other",
    )


def _iterate_shares_of_other_units(name: str, item: exp.Expr) -> Iterator[QuerySlip]:
    """Yields a share of minutes in seconds, and the like."""
    if _SHARES.isdisjoint(split_column_name_into_words(name)):
        return
    for node in item.find_all(exp.Div):
        part, whole = (_find_time_unit(side) for side in (node.this, node.expression))
        if part and whole and part != whole:
            yield QuerySlip(
                node,
                f"divides {part} by {whole}, and `{name}` is called a share",
                "both are of one unit",
            )


def _find_time_unit(node: exp.Expr) -> str:
    """Finds the unit of a time by the name of its column or by its function; empty without one."""
    value = enter_expression(node, *_TOTALS)
    part_of_percentage = drop_hundred(value)
    if part_of_percentage is not value:
        return _find_time_unit(part_of_percentage)
    if isinstance(value, exp.Column):
        return _TIME_UNITS.get(split_column_name_into_words(value.name)[-1], "")
    if isinstance(value, exp.TimestampDiff):
        return _TIME_UNITS.get(f"{value.text('unit').lower()}s", "")
    seconds = (exp.StrToUnix, exp.UnixSeconds)
    is_span = isinstance(value, exp.Sub) and all(
        isinstance(enter_expression(one, *_TOTALS), seconds) for one in value.iter_expressions()
    )
    return "seconds" if is_span else ""


def _read_number(node: exp.Expr) -> Decimal:
    number = read_constant_number_or_day(node)
    return number if isinstance(number, Decimal) else Decimal(0)


def _iterate_hours_of_another_zone(
    select: ScopedSelect, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields the hour of a moment in UTC beside the day of the same moment in a time zone."""
    hours = [
        (node, node.this if isinstance(node, exp.Hour) else node.expression)
        for _, item in select.results
        for node in item.find_all(exp.Hour, exp.Extract)
        if isinstance(node, exp.Hour) or node.this.name.upper() == "HOUR"
    ]
    if not hours:
        return
    shifted: dict[tuple[int, str], str] = {}
    for name, item in select.results:
        below, made = origins.find_expression(select, item)
        value = enter_expression(made, *_PASSING_TIMES)
        if isinstance(value, exp.AtTimeZone):
            shifted.setdefault(_find_moment(below, value.this, origins), name)
    for node, value in hours:
        moment = enter_expression(value, *_PASSING_TIMES)
        below, made = origins.find_expression(select, moment)
        inner = enter_expression(made, *_PASSING_TIMES)
        local = shifted.get(_find_moment(below, inner, origins))
        if isinstance(inner, exp.Column) and local is not None:
            yield QuerySlip(
                node,
                f"is the hour in UTC beside `{local}`, which is of another time zone: around "
                "midnight they are of different days",
                "the hour is of the same FROM_UTC_TIMESTAMP as the day",
            )


def _find_moment(select: ScopedSelect, node: exp.Expr, origins: ValueOrigins) -> tuple[int, str]:
    """Finds the column, and the SELECT, from which a moment is read, through casts."""
    value = node
    while True:
        inner = enter_expression(value, *_PASSING_TIMES)
        below, made = origins.find_expression(select, inner)
        if made is inner:
            return id(select), inner.sql().lower()
        select, value = below, made
