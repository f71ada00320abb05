"""Constants and names in new models that contradict the query around them."""

from __future__ import annotations

from functools import partial
from time import process_time

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

STAYS = {
    "models/bills.sql": (
        "MODEL (name stg.bills, kind FULL, grain bill_id); "
        "SELECT CAST(b.bill_id AS BIGINT) AS bill_id, CAST(b.shop AS STRING) AS shop, "
        "CAST(b.state AS STRING) AS state, CAST(b.amount AS DECIMAL(12, 2)) AS amount, "
        "CAST(b.fee AS DECIMAL(12, 2)) AS fee, CAST(b.day AS DATE) AS day, "
        "CAST(b.made_at AS TIMESTAMP) AS made_at FROM src.bills AS b"
    )
}
TABLES = {
    **EXTERNAL,
    "src.bills": {
        "bill_id": "BIGINT", "shop": "STRING", "state": "STRING", "amount": "DECIMAL(12,2)",
        "fee": "DECIMAL(12,2)", "day": "DATE", "made_at": "TIMESTAMP",
    },
}  # fmt: skip

list_severities = partial(
    list_severities_of_new_model, "improbable-expression", stays=STAYS, external=TABLES
)
BILLS = "SELECT {0} FROM stg.bills AS b"
SHOPS = "SELECT b.shop, {0} FROM stg.bills AS b GROUP BY b.shop"


@pytest.mark.parametrize(
    "query",
    [
        BILLS.format("b.bill_id, TRUNC('MONTH', b.day) AS month"),
        BILLS.format("b.bill_id, DATE_TRUNC(b.made_at, 'HOUR') AS hour"),
        "SELECT TRUNC('year', b.day) AS year, COUNT(*) AS bills FROM stg.bills AS b "
        "GROUP BY TRUNC('year', b.day)",
    ],
)
def test_unit__in_the_place_of_the_date(query: str) -> None:
    assert list_severities(query) != []


@pytest.mark.parametrize(
    "query",
    [
        BILLS.format("b.bill_id, TRUNC(b.day, 'MONTH') AS month"),
        BILLS.format("b.bill_id, DATE_TRUNC('HOUR', b.made_at) AS hour"),
        BILLS.format("b.bill_id, TRUNC('2024-05-05', 'MONTH') AS month"),
    ],
)
def test_unit__in_its_own_place(query: str) -> None:
    assert list_severities(query) == []


@pytest.mark.parametrize(
    "days",
    [
        "DAYOFWEEK(b.day) IN (6, 7)",
        "NOT DAYOFWEEK(b.day) IN (6, 7)",
        "DAYOFWEEK(b.day) IN (0, 6)",
        "DAYOFWEEK(b.day) BETWEEN 1 AND 5",
        "DAYOFWEEK(b.day) >= 6",
        "DAYOFWEEK(b.day) < 6",
        "EXTRACT(DOW FROM b.day) IN (6, 7)",
        "WEEKDAY(b.day) IN (6, 7)",
        "WEEKDAY(b.day) IN (1, 7)",
    ],
)
def test_weekend__of_another_way_to_count(days: str) -> None:
    assert list_severities(f"SELECT b.bill_id FROM stg.bills AS b WHERE {days}") != []


@pytest.mark.parametrize(
    "days",
    [
        "DAYOFWEEK(b.day) IN (1, 7)",
        "DAYOFWEEK(b.day) BETWEEN 2 AND 6",
        "DAYOFWEEK(b.day) IN (2, 3, 4, 5, 6)",
        "DAYOFWEEK(b.day) IN (5, 6)",
        "DAYOFWEEK(b.day) IN (1, 2, 3)",
        "DAYOFWEEK(b.day) = 6",
        "DAYOFWEEK(b.day) > 1",
        "DAYOFWEEK(b.day) > b.bill_id",
        "EXTRACT(DOW FROM b.day) IN (1, 7)",
        "EXTRACT(DOW_ISO FROM b.day) IN (6, 7)",
        "EXTRACT(MONTH FROM b.day) IN (6, 7)",
        "WEEKDAY(b.day) IN (5, 6)",
        "WEEKDAY(b.day) >= 5",
        "WEEKDAY(b.day) < 5",
        "MONTH(b.day) BETWEEN 1 AND 5",
    ],
)
def test_weekend__of_this_way_to_count(days: str) -> None:
    assert list_severities(f"SELECT b.bill_id FROM stg.bills AS b WHERE {days}") == []


@pytest.mark.parametrize(
    "value",
    [
        "CAST(SUM(b.amount) AS DECIMAL(5, 2)) AS amount",
        "CAST(SUM(COALESCE(b.amount, 0)) AS DECIMAL(9, 2)) AS amount",
        "CAST(SUM(b.amount) AS DECIMAL(12, 4)) AS amount",
        "TRY_CAST(MAX(b.amount) AS DECIMAL(12, 2)) AS top, CAST(SUM(b.fee) AS DECIMAL(8, 2)) AS fee",
    ],
)
def test_decimal__of_fewer_digits_than_what_it_takes(value: str) -> None:
    assert list_severities(SHOPS.format(value)) != []


@pytest.mark.parametrize(
    "value",
    [
        "CAST(SUM(b.amount) AS DECIMAL(12, 2)) AS amount",
        "CAST(SUM(b.amount) AS DECIMAL(22, 2)) AS amount",
        "CAST(SUM(b.amount) AS DECIMAL(10, 0)) AS amount",
        "CAST(AVG(b.amount) AS DECIMAL(9, 2)) AS amount",
        "CAST(SUM(b.amount * 2) AS DECIMAL(9, 2)) AS amount",
        "CAST(COUNT(*) AS DECIMAL(5, 0)) AS bills",
        "CAST(MAX(b.bill_id) AS DECIMAL(5, 0)) AS bill",
    ],
)
def test_decimal__of_enough_digits_or_of_an_unknown_size(value: str) -> None:
    assert list_severities(SHOPS.format(value)) == []


@pytest.mark.parametrize(
    ("digits", "is_found"), [("DECIMAL(10, 2)", False), ("DECIMAL(9, 2)", True)]
)
def test_decimal__of_a_column_is_much_shorter(digits: str, is_found: bool) -> None:
    found = list_severities(BILLS.format(f"b.bill_id, CAST(b.amount AS {digits}) AS amount"))

    assert bool(found) == is_found


OPEN = "SELECT b.shop, COUNT(*) AS bills, {0} FROM stg.bills AS b WHERE {1} GROUP BY b.shop"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("COUNT(CASE WHEN b.state = 'paid' THEN 1 END) AS paid", "b.state = 'open'"),
        ("COUNT_IF(b.state = 'paid') AS paid", "b.state IN ('open', 'late')"),
        ("SUM(b.amount) FILTER (WHERE b.state IN ('paid', 'void')) AS paid", "b.state = 'open'"),
        ("MAX(IF(b.state = 'paid', b.day, NULL)) AS paid_on", "b.fee > 0 AND b.state = 'open'"),
    ],
)
def test_count__of_what_where_has_left_out(value: str, where: str) -> None:
    assert list_severities(OPEN.format(value, where)) != []


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("COUNT(CASE WHEN b.state = 'paid' THEN 1 END) AS paid", "b.state IN ('open', 'paid')"),
        ("COUNT_IF(b.state = 'paid') AS paid", "b.state <> 'open'"),
        ("COUNT_IF(b.state = 'paid') AS paid", "b.state = 'open' OR b.fee > 0"),
        ("COUNT_IF(b.shop = 'paid') AS paid", "b.state = 'open'"),
        ("COUNT_IF(b.state = 'paid') AS paid", "b.state = UPPER('open')"),
        ("COUNT_IF(b.state = b.shop) AS paid", "b.state = 'open'"),
    ],
)
def test_count__of_what_where_lets_pass(value: str, where: str) -> None:
    assert list_severities(OPEN.format(value, where)) == []


def test_having__of_what_where_has_left_out() -> None:
    query = (
        "SELECT b.shop, COUNT(*) AS bills FROM stg.bills AS b WHERE b.state = 'open' "
        "GROUP BY b.shop HAVING COUNT_IF(b.state = 'paid') > 0"
    )

    assert list_severities(query) != []
    assert list_severities(query.replace("= 'paid'", "= 'open'")) == []


@pytest.mark.parametrize(
    ("values", "is_found"),
    [
        (
            "COUNT_IF(b.state = 'paid') AS paid_bills, COUNT_IF(b.state = 'paid') AS open_bills",
            True,
        ),
        (
            "SUM(CASE WHEN b.state = 'paid' THEN b.amount END) AS amount_paid, "
            "SUM(CASE WHEN b.state = 'paid' THEN b.amount END) AS amount_void",
            True,
        ),
        (
            "COUNT_IF(b.state = 'paid') AS paid_bills, COUNT_IF(b.state = 'open') AS open_bills",
            False,
        ),
        ("COUNT_IF(b.state = 'paid') AS paid_bills, COUNT_IF(b.state = 'paid') AS revenue", False),
        ("COUNT_IF(b.state = 'paid') AS bills_done, COUNT_IF(b.state = 'paid') AS bills_n", False),
        ("SUM(b.amount) AS amount, SUM(b.amount) AS total_amount", False),
    ],
)
def test_total__that_is_there_under_two_names(values: str, is_found: bool) -> None:
    assert bool(list_severities(SHOPS.format(values))) == is_found


@pytest.mark.parametrize(
    ("values", "is_found"),
    [
        ("b.bill_id, b.fee AS amount, b.amount AS fee", True),
        ("b.bill_id, CAST(b.fee AS DOUBLE) AS amount, COALESCE(b.amount, 0) AS fee", True),
        ("b.bill_id, b.fee AS amount, b.amount AS total", True),
        ("b.bill_id, b.fee AS costs, b.amount AS total", False),
        ("b.bill_id, b.amount, b.amount AS total, b.fee AS costs", False),
        ("b.bill_id, b.amount, b.fee", False),
        ("b.bill_id, b.fee AS amount, -b.amount AS fee", False),
    ],
)
def test_columns__with_exchanged_names(values: str, is_found: bool) -> None:
    assert bool(list_severities(BILLS.format(values))) == is_found


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("COUNT(DISTINCT CASE WHEN b.state = 'paid' THEN b.bill_id ELSE 0 END) AS paid", True),
        ("COUNT(DISTINCT IF(b.state = 'paid', b.bill_id, -1)) AS paid", True),
        ("COUNT(DISTINCT IF(b.state = 'paid', b.bill_id, 0)) AS paid", True),
        ("AVG(CASE WHEN b.state = 'paid' THEN b.amount ELSE 0 END) AS avg_paid", True),
        ("MIN(CASE WHEN b.state = 'paid' THEN b.amount ELSE 0 END) AS least_paid", True),
        ("COUNT(DISTINCT CASE WHEN b.state = 'paid' THEN b.bill_id END) AS paid", False),
        ("COUNT(DISTINCT CASE WHEN b.state = 'paid' THEN 'a' ELSE 'b' END) AS kinds", False),
        ("AVG(CASE WHEN b.state = 'paid' THEN 1 ELSE 0 END) AS share", False),
        ("AVG(CASE WHEN b.state = 'paid' THEN b.amount END) AS avg_paid", False),
        ("SUM(CASE WHEN b.state = 'paid' THEN b.amount ELSE 0 END) AS paid", False),
        ("MAX(CASE WHEN b.state = 'paid' THEN b.amount ELSE 0 END) AS most_paid", False),
    ],
)
def test_branch__that_fills_what_a_total_must_leave_out(value: str, is_found: bool) -> None:
    assert bool(list_severities(SHOPS.format(value))) == is_found


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("LOCATE(b.shop, '.') AS n", True),
        ("INSTR('@', b.shop) AS n", True),
        ("CONTAINS('x', b.shop) AS n", True),
        ("TRANSLATE(b.shop, 'www.', '') AS n", True),
        ("LOCATE('.', b.shop) AS n", False),
        ("INSTR(b.shop, '@') AS n", False),
        ("CONTAINS('DE,FR,IT', b.shop) AS n", False),
        ("TRANSLATE(b.shop, 'abc', 'xyz') AS n", False),
        ("TRANSLATE(b.shop, '-_ ', '') AS n", False),
    ],
)
def test_text__in_the_place_of_another(value: str, is_found: bool) -> None:
    assert bool(list_severities(BILLS.format(f"b.bill_id, {value}"))) == is_found


SPANS = (
    "WITH w AS (SELECT DISTINCT CAST(DATE_TRUNC('{0}', b.day) AS DATE) AS first FROM stg.bills AS b) "
    "SELECT w.first, COUNT(*) AS bills FROM w JOIN stg.bills AS b ON {1} GROUP BY w.first"
)


@pytest.mark.parametrize(
    ("unit", "condition", "is_found"),
    [
        ("WEEK", "b.day BETWEEN w.first AND DATE_ADD(w.first, 7)", True),
        ("WEEK", "b.day >= w.first AND b.day <= w.first + INTERVAL '7' DAY", True),
        ("MONTH", "b.day BETWEEN w.first AND ADD_MONTHS(w.first, 1)", True),
        ("WEEK", "b.day BETWEEN w.first AND DATE_ADD(w.first, 6)", False),
        ("WEEK", "b.day >= w.first AND b.day < DATE_ADD(w.first, 7)", False),
        ("MONTH", "b.day BETWEEN w.first AND DATE_ADD(w.first, 7)", False),
    ],
)
def test_span__with_the_first_day_of_the_next_one(
    unit: str, condition: str, is_found: bool
) -> None:
    assert bool(list_severities(SPANS.format(unit, condition))) == is_found


MONTHS = (
    "WITH m AS (SELECT b.shop, YEAR(b.day) AS y, MONTH(b.day) AS m, SUM(b.amount) AS amount "
    "FROM stg.bills AS b GROUP BY b.shop, YEAR(b.day), MONTH(b.day)) "
    "SELECT b.bill_id, m.amount FROM stg.bills AS b JOIN m ON b.shop = m.shop AND {0}"
)


@pytest.mark.parametrize(
    ("condition", "is_found"),
    [
        ("MONTH(b.day) = m.m", True),
        ("m.m = MONTH(b.made_at)", True),
        ("MONTH(b.day) = m.m AND YEAR(b.day) = m.y", False),
        ("m.y = YEAR(b.day)", False),
        ("MONTH(b.day) = m.m AND m.y = 2024", False),
    ],
)
def test_join__by_the_number_of_a_month(condition: str, is_found: bool) -> None:
    assert bool(list_severities(MONTHS.format(condition))) == is_found


@pytest.mark.parametrize("number", ["1e999999999", "9" * 5_000, "1e-999999999"])
def test_number__of_any_length_takes_no_time(number: str) -> None:
    began = process_time()

    list_severities(f"SELECT b.bill_id FROM stg.bills AS b WHERE DAYOFWEEK(b.day) <= {number}")
    list_severities(f"SELECT b.bill_id FROM stg.bills AS b WHERE WEEKDAY(b.day) IN (6, {number})")

    assert process_time() - began < 5
