"""Running queries on DuckDB, and reading them as the rules do."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.simplify import simplify
from sqlglot.schema import MappingSchema

from ci_bot.worker.sql.equivalence.blocks import KeyInterner
from ci_bot.worker.sql.equivalence.proof import NormalForm, normalize_query
from tests.unit.sql.pairs.bases import COLUMNS, NUMBERS, TABLES, WORDS

Rows = Counter[tuple[str, ...]]
SCHEMA = MappingSchema(
    {
        "db": {
            table.partition(".")[2]: {c: "INT" if c in NUMBERS else "STRING" for c in COLUMNS}
            for table in TABLES
        }
    },
    dialect="spark",
)


def databases() -> list[Any]:
    """Databases of few values, so that much is equal, with some and many NULLs, and an empty one."""
    return [_database(Random(n), rows, nulls) for n, (rows, nulls) in enumerate(_SHAPES)]


_SHAPES = ((14, 0.1), (9, 0.3), (5, 0.6), (0, 0.0))


def _database(random: Random, rows: int, nulls: float) -> Any:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE SCHEMA db")
    for table in TABLES:
        columns = ", ".join(f"{c} {'INT' if c in NUMBERS else 'VARCHAR'}" for c in COLUMNS)
        connection.execute(f"CREATE TABLE {table} ({columns})")
        # The last table is empty in every database.
        made = [_row(random, nulls) for _ in range(rows)] if table != TABLES[-1] else []
        for row in [*made, *made[:2]]:
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", row)
    return connection


def _row(random: Random, nulls: float) -> list[Any]:
    values: list[Any] = [random.randint(0, 3) for _ in NUMBERS] + [random.choice(WORDS)]
    return [None if random.random() < nulls else value for value in values]


def run(connection: Any, text: str) -> tuple[tuple[str, ...], Rows]:
    """Names of the columns, and the rows as a multiset, columns in the order of their names."""
    cursor = connection.execute(text)
    names = [column[0].lower() for column in cursor.description]
    order = sorted(range(len(names)), key=lambda place: names[place])
    rows = Counter(tuple(repr(row[place]) for place in order) for row in cursor.fetchall())
    return tuple(sorted(names)), rows


def in_duckdb(tree: Any) -> str:
    return str(tree.sql(dialect="duckdb"))


def rendered(tree: Any) -> Any:
    """As SQLMesh renders a query over tables whose columns it knows."""
    qualified = qualify(tree.copy(), dialect="spark", schema=SCHEMA, infer_schema=False)
    return simplify(annotate_types(qualified, schema=SCHEMA, dialect="spark"), dialect="spark")


def forms(before: Any, after: Any, *, as_written: bool = False) -> tuple[NormalForm, NormalForm]:
    """Both queries in normal form, rendered or as they are written."""
    keys = KeyInterner()
    old, new = (
        normalize_query(tree if as_written else rendered(tree), keys) for tree in (before, after)
    )
    if old is None or new is None:
        raise AssertionError("a query cannot be taken apart")
    return old, new
