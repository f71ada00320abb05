"""Changes that an expert would wave through: nothing from severity medium may be said of them."""

from __future__ import annotations

import pytest

from ci_bot.worker.rules import RuleInputs
from tests.unit.rules.shop import FILES, added, edited
from tests.unit.rules.world import change, rules

HARMLESS = {
    "a renamed CTE": edited(("revenue", "paid AS", "good AS")),
    "a renamed alias": edited(("open_orders", "o.", "ord."), ("open_orders", "AS o\n", "AS ord\n")),
    "turned conditions": edited(
        ("revenue", "c.customer_id = p.customer_id", "p.customer_id = c.customer_id")
    ),
    "columns in another order": edited(
        (
            "open_orders",
            "o.order_id,\n          o.customer_id",
            "o.customer_id,\n          o.order_id",
        )
    ),
    "a wider decimal": edited(("orders", "DECIMAL(10, 2)", "DECIMAL(18, 2)")),
    "a longer lookback": edited(("orders", "lookback 2", "lookback 7")),
    "smaller batches": edited(("orders", "batch_size 30", "batch_size 10")),
    "a comment": edited(("orders", "SELECT\n", "/* newest first */\n        SELECT\n")),
    "an owner and tags": edited(("revenue", "grain country", "owner ana, tags (x), grain country")),
    "a description": edited(
        ("revenue", "grain country", "description 'by country', grain country")
    ),
    "an earlier start": edited(("orders", "cron '@daily'", "cron '@daily', start '2020-01-01'")),
    "one more audit": edited(
        ("revenue", "not_null(columns := (country))", "not_null(columns := (country, amount))")
    ),
    "a new column": edited(
        ("revenue", "SUM(p.orders) AS orders,", "SUM(p.orders) AS orders, MAX(p.amount) AS top,")
    ),
    "BETWEEN as two comparisons": edited(
        (
            "orders",
            "CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds",
            "CAST(o.order_ts AS DATE) >= @start_ds AND CAST(o.order_ts AS DATE) <= @end_ds",
        )
    ),
    "the same interval of a merge as two comparisons": edited(
        (
            "customers",
            "c.updated_at BETWEEN @start_ts AND @end_ts",
            "c.updated_at >= @start_ts AND c.updated_at <= @end_ts",
        )
    ),
    "a guard against zero": edited(("revenue", "/ SUM(p.orders)", "/ NULLIF(SUM(p.orders), 0)")),
    "a lookup that is complete": edited(
        (
            "open_orders",
            "AS o\n",
            "AS o LEFT JOIN stg.customers AS c ON c.customer_id = o.customer_id\n",
        )
    ),
    "a new view": added(
        "MODEL (name mart.big, kind VIEW, grain order_id);"
        "SELECT o.order_id, o.amount FROM stg.orders AS o WHERE o.amount > 100"
    ),
    "a window inside the day": edited(
        (
            "orders",
            "AS order_date\n",
            "AS order_date, SUM(o.amount) OVER (PARTITION BY CAST(o.order_ts AS DATE)) AS of_day\n",
        )
    ),
    "duplicates removed by row number": added(
        "MODEL (name stg.latest, kind INCREMENTAL_BY_TIME_RANGE (time_column d, batch_size 30),"
        " grain order_id, audits (unique_values(columns := (order_id))));"
        "WITH r AS (SELECT o.order_id, CAST(o.order_ts AS DATE) AS d,"
        " ROW_NUMBER() OVER (PARTITION BY o.order_id ORDER BY o.loaded_at DESC) AS rn"
        " FROM raw.orders AS o WHERE CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds)"
        " SELECT r.order_id, r.d FROM r WHERE r.rn = 1"
    ),
    "a date spine": added(
        "MODEL (name mart.spine, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 30),"
        " grain (customer_id, day), audits (not_null(columns := (customer_id, day))));"
        "SELECT c.customer_id, CAST(d.day AS DATE) AS day FROM stg.customers AS c CROSS JOIN"
        " (SELECT EXPLODE(SEQUENCE(CAST(@start_ds AS DATE), CAST(@end_ds AS DATE))) AS day) AS d"
    ),
    "a hash of personal data": added(
        "MODEL (name mart.h, kind FULL, grain customer_id, audits (not_null(columns := (customer_id))));"
        "SELECT c.customer_id, SHA2(c.email, 256) AS email_hash, c.email IS NULL AS no_email"
        " FROM stg.customers AS c"
    ),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_harmless_change__is_left_alone(name: str) -> None:
    assert rules(HARMLESS[name], at_least="medium") == {}


def test_nothing_changed__nothing_is_said() -> None:
    assert rules(change(FILES, FILES)) == {}


def test_moved_file__is_no_change() -> None:
    moved = {path.replace("models/", "models/shop/"): text for path, text in FILES.items()}

    assert rules(change(FILES, moved)) == {}


@pytest.mark.parametrize("name", ["a renamed CTE", "a renamed alias", "columns in another order"])
def test_rewrite__is_proven_to_give_the_same(name: str) -> None:
    assert rules(HARMLESS[name]) == {"same-result": "info"}


def pre_existing() -> RuleInputs:
    sloppy = (
        FILES["models/revenue.sql"]
        .replace("grain country,", "")
        .replace("SUM(p.amount) /", "RAND() /")
    )
    before = {**FILES, "models/revenue.sql": sloppy}
    return change(
        before,
        {**before, "models/revenue.sql": sloppy.replace("kind FULL", "kind FULL, owner ana")},
    )


def test_what_was_there_before__is_not_held_against_the_change() -> None:
    assert rules(pre_existing()) == {}
