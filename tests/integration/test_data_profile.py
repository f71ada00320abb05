"""How a changed column is spread before and after, and what counts as the same, on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ci_bot.protocol.apply_report import ColumnMatch, Profile, TableDiff
from ci_bot.worker.data_diff.compare import diff_tables
from ci_bot.worker.data_diff.spark_port import SparkDiffPort
from ci_bot.worker.data_diff.spec import DiffSpec
from tests.integration.test_data_diff import spark, values, view

__all__ = ["spark"]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


def compared(
    spark: SparkSession,
    types: dict[str, str],
    prod: Sequence[Sequence[str]],
    pr: Sequence[Sequence[str]],
    *,
    pr_types: dict[str, str] | None = None,
    keys: Sequence[str] = ("k",),
) -> TableDiff:
    view(spark, "prod", values(types, prod))
    view(spark, "pr", values(pr_types or types, pr))
    return diff_tables(SparkDiffPort(spark), DiffSpec("m", "prod", "pr", tuple(keys)))


def column(found: TableDiff, name: str) -> ColumnMatch:
    (one,) = [column for column in found.columns if column.name == name]
    return one


def keyed(*values_: str) -> list[tuple[str, str]]:
    return [(str(number), value) for number, value in enumerate(values_)]


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("kind", "rows", "expected"),
    [
        ("int", ["1", "3", "NULL"], Profile(nulls=1, distinct=2, mean=2.0, min="1", max="3")),
        ("bigint", ["9007199254740993"], {"min": "9007199254740993"}),
        ("double", ["1.5D", "NULL"], Profile(nulls=1, mean=1.5, min="1.5", max="1.5")),
        ("double", ["DOUBLE('NaN')", "1"], {"mean": None, "nulls": 0}),
        ("decimal(38,10)", ["1.25", "1.75"], {"mean": 1.5, "max": "1.7500000000"}),
        ("boolean", ["TRUE", "FALSE", "NULL"], Profile(nulls=1, mean=0.5)),
        (
            "date",
            ["DATE '2024-01-01'", "DATE '2024-02-01'"],
            Profile(nulls=0, distinct=2, min="2024-01-01", max="2024-02-01"),
        ),
        ("timestamp", ["TIMESTAMP '2024-01-01 10:00:00'"], {"min": "2024-01-01 10:00:00"}),
        ("string", ["'ada'", "'bob'", "''", "NULL"], Profile(nulls=1, distinct=3)),
        ("binary", ["X'00'", "NULL"], Profile(nulls=1, distinct=1)),
        ("array<int>", ["ARRAY(1)", "NULL"], Profile(nulls=1)),
        ("struct<p:int>", ["NAMED_STRUCT('p', 1)", "NULL"], Profile(nulls=1)),
        ("map<string,int>", ["MAP('a', 1)", "NULL"], Profile(nulls=1)),
    ],
)
def test_profile__of_each_type(
    spark: SparkSession, kind: str, rows: list[str], expected: Any
) -> None:
    found = column(compared(spark, {"k": "int", "v": kind}, keyed(*rows), []), "v")
    assert found.match_rate is None
    assert found.prod is not None
    assert found.pr is not None
    assert (found.pr.nulls, found.pr.min, found.pr.mean) == (0, None, None)
    wanted = expected.model_dump() if isinstance(expected, Profile) else expected
    assert found.prod.model_dump() | wanted == found.prod.model_dump()


def test_profile__a_row_counts_once_however_many_partners_it_has(spark: SparkSession) -> None:
    types = {"k": "int", "v": "int"}
    prod = [("1", "10"), ("1", "20"), ("2", "30"), ("NULL", "40")]
    pr = [("1", "1"), ("1", "1"), ("1", "1"), ("3", "9")]
    found = column(compared(spark, types, prod, pr), "v")
    assert found.prod is not None
    assert found.pr is not None
    assert (found.prod.mean, found.pr.mean) == (25.0, 3.0)


def test_profile__only_of_columns_that_differ(spark: SparkSession) -> None:
    types = {"k": "int", "a": "int", "b": "string"}
    found = compared(spark, types, [("1", "1", "'x'")], [("1", "2", "'x'")])
    assert column(found, "a").pr == Profile(nulls=0, distinct=1, mean=2.0, min="2", max="2")
    assert column(found, "b").pr is None


def test_profile__in_ansi_mode_nothing_overflows(spark: SparkSession) -> None:
    types = {"k": "int", "v": "decimal(38,0)", "n": "bigint"}
    huge = "9" * 38
    rows = [("1", huge, str(2**63 - 1)), ("2", huge, str(2**63 - 1))]
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        found = compared(spark, types, rows, [("1", "1", "1"), ("2", "1", "1")])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")
    before = column(found, "v").prod
    assert before is not None
    assert before.mean == pytest.approx(1e38)
    assert before.max == huge


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("kind", "prod", "pr", "full_match", "same"),
    [
        ("double", "0.1D + 0.2D", "0.3D", 1, 1),
        ("double", "100000.0D", "100000.0004D", 1, 0),
        ("double", "0.00012D", "0.00034D", 1, 0),
        ("double", "DOUBLE('NaN')", "DOUBLE('NaN')", 1, 1),
        ("double", "DOUBLE('Infinity')", "1.0D", 0, 0),
        ("double", "DOUBLE('NaN')", "1.0D", 0, 0),
        ("double", "NULL", "0.0D", 0, 0),
        ("double", "-0.0D", "0.0D", 1, 1),
        ("decimal(12,5)", "1.00001", "1.00002", 1, 0),
        ("decimal(12,2)", "1.01", "1.02", 0, 0),
        ("float", "0.00012F", "0.00034F", 1, 0),
        ("string", "'a'", "'a'", 1, 1),
        ("array<double>", "ARRAY(0.1D)", "ARRAY(0.1D)", 1, 1),
    ],
)
def test_same__takes_no_rounding_for_equality(
    spark: SparkSession, kind: str, prod: str, pr: str, full_match: int, same: int
) -> None:
    types = {"k": "int", "v": kind}
    found = compared(spark, types, [("1", prod)], [("1", pr)])
    assert (found.full_match, found.same) == (full_match, same)


def test_same__rows_in_another_order_and_a_new_column(spark: SparkSession) -> None:
    types = {"k": "int", "v": "int"}
    rows = keyed("1", "2", "3")
    more = [(*row, "7") for row in reversed(rows)]
    found = compared(spark, types, rows, more, pr_types={**types, "fresh": "int"})
    assert (found.rows_prod, found.rows_pr, found.same, found.complete) == (3, 3, 3, True)
    assert found.schema_.added == ["fresh"]


def test_same__another_scale_of_a_decimal_is_another_type(spark: SparkSession) -> None:
    found = compared(
        spark,
        {"k": "int", "v": "decimal(12,2)"},
        [("1", "1.10")],
        [("1", "1.10")],
        pr_types={"k": "int", "v": "decimal(12,4)"},
    )
    assert (found.same, found.schema_.changed) == (1, ["v"])
