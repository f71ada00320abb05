"""Constants and names that contradict the query around them.

Examples are a unit in the place of the date, a number of another weekday, a count of what WHERE has
left out, the same count under two names, two columns with exchanged names, and a DECIMAL with fewer
digits than what it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import combinations

from sqlglot import exp

from ci_bot.protocol.rules import quote_names
from ci_bot.worker.rules.models.declared_keys import make_singular, split_column_name_into_words
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import (
    VALUE_WRAPPERS,
    list_written_constants,
    read_constant_number_or_day,
)
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_expression

# Units of `trunc` and `date_trunc`, by Spark's documentation of both.
_UNITS = frozenset({
    "YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK", "DAY", "DD", "HOUR", "MINUTE",
    "SECOND",
})  # fmt: skip
# Saturday and Sunday in each way to count: `dayofweek` has 1 for Sunday, `weekday` 0 for Monday.
_DAY_OF_WEEK, _WEEKDAY, _DAY_OF_WEEK_ISO = "DAYOFWEEK", "WEEKDAY", "DAYOFWEEK_ISO"
_WEEKENDS: Mapping[str, frozenset[int]] = {
    _DAY_OF_WEEK: frozenset({1, 7}),
    _WEEKDAY: frozenset({5, 6}),
    _DAY_OF_WEEK_ISO: frozenset({6, 7}),
}
_DAYS: Mapping[str, range] = {
    _DAY_OF_WEEK: range(1, 8),
    _WEEKDAY: range(7),
    _DAY_OF_WEEK_ISO: range(1, 8),
}
# What the other ways to count make of a weekend; 0 is Sunday in other languages' ways.
_OTHER_WEEKENDS = (frozenset({1, 7}), frozenset({5, 6}), frozenset({6, 7}), frozenset({0, 6}))
_COMPARING = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_NUMBERED: Mapping[type[exp.Expr], str] = {
    exp.Month: "month", exp.Quarter: "quarter", exp.WeekOfYear: "week",
}  # fmt: skip
_DIGITS = 2
_SEARCHES = (exp.StrPosition, exp.Contains, exp.StartsWith, exp.EndsWith)
_SHORT_TEXT = 2
# A cast of a column to so many digits fewer is no habit of the team.
_FEWER_DIGITS = 3


def iterate_constant_slips(
    query: ModelQuery, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields constants that fit neither their function nor the conditions around them."""
    written = list_written_constants(query)
    for select in query.root.selects:
        for node in select.find_all(exp.DateTrunc, exp.TimestampTrunc):
            yield from _iterate_truncated_units(node)
        for node in select.find_all(exp.In, *_COMPARING):
            yield from _iterate_other_weekends(node)
        for node in select.find_all(exp.Cast, exp.TryCast):
            yield from _iterate_narrow_decimals(select, node, types)
        for node in select.find_all(exp.Count, exp.Avg, exp.Min):
            yield from _iterate_filled_branches(node)
        for node in select.find_all(*_SEARCHES, exp.Translate):
            yield from _iterate_exchanged_texts(node)
        yield from _iterate_counts_of_excluded_values(select, written)
        yield from _iterate_repeated_counts(select)
        yield from _iterate_spans_with_the_next_day(select, origins)
        yield from _iterate_months_of_any_year(select, origins)
        yield from _iterate_exchanged_names(select)


def _iterate_truncated_units(node: exp.Expr) -> Iterator[QuerySlip]:
    """Yields `TRUNC('MONTH', day)`: both functions give NULL for a text that is no date."""
    first = enter_expression(node.this, *VALUE_WRAPPERS)
    if isinstance(first, exp.Literal) and first.is_string and first.name.upper() in _UNITS:
        yield QuerySlip(
            node,
            f"is NULL in each row: '{first.name}' is in the place of the date",
            "the date comes first in TRUNC, and second in DATE_TRUNC",
        )


# The days of a weekend.


def _iterate_other_weekends(node: exp.Expr) -> Iterator[QuerySlip]:
    """Yields the days of a weekend or of the week's work that another way to count has.

    SQLMesh renders BETWEEN as two comparisons.
    """
    counted = _name_way_to_count(node.this)
    if counted is None:
        return
    weekend, days = _WEEKENDS[counted], frozenset(_DAYS[counted])
    taken = _list_taken_days(node, days)
    if taken is None or taken in (weekend, days - weekend):
        return
    # Without a name that says it, {5, 6} may be the weekend of a country where Friday is one.
    is_weekend = taken in _OTHER_WEEKENDS and (taken != {5, 6} or _is_named_weekend(node))
    is_work = days - taken in _OTHER_WEEKENDS or taken == frozenset(range(1, 6))
    if not is_weekend and not (is_work and not isinstance(node, exp.In)):
        return
    shown = " and ".join(map(str, sorted(weekend)))
    yield QuerySlip(
        node,
        f"is no weekend and no week's work: Saturday and Sunday are {shown} in this function",
        f"the days are compared with {shown}",
    )


def _name_way_to_count(node: exp.Expr) -> str | None:
    if isinstance(node, exp.DayOfWeek):
        return _DAY_OF_WEEK
    if isinstance(node, exp.DayOfWeekIso):
        return _DAY_OF_WEEK_ISO
    if isinstance(node, exp.Anonymous) and node.name.upper() == _WEEKDAY:
        return _WEEKDAY
    if isinstance(node, exp.Extract):
        ways = {
            "DOW": _DAY_OF_WEEK, "DAYOFWEEK": _DAY_OF_WEEK,
            "DOW_ISO": _DAY_OF_WEEK_ISO, "DAYOFWEEK_ISO": _DAY_OF_WEEK_ISO,
        }  # fmt: skip
        return ways.get(node.this.name.upper())
    return None


def _list_taken_days(node: exp.Expr, days: frozenset[int]) -> frozenset[Decimal | int] | None:
    """Lists the days that a comparison with constants takes; None without constants.

    A constant stays a Decimal, which is equal to its integer. The integer of 1e99999999 would fill
    the memory.
    """
    if isinstance(node, exp.In):
        values = [read_constant_number_or_day(one) for one in node.expressions]
        numbers = [one for one in values if isinstance(one, Decimal)]
        return frozenset(numbers) if values and len(numbers) == len(values) else None
    end = read_constant_number_or_day(node.expression)
    if not isinstance(end, Decimal):
        return None
    below = isinstance(node, exp.LT | exp.LTE)
    taken = frozenset(day for day in days if (day < end if below else day > end))
    return taken | {end} if isinstance(node, exp.LTE | exp.GTE) else taken


def _is_named_weekend(node: exp.Expr) -> bool:
    named = node.find_ancestor(exp.Alias)
    return named is not None and "weekend" in split_column_name_into_words(named.alias)


# Digits.


def _iterate_narrow_decimals(
    select: ScopedSelect, node: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields casts to a DECIMAL that cannot hold the largest values of what it takes."""
    wanted = _read_digits(node.args.get("to"))
    value = enter_expression(node.this, *VALUE_WRAPPERS)
    is_total = isinstance(value, exp.Sum)
    part = enter_expression(value.this, *VALUE_WRAPPERS) if is_total else value
    if wanted is None or not isinstance(part, exp.Column):
        return
    held = _read_digits(types.find_type(select, part))
    if held is None or held - wanted < (1 if is_total else _FEWER_DIGITS):
        return
    what = "a total of" if is_total else "what is read from"
    yield QuerySlip(
        node,
        f"has {wanted} digits before the point for {what} `{part.name}`, which has {held}: what "
        "does not fit becomes NULL, or the query fails",
        "the type has at least as many digits as the column",
    )


def _read_digits(kind: exp.DataType | None) -> int | None:
    """Reads the digits before the point of a DECIMAL; None for another type."""
    if kind is None or kind.this not in (exp.DataType.Type.DECIMAL, exp.DataType.Type.BIGDECIMAL):
        return None
    given = [one.this.name for one in kind.expressions]
    # Spark's DECIMAL has at most 38 digits.
    if len(given) != _DIGITS or not all(one.isdecimal() and len(one) <= _DIGITS for one in given):
        return None
    return int(given[0]) - int(given[1])


# What WHERE has left out.


def _iterate_counts_of_excluded_values(
    select: ScopedSelect, written: frozenset[str] | None
) -> Iterator[QuerySlip]:
    """Yields conditions on a result that contradict WHERE, so that they hold for no row.

    Args:
        written: the constants of the file. What a variable gives may differ for each model.
    """
    fixed = _map_fixed_values(select, written)
    if not fixed:
        return
    nodes = [item for _, item in select.results]
    having = select.node.args.get("having")
    nodes += [having] if having is not None else []
    for node in nodes:
        for condition in node.find_all(exp.EQ, exp.In):
            column, values = condition.this, _list_texts(condition)
            allowed = fixed.get(column) if isinstance(column, exp.Column) else None
            if allowed is None or not values or not values.isdisjoint(allowed):
                continue
            if condition.find_ancestor(exp.Subquery, exp.Select) is not select.node:
                continue
            yield QuerySlip(
                condition,
                f"holds for no row: WHERE leaves only rows whose `{column.name}` is "
                f"{quote_names(sorted(allowed))}",
                "both conditions have a value in common, or one of them goes",
            )


def _map_fixed_values(
    select: ScopedSelect, written: frozenset[str] | None
) -> dict[exp.Expr, frozenset[str]]:
    """Maps each column that WHERE compares with constant texts to those texts."""
    fixed: dict[exp.Expr, frozenset[str]] = {}
    for part in select.list_clause_conditions("where"):
        values = _list_texts(part) if isinstance(part, exp.EQ | exp.In) else frozenset()
        is_written = written is None or values <= written
        if values and is_written and isinstance(part.this, exp.Column):
            fixed[part.this] = values
    return fixed


def _list_texts(condition: exp.Expr) -> frozenset[str]:
    """Lists the texts that a value is compared with; empty if one of them is no constant."""
    is_list = isinstance(condition, exp.In)
    nodes = condition.expressions if is_list else [condition.expression]
    is_known = all(isinstance(node, exp.Literal) and node.is_string for node in nodes)
    return frozenset(node.name for node in nodes) if is_known else frozenset()


# Values of the rows that a CASE leaves out, and texts in another's place.


def _iterate_filled_branches(node: exp.Expr) -> Iterator[QuerySlip]:
    """Yields `COUNT(DISTINCT CASE WHEN a THEN id ELSE 0 END)` and MIN and AVG of such values."""
    inner = node.this
    if isinstance(node, exp.Count):
        is_distinct = isinstance(inner, exp.Distinct) and len(inner.expressions) == 1
        inner = inner.expressions[0] if is_distinct else None
    case = enter_expression(inner, *VALUE_WRAPPERS) if inner is not None else None
    if not isinstance(case, exp.Case | exp.If):
        return
    branches = case.args.get("ifs") if isinstance(case, exp.Case) else [case]
    values = [branch.args["true"] for branch in branches or ()]
    default = case.args.get("default" if isinstance(case, exp.Case) else "false")
    number = read_constant_number_or_day(default)
    is_text = isinstance(default, exp.Literal) and default.is_string
    if (
        default is None
        or not (is_text or number is not None)
        or not all(one.find(exp.Column) for one in values)
    ):
        return
    if isinstance(node, exp.Count):
        what = f"counts {default.sql()} of all other rows as one more value"
    elif number != 0:
        return
    elif isinstance(node, exp.Min):
        what = "takes the other rows for 0, which is the smallest value"
    else:
        what = "takes the other rows for 0, which lowers the average"
    yield QuerySlip(node, what, "the CASE has no ELSE")


def _iterate_exchanged_texts(node: exp.Expr) -> Iterator[QuerySlip]:
    """Yields a search for a column's text in a constant, and TRANSLATE of a word."""
    if isinstance(node, exp.Translate):
        word = node.args.get("from_")
        if isinstance(word, exp.Literal) and len(set(word.name)) < len(word.name):
            yield QuerySlip(
                node,
                f"replaces each of the characters of '{word.name}', and not the word",
                "REPLACE is used",
            )
        return
    searched = node.args.get("substr") or node.args.get("expression")
    text = node.this
    # A long constant is a list of codes in which the value is looked up.
    is_short = isinstance(text, exp.Literal) and len(text.name) <= _SHORT_TEXT
    if is_short and isinstance(searched, exp.Expression) and searched.find(exp.Column):
        yield QuerySlip(
            node,
            f"looks for the value in {text.sql()}, and not for {text.sql()} in the value",
            "LOCATE takes the text that it looks for first; INSTR and CONTAINS take it second",
        )


# Two columns of one expression, and two with each other's names.


def _iterate_repeated_counts(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields a total of some rows that is there twice, under names that say two things."""
    totals = [(name, item) for name, item in select.results if _is_total_of_some_rows(item)]
    for (one, item), (other, same) in combinations(totals, 2):
        if item != same:
            continue
        words = [frozenset(split_column_name_into_words(name)) for name in (one, other)]
        texts = {
            word.lower()
            for literal in item.find_all(exp.Literal)
            for word in split_column_name_into_words(literal.name)
        }
        # Names of one kind, of which only one has a word of the condition.
        if words[0] & words[1] and len([own for own in words if own & texts]) == 1:
            yield QuerySlip(
                same,
                f"is in both `{one}` and `{other}`, which then have the same value in each row",
                "each of the two columns has a condition of its own",
            )


def _is_total_of_some_rows(item: exp.Expr) -> bool:
    has_condition = item.find(exp.Case, exp.If, exp.Filter, exp.CountIf) is not None
    return (
        has_condition and item.find(exp.AggFunc) is not None and item.find(exp.Literal) is not None
    )


def _iterate_exchanged_names(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields `a AS b, b AS c` of one source: the name of a value that is there is another's."""
    read = [
        (name, column)
        for name, item in select.results
        if isinstance(column := enter_expression(item, *VALUE_WRAPPERS), exp.Column)
    ]
    for name, column in read:
        for other, taken in read:
            is_named = taken.name.lower() == name and taken.table == column.table
            if is_named and other != name and column.name.lower() != name:
                yield QuerySlip(
                    column,
                    f"is named `{name}`, and the `{name}` of its table is named `{other}`",
                    "each column keeps its name",
                )
                return


# Ranges and joins of days.


def _iterate_spans_with_the_next_day(
    select: ScopedSelect, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields `day <= DATE_ADD(week, 7)` of a week's first day: the next week has that day, too."""
    conditions = select.list_clause_conditions("where")
    conditions += [part for join in select.joins for part in join.conditions]
    for part in conditions:
        end = part.expression if isinstance(part, exp.LTE) else None
        added = _read_added_period(end)
        if added is None:
            continue
        start, unit = added
        is_from = any(isinstance(one, exp.GTE) and one.expression == start for one in conditions)
        _, made = origins.find_expression(select, enter_expression(start, *VALUE_WRAPPERS))
        trunc = enter_expression(made, *VALUE_WRAPPERS, exp.TsOrDsToDate)
        is_first = isinstance(trunc, exp.DateTrunc | exp.TimestampTrunc)
        if is_from and is_first and trunc.text("unit").upper().startswith(unit):
            yield QuerySlip(
                part,
                f"includes the first day of the next {unit.lower()}, which counts in both",
                "it is <, or the range ends one day earlier",
            )


def _read_added_period(end: exp.Expr | None) -> tuple[exp.Expr, str] | None:
    """Reads `start + 7 days` and `start + 1 month`; None for another end."""
    if isinstance(end, exp.AddMonths):
        return (end.this, "MONTH") if read_constant_number_or_day(end.expression) == 1 else None
    if not isinstance(end, exp.TsOrDsAdd | exp.DateAdd | exp.Add):
        return None
    number, unit = end.expression, end.text("unit") or "DAY"
    if isinstance(number, exp.Interval):
        number, unit = number.this, number.text("unit")
    key = (number.name if isinstance(number, exp.Literal) else "", make_singular(unit.lower()))
    period = {("7", "day"): "WEEK", ("1", "week"): "WEEK", ("1", "month"): "MONTH"}.get(key)
    return (end.this, period) if period is not None else None


def _iterate_months_of_any_year(select: ScopedSelect, origins: ValueOrigins) -> Iterator[QuerySlip]:
    """Yields joins by the number of a month, a quarter or a week without the year."""
    for join in select.joins:
        parts = [
            (part, [_find_part_of_date(select, side, origins) for side in part.iter_expressions()])
            for part in join.conditions
            if isinstance(part, exp.EQ)
        ]
        if any(exp.Year in kinds for _, kinds in parts):
            continue
        for part, (one, other) in parts:
            if one is not None and one is other:
                yield QuerySlip(
                    part,
                    f"joins by the number of the {_NUMBERED[one]} alone, so each year meets the "
                    "same one of all other years",
                    "the year is compared, too, or the first day of both",
                )
                return


def _find_part_of_date(
    select: ScopedSelect, side: exp.Expr, origins: ValueOrigins
) -> type[exp.Expr] | None:
    _, made = origins.find_expression(select, enter_expression(side, *VALUE_WRAPPERS))
    part = enter_expression(made, *VALUE_WRAPPERS)
    return type(part) if isinstance(part, (*_NUMBERED, exp.Year)) else None
