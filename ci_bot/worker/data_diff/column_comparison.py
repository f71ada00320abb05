"""The columns of a comparison: how both sides are paired, and how two values are compared.

Every function on values takes and returns Spark SQL text: the cast, the form in the shuffle, the
expression. Numbers with a fraction agree if they round to the same DECIMAL(38, decimals), as in
SQLMesh's `RowDiffMixin._normalize_decimal_value`; numbers in structs, arrays and maps are compared
exactly, as in SQLMesh.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ci_bot.protocol.apply_report import Profile, SchemaDifference
from ci_bot.worker.data_diff.spec import DiffedSparkType, parse_diffed_spark_type
from ci_bot.worker.runtime import quote_spark_identifier

# Whole numbers, and the digits that Spark gives each as a decimal.
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


_FLOATING = frozenset({"float", "double"})

_TEXT = frozenset({"string", "char", "varchar"})

_MOMENTS = frozenset({"date", "timestamp", "timestamp_ntz"})

_NESTED = frozenset({"struct", "array", "map"})

_PLAIN = frozenset({*_WHOLE, *_FLOATING, *_TEXT, *_MOMENTS, "decimal", "boolean", "binary", "void"})

_MAX_DIGITS = 38
# A different order of summation changes a DOUBLE by much less.
_NOISE = "1e-9D"


def is_comparable_in_diff(kind: DiffedSparkType) -> bool:
    """Whether Spark can compare two values of the type (it cannot for `interval`)."""
    return all(
        part.name in _PLAIN or part.name in _NESTED or part.name.startswith("interval ")
        for part in kind.walk_types()
    )


def is_usable_as_diff_key(kind: DiffedSparkType) -> bool:
    """Whether rows can be joined on the type. Spark cannot join on a map."""
    return is_comparable_in_diff(kind) and all(part.name != "map" for part in kind.walk_types())


def align_types_of_diff(prod: DiffedSparkType, pr: DiffedSparkType) -> DiffedSparkType | None:
    """Returns the type for comparing both sides; None if a comparison would prove nothing.

    A changed type is compared only if each value has exactly one form in the wider type: among
    whole numbers, among numbers, among texts, among dates and timestamps, and a whole number or a
    date against its text. All other pairs depend on a format that we would have to guess.
    """
    if prod == pr:
        return prod if is_comparable_in_diff(prod) else None
    names = {prod.name, pr.name}
    if names <= _WHOLE.keys():
        return max(prod, pr, key=lambda kind: _WHOLE[kind.name])
    if names <= {*_WHOLE, *_FLOATING, "decimal"}:
        return (
            DiffedSparkType("double")
            if names & _FLOATING
            else _find_wider_decimal_of_diff(prod, pr)
        )
    if names <= _MOMENTS:
        # Midnight of a date and the wall clock of a timestamp, both in the session's time zone.
        return DiffedSparkType("timestamp_ntz" if "timestamp_ntz" in names else "timestamp")
    texts, others = names & _TEXT, names - _TEXT
    if texts and all(name in _WHOLE or name == "date" for name in others):
        return DiffedSparkType("string")
    return None


def _find_wider_decimal_of_diff(
    prod: DiffedSparkType, pr: DiffedSparkType
) -> DiffedSparkType | None:
    """Returns the decimal that holds both; None if Spark has none so wide."""
    sizes = [
        kind.sizes if kind.name == "decimal" else (_WHOLE[kind.name], 0) for kind in (prod, pr)
    ]
    scale = max(scale for _, scale in sizes)
    digits = max(precision - scale for precision, scale in sizes) + scale
    return DiffedSparkType("decimal", (digits, scale)) if digits <= _MAX_DIGITS else None


def cast_value_for_diff(value: str, held: DiffedSparkType, wanted: DiffedSparkType) -> str:
    """Renders `value` in the type in which it is compared.

    The casts that `align_types_of_diff` allows lose nothing.
    """
    if held == wanted or (held.name in _TEXT and wanted.name in _TEXT):
        return value
    return f"CAST({value} AS {wanted.ddl_text})"


def carry_value_of_diff(value: str, kind: DiffedSparkType) -> str:
    """Renders the form of a value that goes through the shuffle and is compared there.

    Text and binary become their 64-bit hash, because wide text makes a diff slow. Two different
    values have the same hash once in 2^64, and NULL has a hash of its own. Each map becomes a
    sorted list of its entries, which Spark can compare.
    """
    if is_hashed_in_diff(kind):
        return f"XXHASH64({value})"
    return canonicalize_diff_value(value, kind)


def canonicalize_diff_value(value: str, kind: DiffedSparkType, depth: int = 0) -> str:
    """Renders `value` with each map in it replaced by a sorted list of its entries."""
    if all(part.name != "map" for part in kind.walk_types()):
        return value
    item = f"x{depth}"
    if kind.name == "map":
        # A key contains no map, because Spark does not allow it.
        _, (_, held) = kind.children
        entry = (
            f"NAMED_STRUCT('k', {item}.key, 'v', "
            f"{canonicalize_diff_value(f'{item}.value', held, depth + 1)})"
        )
        return f"SORT_ARRAY(TRANSFORM(MAP_ENTRIES({value}), {item} -> {entry}))"
    if kind.name == "array":
        ((_, element),) = kind.children
        return f"TRANSFORM({value}, {item} -> {canonicalize_diff_value(item, element, depth + 1)})"
    fields = ", ".join(
        f"'f{number}', "
        f"{canonicalize_diff_value(f'{value}.{quote_spark_identifier(name)}', field, depth)}"
        for number, (name, field) in enumerate(kind.children)
    )
    return f"IF({value} IS NULL, NULL, NAMED_STRUCT({fields}))"


def render_diff_values_agree(prod: str, pr: str, kind: DiffedSparkType, decimals: int) -> str:
    """Renders whether two carried values agree; NULL agrees only with NULL.

    The exact comparison comes first, so the slow rounding runs only for values that differ. It may
    be NULL if that cast overflows, which a filter reads as false. TRY_CAST, because a plain cast
    fails the query in ANSI mode.
    """
    if is_hashed_in_diff(kind):
        return f"{prod} = {pr}"
    exactly = f"{prod} <=> {pr}"
    if is_rounded_in_diff(kind, decimals):
        rounded = f"DECIMAL({_MAX_DIGITS}, {decimals})"
        return f"({exactly} OR TRY_CAST({prod} AS {rounded}) = TRY_CAST({pr} AS {rounded}))"
    return exactly


def render_diff_values_are_same(prod: str, pr: str, kind: DiffedSparkType) -> str:
    """Renders whether two carried values are the same, without rounding.

    Floating-point numbers may differ by the noise of another order of summation. It uses `<` and
    not `<=`, so that infinity is not within the noise of any number.
    """
    if kind.name in _FLOATING:
        noise = f"{_NOISE} * GREATEST(ABS({prod}), ABS({pr}))"
        return f"({prod} <=> {pr} OR ABS({prod} - {pr}) < {noise})"
    return f"{prod} = {pr}" if is_hashed_in_diff(kind) else f"{prod} <=> {pr}"


def is_rounded_in_diff(kind: DiffedSparkType, decimals: int) -> bool:
    """Whether `render_diff_values_agree` rounds values of this type.

    Then it accepts some values that `render_diff_values_are_same` does not.
    """
    return kind.name in _FLOATING or (kind.name == "decimal" and kind.sizes[1] > decimals)


def is_hashed_in_diff(kind: DiffedSparkType) -> bool:
    """Whether only a hash of a value goes through the shuffle."""
    return kind.name in _TEXT or kind.name == "binary"


# How the values of a column are distributed: the aggregates, and reading their answer.
#
# They count a side's own rows, in the query that compares the sides. Text and binary have only
# nulls and distinct values, from their hash, and no smallest value: it may be somebody's name.


_INTEGER_TYPES = frozenset({"tinyint", "smallint", "int", "bigint"})

_FRACTIONS = frozenset({"float", "double", "decimal"})

_TIMESTAMP_TYPES = frozenset({"timestamp", "timestamp_ntz"})

_TYPES_WITHOUT_DISTINCT_COUNT = frozenset({"struct", "array", "map", "void"})

_NO_TEXT = "XXHASH64(CAST(NULL AS STRING))"


def list_diff_measures(kind: DiffedSparkType, *, distinct: bool) -> tuple[str, ...]:
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


def list_diff_measure_items(
    value: str, kind: DiffedSparkType, rows: str, *, distinct: bool
) -> list[str]:
    """Renders the select items of these measures.

    Args:
        value: A carried value (`carry_value_of_diff`), as SQL.
        rows: Which rows count, as SQL.
    """
    absent = f"{value} = {_NO_TEXT}" if is_hashed_in_diff(kind) else f"{value} IS NULL"
    known = f"NULLIF({value}, {_NO_TEXT})" if is_hashed_in_diff(kind) else value
    # As DOUBLE, because the sum of decimals overflows, which is a failure in ANSI mode.
    number = f"DOUBLE(INT({value}))" if kind.name == "boolean" else f"DOUBLE({value})"
    found = {
        "nulls": f"COUNT(*) FILTER (WHERE {rows} AND {absent})",
        "distinct": f"APPROX_COUNT_DISTINCT({known}) FILTER (WHERE {rows})",
        "mean": f"AVG({number}) FILTER (WHERE {rows})",
        "min": f"STRING(MIN({value}) FILTER (WHERE {rows}))",
        "max": f"STRING(MAX({value}) FILTER (WHERE {rows}))",
    }
    return [found[measure] for measure in list_diff_measures(kind, distinct=distinct)]


def read_diff_profile(kind: DiffedSparkType, answer: Sequence[Any], *, distinct: bool) -> Profile:
    """Reads Spark's answer to `list_diff_measure_items`."""
    # Spark chooses the type of each measure; `Profile` validates them.
    found: dict[str, Any] = dict(
        zip(list_diff_measures(kind, distinct=distinct), answer, strict=True)
    )
    mean = found.get("mean")
    if mean is not None and not math.isfinite(mean):
        found["mean"] = None  # NaN or infinity among the values
    return Profile(**found)


Columns = Sequence[tuple[str, str]]

Value = TypeVar("Value")

_NO_KEY = "The model has no grain and no unique key of columns, so its rows cannot be paired."


@dataclass(frozen=True)
class DiffColumnPair:
    """A column of both sides; `kind` is the type for comparing it, or None if Spark cannot."""

    prod: str
    pr: str
    prod_type: DiffedSparkType
    pr_type: DiffedSparkType
    kind: DiffedSparkType | None

    @property
    def shown_name(self) -> str:
        """The name that the report shows: the PR's, because that is what is under review."""
        return self.pr


@dataclass(frozen=True)
class DiffColumnLayout:
    """The columns of a comparison, or a sentence about why there can be none."""

    columns: list[DiffColumnPair] = field(default_factory=list)
    keys: list[DiffColumnPair] = field(default_factory=list)
    schema: SchemaDifference = field(default_factory=SchemaDifference)
    impossible: str | None = None

    @property
    def value_columns(self) -> list[DiffColumnPair]:
        """The columns outside the key, in prod's order."""
        return [column for column in self.columns if column not in self.keys]

    @property
    def unknown_columns(self) -> list[DiffColumnPair]:
        """Columns that have one type on both sides, but a type that Spark cannot compare."""
        return [c for c in self.value_columns if c.kind is None and c.prod_type == c.pr_type]

    def find_column(self, name: str) -> DiffColumnPair | None:
        """Finds the pair of a model's column name; None if there is none."""
        return _pick_diff_column_by_name(name, {column.pr: column for column in self.columns})


def lay_out_diff_columns(
    prod: Columns, pr: Columns, keys: Sequence[str], skip: Iterable[str] = ()
) -> DiffColumnLayout:
    """Pairs the columns of both sides and finds the keys among them."""
    pairs, schema = _pair_diff_columns(prod, pr)
    layout = DiffColumnLayout(pairs, [], schema)
    if not keys:
        return DiffColumnLayout(pairs, [], schema, _NO_KEY)
    chosen: dict[DiffColumnPair, None] = {}
    for key in keys:
        found = layout.find_column(key)
        if found is None:
            held = (
                _pick_diff_column_by_name(key, dict(prod)) is not None,
                _pick_diff_column_by_name(key, dict(pr)) is not None,
            )
            return DiffColumnLayout(pairs, [], schema, _describe_missing_diff_key(key, *held))
        if found.kind is None or not is_usable_as_diff_key(found.kind):
            return DiffColumnLayout(pairs, [], schema, _describe_bad_diff_key(found))
        chosen[found] = None
    skipped = {column for name in skip if (column := layout.find_column(name))}
    kept = [column for column in pairs if column in chosen or column not in skipped]
    return DiffColumnLayout(kept, list(chosen), schema)


def _pair_diff_columns(prod: Columns, pr: Columns) -> tuple[list[DiffColumnPair], SchemaDifference]:
    theirs = dict(pr)
    taken: dict[str, str] = {}
    for name, _ in prod:
        found = _pick_diff_column_by_name(
            name, {other: other for other in theirs if other not in taken.values()}
        )
        if found is not None:
            taken[name] = found
    pairs = []
    for name, ddl in prod:
        if name in taken:
            old, new = parse_diffed_spark_type(ddl), parse_diffed_spark_type(theirs[taken[name]])
            pairs.append(DiffColumnPair(name, taken[name], old, new, align_types_of_diff(old, new)))
    return pairs, SchemaDifference(
        added=[name for name, _ in pr if name not in taken.values()],
        removed=[name for name, _ in prod if name not in taken],
        changed=[column.shown_name for column in pairs if column.prod_type != column.pr_type],
    )


def _pick_diff_column_by_name(name: str, named: dict[str, Value]) -> Value | None:
    """Returns the entry of that name, else the only one that differs only in case.

    Spark ignores the case of names unless `spark.sql.caseSensitive` is set.
    """
    if name in named:
        return named[name]
    alike = [value for other, value in named.items() if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _describe_missing_diff_key(key: str, in_prod: bool, in_pr: bool) -> str:
    if in_prod:
        return f"The key column {key} is not in the PR environment's table."
    if in_pr:
        return f"The key column {key} is not in prod's table."
    return f"The key column {key} is in neither table."


def _describe_bad_diff_key(key: DiffColumnPair) -> str:
    if key.prod_type != key.pr_type:
        change = f"{key.prod_type.ddl_text} to {key.pr_type.ddl_text}"
        return f"The key column {key.shown_name} changed its type from {change}."
    return f"Spark cannot join on the key column {key.shown_name}, a {key.prod_type.ddl_text}."
