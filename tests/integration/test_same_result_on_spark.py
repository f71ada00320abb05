"""What is proved to give the same rows gives them on Spark, too; DuckDB disagrees with it in places.

One session. The pairs by hand run as SQLMesh renders them; beside them stand constructs in which
the engines differ, and Spark's own word on its functions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from ci_bot.worker.sql import spark_sql
from ci_bot.worker.sql.equivalence.blocks import KeyInterner
from ci_bot.worker.sql.equivalence.proof import normalize_query
from ci_bot.worker.sql.model_query import ModelQueries
from tests.unit.rules.world import models
from tests.unit.sql.rewrites import ON_SPARK, OTHER, ROWS, SAME, TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# Spark has no QUALIFY, and what the parser writes for it where a filter stands beside the window
# names an alias that is gone.
NOT_FOR_SPARK = {"QUALIFY past WHERE"}


@pytest.fixture(scope="module")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    place = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.sql.catalogImplementation", "in-memory")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.sql("CREATE DATABASE raw")
    for table, columns in TABLES.items():
        rows = ", ".join(
            parse_one(f"SELECT ({row})", dialect="duckdb").expressions[0].sql(dialect="spark")
            for row in ROWS[table]
        )
        names = ", ".join(columns)
        typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items())
        session.sql(f"CREATE VIEW {table} AS SELECT {typed} FROM VALUES {rows} AS t({names})")
    yield session
    session.stop()


def rendered(text: str) -> Any:
    files = {"models/m.sql": f"MODEL (name a.b, kind FULL); {text}"}
    query = ModelQueries().query_of(models(files, external=TABLES)['"spark_catalog"."a"."b"'])
    if query is None or query.rendered_query is None:
        raise AssertionError(f"cannot be rendered: {text}")
    return query.rendered_query


def rows(spark: SparkSession, text: str) -> tuple[list[str], Counter[tuple[str, ...]]]:
    frame = spark.sql(rendered(text).sql(dialect="spark"))
    names = sorted(frame.columns)
    return names, Counter(
        tuple(repr(row[frame.columns.index(name)]) for name in names) for row in frame.collect()
    )


def proved(before: str, after: str) -> bool:
    keys = KeyInterner()
    old, new = normalize_query(rendered(before), keys), normalize_query(rendered(after), keys)
    return old is not None and new is not None and new.proves_same(old)


@pytest.mark.night
def test_rewrites__give_the_same_rows(spark: SparkSession) -> None:
    wrong = [name for name, pair in SAME.items() if rows(spark, pair[0]) != rows(spark, pair[1])]

    assert not wrong


@pytest.mark.night
def test_near_misses__give_other_rows(spark: SparkSession) -> None:
    tried = {name: pair for name, pair in OTHER.items() if name not in NOT_FOR_SPARK}
    alike = [name for name, pair in tried.items() if rows(spark, pair[0]) == rows(spark, pair[1])]

    assert not alike


@pytest.mark.parametrize("name", ON_SPARK)
def test_constructs__in_which_engines_differ(name: str, spark: SparkSession) -> None:
    before, after, same = ON_SPARK[name]

    assert (rows(spark, before) == rows(spark, after)) is same
    assert same or not proved(before, after)


def facts(spark: SparkSession) -> Iterator[tuple[str, str, str]]:
    """Name, group and description of each function of Spark that is called by a name."""
    session: Any = spark
    catalog = session._jsparkSession.sessionState().catalog()
    identifier = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    for (name,) in spark.sql("SHOW FUNCTIONS").collect():
        if re.fullmatch(r"[a-z_]\w*", name):
            info = catalog.lookupFunctionInfo(identifier(name))
            yield name, str(info.getGroup()), f"{info.getNote()} {info.getUsage()}"


def call(name: str) -> Any:
    """A call that the parser takes for more than a name, where there is one."""
    found = None
    for count in range(1, 6):
        for arguments in (", ".join("abcde"[:count]), ", ".join(["'x'"] * count), ""):
            try:
                tree = parse_one(f"SELECT {name}({arguments})", dialect="spark").expressions[0]
            except (SqlglotError, ValueError, IndexError):
                continue
            if not isinstance(tree, exp.Anonymous | exp.Column):
                return tree
            found = found or tree
    return found


def test_functions__are_what_spark_says_they_are(spark: SparkSession) -> None:
    wrong: list[tuple[str, str]] = []
    checked = 0
    for name, group, told in facts(spark):
        tree = call(name)
        parts = list(tree.walk()) if tree is not None else []
        leaves = exp.Column | exp.Literal | exp.Identifier | exp.Paren | exp.Star
        if not parts or not all(spark_sql.is_known(p) or isinstance(p, leaves) for p in parts):
            continue  # it ends every proof
        checked += 1
        said = {
            "agg_funcs": any(spark_sql.is_aggregate(part) for part in parts),
            "generator_funcs": any(spark_sql.generates_rows(part) for part in parts),
        }
        wrong += [(name, kind) for kind, found in said.items() if found != (group == kind)]
        if "non-deterministic" in told and not any(spark_sql.depends_on_order(p) for p in parts):
            wrong.append((name, "non-deterministic"))

    assert not wrong
    assert checked > 300
