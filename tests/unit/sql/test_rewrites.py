"""Rewrites by hand are proved, near misses are not, and DuckDB says which is which."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import KeyInterner
from ci_bot.worker.sql.equivalence.proof import NormalForm, normalize_query
from ci_bot.worker.sql.model_query import ModelQueries
from tests.unit.rules.world import models
from tests.unit.sql.pairs.bases import parse
from tests.unit.sql.pairs.engine import Rows, run
from tests.unit.sql.rewrites import OTHER, ROWS, SAME, TABLES, UNSURE

# Joins in parentheses are not read, so they prove nothing.
NOT_READ = {"an inner join outside and inside an outer one"}
# DuckDB has another syntax for them, and the translation loses the difference. Spark tells it.
FOR_SPARK = {"OUTER of a lateral view", "position for value"}


def forms(before: str, after: str) -> tuple[NormalForm, NormalForm]:
    keys = KeyInterner()
    old, new = (_form(text, keys) for text in (before, after))
    return old, new


def _form(text: str, keys: KeyInterner) -> NormalForm:
    files = {"models/m.sql": f"MODEL (name a.b, kind FULL); {text}"}
    query = ModelQueries().query_of(models(files, external=TABLES)['"spark_catalog"."a"."b"'])
    read = normalize_query(query.rendered_query, keys) if query is not None else None
    if read is None:
        raise AssertionError(f"cannot be taken apart: {text}")
    return read


@pytest.fixture(scope="module")
def database() -> Any:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE SCHEMA raw")
    for table, columns in TABLES.items():
        typed = ", ".join(
            f"{name} {exp.DataType.build(kind, dialect='spark').sql('duckdb')}"
            for name, kind in columns.items()
        )
        connection.execute(f"CREATE TABLE {table} ({typed})")
        for row in ROWS[table]:
            connection.execute(f"INSERT INTO {table} VALUES ({row})")
    yield connection
    connection.close()


def rows(database: Any, text: str) -> tuple[tuple[str, ...], Rows]:
    return run(database, parse(text).sql(dialect="duckdb"))


@pytest.mark.parametrize("name", SAME)
def test_rewrite__gives_the_same_rows(name: str, database: Any) -> None:
    before, after = SAME[name]

    assert rows(database, after) == rows(database, before)


@pytest.mark.parametrize("name", sorted(set(OTHER) - FOR_SPARK))
def test_near_miss__gives_other_rows(name: str, database: Any) -> None:
    before, after = OTHER[name]

    assert rows(database, after) != rows(database, before)


@pytest.mark.parametrize("name", SAME)
def test_rewrite__is_proved(name: str) -> None:
    before, after = forms(*SAME[name])

    assert after.proves_same(before), (before.gaps, after.gaps)


@pytest.mark.parametrize("name", OTHER)
def test_near_miss__is_not_proved(name: str) -> None:
    before, after = forms(*OTHER[name])

    # What differs is seen, and not only something that is not understood.
    assert not after.gaps or name in NOT_READ
    assert not after.proves_same(before)


@pytest.mark.parametrize("name", UNSURE)
def test_unsure__is_not_proved(name: str) -> None:
    before, after = forms(*UNSURE[name])

    assert not after.proves_same(before)


def test_normalize_query__filter_that_is_always_true__is_read() -> None:
    for form in forms(
        "SELECT SUM(id) FILTER (WHERE TRUE) AS v FROM raw.orders",
        "SELECT SUM(id) FILTER (WHERE 1 = 1) AS v FROM raw.orders",
    ):
        assert list(form.block.outputs) == ["v"]
