"""What to compare, and the port that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

Interval = tuple[int, int]
"""Milliseconds since the epoch, start inclusive and end exclusive, as SQLMesh keeps intervals."""

# Where generating code for a diff takes as long as running it without (2 slots, 8 columns: 0.35 s
# instead of 0.62 s for 10,000 rows on each side, 0.88 s instead of 0.74 s for 50,000).
FEW_ROWS = 20_000
FEW_BYTES = 2**20

# DECIMAL(38, decimals) must leave room for a digit before the point.
MAX_DECIMALS = 37


@dataclass(frozen=True)
class SeenTable:
    """A table or view that Spark has looked at.

    Args:
        name: How queries name it, so that nothing is looked up once more. With a view upon views
            that is most of a query's time.
        columns: Names and types, in order. Types are written as in Spark's DDL, with the field
            names of structs in backticks.
        size: The bytes that are expected to be read; None where nobody can say.
    """

    name: str
    columns: Sequence[tuple[str, str]]
    size: Callable[[], int | None]


class DiffPort(Protocol):
    """What a diff asks of Spark. All of it raises `SqlError`."""

    def look_at(self, table: str, *, few: bool = False) -> AbstractContextManager[SeenTable]:
        """Looks at a table; what it gives holds until the end of the block.

        Args:
            few: As of the query in which it will be read.
        """
        ...

    def rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows.

        Args:
            few: It reads so little that making it ready takes longer than running it.
        """
        ...


class SqlError(Exception):
    """Spark could not answer. The text is safe to publish: it holds no value of any row."""


@dataclass(frozen=True)
class TimeWindow:
    """Which intervals of an incremental model each side has.

    Args:
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

    Args:
        model: The name that the report shows.
        prod: Prod's table or view as Spark SQL names it, quoted where a part needs it.
        pr: The PR environment's table or view, likewise.
        keys: The columns of the model's key, unquoted. Empty: the model cannot be compared.
        window: For models incremental by time; None compares the whole tables.
        decimals: Fractional digits to which numbers must agree; SQLMesh's default.
        skip_columns: Columns that are not compared, unquoted.
        rows_per_key: Keys that occur more often on a side are counted, but their columns are not
            compared: n copies against m are n * m pairs, which a wrong key takes to billions.
        distinct: Whether distinct values are counted in columns that differ. It is known only
            afterwards which those are, so it is done in all of them, and nearly doubles the time.
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
