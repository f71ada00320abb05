"""Conversions in new models that run and give another value: milliseconds as seconds, shares that
are 0, cents that are cut off, texts that one missing part makes NULL, flags that are texts.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import list_severities_of_new_model

STAYS = {
    "models/visits.sql": (
        "MODEL (name stg.visits, kind FULL, grain visit_id); "
        "SELECT v.visit_id, v.user_id, v.event_ms, v.event_ms AS happened, "
        "v.event_ms / 1000 AS event_seconds, v.made_ms, v.opens, v.clicks, v.opens DIV v.clicks AS q, "
        "v.active, v.is_new, v.flag, NULLIF(TRIM(v.nick), '') AS nick, v.code FROM web.visits AS v"
    ),
    "models/users.sql": (
        "MODEL (name stg.users, kind FULL, grain user_id); "
        "SELECT u.user_id, u.first_name, u.middle_name, u.last_name, u.city FROM web.users AS u"
    ),
    "models/bills.sql": (
        "MODEL (name stg.bills, kind FULL, grain bill_id); "
        "SELECT b.bill_id, b.amount, b.fee, b.balance, b.net_amount, b.score FROM fin.bills AS b"
    ),
}
TABLES = {
    "web.visits": {
        "visit_id": "BIGINT", "user_id": "BIGINT", "event_ms": "BIGINT", "made_ms": "TIMESTAMP",
        "opens": "INT", "clicks": "INT", "active": "STRING", "is_new": "BOOLEAN", "flag": "INT",
        "nick": "STRING", "code": "STRING",
    },
    "web.users": {
        "user_id": "BIGINT", "first_name": "STRING", "middle_name": "STRING",
        "last_name": "STRING", "city": "STRING",
    },
    "fin.bills": {
        "bill_id": "BIGINT", "amount": "DECIMAL(12,2)", "fee": "DOUBLE", "balance": "DECIMAL(12,2)",
        "net_amount": "DECIMAL(12,2)", "score": "DOUBLE",
    },
}  # fmt: skip
IMPROBABLE = "improbable-expression"
list_severities = partial(list_severities_of_new_model, stays=STAYS, external=TABLES)

VISITS = "SELECT v.visit_id, {0} FROM stg.visits AS v"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("FROM_UNIXTIME(v.event_ms)", ["high"]),
        ("TIMESTAMP_SECONDS(v.event_ms)", ["high"]),
        ("TO_TIMESTAMP(v.event_ms)", ["high"]),
        ("CAST(v.event_ms AS TIMESTAMP)", ["high"]),
        ("TO_DATE(FROM_UNIXTIME(CAST(v.happened AS BIGINT), 'yyyy-MM-dd'))", ["high"]),
        ("FROM_UNIXTIME(UNIX_MILLIS(v.made_ms))", ["high"]),
        ("TIMESTAMP_MICROS(v.event_ms)", ["high"]),
        ("FROM_UNIXTIME(v.event_ms / 1000)", []),
        ("FROM_UNIXTIME(v.event_ms DIV 1000)", []),
        ("FROM_UNIXTIME(v.event_seconds)", []),
        ("TIMESTAMP_MILLIS(v.event_ms)", []),
        ("CAST(v.made_ms AS TIMESTAMP)", []),
        ("CAST(v.event_ms / 1000 AS TIMESTAMP)", []),
        ("FROM_UNIXTIME(UNIX_SECONDS(v.made_ms))", []),
    ],
)
def test_time__of_a_number_in_another_unit(value: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, VISITS.format(f"{value} AS t")) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("100 * (v.clicks DIV v.opens) AS click_pct", ["high"]),
        ("v.clicks DIV v.opens * 100 AS click_rate", ["high"]),
        ("CAST(v.clicks / NULLIF(v.opens, 0) AS INT) AS click_share", ["high"]),
        ("ROUND(100.0 * FLOOR(v.clicks / v.opens), 1) AS pct_clicked", ["high"]),
        ("CASE WHEN v.opens > 0 THEN ROUND(v.clicks / v.opens) * 100 END AS click_rate", ["high"]),
        ("v.q * 100 AS click_percent", ["high"]),
        ("COUNT_IF(v.clicks > 3) DIV COUNT(*) AS share", ["high"]),
        ("100 * v.clicks DIV v.opens AS click_pct", []),
        ("CAST(100 * v.clicks / v.opens AS INT) AS click_pct", []),
        ("ROUND(v.clicks / v.opens, 2) AS click_share", []),
        ("CAST(ROUND(v.clicks / v.opens * 100) AS INT) AS click_pct", []),
        ("v.clicks DIV v.opens AS ratio", []),
        ("FLOOR(v.clicks / v.opens) * 100 AS bonus", []),
        ("CAST(v.clicks / v.opens AS INT) AS share_price", []),
        ("CAST(v.event_ms / 1000 AS INT) AS click_pct", []),
        ("CAST(SUM(v.opens) / COUNT(*) AS INT) AS average_percent", []),
        ("CAST(SUM(v.click_pct) / COUNT(*) AS INT) AS click_pct", []),
    ],
)
def test_share__that_is_cut_to_a_whole_number(item: str, expected: list[str]) -> None:
    source = "(SELECT x.*, x.opens AS click_pct FROM stg.visits AS x) AS v"
    query = f"SELECT v.visit_id, {item} FROM {source}"
    group = " GROUP BY v.visit_id" if "COUNT" in item else ""
    assert list_severities(IMPROBABLE, query + group) == expected


BILLS = "SELECT b.bill_id, {0} FROM stg.bills AS b"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("CAST(b.fee * 100 AS BIGINT) AS fee_cents", ["high"]),
        ("INT(100 * b.fee) AS fee_cents", ["high"]),
        ("FLOOR(CAST(b.amount AS DOUBLE) * 100) AS cents", ["high"]),
        ("CAST(ROUND(b.fee * 100) AS BIGINT) AS fee_cents", []),
        ("CAST(b.amount * 100 AS BIGINT) AS amount_cents", []),
        ("CAST(CAST(b.fee AS DECIMAL(12, 2)) * 100 AS BIGINT) AS fee_cents", []),
        ("CAST(b.score * 100 AS INT) AS score_pct", []),
    ],
)
def test_cents__that_are_cut_from_a_binary_fraction(item: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, BILLS.format(item)) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("CAST(b.amount AS DECIMAL(12)) AS amount", ["high"]),
        ("CAST(b.amount AS DECIMAL(12, 0)) AS amount", ["high"]),
        ("SUM(CAST(b.balance AS DECIMAL(10, 1))) AS balance", ["high"]),
        ("CAST(b.amount AS DECIMAL(9, 2)) AS amount", []),
        ("CAST(SUM(b.amount) AS DECIMAL(18, 0)) AS amount", []),
        ("CAST(b.amount AS DECIMAL(12, 0)) AS whole_units", []),
        ("CAST(b.amount AS DECIMAL(12, 0)) AS amount_jpy", []),
        ("SUM(CAST(b.amount AS DOUBLE)) AS amount_jpy", ["high"]),
        ("CAST(b.score AS DECIMAL(12, 0)) AS score", []),
    ],
)
def test_money__in_a_decimal_with_fewer_digits(item: str, expected: list[str]) -> None:
    query = BILLS.format(item) + (" GROUP BY b.bill_id" if "SUM" in item else "")
    assert list_severities("imprecise-money", query) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("v.active = TRUE", ["high"]),
        ("FALSE <> v.active", ["high"]),
        ("v.active IN (TRUE)", ["high"]),
        ("LOWER(v.active) IS TRUE", ["high"]),
        ("v.is_new = TRUE", []),
        ("v.flag = TRUE", []),
        ("v.active = 'true'", []),
        ("CAST(v.active AS BOOLEAN) = TRUE", []),
        ("(v.active = 'yes') IS TRUE", []),
    ],
)
def test_flag__that_is_a_text(condition: str, expected: list[str]) -> None:
    query = f"SELECT v.visit_id FROM stg.visits AS v WHERE {condition}"
    assert list_severities(IMPROBABLE, query) == expected


JOINED = (
    "SELECT v.visit_id, {0} FROM stg.visits AS v LEFT JOIN stg.users AS u ON u.user_id = v.user_id"
)
KEY = ", grain k"


@pytest.mark.parametrize(
    ("item", "head", "expected"),
    [
        ("CONCAT(v.code, '-', u.city) AS k", KEY, ["high"]),
        ("v.code || '-' || v.nick AS k", KEY, ["high"]),
        ("MD5(CONCAT(v.code, '-', CAST(u.user_id AS STRING))) AS k", KEY, ["high"]),
        ("CONCAT(v.code, ', ', u.city) AS place_name", "", ["high"]),
        ("UPPER(v.code || ' ' || v.nick) AS full_name", "", ["high"]),
        ("CONCAT(u.first_name, ' ', u.last_name) AS user_name", "", []),
        ("CONCAT(v.code, '-', COALESCE(u.city, '')) AS k", KEY, []),
        ("CONCAT_WS('-', v.code, u.city) AS k", KEY, []),
        ("COALESCE(CONCAT(v.code, ', ', u.city), v.code) AS place_name", "", []),
        ("CONCAT(v.code, '-', u.city) AS note", "", []),
        ("CONCAT(v.code, '-', v.visit_id) AS k", KEY, []),
    ],
)
def test_text__with_a_part_that_may_be_missing(item: str, head: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, JOINED.format(item), more=head) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("CONCAT(u.first_name, ' ', u.middle_name, ' ', u.last_name)", ["high"]),
        ("u.first_name || ' ' || u.middle_name || ' ' || u.last_name", ["high"]),
        ("CONCAT(u.first_name, ' ', u.last_name)", []),
        ("CONCAT(u.first_name, ' ', COALESCE(u.middle_name, ''), ' ', u.last_name)", []),
        ("CONCAT_WS(' ', u.first_name, u.middle_name, u.last_name)", []),
    ],
)
def test_name__with_a_middle_name(item: str, expected: list[str]) -> None:
    query = f"SELECT u.user_id, {item} AS full_name FROM stg.users AS u"
    assert list_severities(IMPROBABLE, query) == expected


def test_name__of_rows_that_have_a_middle_name__is_quiet() -> None:
    query = (
        "SELECT u.user_id, CONCAT(u.first_name, ' ', u.middle_name) AS given_name "
        "FROM stg.users AS u WHERE NOT u.middle_name IS NULL"
    )
    assert list_severities(IMPROBABLE, query) == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("SUM(ABS(b.amount)) AS net_amount", ["high"]),
        ("ROUND(SUM(ABS(b.amount)), 2) AS net", ["high"]),
        ("SUM(ABS(CAST(b.amount AS DECIMAL(12, 2)))) AS closing_balance", ["high"]),
        ("COALESCE(SUM(ABS(b.amount)), 0) AS net_movement", ["high"]),
        ("SUM(b.amount) AS net_amount", []),
        ("ABS(SUM(b.amount)) AS net_amount", []),
        ("SUM(ABS(b.amount)) AS turnover", []),
        ("SUM(ABS(b.net_amount)) AS net_amount", []),
        ("SUM(ABS(b.amount)) AS abs_net_amount", []),
        ("SUM(ABS(b.balance)) AS total_balance", []),
    ],
)
def test_net_amount__without_the_signs(item: str, expected: list[str]) -> None:
    query = f"SELECT b.bill_id, {item} FROM stg.bills AS b GROUP BY b.bill_id"
    assert list_severities("misnamed-column", query) == expected
