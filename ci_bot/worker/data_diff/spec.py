"""The subject of a diff: Spark's column types, tables, keys, time window; and the port to Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from ci_bot.protocol.apply_report import DiffWindow

_ATOM = re.compile(
    r"\s*([a-z][a-z0-9_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*(?=[,>]|$)", re.IGNORECASE
)

_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`:<>,]+?))\s*:\s*")

_NESTED = re.compile(r"\s*(struct|array|map)\s*<", re.IGNORECASE)

_COMMA = re.compile(r"\s*,\s*")

_CLOSE = re.compile(r"\s*>\s*")

_PARTS = {"array": 1, "map": 2}

_SYNONYMS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}


@dataclass(frozen=True)
class DiffedSparkType:
    """A column type; `name` is in lower case, or the whole text if the type is unknown.

    `sizes` are the numbers in brackets. `children` are a struct's fields with their names, or,
    without names, an array's element or a map's key and value.
    """

    name: str
    sizes: tuple[int, ...] = ()
    children: tuple[tuple[str, DiffedSparkType], ...] = ()

    def walk_types(self) -> Iterator[DiffedSparkType]:
        """Yields this type and every type within."""
        yield self
        for _, child in self.children:
            yield from child.walk_types()

    @property
    def ddl_text(self) -> str:
        """The type, written as Spark reads it."""
        if self.name == "struct":
            fields = ",".join(f"`{n.replace('`', '``')}`:{t.ddl_text}" for n, t in self.children)
            return f"struct<{fields}>"
        if self.children:
            return f"{self.name}<{','.join(child.ddl_text for _, child in self.children)}>"
        return self.name + (f"({','.join(map(str, self.sizes))})" if self.sizes else "")


def parse_diffed_spark_type(ddl: str) -> DiffedSparkType:
    """Parses a type; an unreadable text becomes a type of that name, equal only to itself."""
    try:
        found, end = _parse_diffed_type(ddl, 0)
    except ValueError:
        return DiffedSparkType(ddl)
    return DiffedSparkType(ddl) if ddl[end:].strip() else found


def _parse_diffed_type(text: str, at: int) -> tuple[DiffedSparkType, int]:
    nested = _NESTED.match(text, at)
    if nested:
        return _parse_nested_diffed_type(nested[1].lower(), text, nested.end())
    atom = _ATOM.match(text, at)
    if not atom:
        raise ValueError(f"no type at {at}")
    name = " ".join(atom[1].lower().split())
    name = _SYNONYMS.get(name, name)
    sizes = tuple(int(size) for size in (atom[2], atom[3]) if size is not None)
    if name == "decimal":
        # Spark's defaults: DECIMAL is DECIMAL(10, 0), and DECIMAL(5) is DECIMAL(5, 0).
        sizes = (*(sizes or (10,)), 0)[:2]
    return DiffedSparkType(name, sizes), atom.end()


def _parse_nested_diffed_type(kind: str, text: str, at: int) -> tuple[DiffedSparkType, int]:
    children: list[tuple[str, DiffedSparkType]] = []
    comma: re.Match[str] | None = None
    while comma or not _CLOSE.match(text, at):
        name = ""
        if kind == "struct":
            field = _FIELD.match(text, at)
            if not field:
                raise ValueError(f"no field at {at}")
            name = field[2] if field[1] is None else field[1].replace("``", "`")
            at = field.end()
        child, at = _parse_diffed_type(text, at)
        children.append((name, child))
        comma = _COMMA.match(text, at)
        if not comma:
            break
        at = comma.end()
    close = _CLOSE.match(text, at)
    if not close or len(children) != _PARTS.get(kind, len(children)):
        raise ValueError(f"{kind} is not complete at {at}")
    return DiffedSparkType(kind, (), tuple(children)), close.end()


# The tables to compare, and the port that runs the queries.


# Milliseconds since the epoch, start inclusive and end exclusive, as SQLMesh keeps intervals.
Interval = tuple[int, int]


# Up to this size a diff is faster without generated code (2 slots, 8 columns: 0.35 s instead of
# 0.62 s for 10,000 rows on each side, but 0.88 s instead of 0.74 s for 50,000).
FEW_ROWS = 20_000

FEW_BYTES = 2**20

# DECIMAL(38, decimals) must leave room for a digit before the point.
MAX_DECIMALS = 37


@dataclass(frozen=True)
class DiffedTable:
    """A table or view that Spark has checked.

    Attributes:
        name: Its name in queries, so that Spark does not analyse it again. For a view on views that
            is most of a query's time.
        columns: Names and types, in order. Types are written as in Spark's DDL, with the field
            names of structs in backticks.
        size: Returns the expected bytes to read; None if not known.
    """

    name: str
    columns: Sequence[tuple[str, str]]
    size: Callable[[], int | None]


class DiffPort(Protocol):
    """The port through which a diff queries Spark; each method raises `DiffQueryError`."""

    def open_table(self, table: str, *, few: bool = False) -> AbstractContextManager[DiffedTable]:
        """Analyses a table; the result is valid until the end of the block.

        Args:
            few: As for the query that will read it.
        """
        ...

    def query_rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows.

        Args:
            few: Whether it reads so little that to prepare it takes longer than to run it.
        """
        ...


class DiffQueryError(Exception):
    """The error if Spark could not answer; its text may be published, with no value of any row."""


@dataclass(frozen=True)
class TimeWindow:
    """The intervals of an incremental model that each side has.

    Attributes:
        column: The time column's name.
        prod: The intervals that prod has filled, in any order.
        pr: The intervals that the PR environment has filled.
        format: The model's time format, for time columns that are text or whole numbers.
    """

    column: str
    prod: Sequence[Interval]
    pr: Sequence[Interval]
    format: str = "%Y-%m-%d"


@dataclass(frozen=True)
class DiffSpec:
    """One model's comparison.

    Attributes:
        model: The name that the report shows.
        prod: Prod's table or view as Spark SQL names it, with quotes if a part needs them.
        pr: The PR environment's table or view, in the same form.
        keys: The columns of the model's key, unquoted. If empty, the model cannot be compared.
        window: For models incremental by time; None compares the whole tables.
        decimals: Fractional digits to which numbers must agree; SQLMesh's default.
        skip_columns: Columns that are not compared, unquoted.
        rows_per_key: A key that is on more rows of a side is counted, but its columns are not
            compared: n copies and m copies are n * m pairs, billions if the key is wrong.
        distinct: Whether distinct values are counted in columns that differ. The query cannot know
            which those are, so it counts in all columns, which nearly doubles the time.
        few: Whether the PR environment's table is known to have no more than `FEW_ROWS` rows.
    """

    model: str
    prod: str
    pr: str
    keys: Sequence[str]
    window: TimeWindow | None = None
    decimals: int = 3
    skip_columns: frozenset[str] = frozenset()
    rows_per_key: int = 32
    distinct: bool = True
    few: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.decimals <= MAX_DECIMALS:
            raise ValueError(f"decimals must be between 0 and {MAX_DECIMALS}, not {self.decimals}")
        if self.rows_per_key < 1:
            raise ValueError(f"rows_per_key must be at least 1, not {self.rows_per_key}")


# The time range that both sides have, and the condition that selects it.


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_DAY = 86_400_000


def merge_diff_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Sorts intervals, joins those that touch, and drops empty ones."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def intersect_diff_intervals(prod: Iterable[Interval], pr: Iterable[Interval]) -> list[Interval]:
    """Returns the intervals that both sides have. A gap on either side is a gap here."""
    common = [
        (max(start, other_start), min(end, other_end))
        for start, end in merge_diff_intervals(prod)
        for other_start, other_end in merge_diff_intervals(pr)
    ]
    return merge_diff_intervals(common)


def find_covering_diff_window(column: str, intervals: Sequence[Interval]) -> DiffWindow | None:
    """Returns the span from the first start to the last end, for the report; None if none."""
    known = merge_diff_intervals(intervals)
    if not known:
        return None
    return DiffWindow(
        column=column,
        start=_convert_diff_bound_to_iso(known[0][0]),
        end=_convert_diff_bound_to_iso(known[-1][1]),
    )


def render_diff_interval_condition(
    column: str, kind: DiffedSparkType, intervals: Sequence[Interval], form: str
) -> str | None:
    """Renders a condition on `column` (SQL text) that is true within the intervals.

    Args:
        kind: The column's type. Timestamps are compared in UTC, which is SQLMesh's clock.
        form: The model's time format (as for `strftime`), for text and whole numbers.

    Returns:
        The condition; None if a column of this type has no time, or if there is no interval.
    """
    ranges = []
    for start, end in merge_diff_intervals(intervals):
        first = _render_diff_moment_literal(start, kind, form)
        last = _render_diff_moment_literal(end, kind, form)
        if first is None or last is None:
            return None
        ranges.append(f"({column} >= {first} AND {column} < {last})")
    return " OR ".join(ranges) if ranges else None


def _render_diff_moment_literal(moment: int, kind: DiffedSparkType, form: str) -> str | None:
    when = _convert_diff_bound_to_datetime(moment)
    if kind.name == "date":
        # A date means its midnight, so the limit is the first date at or after the moment.
        return f"DATE '{_convert_diff_bound_to_datetime(-(-moment // _DAY) * _DAY):%Y-%m-%d}'"
    if kind.name == "timestamp":
        return f"TIMESTAMP '{when:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if kind.name == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{when:%Y-%m-%d %H:%M:%S.%f}'"
    text = when.strftime(form)
    if kind.name in ("string", "varchar", "char"):
        return render_diff_text_literal(text)
    if kind.name in ("int", "bigint") and text.isascii() and text.isdigit():
        return str(int(text))
    return None


def render_diff_text_literal(text: str) -> str:
    """Renders a text literal of Spark SQL, with quotes and backslashes escaped."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _convert_diff_bound_to_datetime(milliseconds: int) -> datetime:
    # timedelta, because datetime.fromtimestamp refuses years before 1970 on some systems.
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _convert_diff_bound_to_iso(milliseconds: int) -> str:
    when = _convert_diff_bound_to_datetime(milliseconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S") + (f".{when:%f}Z" if when.microsecond else "Z")
