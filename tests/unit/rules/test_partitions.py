"""What partitions do to the rows that a run replaces, and to the number of files."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, seen

QUERY = (
    "SELECT o.order_id, o.status, o.order_ts, CAST(o.order_ts AS DATE) AS day FROM raw.orders AS o"
)
INTERVAL = " WHERE CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds"


def rules(block: str, dialect: str = "spark") -> set[str]:
    text = f"MODEL (name stg.m, dialect {dialect}, {block});\n{QUERY}"
    text += INTERVAL if "TIME_RANGE" in block else ""
    found = seen(change({}, {"models/m.sql": text}))
    return {item.rule for item in found} & {"partitions-without-time", "partition-per-row"}


BY_HAND = "kind INCREMENTAL_BY_TIME_RANGE (time_column day, partition_by_time_column false)"
BY_ITSELF = "kind INCREMENTAL_BY_TIME_RANGE (time_column day)"


@pytest.mark.parametrize(
    ("block", "lost"),
    [
        (BY_ITSELF, False),
        (f"{BY_ITSELF}, partitioned_by (status)", False),
        (BY_HAND, True),
        (f"{BY_HAND}, partitioned_by (status)", True),
        (f"{BY_HAND}, partitioned_by (day, status)", False),
        (f"{BY_HAND}, partitioned_by (days(day))", False),
        (f"{BY_HAND}, partitioned_by (hours(day))", False),
        (f"{BY_HAND}, partitioned_by (status, day, months(day))", False),
        (f"{BY_ITSELF}, partitioned_by (CAST(day AS DATE))", False),
        (f"{BY_ITSELF}, partitioned_by (truncate(10, day))", False),
        (f"{BY_ITSELF}, cron '@monthly', partitioned_by (months(day))", False),
        # A run of a day would leave that day alone in its month.
        (f"{BY_ITSELF}, partitioned_by (months(day))", True),
        (f"{BY_ITSELF}, partitioned_by (MONTH(day))", True),
        (f"{BY_ITSELF}, partitioned_by (status, year(day))", True),
        (f"{BY_ITSELF}, partitioned_by (date_trunc('week', day))", True),
        (f"{BY_ITSELF}, partitioned_by (trunc(day, 'MM'))", True),
        (f"{BY_ITSELF}, partitioned_by (bucket(16, day))", True),
        (f"{BY_ITSELF}, partitioned_by (truncate(6, day))", True),
        (f"{BY_ITSELF}, cron '@hourly', partitioned_by (days(day))", True),
        (f"{BY_ITSELF}, cron '*/5 * * * *', partitioned_by (hours(day))", True),
        ("kind FULL, partitioned_by (status)", False),
    ],
)
def test_time__is_among_the_partitions(block: str, lost: bool) -> None:
    assert rules(block) == ({"partitions-without-time"} if lost else set())


BY_PARTITION = "kind INCREMENTAL_BY_PARTITION, partitioned_by ({})"
SNAPSHOTS = "kind INCREMENTAL_UNMANAGED (insert_overwrite {}), partitioned_by (status)"
CHANGED = "o.order_ts BETWEEN @start_ts AND @end_ts"


@pytest.mark.parametrize(
    ("block", "condition", "lost"),
    [
        (BY_PARTITION.format("status"), CHANGED, True),
        (BY_PARTITION.format("status"), "o.order_ts >= @start_ts", True),
        (BY_PARTITION.format("status"), "o.status = 'new'", False),
        # As SQLMesh's documentation of the kind has it.
        (
            BY_PARTITION.format("status"),
            f"o.status IN (SELECT o.status FROM raw.orders AS o WHERE {CHANGED})",
            False,
        ),
        (BY_PARTITION.format("day"), CHANGED, False),
        (BY_PARTITION.format("status, days(day)"), CHANGED, False),
        (BY_PARTITION.format("months(day)"), CHANGED, True),
        (SNAPSHOTS.format("true"), CHANGED, True),
        (SNAPSHOTS.format("false"), CHANGED, False),
    ],
)
def test_partition__that_a_part_of_its_rows_replaces(
    block: str, condition: str, lost: bool
) -> None:
    text = f"MODEL (name stg.m, dialect spark, {block});\n{QUERY} WHERE {condition}"
    found = {item.rule for item in seen(change({}, {"models/m.sql": text}))}
    assert ("partitions-without-time" in found) is lost


def test_time__where_rows_are_deleted_by_the_interval_is_no_matter_of_partitions() -> None:
    assert rules(BY_HAND, dialect="duckdb") == set()


@pytest.mark.parametrize(
    ("block", "fine"),
    [
        ("kind FULL, grain order_id, partitioned_by (order_id)", True),
        ("kind FULL, grain (order_id, day), partitioned_by (day)", False),
        ("kind FULL, partitioned_by (order_ts)", True),
        ("kind FULL, partitioned_by (days(order_ts))", False),
        ("kind FULL, grain order_id, partitioned_by (bucket(16, order_id))", False),
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id), partitioned_by (order_id)", True),
        ("kind FULL, grain order_id, partitioned_by (status)", False),
        ("kind INCREMENTAL_BY_TIME_RANGE (time_column order_ts)", False),
    ],
)
def test_partition__for_each_row(block: str, fine: bool) -> None:
    assert rules(block) == ({"partition-per-row"} if fine else set())
