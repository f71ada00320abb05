"""Columns whose name says another thing than their formula: flags, shares, units, ranks, spans.

Only names that leave no doubt count: a closed ticket has a time at which it was closed, a decile is
one part of ten, and 1.609 is the number of kilometres of a mile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import make_singular, split_column_name_into_words
from ci_bot.worker.rules.queries.fan_outs import list_source_keys
from ci_bot.worker.rules.queries.value_parts import (
    ROUNDING_WRAPPERS,
    VALUE_WRAPPERS,
    drop_hundred,
    list_words_of_columns,
    read_constant_number_or_day,
)
from ci_bot.worker.sql import ScopedSelect, enter_expression

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# What a formula makes of a name, and how to write what is meant.
_Misnomer = tuple[str, str]

# Words of a column that is NULL as long as something goes on.
_ENDINGS = frozenset({
    "closed", "ended", "end", "cancelled", "canceled", "resolved", "deleted", "finished",
    "completed", "terminated", "churned", "expired", "archived", "paid", "shipped", "delivered",
    "returned", "refunded", "replied", "left", "stopped",
})  # fmt: skip
_OVER = frozenset({"ended", "closed", "churned", "inactive", "former", "terminated", "expired"})
_GOING_ON = frozenset({"active", "open", "current", "running", "ongoing", "pending", "unresolved"})
_REVERSING = frozenset({"not", "no", "non", "without", "never", "missing", "un", "still", "was"})
_TILES = {"tercile": 3, "quartile": 4, "quintile": 5, "decile": 10, "percentile": 100}
_BEST = frozenset({"top", "best", "largest", "highest", "biggest"})
_BEFORE = frozenset({"last", "prev", "previous", "prior", "ago"})
_SHORTER_THAN_A_YEAR = frozenset({"month", "week", "day", "date", "quarter"})
_DAYS_IN_NAME = re.compile(r"(?:^|_)(\d{1,4})_?d(?:ays?)?(?:_|$)")
_MOST_DIGITS = 4
_GROWING = frozenset({"growth", "change", "increase"})
_FACTORS = frozenset({"factor", "ratio", "index", "multiple", "multiplier"})
_PARTS = frozenset({"rate", "share", "ratio", "pct", "percent", "percentage"})
_NUMBERS = frozenset({"count", "n", "num", "number", "cnt", "total"})
_THOUSAND = Decimal(1000)
_TOTALS = (*ROUNDING_WRAPPERS, exp.Avg, exp.Sum, exp.Max, exp.Min)


_CURRENCIES = frozenset({"eur", "euro", "euros", "usd", "dollars", "gbp", "chf"})
_CENTS = frozenset({"cent", "cents"})
_PARTS_OF_AN_HOUR = frozenset({"minutes", "mins", "min", "seconds", "secs", "sec"})
_BY_HOUR = frozenset({"kw", "mw", "kmh", "kph", "mph"})
_ENERGIES = frozenset({"wh", "kwh", "mwh"})
_POWERS = frozenset({"w", "kw", "mw", "watts"})
_DISTANCES = frozenset({"km", "miles", "distance"})


class _UnitConversion(NamedTuple):
    """One of a large unit is so many of a small one; both with the words for them."""

    factors: tuple[str, ...]
    small: frozenset[str]
    large: frozenset[str]


_METRES = frozenset({"m", "meters", "metres"})
_KILOMETRES = frozenset({"km", "kilometers", "kilometres"})
_KILOGRAMS = frozenset({"kg", "kgs", "kilograms"})
_POUNDS = frozenset({"lb", "lbs", "pounds"})
# By the definitions of the units.
_CONVERSIONS = (
    _UnitConversion(
        ("1.6", "1.609", "1.60934", "1.609344"), _KILOMETRES, frozenset({"mi", "miles"})
    ),
    _UnitConversion(("3.6",), frozenset({"kmh", "kph"}), frozenset({"ms", "mps"})),
    _UnitConversion(("2.2", "2.2046", "2.20462", "2.205"), _POUNDS, _KILOGRAMS),
    _UnitConversion(("2.54",), frozenset({"cm", "centimeters"}), frozenset({"inch", "inches"})),
    _UnitConversion(("3.28", "3.281", "3.2808", "3.28084"), frozenset({"ft", "feet"}), _METRES),
    _UnitConversion(("1000",), _METRES, _KILOMETRES),
    _UnitConversion(("1000",), frozenset({"g", "grams"}), _KILOGRAMS),
    _UnitConversion(("1000",), frozenset({"wh"}), frozenset({"kwh"})),
)


def describe_misnamed_formula(
    select: ScopedSelect, name: str, item: exp.Expr, by_table: Mapping[str, Model]
) -> _Misnomer | None:
    """Describes a formula that is another one than its column's name says; None if it fits.

    Returns:
        The description, which follows the column's name, and the condition that clears it.
    """
    words = tuple(split_column_name_into_words(name))
    return (
        _describe_reversed_flag(words, item)
        or _describe_other_window(words, item)
        or _describe_other_days(name, item)
        or _describe_months_as_quarter(item)
        or _describe_growth(words, item)
        or _describe_turned_share(words, item)
        or _describe_turned_conversion(words, item)
        or _describe_other_measure(words, item)
        or _describe_counted_rows(select, words, item, by_table)
    )


# Flags and labels of what is over.


def _describe_reversed_flag(words: tuple[str, ...], item: exp.Expr) -> _Misnomer | None:
    """Describes `closed_at IS NULL AS is_closed`, as a flag, a label or a count."""
    for column, is_null, named in _iterate_flags(words, item):
        read = frozenset(split_column_name_into_words(column.name))
        if read.isdisjoint(_ENDINGS) or not _REVERSING.isdisjoint(named):
            continue
        is_over = not named.isdisjoint(_OVER | (read & _ENDINGS))
        goes_on = not named.isdisjoint(_GOING_ON)
        if is_over != goes_on and is_over == is_null:
            state = "is NULL" if is_null else "has a value"
            meant = "has a value" if is_null else "is NULL"
            return (
                f"says {' '.join(sorted(named & (_OVER | _GOING_ON | read)))} where "
                f"`{column.name}` {state}",
                f"it is so where `{column.name}` {meant}",
            )
    return None


def _iterate_flags(
    words: tuple[str, ...], item: exp.Expr
) -> Iterator[tuple[exp.Column, bool, frozenset[str]]]:
    """Yields a column, whether it is NULL, and the words that name this case."""
    node = enter_expression(item, *VALUE_WRAPPERS, exp.Sum, exp.Count, exp.CountIf)
    test = _read_null_test(node)
    if test is not None:
        yield (*test, frozenset(words))
        return
    if isinstance(node, exp.If):
        branches, default = [node], node.args.get("false")
    elif isinstance(node, exp.Case) and node.this is None and len(node.args["ifs"]) == 1:
        branches, default = list(node.args["ifs"]), node.args.get("default")
    else:
        return
    test = _read_null_test(branches[0].this.unnest())
    value = branches[0].args["true"].unnest()
    if test is None:
        return
    column, is_null = test
    if isinstance(value, exp.Literal) and value.is_string:
        yield column, is_null, frozenset(split_column_name_into_words(value.name))
        if isinstance(default, exp.Literal) and default.is_string:
            yield column, not is_null, frozenset(split_column_name_into_words(default.name))
    elif isinstance(value, exp.Boolean | exp.Literal):
        is_true = bool(value.this) if isinstance(value, exp.Boolean) else value.name != "0"
        yield column, is_null == is_true, frozenset(words)


def _read_null_test(node: exp.Expr) -> tuple[exp.Column, bool] | None:
    """Reads `column IS NULL` and its reverse; None for another condition."""
    is_null = not isinstance(node, exp.Not)
    test = node.this.unnest() if isinstance(node, exp.Not) else node
    if not isinstance(test, exp.Is) or not isinstance(test.expression, exp.Null):
        return None
    return (test.this, is_null) if isinstance(test.this, exp.Column) else None


# Windows.


def _describe_other_window(words: tuple[str, ...], item: exp.Expr) -> _Misnomer | None:
    """Describes tiles, ranks and offsets that are not those of the name."""
    window = enter_expression(item, *ROUNDING_WRAPPERS)
    function = window.this if isinstance(window, exp.Window) else None
    if isinstance(function, exp.Ntile):
        return _describe_other_tiles(words, function)
    order = window.args.get("order")
    first = order.expressions[0] if order is not None and order.expressions else None
    if not isinstance(first, exp.Ordered):
        return None
    if isinstance(function, exp.Lag):
        return _describe_other_lag(words, function, first)
    is_best = not _BEST.isdisjoint(words) and first.this.find(exp.Sum, exp.Count, exp.Avg)
    is_rank = isinstance(function, exp.Rank | exp.DenseRank | exp.RowNumber)
    if is_rank and is_best and not first.args.get("desc"):
        return "gives 1 to the smallest value", "the order is DESC"
    return None


def _describe_other_tiles(words: tuple[str, ...], function: exp.Ntile) -> _Misnomer | None:
    parts = read_constant_number_or_day(function.this)
    wanted = next((_TILES[word] for word in map(make_singular, words) if word in _TILES), None)
    if wanted is None or not isinstance(parts, Decimal) or parts == wanted:
        return None
    return f"is one part of {parts}", f"NTILE({wanted}) makes {wanted} parts"


def _describe_other_lag(
    words: tuple[str, ...], function: exp.Lag, first: exp.Ordered
) -> _Misnomer | None:
    """Describes the value of the month before that is called the one of the year before."""
    offset = read_constant_number_or_day(function.args.get("offset")) or Decimal(1)
    ordered = frozenset(map(make_singular, split_column_name_into_words(first.this.name)))
    is_year = "year" in words and not _BEFORE.isdisjoint(words)
    if not is_year or offset != 1 or "year" in ordered or not ordered & _SHORTER_THAN_A_YEAR:
        return None
    return (
        f"is the value of one row before, by `{first.this.name}`",
        "the offset of LAG is the number of rows of a year, as 12 for months",
    )


def _describe_other_days(name: str, item: exp.Expr) -> _Misnomer | None:
    """Describes a total over the last days whose condition has another number than its name."""
    named = _DAYS_IN_NAME.search(name)
    is_total = enter_expression(item, *ROUNDING_WRAPPERS)
    if named is None or not isinstance(is_total, exp.Sum | exp.Count | exp.CountIf | exp.Avg):
        return None
    spans = set(_iterate_days_taken_away(item))
    wanted = int(named[1])
    # With or without today, and with < or <=.
    if len(spans) != 1 or abs(next(iter(spans)) - wanted) <= 1:
        return None
    return f"takes the rows of {next(iter(spans))} days", f"both numbers are the same, as {wanted}"


def _iterate_days_taken_away(item: exp.Expr) -> Iterator[int]:
    """Yields the constant numbers of days by which dates in an expression are moved."""
    for node in item.find_all(exp.TsOrDsAdd, exp.DateSub, exp.DateAdd, exp.Sub):
        number, unit = node.expression, node.text("unit") or "DAY"
        if isinstance(number, exp.Interval):
            number, unit = number.this, number.text("unit")
        elif isinstance(node, exp.Sub) and not isinstance(node.this, exp.CurrentDate):
            continue  # no date, as far as is known
        if isinstance(number, exp.Mul):  # DATE_SUB is read as an addition of a negative number
            number = number.this
        digits = number.this if isinstance(number, exp.Neg) else number
        is_number = isinstance(digits, exp.Literal) and digits.name.isdecimal()
        is_short = is_number and len(digits.name) <= _MOST_DIGITS
        if is_short and unit.upper() in ("DAY", "DAYS"):
            yield int(digits.name)


def _describe_months_as_quarter(item: exp.Expr) -> _Misnomer | None:
    """Describes a text as `2024-Q11`."""
    for node in item.find_all(exp.Concat, exp.DPipe):
        parts = node.expressions if isinstance(node, exp.Concat) else list(node.flatten())
        for before, part in pairwise(parts):
            is_quarter = isinstance(before, exp.Literal) and before.name.upper().endswith("Q")
            if is_quarter and isinstance(enter_expression(part, *VALUE_WRAPPERS), exp.Month):
                return "has the number of the month behind Q", "QUARTER is used"
    return None


# Shares and growth.


def _describe_growth(words: tuple[str, ...], item: exp.Expr) -> _Misnomer | None:
    """Describes `a / LAG(a)` as growth: without growth it is 1."""
    node = _enter_percentage(item)
    if _GROWING.isdisjoint(words) or not _FACTORS.isdisjoint(words):
        return None
    if not isinstance(node, exp.Div) or node.find(exp.Sub) is not None:
        return None
    below = enter_expression(node.expression, *ROUNDING_WRAPPERS, exp.Nullif)
    lag = below.this if isinstance(below, exp.Window) else None
    if not isinstance(lag, exp.Lag) or lag.this != enter_expression(node.this, *ROUNDING_WRAPPERS):
        return None
    return "is 1 for a value that stays as it is", "1 is taken away from the quotient"


def _describe_turned_share(words: tuple[str, ...], item: exp.Expr) -> _Misnomer | None:
    """Describes `days / events AS events_per_day` and `amount / tax AS tax_rate`."""
    node = _enter_percentage(item)
    if not isinstance(node, exp.Div):
        return None
    above, below = (
        set(map(make_singular, list_words_of_columns(side)))
        for side in (node.this, node.expression)
    )
    place = words.index("per") if "per" in words[1:-1] else len(words) - 1
    if place == len(words) - 1 and (place == 0 or words[-1] not in _PARTS):
        return None
    part = make_singular(words[place - 1])
    if part in _PARTS or part not in below or part in above:
        return None
    return (
        f"has `{part}` below the line and not above it: the quotient is turned",
        f"what is called {part} is divided, and the other value divides it",
    )


def _enter_percentage(item: exp.Expr) -> exp.Expr:
    """Enters a quotient that is rounded, or multiplied by 100."""
    whole = drop_hundred(enter_expression(item, *ROUNDING_WRAPPERS))
    return enter_expression(whole, *ROUNDING_WRAPPERS)


def _describe_turned_conversion(words: tuple[str, ...], item: exp.Expr) -> _Misnomer | None:
    """Describes a factor between two units that is used the wrong way round."""
    node = enter_expression(item, *_TOTALS)
    if not isinstance(node, exp.Mul | exp.Div):
        return None
    sides = [(node.this, node.expression)]
    if isinstance(node, exp.Mul):
        sides.append((node.expression, node.this))
    for value, factor in sides:
        number = read_constant_number_or_day(factor)
        read = list_words_of_columns(value)
        for known in _CONVERSIONS:
            named = [unit for unit in (known.small, known.large) if not unit.isdisjoint(words)]
            factors = frozenset(map(Decimal, known.factors))
            if not isinstance(number, Decimal) or number not in factors or len(named) != 1:
                continue
            other = known.large if named == [known.small] else known.small
            # Any thousand is no conversion, and what has the unit already needs none.
            if not read.isdisjoint(named[0]) or (number == _THOUSAND and read.isdisjoint(other)):
                continue
            # The smaller the unit, the larger the number: miles times 1.609 are kilometres.
            if isinstance(node, exp.Mul) != (other == known.large):
                way, right = ("multiplied", "divided")[:: 1 if isinstance(node, exp.Mul) else -1]
                return (
                    f"is {way} by {number}, which is the way to the other unit",
                    f"the value is {right} by {number}",
                )
    return None


def _describe_other_measure(words: tuple[str, ...], item: exp.Expr) -> _Misnomer | None:
    """Describes cents that are called euros, an energy a minute that is called a power, and a power
    that is called an energy, if no number in the formula makes one of the other.
    """
    named, read = frozenset(words), list_words_of_columns(item)
    factors = {one.name for one in item.find_all(exp.Literal) if not one.is_string} - {"0", "1"}
    if factors or item.find(exp.Anonymous) is not None:
        return None
    if named & _CURRENCIES and read & _CENTS and not named & _CENTS:
        return "adds up cents, so it is 100 times too large", "the cents are divided by 100"
    quotient = enter_expression(item, *_TOTALS)
    if isinstance(quotient, exp.Div):
        time = list_words_of_columns(quotient.expression) & _PARTS_OF_AN_HOUR
        is_by_hour = bool(named & _BY_HOUR) or words[-2:] == ("per", "hour")
        if time and is_by_hour and list_words_of_columns(quotient.this) & (_ENERGIES | _DISTANCES):
            return (
                f"divides by {min(time)}, and its name says by the hour",
                "the quotient is multiplied by the number of them in an hour",
            )
    is_sum = isinstance(enter_expression(item, *ROUNDING_WRAPPERS), exp.Sum)
    is_plain = not isinstance(quotient, exp.Mul | exp.Div)
    if is_sum and is_plain and named & _ENERGIES and read & _POWERS and not read & _ENERGIES:
        return (
            "adds up a power, which is no energy",
            "each power is multiplied by the hours for which it holds",
        )
    return None


# Counts.


def _describe_counted_rows(
    select: ScopedSelect, words: tuple[str, ...], item: exp.Expr, by_table: Mapping[str, Model]
) -> _Misnomer | None:
    """Describes `COUNT(account_id) AS accounts` over a table with many rows of an account."""
    node = enter_expression(item, *VALUE_WRAPPERS)
    column = node.this if isinstance(node, exp.Count) else None
    if not isinstance(column, exp.Column) or select.node.args.get("group") is None:
        return None
    *thing, last = split_column_name_into_words(column.name)
    named = [word for word in words if word not in _NUMBERS]
    if last != "id" or len(thing) != 1 or list(map(make_singular, named)) != thing:
        return None
    keys = list_source_keys(select.find_source(column), by_table)
    if not keys or frozenset({column.name.lower()}) in keys:
        return None
    return (
        f"counts rows: its table has a row for each {', '.join(sorted(min(keys, key=sorted)))}",
        f"it is COUNT(DISTINCT {column.name})",
    )
