"""Models of every kind and shape: no rule may fail on one, changed or new."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, rules, seen

WIDE = ", ".join(f"o.order_id + {n} AS c{n}" for n in range(300))
LONG = " UNION ALL ".join(f"SELECT o.order_id, {n} AS n FROM raw.orders AS o" for n in range(150))
DEEP = "SELECT o.order_id FROM raw.orders AS o WHERE " + "(" * 12 + "o.amount > 1" + ")" * 12
NESTED = "o.amount"
for _ in range(15):
    NESTED = f"COALESCE({NESTED}, 0)"

ODD = {
    "jinja": "JINJA_QUERY_BEGIN; SELECT o.order_id FROM raw.orders AS o WHERE o.order_ts > '{{ start_ds }}' {% if True %}AND o.amount > 0{% endif %}; JINJA_END;",
    "values": "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)",
    "no table": "SELECT 1 AS x",
    "lateral view": "SELECT o.order_id, w.word FROM raw.orders AS o LATERAL VIEW EXPLODE(SPLIT(o.status, ' ')) w AS word",
    "explode": "SELECT o.order_id, EXPLODE(SPLIT(o.status, ' ')) AS word FROM raw.orders AS o",
    "pivot": "SELECT * FROM (SELECT o.status, o.amount FROM raw.orders AS o) PIVOT (SUM(amount) FOR status IN ('a', 'b'))",
    "window": "SELECT o.order_id, SUM(o.amount) OVER w AS s FROM raw.orders AS o WINDOW w AS (PARTITION BY o.customer_id)",
    "exists": "SELECT o.order_id FROM raw.orders AS o WHERE EXISTS (SELECT 1 FROM raw.customers AS c WHERE c.customer_id = o.customer_id)",
    "scalar subquery": "SELECT o.order_id, (SELECT MAX(c.updated_at) FROM raw.customers AS c) AS m FROM raw.orders AS o",
    "struct": "SELECT NAMED_STRUCT('a', o.order_id, 'b', o.status) AS s FROM raw.orders AS o",
    "quoted": "SELECT o.order_id AS `odd name`, o.status AS `select` FROM raw.orders AS o",
    "using": "SELECT o.order_id FROM raw.orders AS o JOIN raw.customers AS c USING (customer_id)",
    "natural": "SELECT o.order_id FROM raw.orders AS o NATURAL JOIN raw.customers AS c",
    "semi": "SELECT o.order_id FROM raw.orders AS o LEFT SEMI JOIN raw.customers AS c ON o.customer_id = c.customer_id",
    "full": "SELECT o.order_id FROM raw.orders AS o FULL JOIN raw.customers AS c ON o.customer_id = c.customer_id",
    "group by all": "SELECT o.status, SUM(o.amount) AS a FROM raw.orders AS o GROUP BY ALL",
    "rollup": "SELECT o.status, o.customer_id, SUM(o.amount) AS a FROM raw.orders AS o GROUP BY ROLLUP (o.status, o.customer_id)",
    "unknown source": "SELECT x.* FROM nowhere.at_all AS x JOIN raw.orders AS o ON o.order_id = x.id",
    "self": "SELECT t.x FROM a.b AS t",
    "wide": f"SELECT {WIDE} FROM raw.orders AS o",
    "long": LONG,
    "deep": DEEP,
    "nested": f"SELECT {NESTED} AS x FROM raw.orders AS o",
    "macro": "SELECT @EACH([a, b], c -> o.order_id AS @c) FROM raw.orders AS o WHERE @IF(TRUE, o.amount > 0, TRUE)",
    "if macro": "@IF(TRUE, SELECT o.order_id FROM raw.orders AS o, SELECT 1 AS order_id)",
    "variables": "SELECT @VAR('x', 1) AS x, @'a_@{x}' AS y FROM raw.orders AS o",
}
KINDS = {
    "partition": "MODEL (name a.b, kind INCREMENTAL_BY_PARTITION, partitioned_by (status)); SELECT o.status FROM raw.orders AS o",
    "unmanaged": "MODEL (name a.b, kind INCREMENTAL_UNMANAGED); SELECT o.status FROM raw.orders AS o",
    "embedded": "MODEL (name a.b, kind EMBEDDED); SELECT o.status FROM raw.orders AS o",
    "by column": "MODEL (name a.b, kind SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns *)); SELECT o.order_id, o.status FROM raw.orders AS o",
    "key expression": "MODEL (name a.b, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key COALESCE(order_id, 0))); SELECT o.order_id FROM raw.orders AS o",
    "when matched": "MODEL (name a.b, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id, when_matched (WHEN MATCHED THEN UPDATE SET target.status = source.status))); SELECT o.order_id, o.status FROM raw.orders AS o",
    "epoch time column": "MODEL (name a.b, kind INCREMENTAL_BY_TIME_RANGE (time_column (ms, '%s'))); SELECT o.order_id AS ms FROM raw.orders AS o WHERE o.order_id BETWEEN @start_epoch AND @end_epoch",
    "disabled audits": "MODEL (name a.b, kind FULL, audits (not_null(columns := order_id), forall(criteria := (order_id > 0)))); SELECT o.order_id FROM raw.orders AS o",
}
TEXTS = {
    **{name: f"MODEL (name a.b, kind VIEW, dialect spark); {query}" for name, query in ODD.items()},
    **KINDS,
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_odd_model__as_a_new_one(name: str) -> None:
    assert isinstance(seen(change({}, {"models/m.sql": TEXTS[name]})), list)


@pytest.mark.by_day(12)
@pytest.mark.parametrize("name", sorted(TEXTS))
def test_odd_model__changed_into_another(name: str) -> None:
    plain = "MODEL (name a.b, kind FULL); SELECT o.order_id FROM raw.orders AS o"

    assert isinstance(seen(change({"models/m.sql": plain}, {"models/m.sql": TEXTS[name]})), list)
    assert isinstance(seen(change({"models/m.sql": TEXTS[name]}, {"models/m.sql": plain})), list)


def test_epoch_filter__is_a_filter_on_the_interval() -> None:
    assert "time-filter-missing" not in rules(
        change({}, {"models/m.sql": KINDS["epoch time column"]})
    )


@pytest.mark.parametrize(
    "name", ["lateral view", "explode", "using", "natural", "semi", "exists", "values"]
)
def test_odd_join__is_no_cross_join(name: str) -> None:
    assert "cross-join" not in rules(change({}, {"models/m.sql": TEXTS[name]}))
