"""Columns of new models whose name says another thing than their expression."""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

STAYS = {
    "models/bills.sql": (
        "MODEL (name stg.bills, kind FULL, grain bill_id); "
        "SELECT CAST(b.bill_id AS BIGINT) AS bill_id, CAST(b.shop AS STRING) AS shop, "
        "CAST(b.country AS STRING) AS country, CAST(b.amount AS DECIMAL(12, 2)) AS amount, "
        "CAST(b.net_amount AS DECIMAL(12, 2)) AS net_amount, "
        "CAST(b.tax AS DECIMAL(12, 2)) AS tax, CAST(b.cost AS DECIMAL(12, 2)) AS cost, "
        "CAST(b.monthly_fee AS DECIMAL(12, 2)) AS monthly_fee, "
        "CAST(b.yearly_fee AS DECIMAL(12, 2)) AS yearly_fee, "
        "CAST(b.refund AS DECIMAL(12, 2)) AS refund, "
        "CAST(b.seconds AS BIGINT) AS seconds, CAST(b.day AS DATE) AS day, "
        "CAST(b.made_at AS TIMESTAMP) AS made_at FROM src.bills AS b"
    )
}
TABLES = {
    **EXTERNAL,
    "src.bills": {
        "bill_id": "BIGINT", "shop": "STRING", "country": "STRING", "amount": "DECIMAL(12,2)",
        "net_amount": "DECIMAL(12,2)", "tax": "DECIMAL(12,2)", "cost": "DECIMAL(12,2)",
        "monthly_fee": "DECIMAL(12,2)", "yearly_fee": "DECIMAL(12,2)", "seconds": "BIGINT",
        "day": "DATE", "made_at": "TIMESTAMP", "refund": "DECIMAL(12,2)",
    },
}  # fmt: skip
list_severities = partial(
    list_severities_of_new_model, "improbable-expression", stays=STAYS, external=TABLES
)
BILLS = "SELECT b.bill_id, {0} FROM stg.bills AS b"
SHOPS = "SELECT b.shop, {0} FROM stg.bills AS b GROUP BY b.shop"
FRAME = (
    "SELECT b.bill_id, AVG(b.amount) OVER (PARTITION BY b.shop ORDER BY b.{1} {0}) AS {2} "
    "FROM stg.bills AS b"
)
PICKED = (
    "WITH r AS (SELECT b.shop, b.bill_id, ROW_NUMBER() OVER (PARTITION BY b.shop "
    "ORDER BY b.day{0}, b.bill_id) AS place FROM stg.bills AS b) "
    "SELECT r.shop, r.bill_id AS {1} FROM r WHERE r.place = 1"
)
PARTS = "SELECT b.country, b.shop, {0} FROM stg.bills AS b GROUP BY b.country, b.shop"
MONTHS = "SELECT {0} AS {1}, COUNT(*) AS bills FROM stg.bills AS b {2} GROUP BY {0}"

SLIPS = {
    "rows": FRAME.format("ROWS BETWEEN 7 PRECEDING AND CURRENT ROW", "day", "avg_7d"),
    "rows_days": FRAME.format("ROWS BETWEEN 30 PRECEDING AND CURRENT ROW", "day", "last_30_days"),
    "range": FRAME.format(
        "RANGE BETWEEN INTERVAL '7' DAY PRECEDING AND CURRENT ROW", "day", "avg_7_days"
    ),
    "net": BILLS.format("b.amount + b.tax AS net_amount"),
    "net_sum": SHOPS.format("SUM(b.amount) + SUM(b.tax) AS net_total"),
    "gross": BILLS.format("b.net_amount - b.tax AS gross_amount"),
    "profit": BILLS.format("b.amount + b.cost AS profit"),
    "picked_last": PICKED.format("", "last_bill_id"),
    "picked_first": PICKED.format(" DESC", "first_bill_id"),
    "max_by": SHOPS.format("MAX_BY(b.bill_id, b.day) AS first_bill_id"),
    "min_by": SHOPS.format("MIN_BY(b.bill_id, b.day) AS latest_bill_id"),
    "first_value": BILLS.format(
        "FIRST_VALUE(b.bill_id) OVER (PARTITION BY b.shop ORDER BY b.made_at) AS latest_bill_id"
    ),
    "share_running": PARTS.format(
        "SUM(b.amount) / SUM(SUM(b.amount)) OVER (PARTITION BY b.country ORDER BY b.shop) "
        "AS share_of_country"
    ),
    "share_all": PARTS.format("SUM(b.amount) / SUM(SUM(b.amount)) OVER () AS share_of_country"),
    "rank_all": BILLS.format(
        "b.country, ROW_NUMBER() OVER (ORDER BY b.amount, b.bill_id) AS rank_in_country"
    ),
    "hours": SHOPS.format("SUM(b.seconds) / 60 AS hours_used"),
    "minutes": SHOPS.format("AVG(b.seconds / 3600) AS minutes_used"),
    "median": SHOPS.format("AVG(b.amount) AS median_amount"),
    "average_percentile": SHOPS.format("PERCENTILE(b.seconds, 0.5) AS avg_seconds"),
    "average_sum": SHOPS.format("SUM(b.seconds) AS avg_seconds"),
    "p95": SHOPS.format("PERCENTILE_APPROX(b.seconds, 0.9) AS p95_seconds"),
    "arr": SHOPS.format("SUM(b.monthly_fee) / 12 AS arr"),
    "mrr": SHOPS.format("SUM(b.yearly_fee) * 12 AS mrr"),
    "month": MONTHS.format("MONTH(b.day)", "month", ""),
    "quarter": MONTHS.format("QUARTER(b.day)", "quarter", ""),
    "week": MONTHS.format("WEEKOFYEAR(b.day)", "week", "WHERE b.amount > 0"),
}
FINE = {
    "rows": FRAME.format("ROWS BETWEEN 6 PRECEDING AND CURRENT ROW", "day", "avg_7d"),
    "rows_before": FRAME.format("ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING", "day", "avg_7d"),
    "rows_hours": FRAME.format("ROWS BETWEEN 167 PRECEDING AND CURRENT ROW", "day", "avg_7d"),
    "range_moment": FRAME.format(
        "RANGE BETWEEN INTERVAL '7' DAY PRECEDING AND CURRENT ROW", "made_at", "avg_7_days"
    ),
    "net": BILLS.format("b.amount - b.tax AS net_amount"),
    "gross": BILLS.format("b.net_amount + b.tax AS gross_amount"),
    "net_cost": BILLS.format("b.amount + b.cost AS net_cost"),
    "refund_below_zero": BILLS.format("b.amount + b.refund AS net_amount"),
    "gross_profit": BILLS.format("b.amount - b.cost AS gross_profit"),
    "total": BILLS.format("b.amount + b.tax AS total_amount"),
    "picked_last": PICKED.format(" DESC", "last_bill_id"),
    "picked_first": PICKED.format("", "first_bill_id"),
    "picked": PICKED.format("", "bill_id"),
    "picked_name": PICKED.format("", "last_name"),
    "max_by": SHOPS.format("MAX_BY(b.bill_id, b.day) AS latest_bill_id"),
    "max_by_amount": SHOPS.format("MAX_BY(b.bill_id, b.amount) AS first_bill_id"),
    "share": PARTS.format(
        "SUM(b.amount) / SUM(SUM(b.amount)) OVER (PARTITION BY b.country) AS share_of_country"
    ),
    "share_cumulative": PARTS.format(
        "SUM(b.amount) / SUM(SUM(b.amount)) OVER (PARTITION BY b.country ORDER BY b.shop) "
        "AS cumulative_share"
    ),
    "share_world": "SELECT b.country, SUM(b.amount) / SUM(SUM(b.amount)) OVER () "
    "AS share_of_country FROM stg.bills AS b GROUP BY b.country",
    "share_total": PARTS.format("SUM(b.amount) / SUM(SUM(b.amount)) OVER () AS share_of_total"),
    "hours": SHOPS.format("SUM(b.seconds) / 3600 AS hours_used"),
    "hours_twice": SHOPS.format("SUM(b.seconds) / 60 / 60 AS hours_used"),
    "work_days": SHOPS.format("SUM(b.seconds) / 3600 / 8 AS work_days"),
    "per": SHOPS.format("SUM(b.seconds) / 60 AS minutes_per_day"),
    "median": SHOPS.format("MEDIAN(b.amount) AS median_amount"),
    "p50": SHOPS.format("PERCENTILE(b.seconds, 0.5) AS p50_seconds"),
    "p95": SHOPS.format("PERCENTILE_APPROX(b.seconds, 0.95) AS p95_seconds"),
    "average": SHOPS.format("AVG(b.seconds) AS avg_seconds"),
    "arr": SHOPS.format("SUM(b.monthly_fee) * 12 AS arr"),
    "mrr": SHOPS.format("SUM(b.yearly_fee) / 12 AS mrr"),
    "year_by_month": SHOPS.format("SUM(b.monthly_fee) / 12 AS avg_year"),
    "month_of_year": MONTHS.format("MONTH(b.day)", "month_of_year", ""),
    "month_of_a_year": MONTHS.format("MONTH(b.day)", "month", "WHERE YEAR(b.day) = 2024"),
    "month_since": MONTHS.format("MONTH(b.day)", "month", "WHERE b.day >= '2024-01-01'"),
    "month_truncated": MONTHS.format("TRUNC(b.day, 'MONTH')", "month", ""),
    "year_beside": "SELECT YEAR(b.day) AS year, MONTH(b.day) AS month, COUNT(*) AS bills "
    "FROM stg.bills AS b GROUP BY YEAR(b.day), MONTH(b.day)",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_name__says_another_thing(slip: str) -> None:
    assert list_severities(SLIPS[slip]) != []


@pytest.mark.parametrize("case", FINE)
def test_name__fits(case: str) -> None:
    assert list_severities(FINE[case]) == []
