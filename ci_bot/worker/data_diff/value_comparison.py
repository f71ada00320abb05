"""How two values of a column are compared: the cast, the form in the shuffle, the expression.

Every function takes and gives Spark SQL text. Numbers with a fraction agree when they round to the
same DECIMAL(38, decimals), as in SQLMesh's `RowDiffMixin._normalize_decimal_value`; numbers within
structs, arrays and maps are compared exactly, as SQLMesh does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ci_bot.protocol.apply_report import Profile
from ci_bot.worker.data_diff.spec import SparkType
from ci_bot.worker.runtime import quote_identifier

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}

"""Whole numbers, and the digits that Spark gives each as a decimal."""

_FLOATING = frozenset({"float", "double"})

_TEXT = frozenset({"string", "char", "varchar"})

_MOMENTS = frozenset({"date", "timestamp", "timestamp_ntz"})

_NESTED = frozenset({"struct", "array", "map"})

_PLAIN = frozenset({*_WHOLE, *_FLOATING, *_TEXT, *_MOMENTS, "decimal", "boolean", "binary", "void"})

_MAX_DIGITS = 38
# A different order of summation changes a DOUBLE by far less.
_NOISE = "1e-9D"


def is_comparable(kind: SparkType) -> bool:
    """Whether Spark can compare two values of the type (it cannot for `interval`)."""
    return all(
        part.name in _PLAIN or part.name in _NESTED or part.name.startswith("interval ")
        for part in kind.walk_types()
    )


def is_usable_as_key(kind: SparkType) -> bool:
    """Whether rows can be joined on the type. Spark cannot join on a map."""
    return is_comparable(kind) and all(part.name != "map" for part in kind.walk_types())


def align_types(prod: SparkType, pr: SparkType) -> SparkType | None:
    """Returns the type in which both sides are compared; None if a comparison would prove nothing.

    A changed type is compared only if each value has exactly one form in the wider type: among
    whole numbers, among numbers, among texts, among dates and timestamps, and a whole number or a
    date against its text. All other pairs depend on a format that we would have to guess.
    """
    if prod == pr:
        return prod if is_comparable(prod) else None
    names = {prod.name, pr.name}
    if names <= _WHOLE.keys():
        return max(prod, pr, key=lambda kind: _WHOLE[kind.name])
    if names <= {*_WHOLE, *_FLOATING, "decimal"}:
        return SparkType("double") if names & _FLOATING else _wider_decimal(prod, pr)
    if names <= _MOMENTS:
        # Midnight of a date and the wall clock of a timestamp, both in the session's time zone.
        return SparkType("timestamp_ntz" if "timestamp_ntz" in names else "timestamp")
    texts, others = names & _TEXT, names - _TEXT
    if texts and all(name in _WHOLE or name == "date" for name in others):
        return SparkType("string")
    return None


def _wider_decimal(prod: SparkType, pr: SparkType) -> SparkType | None:
    """Returns the decimal that holds both; None if Spark has none so wide."""
    sizes = [
        kind.sizes if kind.name == "decimal" else (_WHOLE[kind.name], 0) for kind in (prod, pr)
    ]
    scale = max(scale for _, scale in sizes)
    digits = max(precision - scale for precision, scale in sizes) + scale
    return SparkType("decimal", (digits, scale)) if digits <= _MAX_DIGITS else None


def cast_value(value: str, held: SparkType, wanted: SparkType) -> str:
    """Renders `value` in the type in which it is compared. The casts of `align_types` lose
    nothing.
    """
    if held == wanted or (held.name in _TEXT and wanted.name in _TEXT):
        return value
    return f"CAST({value} AS {wanted.ddl_text})"


def carry_value(value: str, kind: SparkType) -> str:
    """Renders the form of a value that goes through the shuffle and is compared there.

    Text and binary become their 64-bit hash, because wide text makes a diff slow; two different
    values share a hash once in 2^64, and NULL has its own. Each map becomes a sorted list of its
    entries, which Spark can compare.
    """
    if is_hashed(kind):
        return f"XXHASH64({value})"
    return canonical_value(value, kind)


def canonical_value(value: str, kind: SparkType, depth: int = 0) -> str:
    """Renders `value` with each map in it replaced by a sorted list of its entries."""
    if all(part.name != "map" for part in kind.walk_types()):
        return value
    item = f"x{depth}"
    if kind.name == "map":
        # A key holds no map: Spark does not allow it.
        _, (_, held) = kind.children
        entry = (
            f"NAMED_STRUCT('k', {item}.key, 'v', "
            f"{canonical_value(f'{item}.value', held, depth + 1)})"
        )
        return f"SORT_ARRAY(TRANSFORM(MAP_ENTRIES({value}), {item} -> {entry}))"
    if kind.name == "array":
        ((_, element),) = kind.children
        return f"TRANSFORM({value}, {item} -> {canonical_value(item, element, depth + 1)})"
    fields = ", ".join(
        f"'f{number}', {canonical_value(f'{value}.{quote_identifier(name)}', field, depth)}"
        for number, (name, field) in enumerate(kind.children)
    )
    return f"IF({value} IS NULL, NULL, NAMED_STRUCT({fields}))"


def values_agree(prod: str, pr: str, kind: SparkType, decimals: int) -> str:
    """Renders whether two carried values agree; NULL agrees with NULL only.

    The exact comparison comes first, so the slow rounding runs only for values that differ. It may
    be NULL if that cast overflows, which a filter reads as false. TRY_CAST, because a plain cast
    fails the query in ANSI mode.
    """
    if is_hashed(kind):
        return f"{prod} = {pr}"
    exactly = f"{prod} <=> {pr}"
    if is_rounded(kind, decimals):
        rounded = f"DECIMAL({_MAX_DIGITS}, {decimals})"
        return f"({exactly} OR TRY_CAST({prod} AS {rounded}) = TRY_CAST({pr} AS {rounded}))"
    return exactly


def values_are_same(prod: str, pr: str, kind: SparkType) -> str:
    """Renders whether two carried values are the same: as `values_agree`, without the rounding.

    Floating numbers may differ by the noise of another order of summation. `<` and not `<=`, so
    that infinity is not within the noise of anything.
    """
    if kind.name in _FLOATING:
        noise = f"{_NOISE} * GREATEST(ABS({prod}), ABS({pr}))"
        return f"({prod} <=> {pr} OR ABS({prod} - {pr}) < {noise})"
    return f"{prod} = {pr}" if is_hashed(kind) else f"{prod} <=> {pr}"


def is_rounded(kind: SparkType, decimals: int) -> bool:
    """Whether `values_agree` accepts values that `values_are_same` does not."""
    return kind.name in _FLOATING or (kind.name == "decimal" and kind.sizes[1] > decimals)


def is_hashed(kind: SparkType) -> bool:
    """Whether only a hash of a value goes through the shuffle."""
    return kind.name in _TEXT or kind.name == "binary"


# How the values of a column are distributed: the aggregates, and reading their answer.
#
# They count a side's own rows, in the query that compares the sides. Text and binary have nulls and
# distinct values only, from their hash, and no smallest value: it may be somebody's name.


_INTEGER_TYPES = frozenset({"tinyint", "smallint", "int", "bigint"})

_FRACTIONS = frozenset({"float", "double", "decimal"})

_TIMESTAMP_TYPES = frozenset({"timestamp", "timestamp_ntz"})

_TYPES_WITHOUT_DISTINCT_COUNT = frozenset({"struct", "array", "map", "void"})

_NO_TEXT = "XXHASH64(CAST(NULL AS STRING))"


def list_measures(kind: SparkType, *, distinct: bool) -> tuple[str, ...]:
    """Lists the fields of `Profile` that a column of this type has.

    Args:
        distinct: Whether distinct values are counted, for types whose values can be a code or a
            group.
    """
    if kind.name in _INTEGER_TYPES:
        found: tuple[str, ...] = ("nulls", "distinct", "mean", "min", "max")
    elif kind.name in _FRACTIONS:
        found = ("nulls", "mean", "min", "max")
    elif kind.name in _TIMESTAMP_TYPES:
        found = ("nulls", "min", "max")
    elif kind.name == "date":
        found = ("nulls", "distinct", "min", "max")
    elif kind.name == "boolean":
        found = ("nulls", "mean")
    else:
        found = ("nulls",) if kind.name in _TYPES_WITHOUT_DISTINCT_COUNT else ("nulls", "distinct")
    return found if distinct else tuple(one for one in found if one != "distinct")


def list_measure_items(value: str, kind: SparkType, rows: str, *, distinct: bool) -> list[str]:
    """Renders the select items of these measures.

    Args:
        value: A carried value (`carry_value`), as SQL.
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
    return [found[measure] for measure in list_measures(kind, distinct=distinct)]


def read_profile(kind: SparkType, answer: Sequence[Any], *, distinct: bool) -> Profile:
    """Reads Spark's answer to `list_measure_items`."""
    # Spark chooses the type of each measure; `Profile` validates them.
    found: dict[str, Any] = dict(zip(list_measures(kind, distinct=distinct), answer, strict=True))
    mean = found.get("mean")
    if mean is not None and not math.isfinite(mean):
        found["mean"] = None  # NaN or infinity among the values
    return Profile(**found)
