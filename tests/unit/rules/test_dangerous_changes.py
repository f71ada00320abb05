"""Changes that somebody has to confirm, one line each: what is said of them, and how heavily."""

from __future__ import annotations

import pytest

from ci_bot.worker.rules import RuleInputs
from tests.unit.rules.shop import FILES, added, edited, without
from tests.unit.rules.world import change, rules, seen

DANGEROUS: dict[str, tuple[RuleInputs, dict[str, str]]] = {
    "an inner join": (edited(("revenue", "LEFT JOIN", "INNER JOIN")), {"join-changed": "high"}),
    "another join key": (
        edited(("revenue", "c.customer_id = p.customer_id", "c.customer_id = p.orders")),
        {"join-changed": "high"},
    ),
    "a join without condition": (
        edited(("open_orders", "AS o\n", "AS o CROSS JOIN stg.customers AS c\n")),
        {"cross-join": "high"},
    ),
    "a comma join": (
        edited(("open_orders", "AS o\n", "AS o, stg.customers AS c\n")),
        {"cross-join": "high"},
    ),
    "a join on a constant": (
        edited(("open_orders", "AS o\n", "AS o JOIN stg.customers AS c ON 1 = 1\n")),
        {"cross-join": "high"},
    ),
    "a join on part of the key": (
        edited(
            ("open_orders", "AS o\n", "AS o LEFT JOIN stg.customers AS c ON c.country = o.status\n")
        ),
        {"join-may-multiply": "high"},
    ),
    "a filter removed": (
        edited(("revenue", "o.status <> 'cancelled'", "TRUE")),
        {"filter-changed": "high"},
    ),
    "a filter in a join": (
        edited(("open_orders", "o.status = 'open'", "o.status = 'open' AND o.amount > 0")),
        {"filter-changed": "high"},
    ),
    "a merge that reads by another time": (
        edited(("customers", "c.updated_at BETWEEN", "c.signup_at BETWEEN")),
        {"filter-changed": "high"},
    ),
    "a merge that reads by one time more": (
        edited(
            (
                "customers",
                "c.updated_at BETWEEN",
                "c.signup_at >= @start_ts AND c.updated_at BETWEEN",
            )
        ),
        {"filter-changed": "high"},
    ),
    "an interval that late rows miss": (
        edited(("orders", "@end_ds", "@end_ds AND o.loaded_at <= @end_ts")),
        {"filter-changed": "high"},
    ),
    "other totals": (
        edited(("revenue", "COUNT(*) AS orders", "COUNT(DISTINCT o.amount) AS orders")),
        {"aggregate-changed": "high"},
    ),
    "whole division": (
        edited(("revenue", "SUM(p.amount) / SUM(p.orders)", "SUM(p.amount) DIV SUM(p.orders)")),
        {"division-changed": "high"},
    ),
    "a narrower type": (
        edited(("orders", "CAST(o.customer_id AS BIGINT)", "CAST(o.customer_id AS INT)")),
        {"column-retyped": "high"},
    ),
    "a number as text": (
        edited(("orders", "CAST(o.customer_id AS BIGINT)", "CAST(o.customer_id AS STRING)")),
        {"column-retyped": "high"},
    ),
    "a column that is still read": (
        edited(("orders", "AS amount", "AS total")),
        {"missing-column": "blocker"},
    ),
    "the interval filter gone": (
        edited(("orders", "CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds", "TRUE")),
        {"time-filter-missing": "high"},
    ),
    "an OR around the interval": (
        edited(("orders", "AND @end_ds", "AND @end_ds OR o.status = 'late'")),
        {"time-filter-missing": "high"},
    ),
    "a union branch without the interval": (
        edited(
            (
                "orders",
                "AND @end_ds\n",
                "AND @end_ds\n        UNION ALL SELECT o.order_id, o.customer_id, o.status, o.amount,"
                " CAST(o.order_ts AS DATE) FROM raw.orders AS o\n",
            )
        ),
        {"time-filter-missing": "high", "union-changed": "high"},
    ),
    "the interval on another column": (
        edited(("orders", "CAST(o.order_ts AS DATE) BETWEEN", "CAST(o.loaded_at AS DATE) BETWEEN")),
        {"time-filter-wrong-column": "high"},
    ),
    "the last day left out": (
        edited(
            (
                "orders",
                "BETWEEN @start_ds AND @end_ds",
                "< @end_ds AND CAST(o.order_ts AS DATE) >= @start_ds",
            )
        ),
        {"interval-edge-lost": "high"},
    ),
    "another time zone": (
        edited(
            (
                "orders",
                "CAST(o.order_ts AS DATE) AS order_date",
                "CAST(FROM_UTC_TIMESTAMP(o.order_ts, 'Asia/Tokyo') AS DATE) AS order_date",
            )
        ),
        {"time-column-outside-interval": "high"},
    ),
    "the clock in a column": (
        edited(
            (
                "orders",
                "AS order_date\n",
                "AS order_date, DATEDIFF(CURRENT_TIMESTAMP(), o.order_ts) AS age\n",
            )
        ),
        {"current-time": "high"},
    ),
    "the clock without arguments": (
        edited(("orders", "AS order_date\n", "AS order_date, UNIX_TIMESTAMP() AS loaded_at\n")),
        {"current-time": "high"},
    ),
    "a random key": (
        edited(("orders", "AS order_date\n", "AS order_date, UUID() AS row_key\n")),
        {"random": "high"},
    ),
    "a sample": (
        edited(("open_orders", "stg.orders AS o", "stg.orders TABLESAMPLE (10 PERCENT) AS o")),
        {"random": "high"},
    ),
    "a running total": (
        edited(
            (
                "orders",
                "AS order_date\n",
                "AS order_date, SUM(o.amount) OVER (PARTITION BY o.customer_id ORDER BY o.order_ts) AS run\n",
            )
        ),
        {"window-over-interval": "high"},
    ),
    "a LIMIT": (
        edited(("open_orders", "o.status = 'open'", "o.status = 'open' LIMIT 10")),
        {"limit-in-model": "high"},
    ),
    "a not_null less": (
        edited(("orders", "(order_id, customer_id)", "(order_id)")),
        {"removed-audit": "high"},
    ),
    "an audit that stops nothing": (
        edited(
            (
                "orders",
                "unique_values(columns := (order_id))",
                "unique_values(columns := (order_id), blocking := false)",
            )
        ),
        {"weakened-audit": "high"},
    ),
    "a unique key that is none": (
        edited(("customers", "unique_key customer_id", "unique_key country")),
        {"unique-key-not-unique": "high"},
    ),
    "no lookback": (edited(("orders", ", lookback 2", "")), {"lookback-removed": "high"}),
    "forward-only from now on": (
        edited(("orders", "lookback 2", "lookback 2, forward_only true")),
        {"guard-removed": "high"},
    ),
    "a DELETE before the query": (
        edited(
            ("revenue", "WITH paid", "DELETE FROM stg.orders WHERE amount < 0;\n        WITH paid")
        ),
        {"destructive-statement": "blocker"},
    ),
    "a DELETE on the model's own table": (
        edited(
            ("revenue", "WITH paid", "DELETE FROM @this_model WHERE amount < 0;\n        WITH paid")
        ),
        {"destructive-statement": "high"},
    ),
    "personal data in a new mart": (
        added(
            "MODEL (name mart.contacts, kind FULL, grain customer_id, audits (not_null(columns := (customer_id))));"
            "SELECT c.customer_id, c.email AS contact FROM stg.customers AS c"
        ),
        {"personal-data-exposed": "high"},
    ),
    "a table to everybody": (
        edited(("revenue", "grain country", "grants ('select' = ['public']), grain country")),
        {"grants-changed": "high"},
    ),
    "a model that others read": (
        without("customers"),
        {"removed-model-read": "blocker", "external-unregistered": "high"},
    ),
    "a model under another name": (
        change(
            FILES,
            {
                **{p: t for p, t in FILES.items() if p != "models/open_orders.sql"},
                "models/pending.sql": FILES["models/open_orders.sql"].replace(
                    "open_orders", "pending"
                ),
            },
        ),
        {"model-renamed": "high"},
    ),
}


@pytest.mark.parametrize("name", sorted(DANGEROUS))
def test_dangerous_change__is_named_with_enough_weight(name: str) -> None:
    inputs, expected = DANGEROUS[name]

    found = rules(inputs, at_least="medium")

    assert {rule: found.get(rule) for rule in expected} == expected


@pytest.mark.parametrize(
    ("name", "rule", "line"),
    [
        ("a LIMIT", "limit-in-model", 15),
        ("the clock in a column", "current-time", 18),
        ("no lookback", "lookback-removed", 4),
        ("an inner join", "join-changed", 26),
    ],
)
def test_finding__points_at_the_line(name: str, rule: str, line: int) -> None:
    (found,) = seen(DANGEROUS[name][0], rule)

    assert found.path is not None
    assert (found.path.startswith("models/"), found.line) == (True, line)


def test_finding_of_a_model_in_another_catalog__compares_the_definitions() -> None:
    inputs = edited(("open_orders", "o.status = 'open'", "o.status = 'new'"))
    moved = {name.replace("spark_catalog", "lake"): model for name, model in inputs.before.items()}

    found = rules(type(inputs)(**{**inputs.__dict__, "before": moved}), at_least="medium")

    assert found == {"filter-changed": "high"}
