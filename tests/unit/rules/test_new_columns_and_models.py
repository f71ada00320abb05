"""Dangers of what SQLMesh calls an addition: new columns and new models over wrong rows, and the
batches of a model that reads itself.
"""

from __future__ import annotations

import pytest

from tests.unit.rules.world import EXTERNAL, change, seen

ORDERS = (
    "MODEL (name stg.orders, kind FULL, grain order_id, audits (unique_values(columns := "
    "(order_id)))); SELECT o.order_id, o.customer_id, o.status, o.amount, o.order_ts "
    "FROM raw.orders AS o"
)
PRICES = (
    "MODEL (name stg.prices, kind FULL, grain (area, hour)); "
    "SELECT p.area, p.hour, p.day, p.price FROM raw.prices AS p"
)
STAYS = {"models/orders.sql": ORDERS, "models/prices.sql": PRICES}
TABLES = {
    **EXTERNAL,
    "raw.prices": {"area": "STRING", "hour": "TIMESTAMP", "day": "DATE", "price": "DOUBLE"},
    "raw.people": {"person_id": "BIGINT", "name": "STRING", "birth_date": "DATE", "town": "STRING"},
    "raw.towns": {"town": "STRING", "name": "STRING"},
}


def weigh_new_model(rule: str, text: str, *, kind: str = "FULL", more: str = "") -> list[str]:
    """The severities of one rule's findings for a new model beside orders and prices."""
    model = f"MODEL (name mart.new, kind {kind}{more}); {text}"
    inputs = change(STAYS, {**STAYS, "models/new.sql": model}, external=TABLES)
    return [item.severity for item in seen(inputs, rule) if item.model == "mart.new"]


def weigh_new_column(rule: str, column: str, source: str = "stg.orders AS o") -> list[str]:
    """The severities of one rule's findings for a new last column."""
    head = "MODEL (name mart.m, kind FULL); SELECT o.order_id{} FROM "
    before, after = (head.format(text) + source for text in ("", f", {column}"))
    inputs = change(
        {**STAYS, "models/m.sql": before}, {**STAYS, "models/m.sql": after}, external=TABLES
    )
    return [item.severity for item in seen(inputs, rule) if item.model == "mart.m"]


@pytest.mark.parametrize(
    "column",
    [
        "DATEDIFF(o.order_ts, DATE 'today') AS d",
        "CAST('now' AS TIMESTAMP) AS d",
        "TO_DATE(' Tomorrow ') AS d",
        "o.order_ts < 'yesterday' AS d",
        "CASE WHEN o.order_ts BETWEEN '2024-01-01' AND 'now UTC' THEN 1 END AS d",
    ],
)
def test_clock__as_a_word_that_spark_reads_as_a_time(column: str) -> None:
    found = weigh_new_column("current-time", column)
    assert found and set(found) <= {"medium", "high"}


@pytest.mark.parametrize(
    "column",
    [
        "'today' AS d",
        "o.status = 'now' AS d",
        "CAST('2024-01-01' AS DATE) AS d",
        "CAST('now' AS STRING) AS d",
    ],
)
def test_clock__that_is_a_mere_text(column: str) -> None:
    assert weigh_new_column("current-time", column) == []


def test_mode__takes_any_of_the_most_frequent_values() -> None:
    text = "SELECT o.customer_id, MODE(o.status{0}) AS s FROM stg.orders AS o GROUP BY {1}"
    assert weigh_new_model("unordered-aggregate", text.format("", "o.customer_id")) == ["high"]
    assert weigh_new_model("unordered-aggregate", text.format(", true", "o.customer_id")) == []
    by_status = text.format("", "o.customer_id, o.status")
    assert weigh_new_model("unordered-aggregate", by_status) == []


@pytest.mark.parametrize(
    ("column", "severities"),
    [
        ("ROW_NUMBER() OVER (ORDER BY o.status) AS n", ["high"]),
        ("NTILE(4) OVER (ORDER BY o.amount DESC) AS n", ["high"]),
        ("ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.order_ts) AS n", ["high"]),
        ("ROW_NUMBER() OVER (ORDER BY o.status, o.order_id) AS n", []),
        ("RANK() OVER (ORDER BY o.status) AS n", []),
    ],
)
def test_row_number__in_an_order_without_a_key(column: str, severities: list[str]) -> None:
    assert weigh_new_column("nondeterministic-order", column) == severities
    new = f"SELECT o.order_id, {column} FROM stg.orders AS o"
    assert weigh_new_model("nondeterministic-order", new) == severities


def test_row_number__that_only_picks_a_row_or_has_no_known_key() -> None:
    latest = (
        "WITH r AS (SELECT o.order_id, ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY "
        "o.order_ts DESC) AS n FROM stg.orders AS o) SELECT r.order_id FROM r WHERE r.n = 1"
    )
    assert weigh_new_model("nondeterministic-order", latest) == ["low"]
    unknown = "ROW_NUMBER() OVER (ORDER BY o.status) AS n"
    assert weigh_new_column("nondeterministic-order", unknown, "raw.orders AS o") == []


JOINED = "SELECT o.order_id, p.price FROM stg.orders AS o {0}"


@pytest.mark.parametrize(
    ("join", "severities"),
    [
        (
            "INNER JOIN stg.prices AS p ON o.status = p.area AND CAST(o.order_ts AS DATE) = p.day",
            ["high"],
        ),
        ("LEFT JOIN stg.prices AS p ON o.order_ts >= p.hour", ["high"]),
        ("LEFT JOIN stg.prices AS p ON o.status = p.area AND o.order_ts = p.hour", []),
        (
            "LEFT JOIN stg.prices AS p ON o.status = p.area AND o.order_ts >= p.hour AND o.order_ts < p.day",
            [],
        ),
        ("LEFT JOIN raw.prices AS p ON o.status = p.area", []),
    ],
)
@pytest.mark.parametrize("kind", ["FULL", "VIEW"])
def test_grain__that_a_join_contradicts(join: str, kind: str, severities: list[str]) -> None:
    found = weigh_new_model(
        "missing-key-audit", JOINED.format(join), kind=kind, more=", grain order_id"
    )
    assert [one for one in found if one != "low"] == severities


def test_grain__that_a_join_contradicts_and_an_audit_watches() -> None:
    join = "LEFT JOIN stg.prices AS p ON o.status = p.area"
    audit = ", grain order_id, audits (unique_values(columns := (order_id)))"
    assert weigh_new_model("missing-key-audit", JOINED.format(join), more=audit) == []


BETWEEN = "WHERE o.order_ts BETWEEN @start_ts AND @end_ts"


@pytest.mark.parametrize(
    ("key", "source", "severity"),
    [
        ("customer_id", "stg.orders", "high"),
        # The orders that stg.orders passes on are the rows of this source.
        ("customer_id", "raw.orders", "high"),
        ("order_id", "stg.orders", "medium"),
        ("order_id", "raw.orders", "medium"),
    ],
)
def test_merge_key__that_the_source_contradicts(key: str, source: str, severity: str) -> None:
    found = weigh_new_model(
        "unique-key-no-audit",
        f"SELECT o.order_id, o.customer_id, o.status FROM {source} AS o {BETWEEN}",
        kind=f"INCREMENTAL_BY_UNIQUE_KEY (unique_key {key})",
        more=f", table_format iceberg, grain {key}",
    )
    assert found == [severity]


@pytest.mark.parametrize(
    ("query", "severities"),
    [
        ("SELECT o.customer_id, o.status FROM stg.orders AS o", ["high"]),
        ("SELECT o.customer_id, o.status FROM raw.orders AS o", ["high"]),
        ("SELECT o.customer_id, MAX(o.status) AS status FROM stg.orders AS o GROUP BY 1", []),
        ("SELECT p.area AS customer_id, p.price AS status FROM raw.prices AS p", []),
        ("SELECT c.customer_id, c.country AS status FROM raw.customers AS c", []),
    ],
)
def test_history__of_a_key_that_the_source_contradicts(query: str, severities: list[str]) -> None:
    kind = "SCD_TYPE_2_BY_COLUMN (unique_key customer_id, columns (status))"
    assert weigh_new_model("unique-key-no-audit", query, kind=kind) == severities


def test_managed__is_no_kind_of_spark() -> None:
    assert weigh_new_model("merge-unsupported", "SELECT 1 AS a", kind="MANAGED") == ["high"]
    assert weigh_new_model("merge-unsupported", "SELECT 1 AS a") == []


PEOPLE = "MODEL (name stg.people, kind FULL); SELECT p.person_id, p.town{0} FROM raw.people AS p"


def weigh_personal(after: str) -> list[str]:
    before = {"models/people.sql": PEOPLE.format("")}
    inputs = change(before, {"models/people.sql": after}, external=TABLES)
    return [item.severity for item in seen(inputs, "personal-data-exposed")]


def test_personal__column_that_the_source_had_and_prod_left_out() -> None:
    assert weigh_personal(PEOPLE.format(", p.birth_date")) == ["high"]
    assert weigh_personal(PEOPLE.format(", p.name AS title")) == ["high"]
    assert weigh_personal(PEOPLE.format(", SHA2(p.name, 256) AS hashed")) == []


def test_personal__name_counts_in_a_table_of_people_and_marts_are_no_staging() -> None:
    mart = "MODEL (name mart.a, kind VIEW); SELECT p.town FROM stg.people AS p"
    view = "MODEL (name {0}.v, kind VIEW); SELECT t.town, t.name FROM raw.{1} AS t"
    before = {"models/people.sql": PEOPLE.format(""), "models/a.sql": mart}
    for schema, table, severities in (
        ("mart", "people", ["high"]),
        ("mart", "towns", []),
        ("stg", "people", ["low"]),
    ):
        after = {**before, "models/v.sql": view.format(schema, table)}
        found = seen(change(before, after, external=TABLES), "personal-data-exposed")
        assert [item.severity for item in found] == severities


def test_personal__that_a_first_model_takes_in_is_a_note() -> None:
    model = "MODEL (name stg.people, kind FULL); SELECT p.person_id, p.name FROM raw.people AS p"
    inputs = change({}, {"models/people.sql": model}, external=TABLES)
    assert [item.severity for item in seen(inputs, "personal-data-exposed")] == ["low"]


SELF = (
    "MODEL (name mart.b, kind INCREMENTAL_BY_TIME_RANGE (time_column day{0}), columns (day DATE, "
    "total DOUBLE)); SELECT CAST(@start_ds AS DATE) AS day, MAX(b.total) + 1.0 AS total "
    "FROM mart.b AS b WHERE b.day = DATE_SUB(CAST(@start_ds AS DATE), 1)"
)


@pytest.mark.parametrize(
    ("before", "after", "severities"),
    [
        (", batch_size 1", ", batch_size 2", ["high"]),
        (", batch_size 1", "", ["high"]),
        (", batch_size 2", ", batch_size 1", []),
    ],
)
def test_batch__larger_than_a_model_that_reads_itself_can_take(
    before: str, after: str, severities: list[str]
) -> None:
    inputs = change({"models/b.sql": SELF.format(before)}, {"models/b.sql": SELF.format(after)})
    assert [item.severity for item in seen(inputs, "batch-size-removed")] == severities


def test_batch__of_a_model_that_reads_others_may_grow_a_little() -> None:
    other = SELF.replace("FROM mart.b AS b", "FROM stg.days AS b")
    inputs = change(
        {"models/b.sql": other.format(", batch_size 1")},
        {"models/b.sql": other.format(", batch_size 2")},
    )
    assert seen(inputs, "batch-size-removed") == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status = NULL",
        "SELECT o.order_id, o.status <> NULL AS f FROM stg.orders AS o",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status NOT IN ('a', NULL)",
        "SELECT CASE o.status WHEN NULL THEN 1 ELSE 0 END AS f FROM stg.orders AS o",
        "SELECT o.order_id FROM stg.orders AS o JOIN stg.prices AS p ON p.area = p.area "
        "AND p.hour = o.order_ts",
        "SELECT DATE_FORMAT(o.order_ts, 'yyyy-mm') AS m FROM stg.orders AS o",
        "SELECT TO_DATE(o.status, 'dd/mm/yyyy') AS d FROM stg.orders AS o",
        "SELECT DATE_FORMAT(o.order_ts, 'yyyy-MM-DD') AS d FROM stg.orders AS o",
        "SELECT TO_TIMESTAMP(o.status, 'yyyy-MM-dd hh:mm:ss') AS t FROM stg.orders AS o",
        "SELECT LAST_VALUE(o.amount) OVER (ORDER BY o.order_id) AS v FROM stg.orders AS o",
        "SELECT o.order_id FROM stg.orders AS o LEFT JOIN stg.prices AS p ON p.area = o.status "
        "AND p.hour = o.order_ts WHERE p.price > 3",
        "SELECT o.order_id FROM stg.orders AS o LEFT JOIN stg.prices AS p ON p.area = o.status "
        "AND p.hour = o.order_ts WHERE NOT p.area IN ('a', 'b')",
    ],
)
def test_expression__that_hardly_means_what_it_says(text: str) -> None:
    assert weigh_new_model("improbable-expression", text) == ["high"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status IS NULL",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status <=> NULL",
        "SELECT o.order_id FROM stg.orders AS o WHERE o.status IN ('a', NULL)",
        "SELECT CASE WHEN o.status IS NULL THEN NULL ELSE 0 END AS f FROM stg.orders AS o",
        "SELECT a.order_id FROM stg.orders AS a JOIN stg.orders AS b ON a.order_id = b.order_id",
        "SELECT DATE_FORMAT(o.order_ts, 'yyyy-MM-dd HH:mm') AS m FROM stg.orders AS o",
        "SELECT DATE_FORMAT(o.order_ts, 'hh:mm a') AS m FROM stg.orders AS o",
        "SELECT DATE_FORMAT(o.order_ts, 'mm:ss') AS m FROM stg.orders AS o",
        # The last value so far, which fills a gap.
        "SELECT LAST_VALUE(o.amount) IGNORE NULLS OVER (ORDER BY o.order_id) AS v "
        "FROM stg.orders AS o",
        "SELECT LAST_VALUE(o.amount, TRUE) OVER (ORDER BY o.order_id) AS v FROM stg.orders AS o",
        "SELECT LAST_VALUE(o.amount) OVER (ORDER BY o.order_id ROWS BETWEEN UNBOUNDED PRECEDING "
        "AND UNBOUNDED FOLLOWING) AS v FROM stg.orders AS o",
        "SELECT o.order_id FROM stg.orders AS o LEFT JOIN stg.prices AS p ON p.area = o.status "
        "AND p.hour = o.order_ts WHERE p.area IS NULL OR p.price > 3",
        "SELECT o.order_id FROM stg.orders AS o LEFT JOIN stg.prices AS p ON p.area = o.status "
        "AND p.hour = o.order_ts WHERE COALESCE(p.price, 0) < 3 AND o.amount > 1",
    ],
)
def test_expression__that_means_what_it_says(text: str) -> None:
    assert weigh_new_model("improbable-expression", text) == []


@pytest.mark.parametrize(
    ("column", "severities"),
    [
        ("LAG(o.amount) OVER (ORDER BY o.status) AS n", ["high"]),
        (
            "FIRST_VALUE(o.amount) OVER (PARTITION BY o.customer_id ORDER BY o.order_ts) AS n",
            ["high"],
        ),
        ("FIRST_VALUE(o.order_ts) OVER (PARTITION BY o.customer_id ORDER BY o.order_ts) AS n", []),
        ("LEAD(o.amount) OVER (ORDER BY o.status, o.order_id) AS n", []),
    ],
)
def test_neighbour__in_an_order_without_a_key(column: str, severities: list[str]) -> None:
    assert weigh_new_column("nondeterministic-order", column) == severities


GROUPS = "SELECT o.customer_id, o.status, COUNT(*) AS n FROM stg.orders AS o{0} GROUP BY {1}"


@pytest.mark.parametrize(
    ("where", "keys", "severities"),
    [
        ("", "o.customer_id, o.status", ["high"]),
        ("", "1, 2", ["high"]),
        (" WHERE o.status = 'paid'", "o.customer_id, o.status", []),
        ("", "GROUPING SETS ((o.customer_id, o.status), (o.customer_id))", []),
    ],
)
def test_grain__that_has_fewer_columns_than_the_groups(
    where: str, keys: str, severities: list[str]
) -> None:
    found = weigh_new_model(
        "missing-key-audit", GROUPS.format(where, keys), more=", grain customer_id"
    )
    assert [one for one in found if one != "low"] == severities
    whole = weigh_new_model(
        "missing-key-audit", GROUPS.format(where, keys), more=", grain (customer_id, status)"
    )
    assert [one for one in whole if one != "low"] == []
