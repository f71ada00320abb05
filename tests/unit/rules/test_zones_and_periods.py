"""Slips in new models over groups of a pattern, quotients, zones, periods and other currencies."""

from __future__ import annotations

import pytest

from tests.unit.rules.test_units_and_gaps import IMPROBABLE, LINES, list_severities
from tests.unit.rules.world import list_severities_of_new_model

LAG = "LAG(l.qty) OVER (PARTITION BY l.{0} ORDER BY l.order_id, l.line_no)"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        # Without a number it is group 1.
        ("REGEXP_EXTRACT(l.part_no, '[0-9]+')", ["high"]),
        ("REGEXP_EXTRACT(l.part_no, '(?:A)([0-9]+)', 2)", ["high"]),
        ("REGEXP_EXTRACT(l.part_no, '([0-9]+)')", []),
        ("REGEXP_EXTRACT(l.part_no, '[0-9]+', 0)", []),
        # Java reads this one, Python does not.
        ("REGEXP_EXTRACT(l.part_no, '(?<digits>[0-9]+)')", []),
        # The division comes first.
        ("l.qty - l.price / l.qty", ["high"]),
        ("COALESCE(l.qty, 0) + l.price / NULLIF(l.qty, 0)", ["high"]),
        ("(l.qty - l.price) / l.qty", []),
        ("1 - l.price / l.qty", []),
        ("l.qty - l.price / l.line_no", []),
        # Rows without a date of receipt are of no day.
        (LAG.format("received_on"), ["high"]),
        (LAG.format("part_no"), []),
        (f"CASE WHEN l.received_on IS NOT NULL THEN {LAG.format('received_on')} END", []),
        ("SUM(l.qty) OVER (PARTITION BY l.received_on)", []),
    ],
)
def test_value__of_a_slip_that_runs(item: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, LINES.format(item)) == expected


SPAN = "UNIX_TIMESTAMP(MAX(l.ended_at)) - UNIX_TIMESTAMP(MIN(l.started_at))"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (f"SUM(l.work_minutes) / NULLIF({SPAN}, 0) AS utilisation", ["high"]),
        ("100 * SUM(l.work_minutes) / SUM(l.open_hours) AS busy_pct", ["high"]),
        ("SUM(l.work_minutes) / SUM(TIMESTAMPDIFF(HOUR, l.started_at, l.ended_at)) AS busy_share",
         ["high"]),
        (f"60 * SUM(l.work_minutes) / ({SPAN}) AS utilisation", []),
        ("SUM(l.work_minutes) / (60 * SUM(l.open_hours)) AS busy_share", []),
        ("SUM(l.work_minutes) / SUM(l.open_minutes) AS busy_share", []),
        # Minutes of an hour are no share.
        ("SUM(l.work_minutes) / SUM(l.open_hours) AS minutes_each_hour", []),
    ],
)  # fmt: skip
def test_share__of_another_unit(item: str, expected: list[str]) -> None:
    found = list_severities_of_new_model(
        IMPROBABLE,
        f"SELECT l.part_no, {item} FROM shop.shifts AS l GROUP BY l.part_no",
        stays={},
        external={
            "shop.shifts": {
                "part_no": "STRING", "work_minutes": "INT", "open_minutes": "INT",
                "open_hours": "INT", "started_at": "TIMESTAMP", "ended_at": "TIMESTAMP",
            }
        },
    )  # fmt: skip
    assert found == expected


@pytest.mark.parametrize(
    ("counted", "where", "expected"),
    [
        ("l.order_id, l.received_on", "", ["high"]),
        ("l.order_id, l.line_no", "", []),
        ("l.order_id, l.received_on", "WHERE l.received_on IS NOT NULL", []),
        ("l.order_id, COALESCE(l.received_on, DATE '2999-12-31')", "", []),
    ],
)
def test_count__of_pairs_with_a_gap(counted: str, where: str, expected: list[str]) -> None:
    text = (
        f"SELECT l.part_no, COUNT(DISTINCT {counted}) AS x FROM stg.lines AS l {where} "
        "GROUP BY l.part_no"
    )
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("TO_UTC_TIMESTAMP(l.started_at, 'Europe/Rome') AS started_local", ["high"]),
        ("FROM_UTC_TIMESTAMP(l.started_at, 'Europe/Rome') AS started_at_utc", ["high"]),
        ("TO_UTC_TIMESTAMP(l.started_at, 'Europe/Rome') AS started_utc", []),
        ("FROM_UTC_TIMESTAMP(l.started_at, 'Europe/Rome') AS started_local", []),
        ("FROM_UTC_TIMESTAMP(l.started_at, 'UTC') AS started_utc", []),
        ("TO_UTC_TIMESTAMP(l.started_at, 'Europe/Rome') AS started_at", []),
    ],
)
def test_name__of_another_zone(item: str, expected: list[str]) -> None:
    text = f"SELECT l.order_id, l.line_no, {item} FROM stg.lines AS l"
    assert list_severities("misnamed-column", text) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("l.ordered_on BETWEEN p.day AND p.until", ["high"]),
        ("l.ordered_on BETWEEN p.day AND COALESCE(p.until, DATE '2999-12-31')", ["high"]),
        ("l.ordered_on >= p.day AND l.ordered_on <= p.until", ["high"]),
        ("l.ordered_on >= p.day AND l.ordered_on < p.until", []),
        ("l.ordered_on BETWEEN p.day AND p.last_day", []),
        # The next number of entries is the start of nothing.
        ("l.ordered_on = p.day AND l.qty <= p.next_entries", []),
    ],
)
def test_period__that_has_the_first_day_of_the_next(condition: str, expected: list[str]) -> None:
    text = (
        "WITH p AS (SELECT d.day, LEAD(d.day) OVER (ORDER BY d.day) AS until, "
        "DATE_SUB(LEAD(d.day) OVER (ORDER BY d.day), 1) AS last_day, "
        "LEAD(d.entries) OVER (ORDER BY d.day) AS next_entries FROM stg.days AS d) "
        f"SELECT l.order_id, l.line_no, p.day FROM stg.lines AS l JOIN p ON {condition}"
    )
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("item", "where", "expected"),
    [
        ("e.total_eur - l.price", "", ["high"]),
        ("COALESCE(l.price, 0) + e.total_eur", "", ["high"]),
        ("e.total_eur - l.price", "WHERE l.currency = 'EUR'", []),
        ("e.total_eur - l.price * l.qty", "", []),
        ("e.total_eur - e.total_eur", "", []),
        ("e.line_no - l.price", "", []),
    ],
)
def test_difference__of_two_currencies(item: str, where: str, expected: list[str]) -> None:
    text = (
        "WITH e AS (SELECT o.order_id, 1 AS line_no, CAST(9 AS DECIMAL(9, 2)) AS total_eur "
        f"FROM stg.orders AS o) SELECT e.order_id, {item} AS x FROM e "
        f"JOIN stg.lines AS l ON l.order_id = e.order_id AND l.line_no = e.line_no {where}"
    )
    assert list_severities("mixed-currencies", text) == expected
