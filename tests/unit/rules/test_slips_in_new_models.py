"""Slips in new models that run without an error: a branch that nothing reaches, a list that is one
text, windows that mix accounts, a filter that somebody left in, a column that is not what its name
says.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

ACCOUNTS = (
    "MODEL (name stg.accounts, kind FULL, grain account_id); "
    "SELECT a.account_id, a.country, a.plan_code, a.seats, a.created_on, a.updated_at, a.closed_on "
    "FROM src.accounts AS a"
)
USAGE = (
    "MODEL (name stg.usage, kind FULL, grain (account_id, event_day)); "
    "SELECT u.account_id, u.event_day, u.seconds, u.status FROM src.usage AS u"
)
STAYS = {"models/accounts.sql": ACCOUNTS, "models/usage.sql": USAGE}
TABLES = {
    **EXTERNAL,
    "src.accounts": {
        "account_id": "BIGINT",
        "country": "STRING",
        "plan_code": "STRING",
        "seats": "INT",
        "created_on": "DATE",
        "updated_at": "TIMESTAMP",
        "closed_on": "DATE",
    },
    "src.usage": {
        "account_id": "BIGINT",
        "event_day": "DATE",
        "seconds": "BIGINT",
        "status": "STRING",
    },
}
IMPROBABLE = "improbable-expression"
MISNAMED = "misnamed-column"


list_severities = partial(list_severities_of_new_model, stays=STAYS, external=TABLES)


BANDS = "SELECT a.account_id, {0} AS band FROM stg.accounts AS a"


@pytest.mark.parametrize(
    "value",
    [
        "CASE WHEN a.seats >= 1 THEN 's' WHEN a.seats >= 10 THEN 'm' END",
        "CASE WHEN a.seats > 0 THEN 's' WHEN a.seats > 9 AND a.country = 'DE' THEN 'm' ELSE 'l' END",
        "CASE WHEN a.seats < 100 THEN 'm' WHEN a.seats < 10 THEN 's' ELSE 'l' END",
        "CASE WHEN a.country = 'DE' THEN 1 WHEN a.country = 'DE' THEN 2 END",
        "CASE WHEN a.country IN ('DE', 'AT') THEN 1 WHEN a.country = 'AT' THEN 2 END",
        "CASE WHEN a.created_on >= '2024-01-01' THEN 1 WHEN a.created_on > '2024-06-01' THEN 2 END",
    ],
)
def test_case__with_a_branch_that_nothing_reaches__is_high(value: str) -> None:
    assert list_severities(IMPROBABLE, BANDS.format(value)) == ["high"]


@pytest.mark.parametrize(
    "value",
    [
        "CASE WHEN a.seats >= 100 THEN 'l' WHEN a.seats >= 10 THEN 'm' ELSE 's' END",
        "CASE WHEN a.seats < 10 THEN 's' WHEN a.seats < 100 THEN 'm' ELSE 'l' END",
        "CASE WHEN a.seats > 1 AND a.country = 'DE' THEN 1 WHEN a.seats > 10 THEN 2 END",
        "CASE WHEN a.seats > 10 THEN 1 WHEN a.account_id > 20 THEN 2 END",
        "CASE WHEN a.seats = 1 THEN 1 WHEN a.seats IN (1, 2) THEN 2 END",
        "CASE WHEN a.seats > 10 THEN 1 WHEN a.seats >= 10 THEN 2 END",
        "CASE WHEN a.country <> 'DE' THEN 1 WHEN a.country = 'DE' THEN 2 END",
        "CASE WHEN a.country > 'b' THEN 1 WHEN a.country > 10 THEN 2 END",
    ],
)
def test_case__with_branches_that_are_reached__is_quiet(value: str) -> None:
    assert list_severities(IMPROBABLE, BANDS.format(value)) == []


ROWS = "SELECT u.account_id, u.event_day, u.seconds FROM stg.usage AS u WHERE {0}"


@pytest.mark.parametrize(
    "condition",
    [
        "u.status = 'test%'",
        "u.status <> '%test'",
        "u.status IN ('test%', 'beta')",
        "u.status IN ('open, paid, void')",
        "1 = 0",
        "FALSE",
        "u.seconds > 0 AND FALSE",
        "'a' = 'b'",
    ],
)
def test_filter__that_hardly_means_what_it_says__is_high(condition: str) -> None:
    assert list_severities(IMPROBABLE, ROWS.format(condition)) == ["high"]


@pytest.mark.parametrize(
    "condition",
    [
        "u.status LIKE 'test%'",
        "u.status = '100%'",
        "u.status IN ('open', 'paid')",
        "u.status IN ('Smith, John')",
        "u.status = 'open,paid'",
        "u.status = 'a, b or c'",
        "TRUE",
        "1 = 1",
        "u.status IN ('open')",
    ],
)
def test_filter__with_a_meaning__is_quiet(condition: str) -> None:
    assert list_severities(IMPROBABLE, ROWS.format(condition)) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("SUM(DISTINCT u.seconds)", ["high"]),
        ("AVG(DISTINCT u.seconds)", ["high"]),
        ("COUNT(DISTINCT u.seconds)", []),
        ("SUM(u.seconds)", []),
        ("MAX(DISTINCT u.seconds)", []),
    ],
)
def test_total__of_distinct_values(value: str, expected: list[str]) -> None:
    text = f"SELECT u.account_id, {value} AS x FROM stg.usage AS u GROUP BY u.account_id"
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("a.account_id = u.account_id OR a.plan_code = u.status", ["high"]),
        ("a.account_id = u.account_id OR a.plan_code = u.status OR a.seats = u.seconds", ["high"]),
        ("a.account_id = u.account_id", []),
        ("a.account_id = u.account_id AND (u.status = 'a' OR u.seconds > a.seats)", []),
        ("a.plan_code = u.status OR (a.plan_code IS NULL AND u.status IS NULL)", []),
        ("a.account_id = u.account_id OR a.account_id = u.account_id + 1", []),
    ],
)
def test_join__by_one_column_or_by_another(on: str, expected: list[str]) -> None:
    text = f"SELECT u.account_id, u.event_day, a.country FROM stg.usage AS u JOIN stg.accounts AS a ON {on}"
    assert list_severities(IMPROBABLE, text) == expected


WINDOWED = "SELECT u.account_id, u.event_day, {0} AS x FROM stg.usage AS u"


@pytest.mark.parametrize(
    "value",
    [
        "LAG(u.seconds) OVER (ORDER BY u.event_day)",
        "u.seconds - LEAD(u.seconds, 1) OVER (ORDER BY u.event_day DESC)",
        "SUM(u.seconds) OVER (ORDER BY u.event_day)",
        "AVG(u.seconds) OVER (ORDER BY u.event_day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    ],
)
def test_window__that_mixes_what_a_key_tells_apart__is_high(value: str) -> None:
    assert list_severities(IMPROBABLE, WINDOWED.format(value)) == ["high"]


@pytest.mark.parametrize(
    "text",
    [
        WINDOWED.format("LAG(u.seconds) OVER (PARTITION BY u.account_id ORDER BY u.event_day)"),
        WINDOWED.format("SUM(u.seconds) OVER ()"),
        WINDOWED.format("RANK() OVER (ORDER BY u.seconds DESC)"),
        WINDOWED.format("SUM(u.seconds) OVER (ORDER BY u.account_id, u.event_day)"),
        "SELECT d.event_day, SUM(d.seconds) OVER (ORDER BY d.event_day) AS x FROM "
        "(SELECT u.event_day, SUM(u.seconds) AS seconds FROM stg.usage AS u GROUP BY u.event_day) "
        "AS d",
        "SELECT a.account_id, LAG(a.seats) OVER (ORDER BY a.account_id) AS x "
        "FROM stg.accounts AS a",
        # The company's running total by day, and no account beside it.
        "SELECT u.event_day, SUM(u.seconds) OVER (ORDER BY u.event_day) AS x FROM stg.usage AS u",
    ],
)
def test_window__over_rows_of_one_thing__is_quiet(text: str) -> None:
    assert list_severities(IMPROBABLE, text) == []


@pytest.mark.parametrize(
    ("condition", "more", "expected"),
    [
        ("u.account_id = 4711", ", grain (account_id, event_day)", ["high"]),
        ("u.account_id IN (4711)", ", grain (account_id, event_day)", ["high"]),
        ("u.seconds > 0 AND u.account_id = 4711", ", grain (account_id, event_day)", ["high"]),
        ("u.account_id IN (1, 2, 3)", ", grain (account_id, event_day)", []),
        ("u.account_id > 4711", ", grain (account_id, event_day)", []),
        ("u.account_id = 4711", ", grain event_day", []),
        ("u.status = 'open'", ", grain (account_id, event_day)", []),
        ("u.account_id = @execution_epoch", ", grain (account_id, event_day)", []),
        ("u.account_id <> -1", ", grain (account_id, event_day)", []),
    ],
)
def test_filter__on_one_value_of_the_grain(condition: str, more: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, ROWS.format(condition), more=more) == expected


VALUES = "SELECT a.account_id, {0} AS x FROM stg.accounts AS a"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("SPLIT(a.country, '.')", ["high"]),
        ("SPLIT(a.country, '|')[0]", ["high"]),
        ("SPLIT(a.country, '*')", ["high"]),
        ("SPLIT(a.country, '[.]')", []),
        ("SPLIT(a.country, '\\\\.')", []),
        ("SPLIT(a.country, ',')", []),
        ("SPLIT(a.country, '-')", []),
        ("REGEXP_REPLACE(a.country, '.', '')", ["high"]),
        ("REGEXP_REPLACE(a.country, '|', '-')", ["high"]),
        ("REGEXP_REPLACE(a.country, '[^a-z]', '')", []),
        ("REGEXP_REPLACE(a.country, ' ', '')", []),
        ("CASE WHEN a.seats > 10 THEN 'l' ELSE 'l' END", ["high"]),
        ("IF(a.seats > 10, a.country, a.country)", ["high"]),
        ("CASE WHEN a.seats > 10 THEN 'l' WHEN a.seats > 5 THEN 'm' ELSE 'm' END", []),
        ("CASE WHEN a.seats > 10 THEN 'l' END", []),
        ("IF(a.seats > 10, 1, 2)", []),
        ("UNIX_TIMESTAMP(a.closed_on) - UNIX_TIMESTAMP(a.created_on) / 60", ["high"]),
        ("a.seats - a.account_id / 60", []),
        ("(UNIX_TIMESTAMP(a.closed_on) - UNIX_TIMESTAMP(a.created_on)) / 60", []),
        ("MD5(CONCAT(a.country, a.plan_code))", ["high"]),
        ("SHA2(CONCAT(a.country, CAST(a.seats AS STRING)), 256)", ["high"]),
        ("MD5(a.country || a.plan_code)", ["high"]),
        ("MD5(CONCAT(a.country, '|', a.plan_code))", []),
        ("MD5(CONCAT_WS('|', a.country, a.plan_code))", []),
        ("MD5(a.country)", []),
        ("SHA2(CONCAT(LOWER(a.country), @execution_ds), 256)", []),
        ("MD5(CONCAT('account-', a.country))", []),
    ],
)
def test_value__that_hardly_means_what_it_says(value: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, VALUES.format(value)) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.updated_at BETWEEN '2024-01-01' AND '2024-01-31'", ["high"]),
        ("a.updated_at <= '2024-01-31'", ["high"]),
        ("a.updated_at <= DATE '2024-01-31'", ["high"]),
        ("a.updated_at < '2024-02-01'", []),
        ("a.updated_at <= '2024-01-31 23:59:59'", []),
        ("a.created_on BETWEEN '2024-01-01' AND '2024-01-31'", []),
        ("CAST(a.updated_at AS DATE) <= '2024-01-31'", []),
        ("a.updated_at >= '2024-01-31'", []),
    ],
)
def test_filter__up_to_a_day_on_a_time(condition: str, expected: list[str]) -> None:
    text = f"SELECT a.account_id FROM stg.accounts AS a WHERE {condition}"
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("SELECT a.account_id, a.country FROM stg.accounts AS a", ["high"]),
        ("SELECT b.account_id, b.country FROM stg.accounts AS b", ["high"]),
        ("SELECT a.account_id, a.plan_code FROM stg.accounts AS a", []),
        ("SELECT a.account_id, a.country FROM stg.accounts AS a WHERE a.seats > 1", ["high"]),
    ],
)
def test_union_all__of_the_same_rows(second: str, expected: list[str]) -> None:
    text = f"SELECT a.account_id, a.country FROM stg.accounts AS a UNION ALL {second}"
    assert list_severities(IMPROBABLE, text) == expected


# A column that is not what its name says.


@pytest.mark.parametrize(
    "value",
    [
        "MIN(u.event_day) AS last_day",
        "MAX(u.event_day) AS first_day",
        "MIN(u.seconds) AS max_seconds",
        "MAX(u.seconds) AS lowest_seconds",
        "MIN(u.event_day) AS latest",
        "MAX(u.status) AS last_status",
        "MAX(u.status) AS current_status",
        "MIN(u.status) AS first_status",
    ],
)
def test_extreme__that_its_name_contradicts__is_high(value: str) -> None:
    text = f"SELECT u.account_id, {value} FROM stg.usage AS u GROUP BY u.account_id"
    assert list_severities(MISNAMED, text) == ["high"]


@pytest.mark.parametrize(
    "value",
    [
        "MAX(u.event_day) AS last_day",
        "MIN(u.event_day) AS first_day",
        "MAX(u.status) AS status",
        "MAX(u.seconds) AS last_seconds",
        "MIN(u.seconds) AS min_of_max_seconds",
        "COUNT(u.status) AS last_count",
        "MAX(u.event_day) AS blast_day",
        "MAX_BY(u.status, u.event_day) AS last_status",
    ],
)
def test_extreme__that_is_what_its_name_says__is_quiet(value: str) -> None:
    text = f"SELECT u.account_id, {value} FROM stg.usage AS u GROUP BY u.account_id"
    assert list_severities(MISNAMED, text) == []


NUMBERED = (
    "SELECT s.account_id, s.status FROM (SELECT u.account_id, u.status, ROW_NUMBER() OVER "
    "(PARTITION BY u.account_id ORDER BY {0}) AS rn FROM stg.usage AS u) AS s WHERE s.rn = 1"
)


@pytest.mark.parametrize(
    ("order", "name", "expected"),
    [
        ("u.event_day", "mart.latest_status", ["high"]),
        ("u.event_day ASC", "mart.current_usage", ["high"]),
        ("u.event_day DESC", "mart.first_status", ["high"]),
        ("u.event_day DESC", "mart.latest_status", []),
        ("u.event_day", "mart.first_status", []),
        ("u.event_day", "mart.status", []),
        ("u.seconds", "mart.latest_status", []),
    ],
)
def test_first_row__by_a_time__and_the_name_of_the_model(
    order: str, name: str, expected: list[str]
) -> None:
    assert list_severities(MISNAMED, NUMBERED.format(order), name=name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("DATEDIFF(a.created_on, a.closed_on) AS days_open", ["high"]),
        ("DATEDIFF(a.created_on, a.updated_at) AS age", ["high"]),
        ("DATEDIFF(a.closed_on, a.created_on) AS days_open", []),
        ("DATEDIFF(a.updated_at, a.created_on) AS age", []),
        ("DATEDIFF(a.closed_on, a.updated_at) AS x", []),
        ("DATEDIFF(CURRENT_DATE(), a.created_on) AS age", []),
        ("ABS(DATEDIFF(a.created_on, a.closed_on)) AS days_open", []),
        ("-DATEDIFF(a.created_on, a.closed_on) AS days_open", []),
    ],
)
def test_days__from_the_end_to_the_start(value: str, expected: list[str]) -> None:
    text = f"SELECT a.account_id, {value} FROM stg.accounts AS a"
    assert list_severities(MISNAMED, text) == expected
