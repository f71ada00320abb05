"""How the values of a column are spread: which aggregates say it, and how their answer is read.

They are of a side's own rows, within the query that compares the sides. Only a hash of text and
binary travels, so of these there are nulls and distinct values, and no smallest one: a value of a
text column is somebody's name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ci_bot.contracts.documents.apply import Profile
from ci_bot.worker.apply.diff.comparison import is_hashed
from ci_bot.worker.apply.diff.spark_types import SparkType

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_FRACTIONS = frozenset({"float", "double", "decimal"})
_MOMENTS = frozenset({"timestamp", "timestamp_ntz"})
_NESTED = frozenset({"struct", "array", "map", "void"})
_NO_TEXT = "XXHASH64(CAST(NULL AS STRING))"


def measures(kind: SparkType, *, distinct: bool) -> tuple[str, ...]:
    """The fields of `Profile` that a column of this type has.

    Args:
        distinct: Whether distinct values are counted, where a value can be a code or a group.
    """
    if kind.name in _WHOLE:
        found: tuple[str, ...] = ("nulls", "distinct", "mean", "min", "max")
    elif kind.name in _FRACTIONS:
        found = ("nulls", "mean", "min", "max")
    elif kind.name in _MOMENTS:
        found = ("nulls", "min", "max")
    elif kind.name == "date":
        found = ("nulls", "distinct", "min", "max")
    elif kind.name == "boolean":
        found = ("nulls", "mean")
    else:
        found = ("nulls",) if kind.name in _NESTED else ("nulls", "distinct")
    return found if distinct else tuple(one for one in found if one != "distinct")


def items(value: str, kind: SparkType, rows: str, *, distinct: bool) -> list[str]:
    """The select items of these measures.

    Args:
        value: A carried value (`comparison.carried`), as SQL.
        rows: Which rows count, as SQL.
    """
    absent = f"{value} = {_NO_TEXT}" if is_hashed(kind) else f"{value} IS NULL"
    known = f"NULLIF({value}, {_NO_TEXT})" if is_hashed(kind) else value
    # As DOUBLE, because the sum of decimals overflows, which is a failure in ANSI mode.
    number = f"DOUBLE(INT({value}))" if kind.name == "boolean" else f"DOUBLE({value})"
    found = {
        "nulls": f"COUNT(*) FILTER (WHERE {rows} AND {absent})",
        "distinct": f"APPROX_COUNT_DISTINCT({known}) FILTER (WHERE {rows})",
        "mean": f"AVG({number}) FILTER (WHERE {rows})",
        "min": f"STRING(MIN({value}) FILTER (WHERE {rows}))",
        "max": f"STRING(MAX({value}) FILTER (WHERE {rows}))",
    }
    return [found[measure] for measure in measures(kind, distinct=distinct)]


def read(kind: SparkType, answer: Sequence[Any], *, distinct: bool) -> Profile:
    """What Spark has answered to `items`."""
    found: dict[str, Any] = dict(zip(measures(kind, distinct=distinct), answer, strict=True))
    mean = found.get("mean")
    if mean is not None and not math.isfinite(mean):
        found["mean"] = None  # NaN or infinity among the values
    return Profile(**found)
