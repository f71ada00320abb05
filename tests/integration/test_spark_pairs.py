"""Spark says of each pair whether its results differ, and our reader never says less than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.unit.sql import spark_pairs
from tests.unit.sql.test_spark_pairs import list_changes, render

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

Rows = Counter[tuple[str, ...]]


@pytest.fixture(scope="module")
def spark(java: None) -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.catalogImplementation", "in-memory")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.sql("CREATE DATABASE IF NOT EXISTS raw")
    for table, columns in {**spark_pairs.TABLES, **spark_pairs.UNDECLARED}.items():
        nothing = f"({', '.join('NULL' for _ in columns)})"
        rows = ", ".join(f"({row})" for row in spark_pairs.ROWS[table]) or nothing
        typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items())
        found = f"SELECT {typed} FROM VALUES {rows} AS t({', '.join(columns)})"
        kept = "" if spark_pairs.ROWS[table] else " WHERE FALSE"
        session.sql(f"CREATE OR REPLACE VIEW {table} AS {found}{kept}")
    yield session
    session.stop()


def run(spark: SparkSession, text: str) -> dict[str, list[str]]:
    """The values of each column, row by row."""
    frame = spark.sql(render(text).sql(dialect="spark"))
    rows = frame.collect()
    return {
        name.lower(): [repr(row[place]) for row in rows] for place, name in enumerate(frame.columns)
    }


def count_rows(found: dict[str, list[str]]) -> Rows:
    return Counter(zip(*(found[name] for name in sorted(found)), strict=True))


@pytest.mark.by_day(30)
@pytest.mark.parametrize("name", spark_pairs.OTHER)
def test_others__differ_on_spark_in_what_is_listed(name: str, spark: SparkSession) -> None:
    pair = spark_pairs.OTHER[name]
    before, after = (run(spark, text) for text in pair)

    assert count_rows(before) != count_rows(after)

    listed = list_changes(*pair)
    if None not in listed:  # the rows stay, and so do the values of all columns that are not listed
        same = sorted(set(before) & set(after) - listed)
        assert Counter(zip(*(before[n] for n in same), strict=True)) == Counter(
            zip(*(after[n] for n in same), strict=True)
        )
        assert len(next(iter(before.values()))) == len(next(iter(after.values())))


@pytest.mark.by_day(10)
@pytest.mark.parametrize("name", spark_pairs.SAME)
def test_sames__do_not_differ_on_spark(name: str, spark: SparkSession) -> None:
    before, after = (run(spark, text) for text in spark_pairs.SAME[name])

    assert count_rows(before) == count_rows(after)
