"""What a new model or a new expression does although it looks right: Spark casts a key in silence, a
join multiplies rows, AND binds before OR, ties decide which row stays, and money is imprecise.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import EXTERNAL, change, list_severities_of_new_model, seen

ORDERS = (
    "MODEL (name stg.orders, kind FULL, grain order_id, audits (unique_values(columns := "
    "(order_id)))); SELECT o.order_id, o.customer_id, o.status, o.amount, o.order_ts, "
    "CAST(o.order_ts AS DATE) AS order_date FROM raw.orders AS o"
)
ITEMS = (
    "MODEL (name stg.items, kind FULL, grain (order_id, line)); "
    "SELECT i.order_id, i.line, i.quantity, i.sku FROM raw.items AS i"
)
PAYMENTS = (
    "MODEL (name stg.payments, kind FULL, grain payment_id); "
    "SELECT p.payment_id, p.order_id, p.paid FROM raw.payments AS p"
)
CUSTOMERS = (
    "MODEL (name stg.customers, kind FULL, grain customer_id); SELECT c.customer_id, c.country, "
    "c.credit, c.code, c.score FROM raw.buyers AS c"
)
STAYS = {
    "models/orders.sql": ORDERS,
    "models/items.sql": ITEMS,
    "models/payments.sql": PAYMENTS,
    "models/customers.sql": CUSTOMERS,
}
TABLES = {
    **EXTERNAL,
    "raw.items": {"order_id": "BIGINT", "line": "INT", "quantity": "INT", "sku": "STRING"},
    "raw.payments": {"payment_id": "BIGINT", "order_id": "BIGINT", "paid": "DECIMAL(10, 2)"},
    "raw.buyers": {
        "customer_id": "BIGINT",
        "country": "STRING",
        "credit": "DECIMAL(10, 2)",
        "code": "STRING",
        "score": "DOUBLE",
        "active": "BOOLEAN",
        "seen_on": "DATE",
        "seen_text": "STRING",
        "short_id": "INT",
        "letter": "CHAR(1)",
        "price": "DOUBLE",
        "price_text": "STRING",
        "fee_cents": "BIGINT",
    },
}


list_severities = partial(list_severities_of_new_model, stays=STAYS, external=TABLES)


def weigh_edit(rule: str, before: str, after: str) -> list[str]:
    """The severities of one rule's findings for an edited model."""
    old, new = (f"MODEL (name mart.m, kind FULL); {text}" for text in (before, after))
    inputs = change({**STAYS, "models/m.sql": old}, {**STAYS, "models/m.sql": new}, external=TABLES)
    return [item.severity for item in seen(inputs, rule) if item.model == "mart.m"]


def is_heavy(found: list[str]) -> bool:
    return "high" in found


# Spark compares values of two types by casting one of them.

MET = "SELECT o.order_id FROM stg.orders AS o JOIN raw.buyers AS c ON {0}"


@pytest.mark.parametrize(
    "on",
    [
        "o.customer_id = c.code",
        "c.code = o.customer_id",
        "c.code <=> o.customer_id AND o.status = c.country",
        "CAST(o.customer_id AS STRING) = c.customer_id",
        "o.order_date = c.seen_text",
        "o.order_ts = c.seen_on",
        "o.customer_id = c.customer_id AND o.status > c.short_id",
        "o.customer_id = c.customer_id AND o.status = c.active",
    ],
)
def test_types__that_spark_makes_equal_by_a_cast(on: str) -> None:
    assert list_severities("improbable-expression", MET.format(on)) == ["high"]


@pytest.mark.parametrize(
    "on",
    [
        "o.customer_id = c.customer_id",
        "o.customer_id = c.short_id",
        "o.amount = c.price",
        "o.customer_id = CAST(c.code AS BIGINT)",
        "CAST(o.customer_id AS STRING) = c.code",
        "o.order_date = CAST(c.seen_text AS DATE)",
        "CAST(o.order_ts AS DATE) = c.seen_on",
        "o.customer_id = c.customer_id AND o.order_ts >= c.seen_on",
        "o.customer_id = c.customer_id AND o.order_ts >= c.seen_text",
        "o.status = c.letter",
    ],
)
def test_types__that_are_alike_or_cast_on_purpose(on: str) -> None:
    assert list_severities("improbable-expression", MET.format(on)) == []


def test_types__behind_a_cte_and_in_an_edited_model() -> None:
    text = (
        "WITH a AS (SELECT o.order_id, o.customer_id AS k FROM stg.orders AS o), b AS (SELECT "
        "{0} AS k FROM stg.customers AS c) SELECT a.order_id FROM a JOIN b ON a.k = b.k"
    )
    assert list_severities("improbable-expression", text.format("c.code")) == ["high"]
    assert list_severities("improbable-expression", text.format("c.customer_id")) == []
    same, other = text.format("c.customer_id"), text.format("c.code")
    assert weigh_edit("improbable-expression", same, other) == ["high"]
    assert weigh_edit("improbable-expression", other, other + " WHERE a.k > 1") == []


@pytest.mark.parametrize(
    ("listed", "severities"),
    [
        ("o.customer_id IN (SELECT c.code FROM stg.customers AS c)", ["high"]),
        ("o.customer_id IN (SELECT c.customer_id FROM stg.customers AS c)", []),
        ("EXISTS (SELECT 1 FROM stg.customers AS c WHERE c.code = o.customer_id)", ["high"]),
        ("EXISTS (SELECT 1 FROM stg.customers AS c WHERE c.customer_id = o.customer_id)", []),
        # A text that Spark cannot read as a number or a date is NULL, and equals nothing.
        ("o.customer_id = 'C-1'", ["high"]),
        ("o.customer_id IN ('7', 'none')", ["high"]),
        ("o.order_date = '31.12.2024'", ["high"]),
        ("o.order_ts >= '12/31/2024'", ["high"]),
        ("o.order_ts BETWEEN '2024-01-01' AND '2024-31-12x'", ["high"]),
        ("o.customer_id = '17'", []),
        ("o.customer_id = ' 1.5e3 '", []),
        ("o.order_date = '2024-12'", []),
        ("o.order_date >= '2024-1-1'", []),
        ("o.order_ts >= '2024-12-31T10:00:00Z'", []),
        ("o.order_ts >= '2024'", []),
        ("o.status = 'C-1'", []),
    ],
)
def test_types__of_lists_and_of_texts_in_a_filter(listed: str, severities: list[str]) -> None:
    text = f"SELECT o.order_id FROM stg.orders AS o WHERE {listed}"
    assert list_severities("improbable-expression", text) == severities


def test_types__of_the_branches_of_a_union() -> None:
    text = "SELECT o.order_id AS k FROM stg.orders AS o UNION ALL SELECT {0} FROM raw.buyers AS c"
    assert list_severities("improbable-expression", text.format("c.code")) == ["high"]
    assert list_severities("improbable-expression", text.format("c.seen_on")) == ["high"]
    days = text.replace("o.order_id", "o.order_ts")
    assert list_severities("improbable-expression", days.format("c.seen_on")) == []
    assert list_severities("improbable-expression", days.format("c.code")) == ["high"]
    for alike in ("c.customer_id", "c.short_id", "c.price", "NULL", "CAST(c.code AS BIGINT)"):
        assert list_severities("improbable-expression", text.format(alike)) == []


# AND binds before OR.


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id FROM stg.orders AS o JOIN stg.customers AS c ON o.customer_id = "
        "c.customer_id AND c.country = 'DE' OR c.country = 'AT'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount > 1 AND o.status = 'a' OR "
        "o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status = 'b' OR o.status = 'a' AND "
        "o.amount > 1",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.order_id > 0 AND (o.amount > 1 AND "
        "o.status = 'a' OR o.status = 'b')",
        "SELECT o.status FROM stg.orders AS o GROUP BY o.status HAVING COUNT(*) > 1 AND "
        "MAX(o.amount) > 2 OR MIN(o.amount) < 1",
        "SELECT COUNT(*) FILTER (WHERE o.status = 'a' AND o.amount > 1 OR o.status = 'b') AS n "
        "FROM stg.orders AS o",
        # Each side has an AND, and one of them ties no column of the partner to one of the order.
        "SELECT o.order_id FROM stg.orders AS o JOIN stg.customers AS c ON o.customer_id = "
        "c.customer_id AND c.country = 'DE' OR c.country = 'AT' AND c.credit > 1",
    ],
)
def test_or__beside_and_without_brackets(text: str) -> None:
    assert list_severities("improbable-expression", text) == ["high"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id FROM stg.orders AS o WHERE (o.amount > 1 AND o.status = 'a') OR "
        "o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount > 1 AND (o.status = 'a' OR "
        "o.status = 'b')",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount > 1 OR o.status = 'a' OR "
        "o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount > 1 AND o.status = 'a' OR "
        "o.amount < 0 AND o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount BETWEEN 1 AND 2 OR o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o JOIN stg.customers AS c ON o.customer_id = "
        "c.customer_id AND (c.country = 'DE' OR c.country = 'AT')",
        "SELECT o.order_id FROM stg.orders AS o JOIN stg.customers AS c ON o.customer_id = "
        "c.customer_id AND c.country = 'DE' OR o.order_id = c.customer_id AND c.credit > 1",
    ],
)
def test_or__with_brackets_or_of_whole_alternatives(text: str) -> None:
    assert list_severities("improbable-expression", text) == []


def test_or__inside_a_value_is_a_note() -> None:
    text = (
        "SELECT CASE WHEN o.amount > 1 AND o.status = 'a' OR o.status = 'b' THEN 1 ELSE 0 END AS f "
        "FROM stg.orders AS o"
    )
    assert list_severities("improbable-expression", text) == ["medium"]


@pytest.mark.parametrize(
    "text",
    [
        # Always or never true.
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status <> 'a' OR o.status <> 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status = 'a' AND o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount BETWEEN 9 AND 1",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.order_date BETWEEN '2024-12-31' AND "
        "'2024-01-01'",
        # COUNT counts each value that is not NULL, FALSE and 0 too.
        "SELECT COUNT(o.status = 'a') AS n FROM stg.orders AS o",
        "SELECT COUNT(CASE WHEN o.status = 'a' THEN 1 ELSE 0 END) AS n FROM stg.orders AS o",
        "SELECT COUNT(IF(o.status = 'a', 1, 0)) AS n FROM stg.orders AS o",
    ],
)
def test_condition__that_is_the_same_for_each_row(text: str) -> None:
    assert list_severities("improbable-expression", text) == ["high"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status <> 'a' AND o.status <> 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status = 'a' OR o.status = 'b'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status = 'a' AND o.status = 'a'",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount BETWEEN 1 AND 9",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.amount BETWEEN -9 AND -1",
        "SELECT COUNT(CASE WHEN o.status = 'a' THEN 1 END) AS n FROM stg.orders AS o",
        "SELECT COUNT(CASE WHEN o.status = 'a' THEN o.amount ELSE NULL END) AS n "
        "FROM stg.orders AS o",
        "SELECT COUNT(DISTINCT IF(o.status = 'a', o.order_id, NULL)) AS n FROM stg.orders AS o",
        "SELECT SUM(CASE WHEN o.status = 'a' THEN 1 ELSE 0 END) AS n FROM stg.orders AS o",
        "SELECT COUNT_IF(o.status = 'a') AS n FROM stg.orders AS o",
    ],
)
def test_condition__that_tells_rows_apart(text: str) -> None:
    assert list_severities("improbable-expression", text) == []


# Joins that multiply what is counted.


@pytest.mark.parametrize(
    "text",
    [
        # The summed table comes second, and its rows are repeated for each row of the first.
        "SELECT i.sku, SUM(o.amount) AS a FROM stg.items AS i JOIN stg.orders AS o "
        "ON o.order_id = i.order_id GROUP BY i.sku",
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o, stg.items AS i "
        "WHERE o.order_id = i.order_id GROUP BY o.status",
        # Two partners multiply each other.
        "SELECT o.order_id, COUNT(*) AS n FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id JOIN stg.payments AS p ON p.order_id = o.order_id GROUP BY 1",
        "SELECT o.order_id, SUM(i.quantity) AS q FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id JOIN stg.payments AS p ON p.order_id = o.order_id GROUP BY 1",
        "SELECT o.order_id, COUNT(p.payment_id) AS q FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id JOIN stg.payments AS p ON p.order_id = o.order_id GROUP BY 1",
        # An order without items counts as one, an order with three as three.
        "SELECT o.customer_id, COUNT(*) AS n FROM stg.orders AS o LEFT JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.customer_id",
        "SELECT o.customer_id, COUNT(1) AS n FROM stg.orders AS o LEFT JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.customer_id",
        # Its name says what should be counted.
        "SELECT o.customer_id, COUNT(*) AS orders FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.customer_id",
        "SELECT o.customer_id, COUNT(*) AS order_count FROM stg.items AS i JOIN stg.orders AS o "
        "ON o.order_id = i.order_id GROUP BY o.customer_id",
        "SELECT o.status, COUNT(o.order_id) AS n FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.status",
        "SELECT o.status, STDDEV(o.amount) AS n FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.status",
        # Each element of the array repeats its order.
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o "
        "LATERAL VIEW EXPLODE(SPLIT(o.status, ',')) t AS tag GROUP BY o.status",
        # Through a CTE that keeps the rows of its table.
        "WITH x AS (SELECT i.order_id, i.line FROM stg.items AS i WHERE i.quantity > 0) "
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o JOIN x "
        "ON o.order_id = x.order_id GROUP BY o.status",
    ],
)
def test_total__over_rows_that_a_join_multiplies(text: str) -> None:
    assert is_heavy(list_severities("fan-out-total", text)), text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT i.sku, SUM(i.quantity) AS a FROM stg.items AS i JOIN stg.orders AS o "
        "ON o.order_id = i.order_id GROUP BY i.sku",
        "SELECT i.sku, SUM(i.quantity * o.amount) AS a FROM stg.items AS i JOIN stg.orders AS o "
        "ON o.order_id = i.order_id GROUP BY i.sku",
        "SELECT o.customer_id, COUNT(i.line) AS lines FROM stg.orders AS o LEFT JOIN stg.items "
        "AS i ON o.order_id = i.order_id GROUP BY o.customer_id",
        "SELECT o.customer_id, COUNT(*) AS items FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.customer_id",
        "SELECT o.customer_id, COUNT(*) AS order_items FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.customer_id",
        "SELECT o.customer_id, COUNT(DISTINCT o.order_id) AS orders FROM stg.orders AS o JOIN "
        "stg.items AS i ON o.order_id = i.order_id GROUP BY o.customer_id",
        # One customer for each order, and one order for each line.
        "SELECT c.country, COUNT(*) AS orders, SUM(o.amount) AS a FROM stg.orders AS o "
        "JOIN stg.customers AS c ON c.customer_id = o.customer_id GROUP BY c.country",
        "SELECT c.country, COUNT(*) AS n, SUM(i.quantity) AS a FROM stg.items AS i "
        "JOIN stg.orders AS o ON o.order_id = i.order_id "
        "LEFT JOIN stg.customers AS c ON c.customer_id = o.customer_id GROUP BY c.country",
        # One line of each order.
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id AND i.line = 1 GROUP BY o.status",
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id WHERE i.line = 1 GROUP BY o.status",
        # In each group there is one line.
        "SELECT i.order_id, i.line, SUM(o.amount) AS a FROM stg.items AS i JOIN stg.orders AS o "
        "ON o.order_id = i.order_id GROUP BY i.order_id, i.line",
        "SELECT o.status, MAX(o.amount) AS a FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.status",
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o LEFT SEMI JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.status",
        "SELECT t.tag, SUM(o.amount) AS a, COUNT(*) AS n FROM stg.orders AS o "
        "LATERAL VIEW EXPLODE(SPLIT(o.status, ',')) t AS tag GROUP BY t.tag",
        "WITH x AS (SELECT i.order_id, i.sku, ROW_NUMBER() OVER (PARTITION BY i.order_id ORDER BY "
        "i.line) AS n FROM stg.items AS i), y AS (SELECT x.order_id FROM x WHERE x.n = 1) "
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o JOIN y ON o.order_id = y.order_id "
        "GROUP BY o.status",
        "WITH x AS (SELECT i.order_id, i.sku, ROW_NUMBER() OVER (PARTITION BY i.order_id ORDER BY "
        "i.line) AS n FROM stg.items AS i) SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o "
        "JOIN x ON o.order_id = x.order_id AND x.n = 1 GROUP BY o.status",
        # Summed up first.
        "WITH x AS (SELECT i.order_id, SUM(i.quantity) AS q FROM stg.items AS i GROUP BY 1) "
        "SELECT o.status, SUM(o.amount) AS a, COUNT(*) AS orders FROM stg.orders AS o "
        "LEFT JOIN x ON o.order_id = x.order_id GROUP BY o.status",
        "SELECT o.status, SUM(o.amount) AS a FROM stg.orders AS o JOIN raw.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.status",
    ],
)
def test_total__over_rows_that_each_count_once(text: str) -> None:
    assert not is_heavy(list_severities("fan-out-total", text)), text


def test_total__of_a_count_whose_name_says_nothing_is_a_note() -> None:
    text = (
        "SELECT o.customer_id, COUNT(*) AS n FROM stg.orders AS o JOIN stg.items AS i "
        "ON o.order_id = i.order_id GROUP BY o.customer_id"
    )
    assert list_severities("fan-out-total", text) == ["medium"]
    by_order = text.replace("o.customer_id", "o.order_id")
    assert list_severities("fan-out-total", by_order) == [], "each group has one order"
    optional = by_order.replace("JOIN", "LEFT JOIN")
    assert list_severities("fan-out-total", optional) == ["high"], (
        "an order without items counts as one"
    )


# The row that stays is one of several.

KEEP = (
    "WITH r AS (SELECT o.order_id, o.customer_id, o.status, o.amount, {0} AS n FROM {1} AS o) "
    "SELECT r.order_id, r.customer_id, r.status, r.amount FROM r WHERE r.n = 1"
)


@pytest.mark.parametrize(
    ("window", "source"),
    [
        ("ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_date DESC)", "stg.orders"),
        ("ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.status)", "stg.orders"),
        (
            "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY CAST(o.order_ts AS DATE))",
            "raw.orders",
        ),
        ("ROW_NUMBER() OVER (PARTITION BY o.order_id ORDER BY o.order_id)", "raw.orders"),
        ("ROW_NUMBER() OVER (PARTITION BY o.order_id ORDER BY 1)", "raw.orders"),
        ("ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY DATE(o.order_ts))", "raw.orders"),
        (
            "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY DATE_TRUNC('hour', "
            "o.order_ts) DESC)",
            "raw.orders",
        ),
    ],
)
def test_pick__of_one_row_among_equal_ones(window: str, source: str) -> None:
    assert list_severities("nondeterministic-order", KEEP.format(window, source)) == ["high"]
    qualified = f"SELECT o.order_id, o.amount FROM {source} AS o QUALIFY {window} = 1"
    assert list_severities("nondeterministic-order", qualified) == ["high"]


@pytest.mark.parametrize(
    ("window", "source"),
    [
        (
            "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_date, o.order_id)",
            "stg.orders",
        ),
        ("ROW_NUMBER() OVER (PARTITION BY o.order_id ORDER BY o.status)", "stg.orders"),
        ("ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.amount)", "raw.orders"),
        ("ROW_NUMBER() OVER (PARTITION BY o.order_id ORDER BY o.loaded_at DESC)", "raw.orders"),
        ("RANK() OVER (PARTITION BY o.customer_id ORDER BY o.order_date DESC)", "stg.orders"),
    ],
)
def test_pick__of_one_row_in_an_order_that_may_decide(window: str, source: str) -> None:
    assert not is_heavy(list_severities("nondeterministic-order", KEEP.format(window, source)))


def test_pick__by_a_time_is_a_note_where_a_key_is_known() -> None:
    window = "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_ts DESC)"
    assert list_severities("nondeterministic-order", KEEP.format(window, "stg.orders")) == ["low"]


def test_pick__of_what_equal_rows_share_anyway() -> None:
    window = "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_date DESC)"
    text = (
        f"WITH r AS (SELECT o.customer_id, o.order_date, {window} AS n FROM stg.orders AS o) "
        "SELECT r.customer_id, r.order_date FROM r WHERE r.n = 1"
    )
    assert list_severities("nondeterministic-order", text) == []


def test_pick__that_is_new_in_an_edited_model() -> None:
    window = "ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_date{0})"
    sure = KEEP.format(window.format(", o.order_id"), "stg.orders")
    by_chance = KEEP.format(window.format(""), "stg.orders")
    plain = "SELECT o.order_id, o.customer_id, o.status, o.amount FROM stg.orders AS o"
    assert is_heavy(weigh_edit("nondeterministic-order", plain, by_chance))
    assert not is_heavy(weigh_edit("nondeterministic-order", plain, sure))
    kept = weigh_edit("nondeterministic-order", by_chance, by_chance + " AND r.amount > 1")
    assert not is_heavy(kept)


def test_pick__by_rank_keeps_several_rows_of_a_declared_key() -> None:
    window = "RANK() OVER (PARTITION BY o.customer_id ORDER BY o.order_date DESC)"
    text = KEEP.format(window, "stg.orders")
    assert is_heavy(list_severities("nondeterministic-order", text, more=", grain customer_id"))
    assert not is_heavy(list_severities("nondeterministic-order", text, more=", grain order_id"))


# Money in types that cannot hold it.


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id, CAST(o.amount AS DOUBLE) AS amount FROM stg.orders AS o",
        "SELECT o.order_id, CAST(o.amount AS FLOAT) AS order_amount FROM stg.orders AS o",
        "SELECT o.status, SUM(CAST(o.amount AS DOUBLE)) AS revenue FROM stg.orders AS o GROUP BY 1",
        "SELECT c.customer_id, DOUBLE(c.price_text) AS price FROM raw.buyers AS c",
        "SELECT o.order_id, ROUND(CAST(o.amount AS DOUBLE), 2) AS amount FROM stg.orders AS o",
        "SELECT c.customer_id, c.fee_cents / 100 AS fee FROM raw.buyers AS c",
        # DECIMAL alone is DECIMAL(10, 0).
        "SELECT o.order_id, CAST(o.amount AS DECIMAL) AS amount FROM stg.orders AS o",
        "SELECT o.order_id, CAST(o.amount AS INT) AS amount FROM stg.orders AS o",
        "WITH a AS (SELECT o.order_id, CAST(o.amount AS DOUBLE) AS amount FROM stg.orders AS o) "
        "SELECT a.order_id, a.amount FROM a",
    ],
)
def test_money__that_becomes_imprecise(text: str) -> None:
    assert list_severities("imprecise-money", text) == ["high"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id, o.amount FROM stg.orders AS o",
        "SELECT o.order_id, CAST(o.amount AS DECIMAL(18, 2)) AS amount FROM stg.orders AS o",
        # The source has no better value.
        "SELECT c.customer_id, c.price FROM raw.buyers AS c",
        "SELECT c.customer_id, CAST(c.price AS DOUBLE) AS price FROM raw.buyers AS c",
        # No money.
        "SELECT o.order_id, CAST(o.amount AS DOUBLE) AS weight FROM stg.orders AS o",
        "SELECT o.status, CAST(SUM(o.amount) AS DOUBLE) / 3 AS revenue_share FROM stg.orders AS o "
        "GROUP BY 1",
        "SELECT o.status, CAST(SUM(o.amount) AS DOUBLE) / COUNT(*) AS avg_amount "
        "FROM stg.orders AS o GROUP BY 1",
        "SELECT c.customer_id, c.score AS price_score FROM raw.buyers AS c",
        # 100.0 is a DECIMAL in Spark, and so is the result.
        "SELECT c.customer_id, c.fee_cents / 100.0 AS fee FROM raw.buyers AS c",
        "SELECT o.order_id, CAST(o.amount * 100 AS BIGINT) AS amount_cents FROM stg.orders AS o",
        "SELECT o.order_id, CAST(ROUND(o.amount) AS INT) AS amount FROM stg.orders AS o",
        "SELECT o.status, CAST(COUNT(*) AS DOUBLE) AS total FROM stg.orders AS o GROUP BY 1",
    ],
)
def test_money__that_is_as_precise_as_its_source(text: str) -> None:
    assert list_severities("imprecise-money", text) == []


def test_money__in_declared_columns() -> None:
    text = "SELECT o.order_id, o.amount FROM stg.orders AS o"
    declared = ", columns (order_id BIGINT, amount {0})"
    assert list_severities("imprecise-money", text, more=declared.format("DOUBLE")) == ["high"]
    assert list_severities("imprecise-money", text, more=declared.format("DECIMAL(12, 2)")) == []


def test_money__in_a_project_that_has_no_decimals_is_a_note() -> None:
    prices = (
        "MODEL (name stg.prices, kind FULL); SELECT c.customer_id, c.price FROM raw.buyers AS c"
    )
    text = "SELECT c.customer_id, CAST(c.price_text AS DOUBLE) AS list_price FROM raw.buyers AS c"
    external = {name: TABLES[name] for name in ("raw.buyers", "raw.payments")}
    before = {"models/prices.sql": prices}
    after = {**before, "models/new.sql": f"MODEL (name mart.new, kind FULL); {text}"}
    found = seen(change(before, after, external=external), "imprecise-money")
    assert [item.severity for item in found] == ["high"]  # what is paid is a DECIMAL
    floats = {"raw.buyers": TABLES["raw.buyers"]}
    found = seen(change(before, after, external=floats), "imprecise-money")
    assert [item.severity for item in found] == ["medium"]


def test_money__that_was_imprecise_before() -> None:
    old = "SELECT o.order_id, CAST(o.amount AS DOUBLE) AS amount FROM stg.orders AS o"
    new = "SELECT x.order_id, CAST(x.amount AS DOUBLE) AS amount, x.status FROM stg.orders AS x"
    assert weigh_edit("imprecise-money", old, new) == []
    assert weigh_edit(
        "imprecise-money", new, new.replace("x.status", "DOUBLE(x.amount) AS fee")
    ) == ["high"]


# Intervals that are not whole, and starts that have not come.

DAILY = "INCREMENTAL_BY_TIME_RANGE (time_column day)"
BY_DAY = (
    "SELECT o.order_date AS day, SUM(o.amount) AS amount FROM stg.orders AS o "
    "WHERE o.order_date BETWEEN @start_ds AND @end_ds GROUP BY 1"
)


def test_partials__of_a_new_model() -> None:
    assert list_severities("guard-removed", BY_DAY, kind=DAILY, more=", allow_partials true") == [
        "high"
    ]
    assert list_severities("guard-removed", BY_DAY, kind=DAILY) == []
    assert list_severities("guard-removed", BY_DAY, kind=DAILY, more=", allow_partials false") == []
    text = "SELECT o.order_id FROM stg.orders AS o"
    assert list_severities("guard-removed", text, kind="VIEW", more=", allow_partials true") == []


@pytest.mark.parametrize(
    ("more", "severities"),
    [
        (", start '2199-01-01'", ["high"]),
        (", start 'in 2 years'", ["high"]),
        (", start '2024-01-01', end '2199-01-01'", []),
        (", start '1 year ago'", []),
        (", start '2024-01-01', cron '@hourly'", []),
        (", start '2024-01-01', cron '0 0 29 2 *'", []),
    ],
)
def test_start__of_a_new_model_that_never_comes(more: str, severities: list[str]) -> None:
    assert list_severities("no-start", BY_DAY, kind=DAILY, more=more) == severities


def test_start__of_a_whole_table_in_the_future() -> None:
    text = "SELECT o.order_id FROM stg.orders AS o"
    assert list_severities("no-start", text, more=", start '2199-01-01'") == ["high"]
    assert list_severities("no-start", text) == []
