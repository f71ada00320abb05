"""Parts of values that several slips ask for: constants, wrappers, percentages, ends of ranges."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import split_column_name_into_words
from ci_bot.worker.sql import ModelQuery, enter_expression

HUNDRED = Decimal(100)
# Words of columns that hold a percentage.
PERCENT_WORDS = frozenset({"pct", "percent", "percentage"})
# What may be around a value and leaves it what it is.
VALUE_WRAPPERS = (exp.Paren, exp.Cast, exp.Coalesce, exp.Round)
# The same, with what leaves out a part that is less than one.
ROUNDING_WRAPPERS = (*VALUE_WRAPPERS, exp.Floor, exp.Ceil)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def read_constant_number_or_day(node: exp.Expr | None) -> Decimal | str | None:
    """Reads a number, or a day as text; None for anything else."""
    if isinstance(node, exp.Cast | exp.TryCast | exp.Paren):
        return read_constant_number_or_day(node.this)
    if isinstance(node, exp.Neg):
        number = read_constant_number_or_day(node.this)
        return -number if isinstance(number, Decimal) else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name if _DAY.match(node.name) else None
    return Decimal(node.name)


def list_words_of_columns(node: exp.Expr) -> frozenset[str]:
    """Lists the words of the names of all columns in a value."""
    return frozenset(
        word
        for column in node.find_all(exp.Column)
        for word in split_column_name_into_words(column.name)
    )


def list_written_constants(query: ModelQuery) -> frozenset[str] | None:
    """Lists the constants of a model's file; None if it cannot be read.

    Any other constant of the rendered query is of a variable, for example in a model of each site.
    """
    if query.written is None:
        return None
    return frozenset(one.name for one in query.written.find_all(exp.Literal))


def drop_hundred(node: exp.Expr) -> exp.Expr:
    """Returns what is rounded, cast or multiplied by 100."""
    value = enter_expression(node, *VALUE_WRAPPERS)
    if isinstance(value, exp.Mul):
        for side, other in ((value.this, value.expression), (value.expression, value.this)):
            if read_constant_number_or_day(side) == HUNDRED:
                return drop_hundred(other)
    return value


def find_end_of_range(condition: exp.Expr) -> exp.Expr | None:
    """Finds the value that a condition allows at most; None if it is no such condition."""
    end: exp.Expr | None = None
    if isinstance(condition, exp.Between):
        _, _, end = condition.iter_expressions()
    elif isinstance(condition, exp.LT | exp.LTE):
        end = condition.expression
    elif isinstance(condition, exp.GT | exp.GTE):
        end = condition.this
    return end
