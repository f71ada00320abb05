"""Totals of new models that mean nothing: distinct people of each day, levels at a moment, averages,
and prices apart from their quantities.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

STAYS = {
    "models/events.sql": (
        "MODEL (name stg.events, kind FULL, grain event_id); SELECT e.event_id, e.account_id, "
        "e.user_id, e.seconds, e.event_day FROM src.events AS e"
    ),
    "models/orders.sql": (
        "MODEL (name stg.orders, kind FULL, grain order_id); SELECT o.order_id, o.customer_id, "
        "o.ordered_on FROM src.orders AS o"
    ),
    "models/daily.sql": (
        "MODEL (name core.daily, kind FULL, grain (account_id, event_day)); SELECT e.account_id, "
        "e.event_day, COUNT(DISTINCT e.user_id) AS active_users, COUNT(*) AS events, "
        "APPROX_COUNT_DISTINCT(e.user_id) AS about_users, AVG(e.seconds) AS seconds "
        "FROM stg.events AS e GROUP BY e.account_id, e.event_day"
    ),
    "models/passed.sql": (
        "MODEL (name core.passed, kind VIEW); SELECT d.account_id, d.event_day AS day, "
        "d.active_users AS people FROM core.daily AS d"
    ),
    "models/order_days.sql": (
        "MODEL (name core.order_days, kind FULL, grain ordered_on); SELECT o.ordered_on, "
        "COUNT(DISTINCT o.order_id) AS orders, COUNT(DISTINCT o.customer_id) AS customers "
        "FROM stg.orders AS o GROUP BY o.ordered_on"
    ),
    "models/stocks.sql": (
        "MODEL (name core.stocks, kind FULL, grain (sku, day)); SELECT s.sku, s.day, s.stock, "
        "s.on_hand_qty, s.sold, s.new_mrr, s.open_tickets, s.mrr, s.is_latest FROM src.stocks AS s"
    ),
    "models/latest.sql": (
        "MODEL (name core.latest, kind FULL, grain sku); SELECT s.sku, s.stock FROM core.stocks AS s"
    ),
    "models/invoices.sql": (
        "MODEL (name core.invoices, kind FULL, grain (invoice_id, issued_on)); SELECT i.invoice_id, "
        "i.account_id, i.issued_on, i.open_amount FROM src.invoices AS i"
    ),
    "models/lines.sql": (
        "MODEL (name stg.lines, kind FULL, grain line_id); SELECT l.line_id, l.order_id, "
        "l.unit_price, l.quantity, l.tax FROM src.lines AS l"
    ),
}
TABLES = {
    **EXTERNAL,
    "src.events": {
        "event_id": "BIGINT",
        "account_id": "BIGINT",
        "user_id": "BIGINT",
        "seconds": "INT",
        "event_day": "DATE",
    },
    "src.orders": {"order_id": "BIGINT", "customer_id": "BIGINT", "ordered_on": "DATE"},
    "src.stocks": {
        "sku": "STRING",
        "day": "DATE",
        "stock": "INT",
        "on_hand_qty": "INT",
        "sold": "INT",
        "new_mrr": "DECIMAL(12, 2)",
        "open_tickets": "INT",
        "mrr": "DECIMAL(12, 2)",
        "is_latest": "BOOLEAN",
    },
    "src.invoices": {
        "invoice_id": "BIGINT",
        "account_id": "BIGINT",
        "issued_on": "DATE",
        "open_amount": "DECIMAL(12, 2)",
    },
    "src.lines": {
        "line_id": "BIGINT",
        "order_id": "BIGINT",
        "unit_price": "DECIMAL(12, 2)",
        "quantity": "INT",
        "tax": "DECIMAL(12, 2)",
    },
}
RULE = "improbable-expression"
list_severities = partial(list_severities_of_new_model, RULE, stays=STAYS, external=TABLES)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT d.account_id, SUM(d.active_users) AS active_users FROM core.daily AS d "
        "GROUP BY d.account_id",
        "SELECT d.account_id, COALESCE(SUM(d.about_users), 0) AS users FROM core.daily AS d "
        "GROUP BY d.account_id",
        "SELECT TRUNC(d.event_day, 'MM') AS month, SUM(d.active_users) AS users "
        "FROM core.daily AS d GROUP BY 1",
        "SELECT SUM(p.people) AS users FROM core.passed AS p",
        "WITH x AS (SELECT e.event_day, SIZE(COLLECT_SET(e.user_id)) AS users FROM stg.events AS e "
        "GROUP BY e.event_day) SELECT SUM(x.users) AS users FROM x WHERE x.users > 0",
        "SELECT d.account_id, d.event_day, SUM(d.active_users) OVER (PARTITION BY d.account_id "
        "ORDER BY d.event_day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS users "
        "FROM core.daily AS d",
        "SELECT SUM(o.customers) AS customers FROM core.order_days AS o",
        "SELECT SUM(d.active_users) FILTER (WHERE d.event_day > '2024-01-01') AS users "
        "FROM core.daily AS d",
        "SELECT d.account_id, SUM(CASE WHEN d.events > 1 THEN d.active_users ELSE 0 END) AS users "
        "FROM core.daily AS d GROUP BY d.account_id",
        "SELECT d.account_id, SUM(d.seconds) AS seconds FROM core.daily AS d GROUP BY d.account_id",
    ],
)
def test_sum__of_what_was_counted_or_averaged_by_day__is_high(query: str) -> None:
    assert list_severities(query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT d.event_day, SUM(d.active_users) AS users FROM core.daily AS d GROUP BY d.event_day",
        "SELECT d.account_id, SUM(d.events) AS events FROM core.daily AS d GROUP BY d.account_id",
        "SELECT d.account_id, SUM(d.active_users) AS user_days FROM core.daily AS d "
        "GROUP BY d.account_id",
        "SELECT d.account_id, SUM(d.active_users) / COUNT(*) AS users FROM core.daily AS d "
        "GROUP BY d.account_id",
        "SELECT d.account_id, MAX(d.active_users) AS users FROM core.daily AS d "
        "GROUP BY d.account_id",
        "SELECT SUM(d.active_users) AS users FROM core.daily AS d "
        "WHERE d.event_day = DATE '2024-01-01'",
        # Each order is of one day.
        "SELECT SUM(o.orders) AS orders FROM core.order_days AS o",
        "WITH days AS (SELECT DISTINCT e.event_day AS day FROM stg.events AS e) SELECT c.day, "
        "SUM(d.active_users) AS users FROM days AS c JOIN core.daily AS d ON d.event_day = c.day "
        "GROUP BY c.day",
        "SELECT p.day, SUM(p.people) AS people FROM core.passed AS p GROUP BY p.day",
        "SELECT d.event_day, SUM(d.seconds) AS seconds FROM core.daily AS d GROUP BY d.event_day",
        # Each of them is new once, and has one first month.
        "WITH x AS (SELECT e.event_day, COUNT(DISTINCT e.user_id) AS new_users FROM stg.events AS e "
        "GROUP BY e.event_day) SELECT SUM(x.new_users) AS new_users FROM x",
        "WITH x AS (SELECT e.event_day AS cohort_day, COUNT(DISTINCT e.user_id) AS users "
        "FROM stg.events AS e GROUP BY e.event_day) SELECT SUM(x.users) AS users FROM x",
        "SELECT d.account_id, SUM(d.seconds) AS expected_seconds FROM core.daily AS d "
        "GROUP BY d.account_id",
    ],
)
def test_sum__of_what_adds_up__is_quiet(query: str) -> None:
    assert list_severities(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.sku, SUM(s.stock) AS stock FROM core.stocks AS s GROUP BY s.sku",
        "SELECT SUM(s.mrr) AS total_mrr FROM core.stocks AS s",
        "WITH x AS (SELECT s.day, SUM(s.stock) AS stock FROM core.stocks AS s GROUP BY s.day) "
        "SELECT SUM(x.stock) AS stock FROM x",
        "SELECT TRUNC(s.day, 'MM') AS month, SUM(s.on_hand_qty) AS on_hand FROM core.stocks AS s "
        "GROUP BY 1",
        "SELECT s.sku, CAST(SUM(s.open_tickets) AS INT) AS open_tickets FROM core.stocks AS s "
        "WHERE s.day >= '2024-01-01' GROUP BY s.sku",
        "WITH x AS (SELECT s.sku, s.day AS d, s.stock AS stock FROM core.stocks AS s) "
        "SELECT x.sku, SUM(x.stock) AS stock FROM x GROUP BY x.sku",
    ],
)
def test_sum__of_a_level_over_time__is_high(query: str) -> None:
    assert list_severities(query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.day, SUM(s.stock) AS stock FROM core.stocks AS s GROUP BY s.day",
        "SELECT s.sku, MAX_BY(s.stock, s.day) AS stock FROM core.stocks AS s GROUP BY s.sku",
        "SELECT SUM(s.stock) AS stock FROM core.stocks AS s WHERE s.day = DATE '2024-01-01'",
        "SELECT SUM(s.stock) AS stock FROM core.stocks AS s "
        "WHERE s.day = (SELECT MAX(x.day) FROM core.stocks AS x)",
        "SELECT SUM(s.stock) AS stock FROM core.stocks AS s "
        "WHERE s.day IN (SELECT MAX(x.day) FROM core.stocks AS x)",
        "WITH x AS (SELECT s.sku, s.stock, ROW_NUMBER() OVER (PARTITION BY s.sku ORDER BY s.day "
        "DESC) AS n FROM core.stocks AS s) SELECT SUM(x.stock) AS stock FROM x WHERE x.n = 1",
        "WITH x AS (SELECT s.sku, s.stock FROM core.stocks AS s WHERE s.day = DATE '2024-01-01') "
        "SELECT SUM(x.stock) AS stock FROM x",
        "WITH x AS (SELECT s.sku, MAX_BY(s.stock, s.day) AS stock FROM core.stocks AS s "
        "GROUP BY s.sku) SELECT SUM(x.stock) AS stock FROM x",
        "SELECT s.sku, SUM(s.new_mrr) AS new_mrr FROM core.stocks AS s GROUP BY s.sku",
        "SELECT s.sku, SUM(s.sold) AS sold FROM core.stocks AS s GROUP BY s.sku",
        "SELECT s.sku, SUM(s.stock) AS stock_days FROM core.stocks AS s GROUP BY s.sku",
        "SELECT s.sku, SUM(s.stock) / COUNT(*) AS stock FROM core.stocks AS s GROUP BY s.sku",
        "SELECT SUM(s.stock) AS stock FROM core.latest AS s",
        "SELECT SUM(CASE WHEN s.day = '2024-01-01' THEN s.stock END) AS stock FROM core.stocks AS s",
        "WITH x AS (SELECT s.day, SUM(s.stock) AS stock FROM core.stocks AS s GROUP BY s.day) "
        "SELECT x.day, SUM(x.stock) AS stock FROM x GROUP BY x.day",
        "WITH x AS (SELECT s.sku, SUM(s.stock) AS stock FROM core.stocks AS s "
        "WHERE s.day = DATE '2024-01-01' GROUP BY s.sku) SELECT SUM(x.stock) AS stock FROM x",
        "SELECT TRUNC(s.day, 'MM') AS month, SUM(s.stock) AS stock FROM core.stocks AS s "
        "WHERE s.day = (SELECT MAX(x.day) FROM core.stocks AS x WHERE x.sku = s.sku "
        "AND TRUNC(x.day, 'MM') = TRUNC(s.day, 'MM')) GROUP BY 1",
        "SELECT SUM(s.stock) AS stock FROM core.stocks AS s JOIN (SELECT x.sku, MAX(x.day) AS day "
        "FROM core.stocks AS x GROUP BY x.sku) AS x ON x.sku = s.sku AND x.day = s.day",
        "SELECT SUM(s.stock) AS stock FROM core.stocks AS s WHERE EXISTS (SELECT 1 FROM core.stocks "
        "AS x WHERE x.sku = s.sku HAVING MAX(x.day) = s.day)",
        "SELECT TRUNC(s.day, 'MM') AS month, SUM(s.stock) AS stock FROM core.stocks AS s "
        "WHERE DAY(s.day) = 1 GROUP BY 1",
        "SELECT SUM(s.stock) AS stock FROM core.stocks AS s WHERE s.is_latest",
        # The day is a part of the key, and each invoice has one.
        "SELECT i.account_id, SUM(i.open_amount) AS open_amount FROM core.invoices AS i "
        "GROUP BY i.account_id",
    ],
)
def test_sum__of_a_level_at_one_time__is_quiet(query: str) -> None:
    assert list_severities(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT l.order_id, SUM(l.unit_price) * SUM(l.quantity) AS amount FROM stg.lines AS l "
        "GROUP BY l.order_id",
        "SELECT l.order_id, ROUND(AVG(l.unit_price) * SUM(l.quantity), 2) AS amount "
        "FROM stg.lines AS l GROUP BY l.order_id",
        "WITH x AS (SELECT l.order_id, SUM(l.unit_price) AS price, SUM(l.quantity) AS quantity "
        "FROM stg.lines AS l GROUP BY l.order_id) "
        "SELECT x.order_id, x.price * x.quantity AS amount FROM x",
        "SELECT SUM(l.quantity) * COALESCE(SUM(l.unit_price), 0) AS amount FROM stg.lines AS l",
    ],
)
def test_product__of_two_totals__is_high(query: str) -> None:
    assert list_severities(query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT l.order_id, SUM(l.unit_price * l.quantity) AS amount FROM stg.lines AS l "
        "GROUP BY l.order_id",
        "SELECT l.order_id, MAX(l.unit_price) * SUM(l.quantity) AS amount FROM stg.lines AS l "
        "GROUP BY l.order_id",
        "SELECT l.unit_price, SUM(l.unit_price) * SUM(l.quantity) AS x FROM stg.lines AS l "
        "GROUP BY l.unit_price",
        "SELECT COUNT(*) * SUM(l.unit_price * l.quantity) - SUM(l.unit_price) * SUM(l.quantity) "
        "AS covariance FROM stg.lines AS l",
        "SELECT SUM(l.quantity) * 100 AS x FROM stg.lines AS l",
        "SELECT l.order_id, SUM(l.tax) * SUM(l.tax) AS x FROM stg.lines AS l GROUP BY l.order_id",
    ],
)
def test_product__in_each_row__is_quiet(query: str) -> None:
    assert list_severities(query) == []
