"""Spark is the judge of the queries that the rule `query-refused` is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import sqlglot
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sqlglot.errors import SqlglotError
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.refused_queries import QueryRefused
from ci_bot.worker.rules.queries.spark_functions import SPARK_FUNCTIONS
from tests.unit.rules.spark_refusals import REFUSED, RUNS, TABLES, UNKNOWN
from tests.unit.rules.world import models

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


def list_functions(spark: SparkSession, *, aggregate: bool) -> list[str]:
    """The functions of Spark that make one value of a group, or the others."""
    session: Any = spark
    catalog = session._jsparkSession.sessionState().catalog()
    identifier = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    names = [name for (name,) in spark.sql("SHOW FUNCTIONS").collect() if name.isidentifier()]
    groups = {name: catalog.lookupFunctionInfo(identifier(name)).getGroup() for name in names}
    return [
        name
        for name, group in groups.items()
        if group != "window_funcs" and (group == "agg_funcs") is aggregate
    ]


def list_refused(texts: Iterable[str]) -> list[str]:
    """The queries of which the rule says that Spark refuses them."""
    found = []
    for text in texts:
        file = f"MODEL (name mart.new, kind FULL); {text}"
        try:
            known = models({"models/new.sql": file}, external=TABLES)
        except (SqlglotError, SQLMeshError, IndexError, ValueError):
            continue  # another number of arguments, which SQLGlot's parser may not expect
        rule = QueryRefused(ProjectView(known))
        judged = [item for one in known.values() for item in rule.find_observations(one)]
        found += [text for item in judged if item.severity is None]
    return found


ARGUMENTS = ("o.amount", "o.amount, 0.5", "o.amount, 1, 1")


def test_aggregates__of_spark__are_all_known_as_such(spark: SparkSession) -> None:
    """SQLGlot has a class of its own for some, and takes others for functions of one row."""
    names = list_functions(spark, aggregate=True)
    assert len(names) > 60
    assert not list_refused(
        f"SELECT o.status, {name}({arguments}) AS x FROM raw.orders AS o GROUP BY o.status"
        for name in names
        for arguments in ARGUMENTS
    )


def test_functions__of_one_row__are_no_aggregates(spark: SparkSession) -> None:
    names = list_functions(spark, aggregate=False)
    assert len(names) > 300
    assert not list_refused(
        f"SELECT o.status, {name}({arguments}) AS x FROM raw.orders AS o WHERE {name}({arguments})"
        for name in names
        for arguments in ARGUMENTS
    )
