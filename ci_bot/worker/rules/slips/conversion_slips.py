"""Values that a conversion makes wrong without an error: milliseconds that are read as seconds,
shares that become 0, cents that a binary fraction loses, texts that one missing part makes NULL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import quote_names
from ci_bot.worker.rules.models.declared_keys import list_unique_keys, split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes, is_float, is_money_name
from ci_bot.worker.rules.queries.value_parts import (
    HUNDRED,
    PERCENT_WORDS,
    read_constant_number_or_day,
)
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import (
    NEVER,
    ModelQuery,
    ScopedSelect,
    enter_expression,
    find_value_null_reason,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# A value is followed through at most so many casts and queries.
_MOST_LEVELS = 12
_CENTS = frozenset({HUNDRED, Decimal(1000)})
_UNITS = {
    "ms": "milliseconds", "msec": "milliseconds", "msecs": "milliseconds",
    "millis": "milliseconds", "milliseconds": "milliseconds", "micros": "microseconds",
    "microseconds": "microseconds", "nanos": "nanoseconds", "nanoseconds": "nanoseconds",
    "secs": "seconds", "seconds": "seconds",
}  # fmt: skip
_UNIT_OF_EPOCH: dict[type[exp.Expr], str] = {
    exp.UnixMillis: "milliseconds", exp.UnixMicros: "microseconds", exp.UnixSeconds: "seconds",
}  # fmt: skip
_READING = {
    "TIMESTAMP_SECONDS": "seconds",
    "TIMESTAMP_MILLIS": "milliseconds",
    "TIMESTAMP_MICROS": "microseconds",
}
# Last words of columns that are a part of 1, and of those that are one if they are multiplied.
_PARTS_OF_ONE = PERCENT_WORDS | {"share", "fraction", "proportion"}
_PERCENTAGES = _PARTS_OF_ONE | {
    "rate", "ratio", "margin", "coverage", "utilization", "utilisation", "occupancy", "conversion",
    "churn", "retention",
}  # fmt: skip
# An average of percentages is a sum of them by a count, and no share.
_AVERAGES = frozenset({"avg", "average", "mean"})
_QUOTIENTS = (exp.Mul, exp.Div, exp.IntDiv)
# A text made of a name's parts, through what keeps a NULL.
_KEEPING_NULL = (
    exp.Paren, exp.Cast, exp.Upper, exp.Lower, exp.Trim, exp.Initcap, exp.MD5, exp.SHA, exp.SHA2,
)  # fmt: skip
_NAMING = frozenset({"name", "label", "title", "address"})


def iterate_conversion_slips(
    model: Model,
    query: ModelQuery,
    project: ProjectView,
    origins: ValueOrigins,
    types: ModelValueTypes,
) -> Iterator[QuerySlip]:
    """Yields conversions whose result is another value than the one that is meant."""
    keys: frozenset[str] = frozenset().union(*list_unique_keys(model))
    for select in query.root.selects:
        for node in select.find_all(exp.UnixToStr, exp.Anonymous, exp.Cast):
            yield from _iterate_other_epochs(select, node, origins, types)
        for node in select.find_all(exp.RegexpExtract):
            yield from _iterate_missing_groups(node)
        for name, value in select.results:
            yield from _iterate_lost_shares(select, name, value, origins)
        for node in select.find_all(exp.Cast, exp.Floor):
            yield from _iterate_lost_cents(select, node, types)
    for branch in query.root.branches:
        for name, value in branch.results:
            yield from _iterate_lost_texts(branch, name, value, keys, project)


def _iterate_missing_groups(node: exp.Expr) -> Iterator[QuerySlip]:
    """Yields REGEXP_EXTRACT of a group that the pattern does not have; without a number it is 1."""
    pattern, group = node.expression, node.args.get("group")
    if not isinstance(pattern, exp.Literal) or not isinstance(group, exp.Literal):
        return
    try:
        groups = re.compile(pattern.name).groups
    except re.error:
        return  # Java may read it
    if group.is_int and int(group.name) > groups:
        yield QuerySlip(
            node,
            f"asks for group {group.name} of a pattern with {groups or 'no'} "
            f"group{'' if groups == 1 else 's'}: Spark ends with an error at the first text that "
            "matches",
            "the number of the group is 0 for the whole match, or the pattern has the group",
        )


def _iterate_other_epochs(
    select: ScopedSelect, node: exp.Expr, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields times that are made of a number in another unit than the function reads."""
    value, unit = node.this, "seconds"
    if isinstance(node, exp.Anonymous):
        unit = _READING.get(node.name.upper(), "")
        value = node.expressions[0] if unit and len(node.expressions) == 1 else None
    elif isinstance(node, exp.Cast):
        # Spark reads a number as seconds; a text or a time has no unit.
        kind = (
            types.find_type(select, value) if node.is_type(*exp.DataType.TEMPORAL_TYPES) else None
        )
        is_number = kind is not None and kind.this in exp.DataType.NUMERIC_TYPES
        value = value if is_number else None
    if not isinstance(value, exp.Expression):
        return
    written = _find_unit(select, value, origins)
    if written is not None and written != unit:
        yield QuerySlip(
            node,
            f"reads {written} as {unit}, so the time is thousands of years away or in 1970",
            f"the number is converted to {unit}, or the function reads {written}",
        )


def _find_unit(select: ScopedSelect, value: exp.Expr, origins: ValueOrigins) -> str | None:
    """Finds the unit of a number of time by the name of the column that it comes from."""
    node = value
    for _ in range(_MOST_LEVELS):
        is_number = isinstance(node, exp.Cast) and node.to.this in exp.DataType.NUMERIC_TYPES
        if is_number or isinstance(node, exp.Paren | exp.Max | exp.Min):
            node = node.this
        elif isinstance(node, exp.Column):
            below, made = origins.find_expression(select, node)
            if made is node:
                return _UNITS.get(split_column_name_into_words(node.name)[-1])
            select, node = below, made
        else:
            break
    return _UNIT_OF_EPOCH.get(type(node))


def _iterate_lost_shares(
    select: ScopedSelect, name: str, value: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields shares that are cut to whole numbers, and so to 0, before they are percentages."""
    words = split_column_name_into_words(name)
    is_named = words[-1] in _PERCENTAGES or words[0] in PERCENT_WORDS
    if not is_named or not _AVERAGES.isdisjoint(words):
        return
    is_share = words[-1] in _PARTS_OF_ONE or words[0] in PERCENT_WORDS
    for node in _iterate_alternatives(value):
        quotient = _find_multiplied(node, {HUNDRED})
        if quotient is None and is_share:
            quotient = node
        elif isinstance(quotient, exp.Column) and not _names_share(quotient):
            _, quotient = origins.find_expression(select, quotient)
        if quotient is not None and _is_whole_quotient(quotient.unnest()):
            yield QuerySlip(
                node,
                f"makes `{name}` a whole number before it is multiplied or shown, and each share "
                "below 1 is 0 or 1 then",
                "the division keeps its fraction, by / instead of DIV, and ROUND comes last",
            )


def _iterate_alternatives(value: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the values of which an expression is one, without what rounds or fills them."""
    if isinstance(value, exp.Case):
        for branch in value.args.get("ifs") or ():
            yield from _iterate_alternatives(branch.args["true"])
        value = value.args.get("default") or exp.null()
    is_rounded = isinstance(value, exp.Round) and value.args.get("decimals") is not None
    is_number = isinstance(value, exp.Cast) and value.to.this not in exp.DataType.INTEGER_TYPES
    if is_rounded or is_number or isinstance(value, exp.Paren | exp.Coalesce | exp.Alias):
        yield from _iterate_alternatives(value.this)
    elif not isinstance(value, exp.Null):
        yield value


def _find_multiplied(node: exp.Expr, factors: Collection[Decimal]) -> exp.Expr | None:
    """Finds what is multiplied by one of these constants."""
    if not isinstance(node, exp.Mul):
        return None
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if read_constant_number_or_day(side) in factors:
            found: exp.Expr = other.unnest()
            return found
    return None


def _is_whole_quotient(node: exp.Expr) -> bool:
    """Whether a value is what remains of one number in another, and of no percentage."""
    is_whole = isinstance(node, exp.Floor | exp.Ceil | exp.Round) and not node.args.get("decimals")
    if is_whole or (isinstance(node, exp.Cast) and node.to.this in exp.DataType.INTEGER_TYPES):
        node = node.this.unnest()
        if not isinstance(node, exp.Div):
            return False
    elif not isinstance(node, exp.IntDiv):
        return False
    parts = [node.this, node.expression]
    return (
        all(part.find(*_QUOTIENTS) is None for part in parts)
        and all(part.find(exp.Column, exp.Count) is not None for part in parts)
        and not any(map(_names_share, node.this.find_all(exp.Column)))
    )


def _names_share(column: exp.Column) -> bool:
    return not _PERCENTAGES.isdisjoint(split_column_name_into_words(column.name))


def _iterate_lost_cents(
    select: ScopedSelect, node: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields whole cents that are cut from a binary fraction."""
    if isinstance(node, exp.Cast) and node.to.this not in exp.DataType.INTEGER_TYPES:
        return
    multiplied = _find_multiplied(node.this.unnest(), _CENTS)
    if multiplied is None:
        return
    amount = enter_expression(multiplied, exp.Sum, exp.Paren)
    column = amount.this if isinstance(amount, exp.Cast) else amount
    if (
        isinstance(column, exp.Column)
        and is_money_name(column.name)
        and is_float(types.find_type(select, amount))
    ):
        yield QuerySlip(
            node,
            "cuts cents off: 19.99 * 100 is 1998.99... in a binary fraction, and 1998 then",
            "ROUND is around the product, or the amount is a DECIMAL",
        )


def _iterate_lost_texts(
    select: ScopedSelect, name: str, value: exp.Expr, keys: Collection[str], project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields keys and names that are NULL as soon as one of their parts is."""
    is_key = name in keys
    if not is_key and split_column_name_into_words(name)[-1] not in _NAMING:
        return
    text = enter_expression(value, *_KEEPING_NULL)
    if isinstance(text, exp.Concat) and not isinstance(text, exp.ConcatWs):
        parts = text.expressions
    elif isinstance(text, exp.DPipe):
        parts = list(text.flatten())
    else:
        return
    read = [part for part in parts if part.find(exp.Column) is not None]
    missing = {
        number: reason
        for number, part in enumerate(read)
        if (reason := _find_missing_reason(select, part, project))
    }
    # A name of which all parts may be missing has no value on purpose.
    if not missing or (not is_key and len(missing) == len(read)):
        return
    number, reason = next(iter(missing.items()))
    columns = quote_names(column.name for column in read[number].find_all(exp.Column))
    yield QuerySlip(
        value,
        f"is NULL in each row in which {columns} is: {reason}",
        "COALESCE gives the part a text, or CONCAT_WS leaves it out",
    )


def _find_missing_reason(select: ScopedSelect, part: exp.Expr, project: ProjectView) -> str | None:
    reason = find_value_null_reason(select, part, project)
    if reason and reason != NEVER:
        return reason
    value = enter_expression(part, *_KEEPING_NULL)
    if reason != NEVER and isinstance(value, exp.Column):
        words = split_column_name_into_words(value.name)
        return "not everybody has one" if "middle" in words else None
    return None
