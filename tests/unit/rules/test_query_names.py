"""What a name of a query means, where SQLGlot's scopes leave it open: places in a UNION, lists of
aliases, brackets, letters, and what an outer join leaves of a condition.
"""

from __future__ import annotations

import pytest

from ci_bot.worker.sql import list_column_changes
from tests.unit.rules.world import change, models, seen

BY_TIME = "MODEL (name mart.m, kind INCREMENTAL_BY_TIME_RANGE (time_column ds));\n"
WHOLE = "MODEL (name mart.m, kind FULL);\n"
INTERVAL = "BETWEEN @start_ts AND @end_ts"
AROUND = {
    "d": "MODEL (name mart.d, kind FULL, grain customer_id);\n"
    "SELECT customer_id, country FROM raw.customers",
    "h": "MODEL (name mart.h, kind SCD_TYPE_2_BY_TIME (unique_key customer_id, "
    "updated_at_name updated_at));\nSELECT customer_id, country, updated_at FROM raw.customers",
    "n": "MODEL (name mart.n, kind FULL, audits (not_null(columns := (customer_id))));\n"
    "SELECT customer_id, country FROM raw.customers",
    "o": "MODEL (name mart.o, kind FULL, grain order_id);\n"
    "SELECT order_id, customer_id, amount, status FROM raw.orders",
}


def find(header: str, query: str, rule: str) -> list[str]:
    """The evidence of one rule for a new model."""
    around = {f"models/{name}.sql": text for name, text in AROUND.items()}
    found = seen(change({}, {**around, "models/m.sql": header + query}), rule)
    return [one.evidence for one in found if one.model == "mart.m"]


# ------------------------------------------------------------------------- bounds of every row


OF_INTERVAL = f"(SELECT * FROM raw.orders WHERE order_ts {INTERVAL})"


@pytest.mark.parametrize(
    "source",
    [
        f"{OF_INTERVAL} AS a FULL JOIN raw.customers AS c ON a.customer_id = c.customer_id",
        "raw.orders AS a JOIN raw.orders AS b ON a.order_id = b.order_id "
        f"AND a.order_ts {INTERVAL} RIGHT JOIN raw.customers AS c ON c.customer_id = a.customer_id",
        "raw.orders AS a LEFT JOIN (raw.customers AS c JOIN raw.orders AS b "
        f"ON c.customer_id = b.customer_id AND b.order_ts {INTERVAL}) "
        "ON a.customer_id = c.customer_id",
    ],
)
def test_time_filter__that_an_outer_join_goes_past_is_none(source: str) -> None:
    query = f"SELECT a.order_id, CAST(a.order_ts AS DATE) AS ds FROM {source}"
    assert len(find(BY_TIME, query, "time-filter-missing")) == 1


@pytest.mark.parametrize(
    "source",
    [
        f"{OF_INTERVAL} AS a FULL JOIN {OF_INTERVAL} AS b ON a.order_id = b.order_id",
        f"(raw.orders AS a JOIN raw.customers AS c ON a.order_ts {INTERVAL})",
        f"raw.orders AS a LEFT SEMI JOIN raw.customers AS c ON a.order_ts {INTERVAL}",
        f"(SELECT * FROM raw.orders WHERE order_ts {INTERVAL} "
        f"UNION ALL SELECT * FROM raw.orders WHERE order_ts {INTERVAL}) AS a",
    ],
)
def test_time_filter__that_each_row_passes_counts(source: str) -> None:
    query = f"SELECT a.order_id, CAST(a.order_ts AS DATE) AS ds FROM {source}"
    assert find(BY_TIME, query, "time-filter-missing") == []


def test_time_filter__in_a_cte_that_is_read_in_other_letters_counts() -> None:
    query = f"WITH Late AS {OF_INTERVAL} SELECT order_id, CAST(order_ts AS DATE) AS ds FROM late"
    assert find(BY_TIME, query, "time-filter-missing") == []


def test_time_filter__beside_a_plain_union_in_a_recursive_list_is_read_whole() -> None:
    query = (
        f"WITH RECURSIVE both AS (SELECT order_id, order_ts FROM raw.orders "
        f"WHERE order_ts {INTERVAL} UNION ALL SELECT order_id, order_ts FROM raw.orders) "
        "SELECT order_id, CAST(order_ts AS DATE) AS ds FROM both"
    )
    assert len(find(BY_TIME, query, "time-filter-missing")) == 1


def test_wrong_column__is_found_through_a_list_of_aliases() -> None:
    query = (
        "WITH q(i, ds) AS (SELECT order_id, CAST(loaded_at AS DATE) FROM raw.orders "
        f"WHERE order_ts {INTERVAL}) SELECT i, ds FROM q"
    )
    (evidence,) = find(BY_TIME, query, "time-filter-wrong-column")
    assert "`loaded_at`" in evidence


def test_last_days__of_two_columns_are_one_finding() -> None:
    query = (
        "SELECT order_id, CAST(order_ts AS DATE) AS ds FROM raw.orders "
        "WHERE order_ts BETWEEN @start_ds AND @end_ds AND loaded_at BETWEEN @start_ds AND @end_ds"
    )
    (evidence,) = find(BY_TIME, query, "interval-edge-lost")
    assert evidence.startswith("`loaded_at`, `order_ts` are timestamps")


# ----------------------------------------------------------------------- columns and their origins


@pytest.mark.parametrize(
    "query",
    [
        "WITH q AS (SELECT status AS contact FROM raw.orders UNION ALL SELECT email FROM "
        "raw.customers) SELECT contact FROM q",
        "WITH q(a, b) AS (SELECT customer_id, email FROM raw.customers) SELECT b AS contact FROM q",
        "SELECT t.c AS contact FROM raw.customers LATERAL VIEW EXPLODE(SPLIT(email, ',')) t AS c",
        "SELECT a AS contact FROM (SELECT customer_id, country, email FROM raw.customers) "
        "PIVOT (MAX(email) FOR country IN ('de' AS a))",
        "SELECT (SELECT MAX(c.email) FROM raw.customers AS c WHERE c.customer_id = o.customer_id) "
        "AS contact FROM raw.orders AS o",
        "SELECT status AS contact FROM raw.orders UNION ALL SELECT email FROM raw.customers",
        "SELECT contact FROM (SELECT STACK(2, 'a', email, 'b', country) AS (k, contact) "
        "FROM raw.customers)",
    ],
)
def test_personal_data__is_followed_to_its_table(query: str) -> None:
    (evidence,) = find(WHOLE, query, "personal-data-exposed")
    assert evidence.startswith("Personal data: `contact` (from `raw.customers.email`)")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT status AS contact FROM raw.orders EXCEPT SELECT email FROM raw.customers",
        "SELECT (SELECT MAX(c.country) FROM raw.customers AS c WHERE c.email = o.status) AS land "
        "FROM raw.orders AS o",
        "SELECT q.contact FROM (SELECT o.* FROM (SELECT status AS contact, customer_id FROM "
        "raw.orders) AS o JOIN (SELECT email AS contact, customer_id FROM raw.customers) AS c "
        "ON o.customer_id = c.customer_id) AS q",
    ],
)
def test_personal_data__that_is_only_compared_is_not_shown(query: str) -> None:
    assert find(WHOLE, query, "personal-data-exposed") == []


@pytest.mark.parametrize(
    "query",
    [
        "WITH q AS (SELECT status AS a FROM raw.orders UNION ALL SELECT country FROM "
        "raw.customers) SELECT q.a FROM q JOIN raw.orders AS o ON q.a = o.order_id",
        "SELECT status FROM raw.orders WHERE status IN "
        "(SELECT order_id FROM raw.orders UNION SELECT customer_id FROM raw.customers)",
    ],
)
def test_mixed_types__are_seen_behind_a_union(query: str) -> None:
    assert len(find(WHOLE, query, "improbable-expression")) == 1


# ----------------------------------------------------------------------------- joins in brackets


@pytest.mark.parametrize(
    ("rule", "query"),
    [
        (
            "history-join",
            "SELECT o.order_id, h.country FROM mart.o AS o JOIN (mart.h AS h JOIN mart.d AS d "
            "ON h.customer_id = d.customer_id) ON o.customer_id = h.customer_id",
        ),
        (
            "history-join",
            "SELECT o.order_id, h.country FROM mart.o AS o JOIN mart.d AS d JOIN mart.h AS h "
            "ON h.customer_id = d.customer_id ON o.customer_id = d.customer_id",
        ),
        ("cross-join", "SELECT o.order_id, d.country FROM (mart.o AS o CROSS JOIN mart.d AS d)"),
        (
            "fan-out-total",
            "SELECT d.country, SUM(d.customer_id) AS s FROM (mart.d AS d JOIN mart.o AS o "
            "ON o.customer_id = d.customer_id) GROUP BY d.country",
        ),
        (
            "improbable-expression",
            "SELECT o.order_id, d.country FROM (mart.o AS o LEFT JOIN mart.d AS d "
            "ON o.customer_id = d.customer_id) WHERE d.country = 'de'",
        ),
    ],
)
def test_joins__in_brackets_are_seen(rule: str, query: str) -> None:
    assert len(find(WHOLE, query, rule)) == 1


def test_cross_join__is_none_if_the_condition_is_with_another_one_in_the_brackets() -> None:
    query = (
        "SELECT o.order_id, d.country FROM mart.o AS o JOIN (mart.d AS d JOIN mart.n AS n "
        "ON d.customer_id = n.customer_id) ON o.customer_id = n.customer_id"
    )
    assert find(WHOLE, query, "cross-join") == []


# ------------------------------------------------------------------------ letters, keys and limits


def test_hint__names_an_alias_in_other_letters() -> None:
    query = (
        "SELECT /*+ BROADCAST(x) */ X.order_id, d.country FROM mart.d AS d JOIN mart.o AS X "
        "ON x.customer_id = d.customer_id"
    )
    assert len(find(WHOLE, query, "broadcast-hint")) == 1


def test_star__names_an_alias_in_other_letters() -> None:
    assert len(find(WHOLE, "SELECT X.* FROM raw.orders AS x", "select-star")) == 1


def test_group_by_all__groups_by_each_column_that_is_no_total() -> None:
    query = "SELECT customer_id AS k, FIRST(country) AS c FROM mart.d GROUP BY ALL"
    assert find(WHOLE, query, "unordered-aggregate") == []
    query = "SELECT status AS k, FIRST(amount) AS c FROM mart.o GROUP BY ALL"
    assert len(find(WHOLE, query, "unordered-aggregate")) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT order_id FROM mart.o UNION ALL SELECT customer_id FROM mart.d LIMIT 5",
        "(SELECT order_id FROM mart.o) LIMIT 5",
    ],
)
def test_limit__of_a_whole_union_or_of_brackets_is_seen(query: str) -> None:
    assert len(find(WHOLE, query, "limit-in-model")) == 1


# ------------------------------------------------------------------------------- NOT IN and NULL


@pytest.mark.parametrize(
    "listed",
    [
        "SELECT customer_id FROM mart.n UNION ALL SELECT customer_id FROM raw.customers",
        "SELECT customer_id FROM raw.customers WHERE NOT customer_id IS NULL OR country = 'x'",
        "SELECT n.customer_id FROM mart.o AS o LEFT JOIN mart.n AS n "
        "ON n.customer_id = o.customer_id",
    ],
)
def test_not_in__a_list_that_may_have_null_is_found(listed: str) -> None:
    query = f"SELECT order_id FROM mart.o WHERE customer_id NOT IN ({listed})"
    assert len(find(WHOLE, query, "not-in-nullable")) == 1


@pytest.mark.parametrize(
    "listed",
    [
        "SELECT customer_id FROM q",
        "SELECT customer_id FROM raw.customers WHERE customer_id > 5",
        "SELECT customer_id FROM mart.n UNION ALL SELECT customer_id FROM mart.d",
    ],
)
def test_not_in__a_list_without_null_is_none(listed: str) -> None:
    query = (
        "WITH q AS (SELECT customer_id FROM mart.n) "
        f"SELECT order_id FROM mart.o WHERE customer_id NOT IN ({listed})"
    )
    assert find(WHOLE, query, "not-in-nullable") == []


@pytest.mark.parametrize(("side", "count"), [("INNER", 0), ("RIGHT", 1), ("FULL", 1)])
def test_key__of_a_row_that_a_later_join_adds_may_be_null(side: str, count: int) -> None:
    header = (
        "MODEL (name mart.m, kind SCD_TYPE_2_BY_TIME (unique_key k, updated_at_name updated_at));\n"
    )
    query = (
        "SELECT o.customer_id AS k, c.updated_at FROM mart.o AS o JOIN mart.d AS d ON "
        f"o.customer_id = d.customer_id {side} JOIN raw.customers AS c "
        "ON c.customer_id = o.customer_id"
    )
    assert len(find(header, query, "merge-key-null")) == count


@pytest.mark.parametrize(
    "source",
    [
        "raw.customers AS c LEFT SEMI JOIN raw.orders AS o ON o.customer_id = c.customer_id",
        "(raw.customers AS c JOIN raw.orders AS o ON o.customer_id = c.customer_id)",
        "(SELECT * FROM raw.customers UNION ALL SELECT * FROM raw.customers LIMIT 9) AS c",
    ],
)
def test_history__of_a_part_of_a_source_is_seen(source: str) -> None:
    header = (
        "MODEL (name mart.m, kind SCD_TYPE_2_BY_TIME (unique_key customer_id, "
        "updated_at_name updated_at, invalidate_hard_deletes true));\n"
    )
    query = f"SELECT c.customer_id, c.country, c.updated_at FROM {source}"
    assert len(find(header, query, "hard-deletes-partial-source")) == 1


def test_reader__of_a_column_in_a_semi_join_is_listed() -> None:
    before = {**AROUND, "m": WHOLE + "SELECT country, customer_id FROM raw.customers"}
    after = {**before, "m": WHOLE + "SELECT customer_id FROM raw.customers"}
    reader = (
        "MODEL (name mart.r, kind FULL);\nSELECT o.order_id FROM mart.o AS o "
        "LEFT SEMI JOIN mart.m AS m ON m.country = o.status"
    )
    sides = [
        models({f"models/{n}.sql": t for n, t in {**side, "r": reader}.items()})
        for side in (before, after)
    ]
    name = '"spark_catalog"."mart"."m"'
    (gone,) = list_column_changes(
        sides[0][name], sides[1][name], [sides[0]['"spark_catalog"."mart"."r"']]
    )
    assert (gone.name, len(gone.readers)) == ("country", 1)
