"""The data diff on Spark, with SQLMesh's own TableDiff as the oracle in the same session."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sqlglot import exp
from sqlmesh.core.engine_adapter.spark import SparkEngineAdapter
from sqlmesh.core.table_diff import RowDiff
from sqlmesh.core.table_diff import TableDiff as Oracle
from sqlmesh.engines.spark.db_api import spark_session
from sqlmesh.utils.date import to_datetime, to_time_column, to_timestamp

from ci_bot.protocol.apply_report import TableDiff
from ci_bot.worker.data_diff.compare import (
    CANCELLED,
    DiffCandidate,
    DiffControls,
    diff_models,
    diff_tables,
)
from ci_bot.worker.data_diff.spark_port import SparkDiffPort, count_parallel_diffs
from ci_bot.worker.data_diff.spec import (
    DiffedTable,
    DiffQueryError,
    DiffSpec,
    TimeWindow,
    render_diff_text_literal,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


@pytest.fixture(scope="module")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    place = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.sql.catalogImplementation", "in-memory")
        # Without Hive, TableDiff can only make its temporary table this way.
        .config("spark.sql.legacy.createHiveTableByDefault", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@dataclass
class Asked:
    """A port that remembers how its queries are run."""

    port: SparkDiffPort
    plans: list[str] = field(default_factory=list)

    def open_table(self, table: str, *, few: bool = False) -> AbstractContextManager[DiffedTable]:
        return self.port.open_table(table, few=few)

    def query_rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        self.plans += [row[0] for row in self.port.query_rows(f"EXPLAIN {sql}", few=few)]
        return self.port.query_rows(sql, few=few)


def view(spark: SparkSession, name: str, query: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{name}` AS {query}")


def values(types: dict[str, str], rows: Sequence[Sequence[str]]) -> str:
    """A query of these rows, each value as SQL text."""
    # A table without rows is a row of NULLs that a condition takes out again.
    given = rows or [["NULL"] * len(types)]
    held = ", ".join(f"({', '.join(row)})" for row in given)
    casts = ", ".join(
        f"CAST(c{number} AS {kind}) AS `{name}`"
        for number, (name, kind) in enumerate(types.items())
    )
    names = ", ".join(f"c{number}" for number in range(len(types)))
    kept = "TRUE" if rows else "FALSE"
    return f"SELECT {casts} FROM VALUES {held} AS t({names}) WHERE {kept}"


def diff(spark: SparkSession, keys: Sequence[str], **options: Any) -> TableDiff:
    """The diff, which is the same for few rows, where Spark generates no code for it."""
    spec = DiffSpec("m", "prod", "pr", tuple(keys), **options)
    found = diff_tables(SparkDiffPort(spark), spec)
    assert diff_tables(SparkDiffPort(spark), replace(spec, few=True)) == found
    return found


def oracle(
    spark: SparkSession,
    keys: Sequence[str],
    *,
    prod: str = "prod",
    pr: str = "pr",
    where: Any = None,
) -> RowDiff:
    adapter = SparkEngineAdapter(
        lambda: spark_session.connection(spark), default_catalog="spark_catalog"
    )
    return Oracle(adapter, prod, pr, on=list(keys), where=where).row_diff()


def agree(found: TableDiff, theirs: RowDiff, *, extra_full_matches: int = 0) -> None:
    """Every count that SQLMesh has, in the relations that ci_bot/worker/data_diff/__init__.py states."""
    assert found.matched is not None
    assert found.only_prod is not None
    assert found.only_pr is not None
    assert found.full_match is not None
    assert found.matched == theirs.join_count
    assert found.only_prod == theirs.s_only_count
    assert found.only_pr == theirs.t_only_count
    assert found.matched + found.only_prod == theirs.source_count
    assert found.matched + found.only_pr == theirs.target_count
    assert found.null_keys == int(theirs.stats["null_grain_count"])
    assert found.full_match + extra_full_matches == theirs.full_match_count
    unique = (
        theirs.stats["distinct_count_s"] == theirs.source_count
        and theirs.stats["distinct_count_t"] == theirs.target_count
    )
    assert (found.duplicate_keys == 0) == unique
    rates = {column.name: column.match_rate for column in found.columns}
    percent = theirs.column_stats["pct_match"].to_dict()
    assert rates.keys() == percent.keys()
    for name, rate in rates.items():
        if rate is None:
            assert found.matched == 0
            assert percent[name] is None
        else:
            assert round(Decimal(rate) * 100, 6) == round(Decimal(percent[name]), 6)


# Values by type, few enough that rows meet. Numbers differ behind the third digit and at it.
DOMAINS = {
    "int": ["NULL", "1", "2"],
    "string": ["NULL", "''", "'x'", "'y'"],
    "double": ["NULL", "0.0D", "-0.0D", "1.0D", "1.0001D", "1.0006D", "-5.5D"],
    "float": ["NULL", "1.5F", "1.50001F", "1.6F"],
    "decimal(12,5)": ["NULL", "1.00001", "1.00004", "1.0005", "2.5"],
    "decimal(6,2)": ["NULL", "1.25", "1.26"],
    "date": ["NULL", "DATE '2024-01-01'", "DATE '2024-01-02'"],
    "timestamp": ["NULL", "TIMESTAMP '2024-01-01 10:00:00.000001'", "TIMESTAMP '2024-01-01'"],
    "boolean": ["NULL", "TRUE", "FALSE"],
    "binary": ["NULL", "X'00'", "X'FF'"],
    "array<int>": ["NULL", "ARRAY()", "ARRAY(1, NULL)", "ARRAY(NULL, 1)"],
    "struct<p:int,q:string>": [
        "NULL",
        "NAMED_STRUCT('p', 1, 'q', NULL)",
        "NAMED_STRUCT('p', NULL, 'q', 'x')",
        "NAMED_STRUCT('p', 1, 'q', 'x')",
    ],
}
# Parts of composite keys stay clear of what SQLMesh mixes up: empty text, commas, fractions.
KEYS = {
    "int": {"k": ("int", ["NULL", "1", "2", "3", "4"])},
    "string": {"k": ("string", ["NULL", "''", "'a'", "'A'", "'b,c'"])},
    "int and string": {
        "k": ("int", ["NULL", "1", "2"]),
        "g": ("string", ["NULL", "'a'", "'b'"]),
    },
    "date and bigint": {
        "k": ("date", ["NULL", "DATE '2024-01-01'", "DATE '2024-01-02'"]),
        "g": ("bigint", ["1", "2"]),
    },
}
EVERY_TIME = {"int and string"}


@dataclass(frozen=True)
class Case:
    """Two tables: `types` on both sides, one more column on each, keys first."""

    keys: tuple[str, ...]
    types: dict[str, str]
    prod: list[tuple[str, ...]]
    pr: list[tuple[str, ...]]


@st.composite
def cases(draw: st.DrawFn, key: str, unique: bool) -> Case:
    types = {name: kind for name, (kind, _) in KEYS[key].items()}
    domains = [domain for _, domain in KEYS[key].values()]
    kinds = draw(st.lists(st.sampled_from(sorted(DOMAINS)), min_size=1, max_size=5))
    for number, kind in enumerate(kinds):
        types[f"v{number}"] = kind
        domains.append(DOMAINS[kind])
    row = st.tuples(*map(st.sampled_from, domains))
    width = len(KEYS[key])
    by = (lambda found: found[:width]) if unique else None
    if unique:
        row = row.filter(lambda found: "NULL" not in found[:width])
    prod = draw(st.lists(row, max_size=12, unique_by=by))
    again = row if not prod else st.one_of(st.sampled_from(prod), row)
    pr = draw(st.lists(again, max_size=12, unique_by=by))
    return Case(tuple(KEYS[key]), types, prod, pr)


def put(spark: SparkSession, case: Case) -> None:
    for name, rows, more in (("prod", case.prod, "gone"), ("pr", case.pr, "fresh")):
        view(spark, name, values(case.types | {more: "int"}, [(*row, "7") for row in rows]))


def all_null_rows(case: Case) -> int:
    """Rows without a partner whose columns are all NULL, which SQLMesh calls full matches.

    A row with a single NULL key never has a partner. The parts of a composite key that are all NULL
    make an empty key, which finds any other.
    """
    found = 0
    width = len(case.keys)
    for rows, others in ((case.prod, case.pr), (case.pr, case.prod)):
        partner = width > 1 and any(set(other[:width]) == {"NULL"} for other in others)
        found += 0 if partner else sum(set(row) == {"NULL"} for row in rows)
    return found


def duplicates(case: Case) -> int:
    width = len(case.keys)
    twice = {
        key
        for rows in (case.prod, case.pr)
        for key, count in Counter(row[:width] for row in rows).items()
        if count > 1
    }
    return len(twice - {("NULL",)})


generated = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=[] if key in EVERY_TIME else [pytest.mark.night])
        for key in sorted(KEYS)
    ],
)
@generated
@given(data=st.data())
def test_counts__equal_table_diff_with_null_and_duplicate_keys(
    spark: SparkSession, key: str, data: st.DataObject
) -> None:
    case = data.draw(cases(key, unique=False))
    put(spark, case)

    found = diff(spark, case.keys)

    agree(found, oracle(spark, case.keys), extra_full_matches=all_null_rows(case))
    assert (found.rows_prod, found.rows_pr) == (len(case.prod), len(case.pr))
    assert found.duplicate_keys == duplicates(case)
    assert found.schema_.added == ["fresh"]
    assert found.schema_.removed == ["gone"]


@pytest.mark.night
@pytest.mark.parametrize("key", ["int", "int and string"])
@generated
@given(data=st.data())
def test_counts__equal_table_diff_in_every_number_where_the_grain_is_one(
    spark: SparkSession, key: str, data: st.DataObject
) -> None:
    case = data.draw(cases(key, unique=True))
    put(spark, case)

    found, theirs = diff(spark, case.keys), oracle(spark, case.keys)

    agree(found, theirs)
    assert (found.rows_prod, found.rows_pr) == (theirs.source_count, theirs.target_count)
    assert (found.null_keys, found.duplicate_keys) == (0, 0)


@pytest.mark.night
def test_counts__equal_table_diff_on_a_larger_table(spark: SparkSession) -> None:
    chosen = random.Random(4)
    types = {"k": "int"} | {f"v{n}": kind for n, kind in enumerate(sorted(DOMAINS))}

    def rows(count: int) -> list[tuple[str, ...]]:
        return [
            (
                chosen.choice(["NULL", *map(str, range(300))]),
                *(chosen.choice(DOMAINS[kind]) for kind in sorted(DOMAINS)),
            )
            for _ in range(count)
        ]

    prod = rows(600)
    case = Case(("k",), types, prod, prod[:400] + rows(200))
    put(spark, case)

    found = diff(spark, case.keys)

    agree(found, oracle(spark, case.keys), extra_full_matches=all_null_rows(case))
    assert found.full_match
    assert found.duplicate_keys == duplicates(case)


def test_rates__sixteen_of_sixteen(spark: SparkSession) -> None:
    for name in ("prod", "pr"):
        view(spark, name, "SELECT id AS k, id * 2 AS v, NULL AS nothing FROM RANGE(16)")
    found = diff(spark, ["k"])
    assert (found.rows_prod, found.rows_pr, found.matched, found.full_match) == (16, 16, 16, 16)
    assert [column.match_rate for column in found.columns] == [1.0, 1.0]


def test_rates__zero_rows_are_no_match(spark: SparkSession) -> None:
    view(spark, "prod", "SELECT id AS k, id AS v FROM RANGE(3)")
    view(spark, "pr", "SELECT id + 9 AS k, id AS v FROM RANGE(3)")
    assert [column.match_rate for column in diff(spark, ["k"]).columns] == [None]
    for name in ("prod", "pr"):
        view(spark, name, "SELECT id AS k, id AS v FROM RANGE(0)")
    found = diff(spark, ["k"])
    assert (found.rows_prod, found.rows_pr, found.matched, found.full_match) == (0, 0, 0, 0)
    assert [column.match_rate for column in found.columns] == [None]


# Where SQLMesh counts something that no table holds: the list of ci_bot/worker/data_diff/__init__.py.


def test_difference__rows_are_the_tables_rows(spark: SparkSession) -> None:
    view(spark, "prod", "SELECT * FROM VALUES (1, 1), (1, 2), (NULL, 3) AS t(k, v)")
    view(spark, "pr", "SELECT * FROM VALUES (1, 1), (1, 2), (1, 3) AS t(k, v)")
    found, theirs = diff(spark, ["k"]), oracle(spark, ["k"])
    assert (found.rows_prod, found.rows_pr) == (3, 3)
    assert (theirs.source_count, theirs.target_count) == (6, 6)
    assert (found.matched, found.null_keys, found.duplicate_keys) == (6, 1, 1)
    assert theirs.join_count == 6


def test_difference__numbers_that_no_decimal_holds_equal_themselves(spark: SparkSession) -> None:
    for name in ("prod", "pr"):
        view(
            spark,
            name,
            "SELECT * FROM VALUES (1, DOUBLE('NaN')), (2, DOUBLE('Infinity')), (3, 1e300D), "
            "(4, 1.0D) AS t(k, v)",
        )
    found = diff(spark, ["k"])
    # TableDiff casts them, and needs what Spark did before version 4.
    strict = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        theirs = oracle(spark, ["k"])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(strict))
    assert (found.full_match, theirs.full_match_count) == (4, 1)
    view(
        spark,
        "pr",
        "SELECT * FROM VALUES (1, 1.0D), (2, DOUBLE('-Infinity')), (3, 2e300D), "
        "(4, DOUBLE('NaN')) AS t(k, v)",
    )
    assert diff(spark, ["k"]).full_match == 0


def test_difference__parts_of_a_key_stay_apart(spark: SparkSession) -> None:
    view(
        spark,
        "prod",
        "SELECT * FROM VALUES ('a,b', 'c', 1.0D), ('', 'd', 1.0D), ('e', 'f', 1.0001D) "
        "AS t(k, g, n)",
    )
    view(
        spark,
        "pr",
        "SELECT * FROM VALUES ('a', 'b,c', 1.0D), (NULL, 'd', 1.0D), ('e', 'f', 1.0002D) "
        "AS t(k, g, n)",
    )
    keys = ["k", "g", "n"]
    found, theirs = diff(spark, keys), oracle(spark, keys)
    assert (found.matched, found.only_prod, found.only_pr) == (0, 3, 3)
    assert theirs.join_count == 3


def test_difference__maps_are_compared(spark: SparkSession) -> None:
    view(
        spark,
        "prod",
        "SELECT * FROM VALUES (1, MAP('a', ARRAY(1), 'b', NULL)), (2, MAP('a', ARRAY(1))), "
        "(3, NULL), (4, MAP()) AS t(k, v)",
    )
    view(
        spark,
        "pr",
        "SELECT * FROM VALUES (1, MAP('b', NULL, 'a', ARRAY(1))), (2, MAP('a', ARRAY(2))), "
        "(3, NULL), (4, NULL) AS t(k, v)",
    )
    assert [column.match_rate for column in diff(spark, ["k"]).columns] == [0.5]
    with pytest.raises(Exception, match="does not support ordering on type"):
        oracle(spark, ["k"])


def test_nested__maps_within_structs_arrays_and_maps(spark: SparkSession) -> None:
    def of(first: str, second: str) -> str:
        entries = f"MAP({first}, {second})"
        return (
            f"SELECT 1 AS k, NAMED_STRUCT('a`b', {entries}, 'n', 1) AS s, "
            f"ARRAY({entries}, NULL) AS l, "
            f"MAP('outer', MAP('inner', NAMED_STRUCT('x.y', {entries}))) AS m"
        )

    view(spark, "prod", of("'a', 1", "'b', 2"))
    view(spark, "pr", of("'b', 2", "'a', 1"))
    assert [column.match_rate for column in diff(spark, ["k"]).columns] == [1.0, 1.0, 1.0]
    view(spark, "pr", of("'b', 2", "'a', 3"))
    assert [column.match_rate for column in diff(spark, ["k"]).columns] == [0.0, 0.0, 0.0]


def test_types__compared_after_a_cast_as_table_diff_does_on_cast_columns(
    spark: SparkSession,
) -> None:
    old = {"k": "int", "a": "int", "b": "decimal(10,2)", "c": "date", "d": "int", "e": "string"}
    new = {
        "k": "bigint",
        "a": "double",
        "b": "decimal(12,5)",
        "c": "timestamp",
        "d": "string",
        "e": "boolean",
    }
    first = [str(n) for n in range(1, 5)]
    day, noon = "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00'"
    prod = [(n, "1", "1.25", day, "10", "'true'") for n in first]
    pr = [
        (first[0], "1.0004D", "1.25004", day, "'10'", "TRUE"),
        (first[1], "1.4D", "1.26", noon, "'010'", "TRUE"),
        (first[2], "1", "1.25", day, "'10'", "FALSE"),
        ("99", "1", "1.25", day, "'10'", "FALSE"),
    ]
    view(spark, "prod", values(old, prod))
    view(spark, "pr", values(new, pr))
    wide = "CAST(k AS BIGINT) k, CAST(a AS DOUBLE) a, CAST(b AS DECIMAL(12,5)) b, " + (
        "CAST(c AS TIMESTAMP) c, CAST(d AS STRING) d"
    )
    for name in ("prod", "pr"):
        view(spark, f"{name}_wide", f"SELECT {wide} FROM {name}")

    found = diff(spark, ["k"])

    assert found.schema_.changed == ["k", "a", "b", "c", "d", "e"]
    assert {c.name: c.match_rate for c in found.columns} == {
        **dict.fromkeys("abcd", 2 / 3),
        "e": None,
    }
    theirs = oracle(spark, ["k"], prod="prod_wide", pr="pr_wide")
    assert (found.matched, found.full_match) == (theirs.join_count, theirs.full_match_count)
    assert (found.only_prod, found.only_pr) == (1, 1)


def test_types__lengths_of_text_are_part_of_the_schema(spark: SparkSession) -> None:
    for name, kind in (("texts_prod", "VARCHAR(5)"), ("texts_pr", "VARCHAR(9)")):
        spark.sql(
            f"CREATE TABLE {name} (k INT, c CHAR(4), v {kind}, l ARRAY<{kind}>) USING parquet"
        )
        spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'b', ARRAY('c'))")
    found = diff_tables(
        SparkDiffPort(spark), DiffSpec("m", "texts_prod", "default.texts_pr", ("k",))
    )
    assert found.schema_.changed == ["v"]
    assert (found.full_match, [c.match_rate for c in found.columns]) == (1, [1.0, 1.0, 1.0])


@pytest.mark.night
def test_names__nothing_in_a_name_breaks_out_of_its_quotes(spark: SparkSession) -> None:
    names = ["k`", "a.b", "sel ect", "'; DROP TABLE x --", '"', "é", "*", "src", "a\\`n", "v0", "h"]
    picked = ", ".join(
        f"{number} AS `{name.replace('`', '``')}`" for number, name in enumerate(names)
    )
    view(spark, "prod", f"SELECT {picked}")
    view(spark, "pr", f"SELECT {picked}")
    view(spark, "ci_bot_diff_prod", "SELECT 'wrong table' AS k")
    for keys in (names[:1], names[:2], names[3:6]):
        found = diff(spark, keys)
        assert found.full_match == 1
        assert [c.name for c in found.columns] == [name for name in names if name not in keys]
        assert all(column.match_rate == 1.0 for column in found.columns)


@settings(parent=generated, max_examples=10)
@given(text=st.text(alphabet="ab\\'`\n\t%_{}\"é😀\x00", max_size=8))
def test_literal__is_that_text_on_spark(spark: SparkSession, text: str) -> None:
    if "${" not in text:
        ((found,),) = SparkDiffPort(spark).query_rows(f"SELECT {render_diff_text_literal(text)}")
        assert found == text


DAYS = {
    "date": ("DATE '{}'", None),
    "timestamp": ("TIMESTAMP '{} 23:30:00+00:00'", None),
    "timestamp_ntz": ("TIMESTAMP_NTZ '{} 23:30:00'", None),
    "string": ("'{}'", "%Y-%m-%d"),
    "int": ("INT(DATE_FORMAT(DATE '{}', 'yyyyMMdd'))", "%Y%m%d"),
}


@pytest.mark.by_day(3)
@pytest.mark.parametrize("kind", DAYS)
def test_window__selects_what_sqlmeshs_own_bounds_select(spark: SparkSession, kind: str) -> None:
    form, time_format = DAYS[kind]
    rows = [(str(day), form.format(f"2024-01-{day:02d}"), "1") for day in range(1, 11)]
    types = {"k": "int", "ds": kind, "v": "int"}
    view(spark, "prod", values(types, rows))
    view(spark, "pr", values(types, [(k, ds, "2" if k == "5" else "1") for k, ds, _ in rows[2:]]))
    start, end = to_timestamp("2024-01-04"), to_timestamp("2024-01-08")
    window = TimeWindow(
        "DS",
        prod=[(to_timestamp("2023-01-01"), end)],
        pr=[(start, to_timestamp("2024-02-01"))],
        format=time_format or "%Y-%m-%d",
    )
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = diff(spark, ["k"], window=window)
        sqlglot_type = exp.DataType.build(kind, dialect="spark")
        first, last = (
            to_time_column(moment, sqlglot_type, "spark", time_format)
            for moment in (to_datetime(start), to_datetime(end - 1))
        )
        theirs = oracle(spark, ["k"], where=exp.column("ds").between(first, last))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    agree(found, theirs)
    assert (found.rows_prod, found.rows_pr, found.matched, found.full_match) == (4, 4, 4, 3)
    assert found.window is not None
    assert found.window_of is not None
    assert (found.window.start, found.window.end) == (
        "2024-01-04T00:00:00Z",
        "2024-01-08T00:00:00Z",
    )
    assert found.window_of.start == "2023-01-01T00:00:00Z"


@pytest.mark.parametrize("keys", [["k"], ["k", "g"]])
def test_plan__each_table_is_read_and_shuffled_once(spark: SparkSession, keys: list[str]) -> None:
    for name in ("once_prod", "once_pr"):
        spark.sql(
            f"CREATE TABLE {name}_{len(keys)} USING parquet AS "
            "SELECT id AS k, STRING(id % 7) AS g, id AS v FROM RANGE(50)"
        )
    asked = Asked(SparkDiffPort(spark))
    spec = DiffSpec("m", f"once_prod_{len(keys)}", f"once_pr_{len(keys)}", tuple(keys))
    assert diff_tables(asked, spec).full_match == 50
    (plan,) = asked.plans
    assert plan.count("FileScan parquet") == 2
    assert plan.count("Exchange hashpartitioning") == 2
    assert plan.count("Sort [") == 2


def test_warehouse__nothing_is_left_in_it(spark: SparkSession) -> None:
    def everything() -> set[tuple[str, ...]]:
        schemas = [row[0] for row in spark.sql("SHOW SCHEMAS").collect()]
        return {
            (schema, row["tableName"])
            for schema in schemas
            for row in spark.sql(f"SHOW TABLES IN `{schema}`").collect()
        } | {(schema,) for schema in schemas}

    for name in ("prod", "pr"):
        view(spark, name, "SELECT id AS k, id AS v FROM RANGE(9)")
    before = everything()
    assert diff(spark, ["k"]).full_match == 9
    assert everything() == before


def test_ansi_mode__casts_that_overflow_do_not_fail(spark: SparkSession) -> None:
    view(spark, "prod", "SELECT 1 AS k, 1e300D AS v")
    view(spark, "pr", "SELECT 1 AS k, 2e300D AS v")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        assert [c.match_rate for c in diff(spark, ["k"]).columns] == [0.0]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")


@pytest.mark.night
def test_crowded_keys__a_grain_that_is_none_ends_soon(spark: SparkSession) -> None:
    # 2 keys with 100,000 rows each are 20,000,000,000 pairs.
    for name in ("prod", "pr"):
        view(spark, name, "SELECT id % 2 AS k, id AS v FROM RANGE(200000)")
    began = time.monotonic()
    found = diff(spark, ["k"])
    assert time.monotonic() - began < 300
    assert (found.rows_prod, found.matched, found.duplicate_keys) == (200_000, 20_000_000_000, 2)
    assert (found.full_match, [c.match_rate for c in found.columns]) == (None, [None])
    assert found.skipped_because is not None


@pytest.mark.night
def test_crowded_keys__the_last_that_are_compared(spark: SparkSession) -> None:
    for name in ("prod", "pr"):
        view(spark, name, "SELECT id % 2 AS k, id AS v FROM RANGE(10)")
    agree(diff(spark, ["k"], rows_per_key=5), oracle(spark, ["k"]))
    assert diff(spark, ["k"], rows_per_key=4).full_match is None


def test_errors__no_value_of_a_row_in_their_text(spark: SparkSession) -> None:
    view(spark, "prod", "SELECT 1 AS k, RAISE_ERROR(CONCAT('secret ', id)) AS v FROM RANGE(3)")
    view(spark, "pr", "SELECT 1 AS k, CAST(NULL AS VOID) AS v")
    with pytest.raises(DiffQueryError) as raised:
        diff(spark, ["k"])
    assert "secret" not in str(raised.value)
    with pytest.raises(DiffQueryError, match="TABLE_OR_VIEW_NOT_FOUND"):
        diff_tables(SparkDiffPort(spark), DiffSpec("m", "prod", "no.such_table", ("k",)))


@pytest.mark.night
def test_side_by_side__many_models_in_one_session(spark: SparkSession) -> None:
    for number in range(4):
        view(spark, f"many_{number}", f"SELECT id AS k, id % 3 AS v FROM RANGE({number + 1}0)")
    view(spark, "many_pr", "SELECT id AS k, id % 3 AS v FROM RANGE(20)")
    found = diff_models(
        SparkDiffPort(spark),
        [
            DiffCandidate(DiffSpec(f"m{number}", f"many_{number}", "many_pr", ("k",)))
            for number in range(4)
        ],
        controls=DiffControls(workers=2, clock=time.monotonic),
    )
    assert [diff.full_match for diff in found] == [10, 20, 20, 20]
    assert all(diff.seconds for diff in found)
    # Two slots; while one is planned, the tasks of the other run.
    assert count_parallel_diffs(spark) == 2


def test_cancel__ends_the_query_that_runs(spark: SparkSession) -> None:
    endless = "SELECT a.id AS k, a.id % 3 AS v FROM RANGE(100000000) a JOIN RANGE(1000) b"
    for name in ("prod", "pr"):
        view(spark, name, endless)
    port = SparkDiffPort(spark, group="cancelled-diff")
    tracker = spark.sparkContext.statusTracker()

    found = diff_models(
        port,
        [DiffCandidate(DiffSpec("m", "prod", "pr", ("k",)))],
        controls=DiffControls(
            cancelled=lambda: bool(tracker.getJobIdsForGroup("cancelled-diff")),
            stop=port.cancel_queries,
            patience=60,
        ),
    )

    assert [diff.skipped_because for diff in found] == [CANCELLED]
    assert tracker.getActiveJobsIds() == []


def test_port__gives_the_thread_back_as_it_was(spark: SparkSession) -> None:
    context = spark.sparkContext
    seen: list[str | None] = []

    def work() -> None:
        context.setJobGroup("apply", "an apply", interruptOnCancel=False)
        SparkDiffPort(spark).query_rows("SELECT COUNT(*) FROM RANGE(10)")
        seen.append(context.getLocalProperty("spark.jobGroup.id"))
        seen.append(context.getLocalProperty("spark.job.description"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert seen == ["apply", "an apply"]
    SparkDiffPort(spark).query_rows("SELECT COUNT(*) FROM RANGE(10)")
    assert context.getLocalProperty("spark.jobGroup.id") is None


def test_port__size_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.range(1000).write.parquet(place)
    view(spark, "sized", f"SELECT * FROM parquet.`{place}`")
    held = sum(file.stat().st_size for file in Path(place).glob("*.parquet"))
    with SparkDiffPort(spark).open_table("sized") as seen:
        assert seen.size() == held
        assert spark.catalog.tableExists(seen.name)
    assert not spark.catalog.tableExists(seen.name)


def test_port__keeps_its_look_at_a_table_until_a_query_fails(spark: SparkSession) -> None:
    port = SparkDiffPort(spark)
    view(spark, "kept", "SELECT id AS k FROM RANGE(7)")
    with port.keep_tables(["kept"], at_once=2) as names:
        spark.catalog.dropTempView("kept")
        assert port.query_rows(f"SELECT COUNT(*) FROM {names['kept']}") == [(7,)]
        with port.open_table("kept", few=True) as seen:
            assert port.query_rows(f"SELECT MAX(k) FROM {seen.name}", few=True) == [(6,)]
        view(spark, "kept", "SELECT id AS k FROM RANGE(8)")
        with pytest.raises(DiffQueryError), port.open_table("kept"):
            raise DiffQueryError("as where its files are gone")
        with port.open_table("kept") as seen:
            assert port.query_rows(f"SELECT COUNT(*) FROM {seen.name}") == [(8,)], "it looks anew"
    assert not spark.catalog.tableExists(names["kept"])
    with (
        pytest.raises(DiffQueryError, match="TABLE_OR_VIEW_NOT_FOUND"),
        port.keep_tables(["gone"], at_once=1),
    ):
        pass


def test_port__looks_no_second_time_at_what_was_looked_at_before(spark: SparkSession) -> None:
    port = SparkDiffPort(spark)
    view(spark, "seen", "SELECT id AS k FROM RANGE(7)")
    port.analyse_table("seen")
    spark.catalog.dropTempView("seen")
    with port.keep_tables(["seen"], at_once=1) as names:
        assert port.query_rows(f"SELECT COUNT(*) FROM {names['seen']}") == [(7,)]
    with (
        pytest.raises(DiffQueryError, match="TABLE_OR_VIEW_NOT_FOUND"),
        port.keep_tables(["seen"], at_once=1),
    ):
        pass
    with pytest.raises(AnalysisException):
        port.analyse_table("seen")


def test_port__reads_few_rows_past_the_views_that_they_are_defined_through(
    spark: SparkSession,
) -> None:
    view(spark, "deep_0", "SELECT id AS k, id % 3 AS v FROM RANGE(10)")
    for number in range(1, 6):
        view(spark, f"deep_{number}", f"SELECT k, v FROM deep_{number - 1}")
    port = SparkDiffPort(spark)

    def views(few: bool) -> int:
        with port.open_table("deep_5", few=few) as seen:
            plan = spark.table(seen.name)._jdf.queryExecution().analyzed().toString()
        return str(plan).count("View (`deep_")

    assert (views(few=False), views(few=True)) == (6, 0)


def test_port__names_nothing_as_another_port_of_the_same_spark_does(spark: SparkSession) -> None:
    view(spark, "both", "SELECT 1 AS k")
    with (
        SparkDiffPort(spark).keep_tables(["both"], at_once=1) as one,
        SparkDiffPort(spark).keep_tables(["both"], at_once=1) as other,
    ):
        assert one["both"] != other["both"]
