"""Two queries mean the same exactly where names and order differ, and nothing else."""

from __future__ import annotations

import keyword

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.worker.review.scan import find_model_name_in_scanned_text
from ci_bot.worker.sql.equivalence.blocks import KeyInterner
from ci_bot.worker.sql.equivalence.proof import NormalForm, normalize_query
from ci_bot.worker.sql.model_query import ModelQueries
from tests.unit.rules.world import models

KEYS = KeyInterner()
HEAD = "MODEL (name a.b, kind FULL); "


def of(query: str) -> NormalForm:
    made = models({"models/m.sql": HEAD + query})
    found = ModelQueries().query_of(made['"spark_catalog"."a"."b"'])
    assert found is not None
    read = normalize_query(found.rendered_query, KEYS)
    assert read is not None
    return read


BASE = (
    "WITH p AS (SELECT o.customer_id, SUM(o.amount) AS amount FROM raw.orders AS o"
    " WHERE o.status <> 'x' AND o.amount > 0 GROUP BY o.customer_id)"
    " SELECT c.country, p.amount FROM raw.customers AS c LEFT JOIN p ON c.customer_id = p.customer_id"
)

SAME = {
    "operands": BASE.replace("c.customer_id = p.customer_id", "p.customer_id = c.customer_id"),
    "conditions": BASE.replace(
        "o.status <> 'x' AND o.amount > 0", "o.amount > 0 AND o.status <> 'x'"
    ),
    "turned comparison": BASE.replace("o.amount > 0", "0 < o.amount"),
    "brackets": BASE.replace("o.amount > 0", "(o.amount > 0)"),
    "columns in another order": BASE.replace("c.country, p.amount", "p.amount, c.country"),
    "case": BASE.replace("o.customer_id", "O.CUSTOMER_ID"),
}
OTHER = {
    "filter": BASE.replace("> 0", ">= 0"),
    "filter gone": BASE.replace(" AND o.amount > 0", ""),
    "filter outside": BASE.replace(" AND o.amount > 0", "") + " WHERE p.amount > 0",
    "join kind": BASE.replace("LEFT JOIN", "INNER JOIN"),
    "join key": BASE.replace("c.customer_id = p", "c.country = p"),
    "join partner": BASE.replace("FROM raw.customers AS c", "FROM raw.orders AS c").replace(
        "c.country", "c.status"
    ),
    "aggregate": BASE.replace("SUM(", "MAX("),
    "distinct aggregate": BASE.replace("SUM(o.amount)", "SUM(DISTINCT o.amount)"),
    "distinct": BASE.replace(" SELECT c.country", " SELECT DISTINCT c.country"),
    "group": BASE.replace("GROUP BY o.customer_id", "GROUP BY o.customer_id, o.status"),
    "limit": BASE + " LIMIT 5",
    "column name": BASE.replace("c.country,", "c.country AS land,"),
    "column swapped": BASE.replace("c.country, p.amount", "c.email AS country, p.amount"),
    "minus turned": "SELECT o.amount - o.order_id AS d FROM raw.orders AS o",
}


@pytest.mark.parametrize("name", sorted(SAME))
def test_meaning__is_the_same(name: str) -> None:
    assert of(SAME[name]).proves_same(of(BASE))


@pytest.mark.parametrize("name", sorted(OTHER))
def test_meaning__differs(name: str) -> None:
    assert not of(OTHER[name]).proves_same(of(BASE))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("o.amount - o.order_id", "o.order_id - o.amount"),
        ("o.amount / o.order_id", "o.order_id / o.amount"),
        ("o.amount - (o.order_id - 1)", "o.amount - o.order_id - 1"),
        ("o.status = 'a'", "o.status = 'A'"),
        ("CAST(o.amount AS INT)", "CAST(o.amount AS BIGINT)"),
        ("CONCAT(o.status, 'a')", "CONCAT('a', o.status)"),
        ("IF(o.amount > 0, 1, 2)", "IF(o.amount > 0, 2, 1)"),
    ],
)
def test_meaning__of_expressions_keeps_their_order(one: str, other: str) -> None:
    text = "SELECT {} AS x FROM raw.orders AS o"

    assert not of(text.format(one)).proves_same(of(text.format(other)))


def test_meaning__a_filter_that_moves_past_a_window_is_no_rewrite() -> None:
    inner = "SELECT o.order_id, o.status, ROW_NUMBER() OVER (PARTITION BY o.order_id ORDER BY o.loaded_at) AS rn FROM raw.orders AS o"
    before = f"WITH r AS ({inner} WHERE o.status = 'x') SELECT r.order_id FROM r WHERE r.rn = 1"
    after = f"WITH r AS ({inner}) SELECT r.order_id FROM r WHERE r.rn = 1 AND r.status = 'x'"

    assert not of(after).proves_same(of(before))


def test_meaning__union_and_union_all_differ() -> None:
    text = "SELECT o.order_id FROM raw.orders AS o {} SELECT c.customer_id AS order_id FROM raw.customers AS c"

    assert not of(text.format("UNION")).proves_same(of(text.format("UNION ALL")))


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}x", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)


@settings(max_examples=15, deadline=None)
@given(st.lists(names, min_size=3, max_size=3, unique=True))
def test_meaning__does_not_depend_on_names(found: list[str]) -> None:
    order, cte, customer = found
    renamed = (
        BASE.replace("o.", f"{order}.")
        .replace("AS o", f"AS {order}")
        .replace("p.", f"{cte}.")
        .replace("WITH p AS", f"WITH {cte} AS")
        .replace("JOIN p", f"JOIN {cte}")
        .replace("c.c", f"{customer}.c")
        .replace("AS c ", f"AS {customer} ")
    )

    assert of(renamed).proves_same(of(BASE))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MODEL (\n  name stg.orders,\n  kind FULL\n);\nSELEC", "stg.orders"),
        ("MODEL (kind FULL, name stg.orders); SELEC", "stg.orders"),
        ('@model(\n    "mart.segments",\n    kind="FULL",\n)\ndef execute(:', "mart.segments"),
        ("SELECT 1", None),
    ],
)
def test_model_in_text(text: str, name: str | None) -> None:
    assert find_model_name_in_scanned_text(text) == name


@pytest.mark.parametrize("source", ["raw.orders", "raw.unknown"])
@pytest.mark.parametrize("inner", ["", " LIMIT 4"])
def test_order__by_a_bare_name_of_a_result_and_of_a_column__is_no_whole_order(
    source: str, inner: str
) -> None:
    """ORDER BY means the result, whose rows are all alike here; so the order below decides.

    DuckDB is the judge that the two differ. Columns of a known source are qualified before they are
    compared, and an unknown one ends the proof.
    """
    query = (
        "SELECT order_id * 0 AS order_id, order_id AS c FROM"
        f" (SELECT order_id FROM {source} ORDER BY order_id {{}}{inner}) AS s"
        " ORDER BY order_id LIMIT 1"
    )
    before, after = query.format("ASC"), query.format("DESC")
    assert not of(after).proves_same(of(before))
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE SCHEMA raw; CREATE TABLE {source} AS SELECT * FROM RANGE(4) r(order_id)"
        )
        rows = [connection.execute(text).fetchall() for text in (before, after)]
    assert rows == [[(0, 0)], [(0, 3)]]
