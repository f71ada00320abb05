"""What a window function sees and in which order, what a broadcast sends, and where a day ends."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, seen

HEAD = "MODEL (name mart.latest, kind FULL);\n"
RANKED = "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY {order})"
LATEST = "SELECT o.order_id, {window} AS rn FROM raw.orders AS o"


def found(before: str, after: str, rule: str) -> list[str]:
    inputs = change({"models/m.sql": HEAD + before}, {"models/m.sql": HEAD + after})
    return [item.severity for item in seen(inputs, rule)]


def ordered(before: str, after: str) -> list[str]:
    old, new = (LATEST.format(window=window) for window in (before, after))
    return found(old, new, "nondeterministic-order")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("o.order_ts DESC, o.order_id", "o.order_ts DESC"),
        ("o.status, o.order_ts, o.order_id", "o.order_id, o.status"),
    ],
)
def test_tie_break__that_goes_is_found(before: str, after: str) -> None:
    assert ordered(RANKED.format(order=before), RANKED.format(order=after)) == ["high"]


@pytest.mark.parametrize("function", ["FIRST_VALUE(o.status)", "LAG(o.amount)"])
def test_tie_break__of_other_functions_counts(function: str) -> None:
    over = "{0} OVER (PARTITION BY o.customer_id ORDER BY {1})"

    assert ordered(
        over.format(function, "o.order_ts, o.order_id"), over.format(function, "o.order_ts")
    ) == ["high"]


@pytest.mark.parametrize("function", ["RANK()", "DENSE_RANK()", "SUM(o.amount)"])
def test_tie_break__means_nothing_where_equals_are_treated_alike(function: str) -> None:
    over = "{0} OVER (PARTITION BY o.customer_id ORDER BY {1})"

    assert not ordered(
        over.format(function, "o.order_ts, o.order_id"), over.format(function, "o.order_ts")
    )


def test_tie_break__that_comes_or_only_changes_direction_is_none_that_goes() -> None:
    assert not ordered(
        RANKED.format(order="o.order_ts"), RANKED.format(order="o.order_ts, o.order_id")
    )
    assert not ordered(RANKED.format(order="o.order_ts"), RANKED.format(order="o.order_ts DESC"))


INSIDE = """
WITH r AS (
  SELECT o.order_id, o.customer_id, o.status,
    ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_ts, o.order_id) AS rn
  FROM raw.orders AS o{inside}
)
SELECT r.order_id, r.status FROM r WHERE r.rn = 1{outside}
"""


@pytest.mark.parametrize("turned", [False, True])
def test_filter__that_moves_past_a_window_is_another_filter(turned: bool) -> None:
    outside = INSIDE.format(inside="", outside=" AND r.status <> 'deleted'")
    inside = INSIDE.format(inside=" WHERE o.status <> 'deleted'", outside="")
    before, after = (inside, outside) if turned else (outside, inside)

    assert found(before, after, "filter-changed") == ["high"]


def test_filter__on_the_partition_may_move() -> None:
    outside = INSIDE.format(inside="", outside=" AND r.customer_id > 7")
    inside = INSIDE.format(inside=" WHERE o.customer_id > 7", outside="")

    assert not found(outside, inside, "filter-changed")


HOURLY = """MODEL (
  name stg.hours,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_ts, batch_size 30),
  cron '@hourly'
);
SELECT o.order_id, o.order_ts FROM raw.orders AS o WHERE {where}
"""


@pytest.mark.parametrize(
    ("where", "fires"),
    [
        ("o.order_ts BETWEEN @start_ds AND @end_ds", True),
        ("o.order_ts >= @start_ds AND o.order_ts <= @end_ds", True),
        ("@start_ds <= o.order_ts AND @end_date >= o.order_ts", True),
        ("o.order_ts BETWEEN @start_ts AND @end_ts", False),
        ("CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds", False),
        ("DATE(o.order_ts) BETWEEN @start_ds AND @end_ds", False),
        ("o.order_ts >= @start_ds AND o.order_ts < DATE_ADD(@end_ds, 1)", False),
    ],
)
def test_timestamp__compared_with_the_last_day_loses_its_hours(where: str, fires: bool) -> None:
    inputs = change({}, {"models/m.sql": HOURLY.format(where=where)})

    assert [item.severity for item in seen(inputs, "interval-edge-lost")] == ["high"] * fires


@pytest.mark.parametrize(
    ("hint", "severity"),
    [
        ("BROADCAST(c)", ["medium"]),
        ("mapjoin(c)", ["medium"]),
        ("REPARTITION(3)", []),
        ("SHUFFLE_HASH(c)", []),
    ],
)
def test_hint__that_broadcasts_is_found(hint: str, severity: list[str]) -> None:
    query = (
        f"SELECT /*+ {hint} */ o.order_id FROM raw.orders AS o "
        "JOIN raw.customers AS c ON c.customer_id = o.customer_id"
    )
    inputs = change({}, {"models/m.sql": HEAD + query})

    assert [item.severity for item in seen(inputs, "broadcast-hint")] == severity


@pytest.mark.parametrize(
    ("column", "severity"),
    [
        ("CURRENT_TIMESTAMP() AS loaded_at", "medium"),
        ("CAST(CURRENT_TIMESTAMP() AS DATE) AS loaded_on", "medium"),
        ("DATEDIFF(CURRENT_DATE, o.order_ts) AS age", "high"),
        ("CURRENT_TIMESTAMP() AS loaded_at, YEAR(CURRENT_DATE) AS year", "high"),
        ("CURRENT_TIMESTAMP() AS order_day", "high"),
    ],
)
def test_clock__beside_the_data_weighs_less_than_in_it(column: str, severity: str) -> None:
    text = (
        "MODEL (name mart.m, kind FULL, partitioned_by order_day); "
        f"SELECT o.order_id, {column} FROM raw.orders AS o"
    )
    inputs = change({}, {"models/m.sql": text})

    assert [item.severity for item in seen(inputs, "current-time")] == [severity]


def test_order__that_goes_on_where_it_ended_filters_as_before() -> None:
    """A tie-break makes a pick certain that was left to chance, and is no other filter."""
    before = INSIDE.format(inside="", outside="").replace(", o.order_id) AS rn", ") AS rn")
    after = INSIDE.format(inside="", outside="")

    assert not found(before, after, "filter-changed")
    assert found(before, after.replace("o.order_ts, o.order_id", "o.amount"), "filter-changed")


def test_tie_break__of_a_function_that_gives_the_order_itself_means_nothing() -> None:
    over = "LAG(o.order_ts) OVER (PARTITION BY o.customer_id ORDER BY {})"

    assert not ordered(over.format("o.order_ts, o.order_id"), over.format("o.order_ts"))


def test_group__by_a_key_of_the_same_name_is_no_other_grain() -> None:
    query = (
        "WITH n AS (SELECT o.customer_id, o.amount, ROW_NUMBER() OVER "
        "(PARTITION BY o.customer_id ORDER BY {}) AS part FROM raw.orders AS o) "
        "SELECT n.part, SUM(n.amount) AS total FROM n GROUP BY n.part"
    )

    assert not found(query.format("o.order_ts"), query.format("o.loaded_at"), "grain-changed")
