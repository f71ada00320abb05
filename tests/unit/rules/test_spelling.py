"""Spelling is no change of a filter, a join or a group, also where something else changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.rules.world import EXTERNAL, change, rules, seen

HEAD = "MODEL (name mart.m, kind FULL, grain order_id); "
DAILY = (
    "MODEL (name mart.m, kind INCREMENTAL_BY_TIME_RANGE (time_column d, batch_size 30),"
    " grain order_id{}); "
)
KEY = "SELECT o.order_id{} FROM raw.orders AS o WHERE {}"
ORDERS = "SELECT o.order_id, CAST(o.order_ts AS DATE) AS d FROM raw.orders AS o WHERE {}"
NEW = ", 1 AS one"


def of(before: str, after: str, *, head: str = HEAD, known: bool = True, **more: Any) -> Any:
    external: Mapping[str, Mapping[str, str]] = EXTERNAL if known else {}
    files = ({"models/m.sql": head + before}, {"models/m.sql": head + after})
    return change(*files, external=external, **more)


# Each gets a new column as well, so that the two versions are not the same.
SPELLINGS = {
    "an alias": (
        "SELECT order_id FROM raw.orders WHERE raw.orders.customer_id > 0",
        f"SELECT o.order_id{NEW} FROM raw.orders AS o WHERE o.customer_id > 0",
    ),
    "an alias beside a join": (
        "SELECT orders.order_id FROM raw.orders JOIN raw.customers"
        " ON raw.orders.customer_id = raw.customers.customer_id WHERE raw.orders.customer_id > 0",
        f"SELECT o.order_id{NEW} FROM raw.orders AS o JOIN raw.customers AS c"
        " ON o.customer_id = c.customer_id WHERE o.customer_id > 0",
    ),
    "an alias of a table that is read twice": (
        "SELECT orders.order_id FROM raw.orders LEFT JOIN raw.orders AS p"
        " ON orders.order_id = p.customer_id WHERE orders.amount > 0",
        f"SELECT o.order_id{NEW} FROM raw.orders AS o LEFT JOIN raw.orders AS p"
        " ON o.order_id = p.customer_id WHERE o.amount > 0",
    ),
    "an alias around a subquery": (
        "SELECT order_id FROM raw.orders WHERE EXISTS (SELECT 1 FROM raw.customers AS c"
        " WHERE c.customer_id = orders.customer_id)",
        f"SELECT o.order_id{NEW} FROM raw.orders AS o WHERE EXISTS (SELECT 1 FROM"
        " raw.customers AS k WHERE k.customer_id = o.customer_id)",
    ),
    "qualified names": (
        "SELECT order_id FROM raw.orders WHERE customer_id > 0 AND status = 'x'",
        f"SELECT orders.order_id{NEW} FROM raw.orders WHERE orders.status = 'x'"
        " AND orders.customer_id > 0",
    ),
    "the kind of an anti join": (
        "SELECT o.order_id FROM raw.orders AS o LEFT ANTI JOIN raw.customers AS c"
        " ON o.customer_id = c.customer_id",
        f"SELECT o.order_id{NEW} FROM raw.orders AS o ANTI JOIN raw.customers AS c"
        " ON o.customer_id = c.customer_id",
    ),
    "an import CTE": (
        "SELECT o.order_id FROM raw.orders AS o JOIN raw.customers AS c"
        " ON o.customer_id = c.customer_id WHERE c.country = 'SE'",
        f"WITH cust AS (SELECT * FROM raw.customers) SELECT o.order_id{NEW} FROM raw.orders AS o"
        " JOIN cust ON o.customer_id = cust.customer_id WHERE cust.country = 'SE'",
    ),
    "the order of inner joins": (
        "SELECT o.order_id FROM raw.orders AS o JOIN raw.customers AS c"
        " ON o.customer_id = c.customer_id",
        f"SELECT o.order_id{NEW} FROM raw.customers AS c JOIN raw.orders AS o"
        " ON o.customer_id = c.customer_id",
    ),
    "commas": (
        "SELECT o.order_id FROM raw.orders AS o, raw.customers AS c"
        " WHERE o.customer_id = c.customer_id",
        f"SELECT o.order_id{NEW} FROM raw.orders AS o JOIN raw.customers AS c"
        " ON c.customer_id = o.customer_id",
    ),
    "LEFT told as RIGHT": (
        "SELECT o.order_id FROM raw.orders AS o LEFT JOIN raw.customers AS c"
        " ON o.customer_id = c.customer_id",
        f"SELECT o.order_id{NEW} FROM raw.customers AS c RIGHT JOIN raw.orders AS o"
        " ON o.customer_id = c.customer_id",
    ),
    "BETWEEN": (
        KEY.format("", "o.amount BETWEEN 1 AND 5"),
        KEY.format(NEW, "o.amount >= 1 AND o.amount <= 5"),
    ),
    "NOT IN": (
        KEY.format("", "o.status NOT IN ('a', 'b')"),
        KEY.format(NEW, "NOT o.status IN ('b', 'a')"),
    ),
    "the grouping keys": (
        "SELECT status AS order_id, COUNT(*) AS n FROM raw.orders GROUP BY status, customer_id",
        f"SELECT o.status AS order_id, COUNT(*) AS n{NEW} FROM raw.orders AS o"
        " GROUP BY o.customer_id, o.status",
    ),
    "a union's order": (
        "SELECT order_id FROM raw.orders UNION ALL SELECT customer_id FROM raw.customers",
        f"SELECT customer_id AS order_id{NEW} FROM raw.customers UNION ALL"
        f" SELECT order_id{NEW} FROM raw.orders",
    ),
}
ABOUT_ROWS = {
    *("filter-changed", "join-changed", "grain-changed", "union-changed", "distinct-changed"),
    "aggregate-changed",
}


@pytest.mark.parametrize("known", [True, False], ids=["known columns", "unknown columns"])
@pytest.mark.parametrize("name", SPELLINGS)
def test_spelling__is_no_change_beside_one(name: str, known: bool) -> None:
    before, after = SPELLINGS[name]
    if name == "the grouping keys" and not known:
        before = before.replace("status", "orders.status").replace(
            "customer_id", "orders.customer_id"
        )

    assert not ABOUT_ROWS & rules(of(before, after, known=known)).keys()


GHOST = (
    "WITH source AS (SELECT *, 'src' AS origin{column} FROM raw.unknown), keys AS"
    " (SELECT *, CAST(id AS STRING) AS order_id FROM source) SELECT keys.order_id FROM"
    " (SELECT 'ghost' AS origin{other}) AS ghost LEFT JOIN keys ON ghost.origin = keys.origin{on}"
)


def test_join__on_a_column_that_both_sides_got_is_the_same_join() -> None:
    before = GHOST.format(column="", other="", on="")
    after = GHOST.format(
        column=", CURRENT_DATE AS day",
        other=", DATE '0001-01-01' AS day",
        on=" AND ghost.day = keys.day",
    )

    assert "join-changed" not in rules(of(before, after, known=False))


def test_join__on_a_column_that_one_side_had_is_another_join() -> None:
    before = GHOST.format(column=", CURRENT_DATE AS day", other="", on="")
    after = GHOST.format(
        column=", CURRENT_DATE AS day",
        other=", DATE '0001-01-01' AS day",
        on=" AND ghost.day = keys.day",
    )

    assert rules(of(before, after, known=False))["join-changed"] == "high"


def test_filter__in_jinja_that_was_not_rendered_is_one_on_the_interval() -> None:
    before = ORDERS.format("CAST(o.order_ts AS DATE) <= CAST('{{ end_ds }}' AS DATE)")
    after = ORDERS.format("CAST(o.order_ts AS DATE) <= @end_date")

    assert "filter-changed" not in rules(of(before, after, head=DAILY.format("")))


BETWEEN_DAYS = "CAST(o.order_ts AS DATE) >= @start_date AND CAST(o.order_ts AS DATE) <= @end_date"
SAME = {"same-result": "info"}


def test_rewrite__of_the_interval_is_proved() -> None:
    after = "CAST(x.order_ts AS DATE) <= @end_date AND CAST(x.order_ts AS DATE) >= @start_date"
    inputs = of(
        ORDERS.format(BETWEEN_DAYS),
        ORDERS.format(after).replace("o.", "x.").replace("AS o", "AS x"),
        head=DAILY.format(""),
    )

    assert rules(inputs) == SAME


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BETWEEN_DAYS, BETWEEN_DAYS.replace("@end_date", "@start_date")),
        (BETWEEN_DAYS, BETWEEN_DAYS.replace("@end_date", "@execution_date")),
        ("o.order_ts < @end_ts", "o.order_ts < @end_dt"),
        (
            "@IF(@start_ds >= '2024-06-01', o.amount > 1, o.amount > 2)",
            "@IF(@start_ds >= '2024-07-01', o.amount > 1, o.amount > 2)",
        ),
        ("@IF(@runtime_stage = 'evaluating', o.amount > 1, o.amount > 2)", "o.amount > 2"),
    ],
    ids=["start for end", "now for end", "another clock", "another switch", "another stage"],
)
def test_rewrite__that_is_one_only_while_loading_is_not_proved(before: str, after: str) -> None:
    inputs = of(ORDERS.format(before), ORDERS.format(after), head=DAILY.format(""))

    assert "same-result" not in rules(inputs)


@pytest.mark.parametrize(("join", "same"), [("INNER JOIN", True), ("LEFT JOIN", False)])
def test_join__that_no_judge_can_try_is_the_same_with_the_word_inner(join: str, same: bool) -> None:
    """`GET_JSON_OBJECT` runs in Spark alone; with INNER the engine makes the same join."""
    query = (
        "SELECT o.order_id, GET_JSON_OBJECT(c.name, '$.x') AS n FROM raw.orders AS o "
        "{} raw.customers AS c ON c.customer_id = o.customer_id"
    )

    assert ("same-result" in rules(of(query.format("JOIN"), query.format(join)))) is same


def test_rewrite__beside_other_declared_types_is_not_proved() -> None:
    before = {
        "models/m.sql": DAILY.format(", columns (order_id INT, d DATE)") + ORDERS.format("TRUE")
    }
    after = {
        "models/m.sql": DAILY.format(", columns (order_id BIGINT, d DATE)")
        + ORDERS.format("TRUE").replace("o.", "x.").replace("AS o", "AS x")
    }

    assert "same-result" not in rules(change(before, after))


def test_rewrite__that_renders_as_the_same_text_is_proved() -> None:
    before = "SELECT order_id FROM raw.orders WHERE amount > 0"

    assert (
        rules(of(before, "SELECT orders.order_id FROM raw.orders WHERE orders.amount > 0")) == SAME
    )


STAFF = {**EXTERNAL, "raw.staff": {"id": "INT", "boss_id": "INT", "pay": "INT"}}
PAIRS = "SELECT a.id AS order_id FROM raw.staff AS a JOIN raw.staff AS b ON a.id = b.boss_id{}"


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        (" WHERE a.pay > 9", " WHERE b.pay > 9", "filter-changed"),
        ("", "", "join-changed"),
    ],
    ids=["a filter", "a key"],
)
def test_self_join__another_occurrence_is_another_one(before: str, after: str, rule: str) -> None:
    changed = PAIRS.format(after)
    if rule == "join-changed":
        changed = changed.replace("a.id = b.boss_id", "a.boss_id = b.id")
    files = ({"models/m.sql": HEAD + PAIRS.format(before)}, {"models/m.sql": HEAD + changed})
    found = rules(change(*files, external=STAFF))

    assert found[rule] == "high"
    assert "same-result" not in found


def test_filter__on_another_key_of_json_is_another_filter() -> None:
    before = KEY.format("", "GET_JSON_OBJECT(o.status, '$.k') = 'x'")

    assert rules(of(before, before.replace("$.k", "$.K")))["filter-changed"] == "high"


def test_filter__tells_what_it_was_and_is() -> None:
    (found,) = seen(
        of(KEY.format("", "o.amount > 1"), KEY.format("", "o.amount > 2")), "filter-changed"
    )

    assert "removed o.amount > 1" in found.evidence
    assert "added o.amount > 2" in found.evidence


def test_division__in_a_query_below_is_seen() -> None:
    before = "WITH q AS (SELECT order_id, order_id / 2 AS half FROM raw.orders) SELECT * FROM q"

    assert rules(of(before, before.replace("/ 2", "DIV 2")))["division-changed"] == "high"


def test_unique_key__is_proved_by_every_key_of_the_group_only() -> None:
    head = "MODEL (name mart.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key {})); "
    query = "SELECT customer_id, {}COUNT(*) AS n FROM raw.orders GROUP BY customer_id, status"
    found = {}
    for key, shown in (("customer_id", ""), ("(customer_id, status)", "status, ")):
        before = {"models/m.sql": head.format("n") + query.format("status, ")}
        after = {
            "models/m.sql": head.format(key) + query.format(shown or "MAX(amount) AS status, ")
        }
        found[key] = rules(change(before, after))["unique-key-not-unique"]

    assert found == {"customer_id": "high", "(customer_id, status)": "medium"}


STAGED = (
    "MODEL (name stg.a, kind FULL); SELECT CAST(o.order_id AS {kind}) AS n FROM raw.orders AS o"
)
GUARDED = "MODEL (name stg.b, kind FULL); SELECT COALESCE(a.n, 0) AS k FROM stg.a AS a"
SHOWN = "MODEL (name mart.c, kind VIEW); SELECT {column} FROM stg.b AS b"


@pytest.mark.parametrize(("kind", "alarms"), [("INT", []), ("BIGINT", ["column-retyped"])])
def test_cast__to_what_spark_makes_of_a_default_is_no_change_of_type(
    kind: str, alarms: list[str]
) -> None:
    def files(column: str) -> dict[str, str]:
        texts = (STAGED.format(kind=kind), GUARDED, SHOWN.format(column=column))
        return {f"models/m{number}.sql": text for number, text in enumerate(texts)}

    inputs = change(files("b.k"), files("CAST(b.k AS INT) AS k"))

    assert [item.rule for item in seen(inputs, "column-retyped")] == alarms


DECLARED = """MODEL (name mart.m, kind {kind}, columns (id BIGINT, amount {type}));
SELECT o.order_id AS id, o.amount FROM raw.orders AS o
"""
DECLARED_KINDS = (
    "FULL",
    "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    "SCD_TYPE_2_BY_COLUMN (unique_key id, columns (amount))",
)


@pytest.mark.parametrize("kind", DECLARED_KINDS)
@pytest.mark.parametrize(
    ("was", "now", "severity"),
    [
        ("DECIMAL(12, 4)", "DECIMAL(12, 2)", "high"),
        ("DECIMAL(12, 4)", "INT", "high"),
        ("DOUBLE", "FLOAT", "high"),
        ("DECIMAL(12, 4)", "DECIMAL(14, 4)", "low"),
    ],
)
def test_retyped__by_what_the_model_declares(kind: str, was: str, now: str, severity: str) -> None:
    """Spark rounds on the way into the table: the query is the same, and the values are not."""
    before, after = (DECLARED.format(kind=kind, type=one) for one in (was, now))
    found = seen(change({"m.sql": before}, {"m.sql": after}), "column-retyped")
    assert [item.severity for item in found] == [severity]


def test_retyped__below_a_model_that_declares_its_types_is_a_note() -> None:
    reader = {"r.sql": "MODEL (name mart.r, kind FULL); SELECT m.id, m.amount FROM mart.m AS m"}
    before, after = (
        {"m.sql": DECLARED.format(kind="FULL", type=one), **reader} for one in ("DOUBLE", "FLOAT")
    )
    found = seen(change(before, after), "column-retyped")
    assert {item.model: item.severity for item in found} == {"mart.m": "high", "mart.r": "low"}
