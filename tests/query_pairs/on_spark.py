"""Running many small queries in one session of Spark.

Nothing is compiled and nothing is shuffled in more than one partition: a query over a few rows
takes hundredths of a second. What a query gives does not depend on either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ci_bot.worker.duckdb_trials import DuckdbExampleTable
from tests.query_pairs.pairs import Data, Table
from tests.shared_jvm import OPTIONS

# Both are in use: of Spark 4, the first is the default.
ANSI_MODES = ("true", "false")
_ANSI = "spark.sql.ansi.enabled"
_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_SMALL = {
    "spark.driver.extraJavaOptions": OPTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
}


@dataclass(frozen=True)
class Result:
    """What a query gives: types by column, and rows as a multiset, columns in order of name.

    An error is a result, too: its class stands in place of the rows.
    """

    types: tuple[tuple[str, str], ...]
    rows: Counter[tuple[str, ...]]
    error: str = ""

    def differs_from(self, other: Result) -> str:
        """`rows`, `columns` or `types`; nothing where both are the same.

        Where both fail there is nothing to compare. Where one fails, the other one does not.
        """
        if self.error or other.error:
            return "" if self.error and other.error else "error"
        if [name for name, _ in self.types] != [name for name, _ in other.types]:
            return "columns"
        if self.rows != other.rows:
            return "rows"
        return "types" if self.types != other.types else ""


class SparkJudge:
    """A session with tables that change from data set to data set."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def set_ansi(self, mode: str) -> None:
        """Whether overflows and casts that fail are errors."""
        self._session.conf.set(_ANSI, mode)

    def use_database(self, name: str) -> None:
        """From now on tables are created and read there."""
        self._session.sql(f"CREATE DATABASE IF NOT EXISTS {name}")
        self._session.catalog.setCurrentDatabase(name)

    def create_tables(self, tables: Iterable[Table], data: Data, *, kept: bool = False) -> None:
        """Tables that hold the rows of a data set.

        Args:
            kept: in the current database, beside those of other databases.
        """
        kind = "VIEW" if kept else "TEMPORARY VIEW"
        for table in tables:
            typed = ", ".join(f"CAST({c} AS {kind}) AS {c}" for c, kind in table.types.items())
            rows = data[table.name]
            values = ", ".join(f"({row})" for row in rows)
            source = (
                f"VALUES {values} AS v({', '.join(table.types)})"
                if rows
                else f"(SELECT {', '.join(f'NULL AS {c}' for c in table.types)}) WHERE false"
            )
            self._session.sql(
                f"CREATE OR REPLACE {kind} {table.name} AS SELECT {typed} FROM {source}"
            )

    def run(self, query: str) -> Result:
        """What a query gives over the tables."""
        try:
            frame = self._session.sql(query)
            rows = frame.collect()
        except (PySparkException, Py4JJavaError) as error:
            name = _ERROR_CLASS.search(str(error))
            return Result((), Counter(), error=name[1] if name else type(error).__name__)
        columns = [(f.name.lower(), f.dataType.simpleString()) for f in frame.schema.fields]
        order = sorted(range(len(columns)), key=lambda place: columns[place])
        return Result(
            tuple(columns[place] for place in order),
            Counter(tuple(repr(row[place]) for place in order) for row in rows),
        )

    def execute(self, statement: str) -> None:
        """Runs a statement that gives no rows."""
        self._session.sql(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query as Python has them."""
        return [tuple(row) for row in self._session.sql(query).collect()]

    def types(self, query: str) -> list[tuple[str, str]]:
        """The names and types of a query's columns."""
        fields = self._session.sql(query).schema.fields
        return [(field.name.lower(), field.dataType.simpleString()) for field in fields]

    def create_rows(self, tables: Iterable[DuckdbExampleTable]) -> None:
        """Tables with the rows of an example, columns that it does not show left out."""
        for table in tables:
            schema = ", ".join(f"`{name}` {kind}" for name, kind in table.columns)
            # Of a table whose columns nobody reads, only the number of its rows counts.
            rows = list(table.rows) if schema else [(None,)] * len(table.rows)
            frame = self._session.createDataFrame(rows, schema or "none int")
            frame.createOrReplaceTempView(table.name)

    def compare(self, base: str, head: str) -> str:
        """How two queries differ over the tables; nothing where they do not."""
        return self.run(base).differs_from(self.run(head))


@contextmanager
def open_judge(directory: Path) -> Iterator[SparkJudge]:
    """A judge, in a session that ends with it."""
    builder: Any = SparkSession.builder.master("local[1]")
    for name, value in {**_SMALL, "spark.sql.warehouse.dir": str(directory / "w")}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield SparkJudge(session)
    session.stop()
