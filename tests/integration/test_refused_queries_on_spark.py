"""Spark is the judge of the queries that the rule `query-refused` is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlglot
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ci_bot.worker.rules.models.spark_functions import SPARK_FUNCTIONS
from tests.unit.rules.spark_refusals import REFUSED, RUNS, TABLES, UNKNOWN

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


@pytest.fixture(scope="module")
def spark(java: None) -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.catalogImplementation", "in-memory")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.sql("CREATE DATABASE IF NOT EXISTS raw")
    for table, columns in TABLES.items():
        typed = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns.items())
        session.sql(f"CREATE OR REPLACE VIEW {table} AS SELECT {typed} WHERE FALSE")
    yield session
    session.stop()


def render(text: str) -> str:
    """The query as SQLMesh gives it to Spark: 3.5 has no QUALIFY, for example."""
    (rendered,) = sqlglot.transpile(text, read="spark", write="spark")
    return rendered


@pytest.mark.by_day(30)
@pytest.mark.parametrize("text", [*REFUSED, *UNKNOWN])
def test_query__that_the_rule_finds__is_refused_by_spark(text: str, spark: SparkSession) -> None:
    with pytest.raises(AnalysisException):
        spark.sql(render(text)).collect()


@pytest.mark.by_day(50)
@pytest.mark.parametrize("text", RUNS)
def test_query__that_the_rule_passes_over__is_run_by_spark(text: str, spark: SparkSession) -> None:
    spark.sql(render(text)).collect()


def test_functions__of_the_installed_spark__are_all_known(spark: SparkSession) -> None:
    """An older list calls a function of a new Spark unknown."""
    names = {name for (name,) in spark.sql("SHOW FUNCTIONS").collect() if name.isidentifier()}
    assert names
    assert names <= SPARK_FUNCTIONS
