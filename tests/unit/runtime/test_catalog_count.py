"""Rows of many tables are counted in statements of a bounded size, and each count finds its table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from ci_bot.worker.runtime.spark_catalog import SparkCatalog, SparkRelation


class Spark:
    """Counts seven rows more than a table's number, in no order."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def query_rows(self, sql: str) -> Sequence[Any]:
        asked = re.findall(r"SELECT (\d+) AS position, COUNT\(\*\) AS n FROM \S+`m(\d+)`", sql)
        self.asked.append(len(asked))
        return [(int(position), int(number) + 7) for position, number in reversed(asked)]


@pytest.mark.parametrize(
    ("tables", "statements"), [(0, []), (1, [1]), (25, [25]), (60, [25, 25, 10])]
)
def test_count__is_asked_in_parts_and_mixes_nothing_up(tables: int, statements: list[int]) -> None:
    spark = Spark()
    wanted = [
        SparkRelation("spark_catalog", "shop__pr_7", f"m{number}") for number in range(tables)
    ]
    found = SparkCatalog(spark).count_rows(wanted)
    assert found == {table: number + 7 for number, table in enumerate(wanted)}
    assert spark.asked == statements


def test_count__names_what_was_looked_at_already_by_that_look() -> None:
    spark = Spark()
    one, two = (SparkRelation("spark_catalog", "shop__pr_7", f"m{number}") for number in (1, 2))
    assert SparkCatalog(spark).count_rows([one, two], {one.sql_text: "`seen`.`m40`"}) == {
        one: 47,
        two: 9,
    }
