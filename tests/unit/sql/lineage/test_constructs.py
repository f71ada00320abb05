"""What each construct of Spark's SQL, and each macro of SQLMesh, makes of a column that changes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.unit.sql.lineage.real import ORDERS, impact, indirect, model, parts, reached

NOTHING: tuple[set[str], bool] = (set(), False)
CHANGES = {
    "order_id": "order_id + 1 AS order_id",
    "customer_id": "customer_id + 1 AS customer_id",
    "status": "UPPER(status) AS status",
    "amount": "amount * 2 AS amount",
}


@dataclass(frozen=True)
class Case:
    """A reader of `stg.orders`, and what of it depends on each column that is named here."""

    query: str
    order_id: tuple[set[str], bool] | None = None
    customer_id: tuple[set[str], bool] | None = None
    status: tuple[set[str], bool] | None = None
    amount: tuple[set[str], bool] | None = None


def values(*columns: str) -> tuple[set[str], bool]:
    return set(columns), False


def rows(*columns: str) -> tuple[set[str], bool]:
    return set(columns), True


CASES = {
    "self join": Case(
        "SELECT a.order_id, b.amount AS other FROM stg.orders AS a "
        "JOIN stg.orders AS b ON a.customer_id = b.customer_id",
        amount=values("other"),
        customer_id=rows(),
        status=NOTHING,
    ),
    "correlated scalar subquery": Case(
        "SELECT o.order_id, (SELECT MAX(i.amount) FROM stg.orders AS i "
        "WHERE i.customer_id = o.customer_id) AS top FROM stg.orders AS o",
        amount=values("top"),
        customer_id=values("top"),
        status=NOTHING,
    ),
    "NOT EXISTS": Case(
        "SELECT c.email FROM raw.customers AS c WHERE NOT EXISTS "
        "(SELECT o.amount FROM stg.orders AS o WHERE o.customer_id = c.customer_id)",
        customer_id=rows(),
        amount=NOTHING,
    ),
    "NOT IN": Case(
        "SELECT email FROM raw.customers WHERE customer_id NOT IN "
        "(SELECT customer_id FROM stg.orders WHERE status = 'paid')",
        customer_id=rows(),
        status=rows(),
        amount=NOTHING,
    ),
    "NATURAL JOIN": Case(
        "SELECT * FROM (SELECT customer_id, amount FROM stg.orders) "
        "NATURAL JOIN (SELECT customer_id, email FROM raw.customers)",
        customer_id=rows("customer_id"),
        amount=values("amount"),
        status=NOTHING,
    ),
    "USING": Case(
        "SELECT customer_id, o.amount FROM raw.customers FULL JOIN stg.orders AS o "
        "USING (customer_id)",
        customer_id=rows("customer_id"),
        amount=values("amount"),
        status=NOTHING,
    ),
    "LEFT ANTI JOIN": Case(
        "SELECT c.email FROM raw.customers AS c LEFT ANTI JOIN stg.orders AS o "
        "ON o.customer_id = c.customer_id AND o.status = 'paid'",
        customer_id=rows(),
        status=rows(),
        amount=NOTHING,
    ),
    "EXCEPT": Case(
        "SELECT order_id AS id FROM stg.orders EXCEPT SELECT customer_id FROM raw.customers",
        order_id=rows("id"),
        amount=NOTHING,
    ),
    "INTERSECT ALL": Case(
        "SELECT customer_id AS id FROM raw.customers INTERSECT ALL SELECT order_id FROM stg.orders",
        order_id=rows("id"),
        amount=NOTHING,
    ),
    "UNION of other columns": Case(
        "SELECT customer_id AS id, 'c' AS kind FROM raw.customers "
        "UNION ALL SELECT order_id, status FROM stg.orders",
        order_id=values("id"),
        status=values("kind"),
        amount=NOTHING,
    ),
    "star EXCEPT": Case(
        "SELECT * EXCEPT (amount) FROM stg.orders",
        amount=NOTHING,
        status=values("status"),
    ),
    "fields of a struct": Case(
        "SELECT s.total AS t, order_id FROM "
        "(SELECT STRUCT(amount AS total, status AS st) AS s, order_id FROM stg.orders)",
        amount=values("t"),
        order_id=values("order_id"),
        customer_id=NOTHING,
    ),
    "PIVOT": Case(
        "SELECT * FROM (SELECT customer_id, status, amount FROM stg.orders) "
        "PIVOT (SUM(amount) FOR status IN ('paid' AS paid, 'sent' AS sent))",
        amount=rows("customer_id", "paid", "sent"),
        status=rows("customer_id", "paid", "sent"),
        order_id=NOTHING,
    ),
    "UNPIVOT": Case(
        "SELECT u.name, u.number FROM (SELECT order_id, customer_id FROM stg.orders) "
        "UNPIVOT (number FOR name IN (order_id, customer_id)) AS u",
        order_id=rows("name", "number"),
        amount=NOTHING,
    ),
    "window frame": Case(
        "SELECT order_id, SUM(amount) OVER (PARTITION BY customer_id ORDER BY day "
        "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM stg.orders",
        amount=values("week"),
        customer_id=values("week"),
        status=NOTHING,
    ),
    "named window": Case(
        "SELECT order_id, RANK() OVER w AS place FROM stg.orders WINDOW w AS (ORDER BY amount)",
        amount=values("place"),
        status=NOTHING,
    ),
    "last row of each": Case(
        "SELECT * EXCEPT (rn) FROM (SELECT order_id, amount, ROW_NUMBER() OVER "
        "(PARTITION BY customer_id ORDER BY status) AS rn FROM stg.orders) WHERE rn = 1",
        status=rows(),
        customer_id=rows(),
        amount=values("amount"),
    ),
    "LATERAL VIEW": Case(
        "SELECT o.order_id, t.word FROM stg.orders AS o "
        "LATERAL VIEW EXPLODE(SPLIT(o.status, ',')) t AS word",
        status=rows("word"),
        amount=NOTHING,
    ),
    "LATERAL subquery": Case(
        "SELECT c.email, l.top FROM raw.customers AS c, LATERAL "
        "(SELECT MAX(o.amount) AS top FROM stg.orders AS o WHERE o.customer_id = c.customer_id) l",
        amount=values("top"),
        customer_id=values("top"),
        status=NOTHING,
    ),
    "generator among the projections": Case(
        "SELECT order_id, EXPLODE(SPLIT(status, ',')) AS word FROM stg.orders",
        status=rows("word"),
        amount=NOTHING,
    ),
    "rows of an aggregate": Case(
        "SELECT EXPLODE(COLLECT_SET(status)) AS status FROM stg.orders",
        status=rows("status"),
        amount=NOTHING,
    ),
    "HAVING and aliases": Case(
        "SELECT customer_id AS c, COUNT(*) AS n FROM stg.orders GROUP BY c HAVING SUM(amount) > 5",
        customer_id=rows("c"),
        amount=rows(),
        status=NOTHING,
    ),
    "GROUPING SETS": Case(
        "SELECT status, customer_id, SUM(amount) AS total FROM stg.orders "
        "GROUP BY GROUPING SETS ((status), (customer_id))",
        status=rows("status"),
        amount=values("total"),
        order_id=NOTHING,
    ),
    "LIMIT": Case(
        "SELECT order_id FROM stg.orders ORDER BY amount DESC LIMIT 10",
        amount=rows(),
        order_id=values("order_id"),
        status=NOTHING,
    ),
    "an order that nobody reads": Case(
        "SELECT order_id FROM stg.orders ORDER BY amount",
        amount=NOTHING,
        order_id=values("order_id"),
    ),
    "alias of the same SELECT": Case(
        "SELECT amount * 2 AS twice, twice + 1 AS more FROM stg.orders",
        amount=values("twice", "more"),
        status=NOTHING,
    ),
    "lambda": Case(
        "SELECT TRANSFORM(ARRAY(order_id), amount -> amount + customer_id) AS made FROM stg.orders",
        order_id=values("made"),
        customer_id=values("made"),
        amount=NOTHING,
    ),
    "CTE of a table's name": Case(
        "WITH orders AS (SELECT order_id, status FROM stg.orders WHERE amount > 1) "
        "SELECT order_id FROM orders",
        amount=rows(),
        order_id=values("order_id"),
        status=NOTHING,
    ),
    "other cases": Case(
        "SELECT O.ORDER_ID AS `Id` FROM STG.ORDERS AS o WHERE `O`.`Amount` > 1",
        amount=rows(),
        order_id=values("id"),
        status=NOTHING,
    ),
    "names with dots": Case(
        "SELECT `o.x`.`a.b` AS c FROM (SELECT amount AS `a.b`, status FROM stg.orders) AS `o.x`",
        amount=values("c"),
        status=NOTHING,
    ),
    "macro variable": Case(
        "@DEF(minimum, 10);\nSELECT order_id FROM stg.orders WHERE amount > @minimum",
        amount=rows(),
        status=NOTHING,
    ),
    "@EACH": Case(
        "SELECT customer_id, @EACH(['paid', 'sent'], s -> SUM(CASE WHEN status = s THEN amount END) "
        "AS sum_@s) FROM stg.orders GROUP BY customer_id",
        amount=values("sum_paid", "sum_sent"),
        status=values("sum_paid", "sum_sent"),
        customer_id=rows("customer_id"),
        order_id=NOTHING,
    ),
    "@STAR": Case(
        "SELECT @STAR(stg.orders, except_ := [amount]) FROM stg.orders",
        status=values("status"),
        amount=NOTHING,
    ),
    "@GENERATE_SURROGATE_KEY": Case(
        "SELECT @GENERATE_SURROGATE_KEY(order_id, status) AS id, amount FROM stg.orders",
        order_id=values("id"),
        amount=values("amount"),
        customer_id=NOTHING,
    ),
    "@UNION": Case(
        "@UNION('all', stg.orders, stg.orders)",
        amount=values("amount"),
    ),
    "@IF": Case(
        "SELECT order_id, @IF(1 = 2, amount, status) AS what FROM stg.orders",
        status=values("what"),
        customer_id=NOTHING,
    ),
    "@WHERE": Case(
        "SELECT order_id FROM stg.orders @WHERE(TRUE) amount > 1",
        amount=rows(),
        status=NOTHING,
    ),
    "JINJA": Case(
        "JINJA_QUERY_BEGIN;\nSELECT {% for c in ['order_id', 'amount'] %}{{ c }} AS {{ c }}_x"
        "{{ ',' if not loop.last }} {% endfor %} FROM stg.orders WHERE status = 'paid'\nJINJA_END;",
        amount=rows("amount_x"),  # a branch or a loop may hide what it does with a name
        status=rows(),
        customer_id=NOTHING,
    ),
}


@pytest.mark.parametrize(
    ("name", "column"),
    [
        (name, column)
        for name, case in CASES.items()
        for column in CHANGES
        if getattr(case, column) is not None
    ],
)
def test_impact__through(name: str, column: str) -> None:
    files = {"a.sql": ORDERS, "b.sql": model("mart.reader", CASES[name].query)}
    after = ORDERS.replace(f"{column},", f"{CHANGES[column]},", 1)
    found = impact(files, {"a.sql": after})

    assert parts(found) == {("stg.orders", column): "computed"}
    expected = getattr(CASES[name], column)
    assert reached(found, "stg.orders", column).get("mart.reader", NOTHING) == expected
    answer = "no" if expected == NOTHING else "yes"
    assert indirect(found)["mart.reader"].reached == answer


@pytest.mark.parametrize("query", ["XXHASH64(*)", "TO_JSON(STRUCT(*))", "HASH(o.*)"])
@pytest.mark.parametrize(
    "after",
    [
        ORDERS.replace("status, amount", "amount, status"),
        ORDERS.replace("status, ", ""),
        ORDERS.replace(" FROM raw", ", amount * 2 AS twice FROM raw"),
    ],
    ids=["reordered", "dropped", "added"],
)
def test_impact__of_a_column_that_comes_or_goes__on_all_of_them_together(
    query: str, after: str
) -> None:
    reader = model("mart.reader", f"SELECT order_id, {query} AS h FROM stg.orders AS o")
    found = impact({"a.sql": ORDERS, "b.sql": reader}, {"a.sql": after})
    told = [entry for part in found.changed for entry in part.reached]
    assert told
    assert all("h" in entry.columns and "order_id" not in entry.columns for entry in told)


def test_impact__of_a_new_column__on_a_natural_join_is_its_rows() -> None:
    reader = model("mart.reader", "SELECT order_id, email FROM stg.orders NATURAL JOIN stg.people")
    people = model("stg.people", "SELECT customer_id, email FROM raw.customers")
    after = model("stg.people", "SELECT customer_id, email, country AS status FROM raw.customers")
    found = impact({"a.sql": ORDERS, "b.sql": people, "c.sql": reader}, {"b.sql": after})
    assert reached(found, "stg.people", "status") == {"mart.reader": (set(), True)}


def test_impact__of_a_renamed_column__is_one_that_goes_and_one_that_comes() -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model("mart.all", "SELECT * FROM stg.orders"),
        "c.sql": model("mart.other", "SELECT order_id FROM stg.orders"),
        "d.sql": model("mart.below", "SELECT DISTINCT status FROM mart.all"),
    }
    found = impact(files, {"a.sql": ORDERS.replace("status,", "status AS state,")})
    assert parts(found) == {("stg.orders", "status"): "dropped", ("stg.orders", "state"): "added"}
    assert reached(found, "stg.orders", "status") == {
        "mart.all": ({"status"}, False),
        "mart.below": ({"status"}, True),
    }
    assert reached(found, "stg.orders", "state") == {"mart.all": ({"state"}, False)}
    assert indirect(found)["mart.other"].reached == "no"


def test_impact__of_another_case__is_none() -> None:
    after = ORDERS.replace("status,", "STATUS,").replace("raw.orders", "RAW.Orders")
    found = impact({"a.sql": ORDERS, "b.sql": model("mart.reader", "SELECT 1 AS x FROM stg.orders")},
                   {"a.sql": after})  # fmt: skip
    assert found.changed == []


@pytest.mark.parametrize("kind", ["VIEW", "EMBEDDED", "FULL"])
def test_impact__goes_through_each_kind(kind: str) -> None:
    files = {
        "a.sql": ORDERS,
        "b.sql": model("mart.middle", "SELECT order_id, amount AS a FROM stg.orders", kind),
        "c.sql": model("mart.leaf", "SELECT SUM(a) AS total FROM mart.middle"),
        "d.sql": model("mart.other", "SELECT order_id FROM mart.middle"),
    }
    found = impact(files, {"a.sql": ORDERS.replace("amount,", "amount * 2 AS amount,")})
    assert reached(found, "stg.orders", "amount")["mart.leaf"] == ({"total"}, False)
    assert "mart.other" not in reached(found, "stg.orders", "amount")


def test_impact__of_a_forward_only_model__is_as_of_any() -> None:
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column day, forward_only true)"
    query = (
        "SELECT order_id, amount, CAST(order_ts AS DATE) AS day FROM raw.orders "
        "WHERE order_ts BETWEEN @start_ts AND @end_ts"
    )
    files = {
        "a.sql": model("stg.orders", query, kind),
        "b.sql": model("mart.sums", "SELECT SUM(amount) AS total FROM stg.orders"),
        "c.sql": model("mart.days", "SELECT DISTINCT day FROM stg.orders"),
    }
    after = model("stg.orders", query.replace("amount,", "amount * 2 AS amount,"), kind)
    found = impact(files, {"a.sql": after})
    assert parts(found) == {("stg.orders", "amount"): "computed"}
    assert reached(found, "stg.orders", "amount") == {"mart.sums": ({"total"}, False)}


def test_impact__of_history_by_time__is_decided_by_the_time_of_updates() -> None:
    kind = "SCD_TYPE_2_BY_TIME (unique_key order_id, updated_at_name changed)"
    query = "SELECT order_id, status, order_ts AS changed FROM {}"
    files = {
        "a.sql": model("stg.raw", query.format("raw.orders")),
        "b.sql": model("stg.history", query.format("stg.raw").replace("order_ts AS ", ""), kind),
        "c.sql": model("mart.now", "SELECT order_id FROM stg.history WHERE valid_to IS NULL"),
    }
    after = files["a.sql"].replace("order_ts AS", "DATE_ADD(order_ts, 1) AS")
    found = impact(files, {"a.sql": after})
    assert reached(found, "stg.raw", "changed") == {
        "stg.history": ({"changed"}, True),
        "mart.now": (set(), True),
    }


def test_impact__of_what_is_proved_to_be_the_same__is_none() -> None:
    reader = model("mart.reader", "SELECT amount FROM stg.orders")
    after = ORDERS.replace("amount,", "amount + amount * 0 AS amount,")
    files = {"a.sql": ORDERS, "b.sql": reader}
    assert impact(files, {"a.sql": after}).changed != []
    found = impact(files, {"a.sql": after}, same_result=["stg.orders"])
    assert found.changed == []
    assert indirect(found)["mart.reader"].reached == "no"
