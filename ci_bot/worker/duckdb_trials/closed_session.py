"""A session of DuckDB that reads and writes only its own memory, and ends in time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any

from ci_bot.protocol.supported_versions import parse_release
from ci_bot.worker.duckdb_trials.arithmetic import ARITHMETIC_MACROS, CAST_MACROS
from ci_bot.worker.duckdb_trials.functions import FUNCTION_MACROS
from ci_bot.worker.duckdb_trials.query_scopes import SourceTable
from ci_bot.worker.duckdb_trials.value_types import (
    MAP_PARTS,
    UntriedError,
    ValueType,
    quote_duckdb_name,
)

# The DuckDB releases with which the table of constructs is tested.
OLDEST, BEYOND = (1, 2), (2, 0)
_PATIENCE = 3
LARGEST_RESULT = 10_000
_SETTINGS: Mapping[str, str] = {
    "threads": "1",
    "memory_limit": "256MB",
    "temp_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Otherwise a table's name could mean a variable of this process.
    "python_enable_replacements": "false",
    # It takes `a = b OR (a IS NULL AND b IS NULL)` for `a IS NOT DISTINCT FROM b`, also if the
    # first is NULL and the second false. (DuckDB's EqualOrNullSimplification)
    "disabled_optimizers": "expression_rewriter",
    "enable_external_access": "false",
}


class UnusableDuckdbDataError(Exception):
    """One side fails on these rows, although Spark may not."""


class DuckdbOutOfTimeError(Exception):
    """The time for a model is over."""


class ClosedDuckdbSession:
    """Tables in memory, and queries over them."""

    def __init__(self, connection: Any, errors: Any, deadline: float) -> None:
        self._connection = connection
        self._errors = errors
        self._deadline = deadline
        self._stopped = False
        self._filled: dict[str, Sequence[Sequence[Any]] | None] = {}

    def stop_query(self) -> None:
        """Ends the running query, from another thread."""
        self._stopped = True
        self._connection.interrupt()

    @property
    def is_over(self) -> bool:
        return self._stopped or time.thread_time() > self._deadline

    def create_tables(self, tables: Iterable[SourceTable]) -> None:
        for table in tables:
            columns = ", ".join(
                f"{quote_duckdb_name(name)} {kind.duckdb}"
                for name, kind in table.columns.items()
                if kind.is_known
            )
            self._connection.execute(f"CREATE TABLE {quote_duckdb_name(table.name)} ({columns})")

    def fill_table(
        self, table: SourceTable, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Replaces the rows of a table; columns that are not named are NULL.

        Raises the same errors as `run_query`.
        """
        if self._filled.get(table.name) == rows:
            return
        self._filled[table.name] = None
        name = quote_duckdb_name(table.name)
        self.run_query(f"TRUNCATE {name}")
        if not columns:  # the rows are only counted
            for _ in rows:
                self.run_query(" ".join(("INSERT INTO", name, "DEFAULT VALUES")))
        elif rows:
            into = f"{name} ({', '.join(map(quote_duckdb_name, columns))})"
            kinds = [table.columns[column] for column in columns]
            values: list[Any] = []
            lines = [
                f"({', '.join(_write_duckdb_cell(value, kind, values) for value, kind in cells)})"
                for cells in (zip(row, kinds, strict=True) for row in rows)
            ]
            self.run_query(" ".join(("INSERT INTO", into, "VALUES", ", ".join(lines))), values)
        self._filled[table.name] = list(rows)

    def check_query(self, text: str) -> None:
        """Checks that DuckDB can plan a query; raises UntriedError if it cannot."""
        try:
            self._connection.execute(f"EXPLAIN {text}")
        except self._errors.Error as error:
            self._raise_for(error, planned=True)

    def run_query(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs a query and returns its rows.

        A result with many rows is refused: DuckDB's memory limit does not cover Python's copy.

        Raises:
            UnusableDuckdbDataError: The query fails on these rows, or gives too many.
            DuckdbOutOfTimeError: The time for the model is over.
            UntriedError: The query needs more memory than the session has.
        """
        if self.is_over:
            raise DuckdbOutOfTimeError
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(text, values).fetchmany(
                LARGEST_RESULT + 1
            )
        except self._errors.Error as error:
            self._raise_for(error, planned=False)
        if len(rows) > LARGEST_RESULT:
            raise UnusableDuckdbDataError
        return rows

    def _raise_for(self, error: Exception, *, planned: bool) -> None:
        if isinstance(error, self._errors.InterruptException):
            raise DuckdbOutOfTimeError from error
        if isinstance(error, self._errors.OutOfMemoryException):
            raise UntriedError("a query that needs more memory than the judge has") from error
        if planned:
            raise UntriedError("what DuckDB does not take") from error
        raise UnusableDuckdbDataError from error


def _write_duckdb_cell(value: Any, kind: ValueType, values: list[Any]) -> str:
    """Writes a cell as DuckDB's text; the values of its `?` are added to `values`."""
    has_parts = kind.parts or (kind.item is not None and kind.item.parts)
    if value is not None and has_parts:
        # DuckDB guesses the type of a value with parts, and does so wrongly if a part is NULL.
        return f"CAST({_write_duckdb_parts(value, kind, values)} AS {kind.duckdb})"
    values.append(value)
    return "?"


def _write_duckdb_parts(value: Any, kind: ValueType, values: list[Any]) -> str:
    if value is None:
        return "NULL"
    if kind.name == "map":  # a list of its entries
        entry = ValueType("struct", parts=kind.parts)
        entries = [dict(zip(MAP_PARTS, one, strict=True)) for one in value.items()]
        return f"[{', '.join(_write_duckdb_parts(one, entry, values) for one in entries)}]"
    if kind.name == "struct":
        parts = (
            f"{quote_duckdb_name(name)}: {_write_duckdb_parts(value[name], part, values)}"
            for name, part in kind.parts
        )
        return f"{{{', '.join(parts)}}}"
    if kind.item is not None:
        return f"[{', '.join(_write_duckdb_parts(one, kind.item, values) for one in value)}]"
    values.append(value)
    return f"CAST(? AS {kind.duckdb})"


@contextmanager
def open_closed_duckdb_session(seconds: float) -> Iterator[ClosedDuckdbSession]:
    """Opens a session that ends after `seconds` of processor time.

    Processor time is used so that a busy machine does not change a report. A session also has a
    limit of wall time, a few times as long.

    Raises:
        UntriedError: DuckDB is missing, not a tested release, or cannot be closed off.
    """
    duckdb = _load_duckdb()
    try:
        connection = duckdb.connect(":memory:", config={})
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = '{value}'")
        for macro in (*CAST_MACROS, *ARITHMETIC_MACROS, *FUNCTION_MACROS):
            connection.execute(f"CREATE MACRO {macro}")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        raise UntriedError("DuckDB, which cannot be closed off here") from error
    session = ClosedDuckdbSession(connection, duckdb, time.thread_time() + seconds)
    watch = Timer(seconds * _PATIENCE, session.stop_query)
    watch.daemon = True
    watch.start()
    try:
        yield session
    finally:
        watch.cancel()
        connection.close()


def _load_duckdb() -> Any:
    """Loads DuckDB at the first query, because importing it is slow."""
    try:
        import duckdb
    except ImportError as error:
        raise UntriedError("DuckDB, which is not installed") from error
    if not OLDEST <= parse_release(duckdb.__version__) < BEYOND:
        raise UntriedError(f"DuckDB {duckdb.__version__}, with which nothing was compared")
    return duckdb
