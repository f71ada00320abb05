"""Generated projects on DuckDB: data before and after a change of a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

import duckdb

from tests.unit.sql.lineage.parts import NUMBER, SOURCES, Table

Rows = list[tuple[Any, ...]]
ROWS_EACH = 9


def source_rows(random: Random, table: Table) -> Rows:
    """A few rows of small values, with NULLs and duplicates."""
    return [
        tuple(value(random, holds) for holds in table.columns.values()) for _ in range(ROWS_EACH)
    ]


def value(random: Random, holds: str) -> Any:
    """A small value, now and then NULL."""
    if random.random() < 0.1:
        return None
    return random.randint(0, 5) if holds == NUMBER else random.choice(["", "a", "bb", "ccc"])


class Warehouse:
    """A DuckDB that holds the sources and builds models one after the other."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        for schema in ("s", "m"):
            self._connection.execute(f"CREATE SCHEMA {schema}")

    def fill(self, contents: Mapping[str, Rows]) -> None:
        """Writes the sources."""
        self._connection.execute(
            ";".join(_filled(table, contents[table.name]) for table in SOURCES)
        )

    def build(self, tables: Iterable[Table]) -> None:
        """Builds the models among `tables`, in their order."""
        self._connection.execute(
            ";".join(
                f"CREATE OR REPLACE TABLE {table.name} AS {table.query}"
                for table in tables
                if table.query
            )
        )

    def rebuild(self, tables: Iterable[Table]) -> list[str]:
        """Builds models anew; those that cannot be built any more are gone, and returned."""
        failed = []
        for table in tables:
            try:
                self.build([table])
            except duckdb.Error:
                self._connection.execute(f"DROP TABLE IF EXISTS {table.name}")
                failed.append(table.name)
        return failed

    def content(self, tables: Iterable[Table]) -> dict[str, tuple[list[str], Rows]]:
        """Column names and rows of each model."""
        return {
            table.name: self.result(f"SELECT * FROM {table.name}")
            for table in tables
            if table.query
        }

    def result(self, query: str) -> tuple[list[str], Rows]:
        """Column names and rows of a query."""
        result = self._connection.execute(query)
        return [column[0].lower() for column in result.description or ()], result.fetchall()

    def close(self) -> None:
        self._connection.close()


def bag(columns: Sequence[str], rows: Rows, kept: Iterable[str]) -> Counter[tuple[Any, ...]]:
    """The rows cut down to some columns, with how often each occurs."""
    places = [columns.index(name) for name in kept]
    return Counter(tuple(row[place] for place in places) for row in rows)


def _filled(table: Table, rows: Rows) -> str:
    """The statement that makes a source anew."""
    columns = [
        f"CAST(v.{name} AS {'BIGINT' if holds == NUMBER else 'VARCHAR'}) AS {name}"
        for name, holds in table.columns.items()
    ]
    values = ", ".join(f"({', '.join(_literal(item) for item in row)})" for row in rows)
    return (
        f"CREATE OR REPLACE TABLE {table.name} AS SELECT {', '.join(columns)} "
        f"FROM (VALUES {values}) AS v({', '.join(table.columns)})"
    )


def _literal(item: Any) -> str:
    if item is None:
        return "NULL"
    return str(item) if isinstance(item, int) else f"'{item}'"
