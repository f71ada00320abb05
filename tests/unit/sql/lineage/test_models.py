"""The impact of changes of real SQLMesh models: kinds, macros, stars, seeds, what cannot be read."""

from __future__ import annotations

import pytest

from ci_bot.protocol.review_report import Impact
from tests.unit.sql.lineage.real import CHAIN, ORDERS, impact, indirect, model, parts, reached


def test_impact__of_an_expression__reaches_values_and_rows_down_to_the_leaves() -> None:
    found = impact(CHAIN, {"a.sql": ORDERS.replace("amount,", "amount * 2 AS amount,")})

    assert parts(found) == {("stg.orders", "amount"): "computed"}
    assert reached(found, "stg.orders", "amount") == {
        "mart.daily": ({"total"}, False),
        "mart.top": (set(), True),
    }
    assert {name: entry.reached for name, entry in indirect(found).items()} == {
        "mart.daily": "yes",
        "mart.top": "yes",
        "mart.names": "no",
        "mart.paid": "no",
    }


def test_impact__of_a_column_that_is_only_filtered_by__is_rows() -> None:
    found = impact(CHAIN, {"a.sql": ORDERS.replace("status,", "UPPER(status) AS status,")})

    assert reached(found, "stg.orders", "status") == {
        "mart.names": ({"status"}, False),
        "mart.paid": (set(), True),
    }


def test_impact__of_a_filter__is_the_rows_of_every_reader() -> None:
    found = impact(CHAIN, {"a.sql": ORDERS + " WHERE amount > 0"})

    assert parts(found) == {("stg.orders", None): "rows"}
    assert {n: rows for n, (_, rows) in reached(found, "stg.orders", None).items()} == {
        "mart.daily": True,
        "mart.names": True,
        "mart.paid": True,
        "mart.top": True,
    }
    assert found.changed[0].why == "Other rows: its filter changed."


def test_impact__of_a_dropped_column__reaches_who_named_it_and_who_read_it_by_a_star() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model("mart.all", "SELECT * FROM stg.orders", "VIEW"),
        "c.sql": model("mart.unique", "SELECT DISTINCT * FROM mart.all"),
        "d.sql": model("mart.sums", "SELECT SUM(amount) AS total FROM mart.all"),
        "e.sql": model("mart.old", "SELECT status FROM mart.all"),
    }
    found = impact(files, {"a.sql": ORDERS.replace("status, ", "")})

    assert parts(found) == {("stg.orders", "status"): "dropped"}
    assert reached(found, "stg.orders", "status") == {
        "mart.all": ({"status"}, False),
        "mart.unique": ({"status"}, True),
        "mart.old": ({"status"}, False),
    }
    assert indirect(found)["mart.sums"].reached == "no"


def test_impact__of_a_new_column__reaches_stars_only() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model("mart.all", "SELECT * FROM stg.orders"),
        "c.sql": model("mart.some", "SELECT order_id FROM stg.orders"),
    }
    found = impact(files, {"a.sql": ORDERS.replace(" FROM raw", ", amount * 2 AS twice FROM raw")})

    assert parts(found) == {("stg.orders", "twice"): "added"}
    assert reached(found, "stg.orders", "twice") == {"mart.all": ({"twice"}, False)}
    assert indirect(found)["mart.some"].reached == "no"


def test_impact__of_a_retyped_column() -> None:
    after = ORDERS.replace("amount,", "CAST(amount AS DOUBLE) AS amount,")
    assert parts(impact(CHAIN, {"a.sql": after})) == {("stg.orders", "amount"): "retyped"}


def test_impact__of_a_rewrite_that_means_the_same__is_none() -> None:
    after = """
        MODEL (name stg.orders, kind FULL);
        WITH src AS (SELECT * FROM raw.orders AS o)
        SELECT x.order_id, x.customer_id, x.status, x.amount, CAST(x.order_ts AS DATE) AS day
        FROM src AS x
    """
    before = """
        MODEL (name stg.orders, kind FULL);
        WITH base AS (SELECT * FROM raw.orders)
        SELECT order_id, customer_id, status, amount, CAST(order_ts AS DATE) AS day FROM base
    """
    found = impact({**CHAIN, "a.sql": before}, {"a.sql": after})
    assert found.changed == []
    assert {entry.reached for entry in found.indirect} == {"no"}


def test_impact__columns_in_another_order__reach_a_union_of_stars() -> None:
    files = {
        "a.sql": model("stg.one", "SELECT order_id, customer_id FROM raw.orders"),
        "b.sql": model("stg.two", "SELECT order_id, customer_id FROM raw.orders"),
        "c.sql": model("mart.both", "SELECT * FROM stg.one UNION ALL SELECT * FROM stg.two"),
        "d.sql": model("mart.some", "SELECT order_id FROM stg.one"),
    }
    after = model("stg.one", "SELECT customer_id, order_id FROM raw.orders")
    found = impact(files, {"a.sql": after})

    assert parts(found) == {("stg.one", None): "reordered"}
    assert reached(found, "stg.one", None)["mart.both"][0] == {"order_id", "customer_id"}
    assert indirect(found)["mart.some"].reached == "no"


def test_impact__below_a_python_model__is_unknown_by_its_name() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model("mart.scores", "SELECT x FROM mart.model"),
        "c.sql": model("mart.both", "SELECT s.x, o.amount FROM mart.scores AS s, stg.orders AS o"),
    }
    found = impact(
        files,
        {"a.sql": ORDERS.replace("amount,", "amount * 2 AS amount,")},
        python={"mart.model": ("stg.orders",)},
    )

    answers = indirect(found)
    assert answers["mart.model"].reached == "unknown"
    assert answers["mart.model"].why == "It is a Python model: what it reads is not known."
    assert answers["mart.scores"].reached == "unknown"
    assert "mart.model" in answers["mart.scores"].why
    assert answers["mart.both"].reached == "yes"
    assert parts(found)[("mart.model", None)] == "unknown"
    assert set(reached(found, "mart.model", None)) == {"mart.scores", "mart.both"}


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("FULL", False),
        ("VIEW", False),
        ("INCREMENTAL_BY_TIME_RANGE (time_column day)", True),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key day)", True),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id)", False),
        ("SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [day])", True),
    ],
)
def test_impact__a_kind_decides_about_rows_by_its_columns(kind: str, rows: bool) -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model("mart.kept", "SELECT order_id, day FROM stg.orders", kind),
    }
    after = ORDERS.replace("CAST(order_ts AS DATE)", "DATE_ADD(CAST(order_ts AS DATE), 1)")
    found = impact(files, {"a.sql": after})

    assert reached(found, "stg.orders", "day") == {"mart.kept": ({"day"}, rows)}


INCREMENTAL = """
    MODEL (name stg.orders, kind INCREMENTAL_BY_TIME_RANGE (time_column day));
    SELECT order_id, amount, CAST(order_ts AS DATE) AS day FROM raw.orders
    WHERE order_ts >= @start_ts AND order_ts < @end_ts AND status = 'paid'
"""


def test_impact__of_a_filter_that_a_rendering_folds_away() -> None:
    """Between the same start and end, as a project is loaded, the whole condition is FALSE."""
    files = {"a.sql": INCREMENTAL, "b.sql": model("mart.some", "SELECT order_id FROM stg.orders")}
    for after in (
        INCREMENTAL.replace("'paid'", "'sent'"),
        INCREMENTAL.replace("< @end_ts", "<= @end_ts"),
        INCREMENTAL.replace("@start_ts", "@execution_ts"),
    ):
        assert ("stg.orders", None) in parts(impact(files, {"a.sql": after})), after


def test_impact__on_a_reader_whose_filter_a_rendering_folds_away() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model(
            "mart.kept",
            "SELECT order_id, day FROM stg.orders "
            "WHERE day >= @start_date AND day < @end_date AND status = 'paid'",
            "INCREMENTAL_BY_TIME_RANGE (time_column day)",
        ),
    }
    found = impact(files, {"a.sql": ORDERS.replace("status,", "UPPER(status) AS status,")})
    assert reached(found, "stg.orders", "status") == {"mart.kept": (set(), True)}


JINJA = """
    JINJA_QUERY_BEGIN;
    SELECT order_id, day FROM stg.orders
    {% if start_ds > '2020-01-01' %} WHERE status = 'paid' {% endif %}
    JINJA_END;
"""


def test_impact__on_jinja_that_asks_for_the_time__takes_every_name_in_it() -> None:
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column day)"
    files = {"a.sql": ORDERS, "b.sql": model("mart.kept", JINJA.strip(), kind)}
    found = impact(files, {"a.sql": ORDERS.replace("status,", "UPPER(status) AS status,")})
    assert reached(found, "stg.orders", "status") == {"mart.kept": (set(), True)}


def test_impact__a_dependency_that_the_query_does_not_read__is_unknown() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": "MODEL (name mart.odd, kind FULL, depends_on [stg.orders]);\nSELECT 1 AS one",
    }
    found = impact(files, {"a.sql": ORDERS.replace("amount,", "amount * 2 AS amount,")})
    entry = indirect(found)["mart.odd"]
    assert entry.reached == "unknown"
    assert "stg.orders, which its query does not read" in entry.why


def test_impact__a_statement_that_names_what_changes__is_unknown() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": "MODEL (name mart.odd, kind FULL);\n"
        "CREATE TEMPORARY VIEW t AS SELECT amount FROM stg.orders;\n"
        "SELECT order_id FROM stg.orders",
    }
    found = impact(files, {"a.sql": ORDERS.replace("amount,", "amount * 2 AS amount,")})
    assert indirect(found)["mart.odd"].reached == "unknown"


def test_impact__of_other_statements_around_a_query__is_its_rows() -> None:
    after = CHAIN["b.sql"].replace(");\n", ");\nSET spark.sql.ansi.enabled = true;\n", 1)
    found = impact(CHAIN, {"b.sql": after})
    assert parts(found) == {("mart.daily", None): "rows"}
    assert found.changed[0].why == (
        "Statements before or after its query change, and they can change rows or values."
    )


def test_impact__of_statements_that_write_no_rows__is_nothing() -> None:
    after = CHAIN["b.sql"] + ";\nANALYZE TABLE @this_model COMPUTE STATISTICS;\n"
    assert parts(impact(CHAIN, {"b.sql": after})) == {}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind FULL", "kind FULL, partitioned_by day", {}),
        ("kind FULL", "kind VIEW", {}),
        ("kind FULL", "kind FULL, stamp 'again'", {}),
        (
            "kind FULL",
            "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key day)",
            {("mart.daily", None): "rows"},
        ),
    ],
)
def test_impact__of_what_stands_around_the_query(
    old: str, new: str, expected: dict[tuple[str, str | None], str]
) -> None:
    found = impact(CHAIN, {"b.sql": CHAIN["b.sql"].replace(old, new)})
    assert parts(found) == expected
    assert indirect(found)["mart.top"].reached == ("yes" if expected else "no")


def test_impact__of_a_new_model_that_unchanged_ones_read__is_all_of_it() -> None:
    files = {"b.sql": model("mart.some", "SELECT order_id FROM stg.orders")}
    found = impact(files, {"a.sql": ORDERS})
    assert parts(found) == {("stg.orders", None): "rows"}
    assert indirect(found)["mart.some"].reached == "yes"


def test_impact__is_empty_where_nothing_changes() -> None:
    assert impact(CHAIN) == Impact()
