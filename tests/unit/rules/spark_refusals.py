"""Queries that Spark refuses, and their neighbours that it runs: Spark itself judges each of them in
`tests/integration/test_refused_queries_on_spark.py`.
"""

from __future__ import annotations

TABLES = {
    "raw.orders": {
        "order_id": "BIGINT",
        "customer_id": "BIGINT",
        "status": "STRING",
        "amount": "DECIMAL(10, 2)",
        "order_ts": "TIMESTAMP",
        "parts": "STRUCT<size: INT, weight: DOUBLE>",
        "tags": "ARRAY<STRING>",
    },
    "raw.customers": {"customer_id": "BIGINT", "country": "STRING"},
}
REFUSED: tuple[str, ...] = (
    "SELECT o.status, o.customer_id, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o",
    "SELECT o.status, o.amount + SUM(o.amount) AS x FROM raw.orders AS o GROUP BY o.status",
    "SELECT UPPER(o.status) AS s, CONCAT(o.status, 'x') AS t, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY UPPER(o.status)",
    "SELECT c.country, o.status, SUM(o.amount) AS x FROM raw.orders AS o "
    "JOIN raw.customers AS c ON o.customer_id = c.customer_id GROUP BY c.country",
    "WITH a AS (SELECT o.status, o.order_id, MAX(o.amount) AS m FROM raw.orders AS o "
    "GROUP BY o.status) SELECT a.status FROM a",
    "SELECT CASE WHEN o.amount > 1 THEN 'a' ELSE 'b' END AS band, COUNT(*) AS n "
    "FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o WHERE COUNT(*) > 1 GROUP BY o.status",
    "SELECT o.status FROM raw.orders AS o WHERE SUM(o.amount) > 1",
    "SELECT o.order_id FROM raw.orders AS o "
    "WHERE ROW_NUMBER() OVER (PARTITION BY o.status ORDER BY o.order_id) = 1",
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.status "
    "HAVING RANK() OVER (ORDER BY o.status) = 1",
    "SELECT o.status, SUM(COUNT(*)) AS n FROM raw.orders AS o GROUP BY o.status",
    "SELECT MAX(SUM(o.amount)) AS n FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.order_id, COUNT(DISTINCT o.status) OVER (PARTITION BY o.customer_id) AS n "
    "FROM raw.orders AS o",
    "SELECT o.status, PERCENTILE(o.amount, 95) AS p FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.status, PERCENTILE_APPROX(o.amount, 95) AS p FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.order_id, o.status FROM raw.orders AS o JOIN raw.customers AS c "
    "ON o.customer_id = c.customer_id AND COUNT(*) > 1",
)
# Windows that Spark refuses: a rank without an order, and any frame but a rank's own one.
REFUSED += tuple(
    f"SELECT o.order_id, {text} AS x FROM raw.orders AS o"
    for text in (
        "ROW_NUMBER() OVER (PARTITION BY o.status)",
        "RANK() OVER ()",
        "LAG(o.amount) OVER (PARTITION BY o.status)",
        "NTILE(4) OVER (PARTITION BY o.status)",
        "RANK() OVER (ORDER BY o.amount RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "ROW_NUMBER() OVER (ORDER BY o.amount ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "LAG(o.amount) OVER (ORDER BY o.order_id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "LAG(o.amount) IGNORE NULLS OVER (ORDER BY o.order_id ROWS BETWEEN 1 PRECEDING AND "
        "CURRENT ROW)",
        "CUME_DIST() OVER (ORDER BY o.amount ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    )
)
# Spark has no function of this name; a project may register one.
UNKNOWN = (
    "SELECT TO_JSONB(o.status) AS j FROM raw.orders AS o",
    "SELECT o.order_id FROM raw.orders AS o WHERE IS_OPEN(o.status)",
)
RUNS = (
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o GROUP BY 1",
    "SELECT o.status AS s, COUNT(*) AS n FROM raw.orders AS o GROUP BY s",
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o GROUP BY ALL",
    "SELECT UPPER(o.status) AS s, CONCAT(UPPER(o.status), 'x') AS t, COUNT(*) AS n "
    "FROM raw.orders AS o GROUP BY UPPER(o.status)",
    "SELECT UPPER(o.status) AS s, 'x' AS t, 1 + COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY o.status",
    "SELECT O.STATUS, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.status, c.country, COUNT(*) AS n FROM raw.orders AS o JOIN raw.customers AS c "
    "ON o.customer_id = c.customer_id GROUP BY ROLLUP (o.status, c.country)",
    "SELECT o.status, o.customer_id, COUNT(*) AS n, GROUPING_ID() AS g FROM raw.orders AS o "
    "GROUP BY GROUPING SETS ((o.status), (o.status, o.customer_id))",
    "SELECT o.status, SUM(COUNT(*)) OVER (ORDER BY o.status) AS n FROM raw.orders AS o "
    "GROUP BY o.status",
    "SELECT o.status, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place "
    "FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.order_id, COUNT(*) OVER (PARTITION BY o.status) AS n FROM raw.orders AS o",
    "SELECT o.order_id, (SELECT MAX(c.country) FROM raw.customers AS c "
    "WHERE c.customer_id = o.customer_id) AS country FROM raw.orders AS o",
    "SELECT o.order_id FROM raw.orders AS o "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY o.status ORDER BY o.order_id) = 1",
    "SELECT o.status, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.status HAVING COUNT(*) > 1",
    "SELECT o.order_id FROM raw.orders AS o "
    "WHERE o.amount > (SELECT AVG(x.amount) FROM raw.orders AS x)",
    "SELECT o.parts.size AS size, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.parts.size",
    "SELECT o.parts.size AS size, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.parts",
    "SELECT YEAR(o.order_ts) AS y, MONTH(o.order_ts) AS m, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY YEAR(o.order_ts), MONTH(o.order_ts)",
    "SELECT DATE_TRUNC('month', o.order_ts) AS m, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY DATE_TRUNC('month', o.order_ts)",
    "SELECT t.tag, COUNT(*) AS n FROM raw.orders AS o LATERAL VIEW EXPLODE(o.tags) t AS tag "
    "GROUP BY t.tag",
    "SELECT COUNT(*) AS n, MAX(o.amount) AS m, CURRENT_DATE() AS d FROM raw.orders AS o",
    "SELECT o.status, PERCENTILE(o.amount, 0.95) AS p FROM raw.orders AS o GROUP BY o.status",
    "SELECT o.status, PERCENTILE_APPROX(o.amount, ARRAY(0.5, 0.95)) AS p FROM raw.orders AS o "
    "GROUP BY o.status",
    "SELECT o.status, COLLECT_LIST(o.order_id) AS ids, COUNT_IF(o.amount > 1) AS n, "
    "MAX_BY(o.order_id, o.order_ts) AS last_id, APPROX_COUNT_DISTINCT(o.customer_id) AS c, "
    "BOOL_OR(o.amount > 1) AS b, FIRST(o.order_id, TRUE) AS f, MODE(o.customer_id) AS mo, "
    "SKEWNESS(o.amount) AS sk, REGR_SLOPE(o.amount, o.amount) AS r, BIT_OR(o.order_id) AS bo, "
    "PERCENTILE(o.amount, 0.5) AS med, HISTOGRAM_NUMERIC(o.amount, 5) AS h, "
    "TRY_SUM(o.amount) AS ts, MEDIAN(o.amount) AS md, ARRAY_AGG(o.order_id) AS aa, "
    "HLL_SKETCH_AGG(o.customer_id) AS hs, BITMAP_CONSTRUCT_AGG(1) AS bm, "
    "COUNT_MIN_SKETCH(o.customer_id, 0.5D, 0.5D, 1) AS cm FROM raw.orders AS o GROUP BY o.status",
    "SELECT TRANSFORM(o.tags, x -> UPPER(x)) AS t, AGGREGATE(o.tags, 0, (a, x) -> a + 1) AS n, "
    "MAP_FILTER(MAP('a', 1), (k, v) -> v > 0) AS m, LUHN_CHECK('1') AS l, STACK(1, 2, 3) "
    "FROM raw.orders AS o",
    "SELECT o.status, COUNT(*) FILTER (WHERE o.amount > 1) AS n FROM raw.orders AS o "
    "GROUP BY o.status",
    "SELECT o.status, MAX(CASE WHEN o.amount > 1 THEN o.order_id END) AS n FROM raw.orders AS o "
    "GROUP BY o.status ORDER BY MAX(o.order_ts)",
    "SELECT COALESCE(o.status, 'x') AS status, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY COALESCE(o.status, 'x')",
    "SELECT /*+ REPARTITION(8), BROADCAST(c) */ o.status FROM raw.orders AS o "
    "JOIN raw.customers AS c ON o.customer_id = c.customer_id",
    "SELECT o.order_id, RANK() OVER (ORDER BY o.amount ROWS BETWEEN UNBOUNDED PRECEDING AND "
    "CURRENT ROW) AS r, CUME_DIST() OVER (ORDER BY o.amount RANGE BETWEEN UNBOUNDED PRECEDING AND "
    "CURRENT ROW) AS c, SUM(o.amount) OVER (PARTITION BY o.status) AS s, FIRST_VALUE(o.amount) "
    "OVER (PARTITION BY o.status) AS f, LAG(o.amount) OVER w AS l FROM raw.orders AS o "
    "WINDOW w AS (PARTITION BY o.status ORDER BY o.order_id)",
    "SELECT o.order_id, RANK() OVER (ORDER BY o.amount ROWS UNBOUNDED PRECEDING) AS r, "
    "LAG(o.amount) IGNORE NULLS OVER (ORDER BY o.order_id) AS l FROM raw.orders AS o",
    # A key in other words, aggregates that SQLGlot does not know as such.
    "SELECT o.customer_id + o.order_id AS s, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY o.order_id + o.customer_id",
    "SELECT CAST(o.order_ts AS DATE) AS d, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY DATE(o.order_ts)",
    "SELECT o.status = 'a' AS a, COUNT(*) AS n FROM raw.orders AS o GROUP BY 'a' = o.status",
    "SELECT ANY(o.amount > 1) AS a, EVERY(o.amount > 1) AS e, STD(o.amount) AS s "
    "FROM raw.orders AS o",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY o.amount) AS p FROM raw.orders AS o",
    "SELECT DISTINCT o.status, o.customer_id FROM raw.orders AS o",
    "SELECT o.status, o.customer_id + 1 AS c, COUNT(*) AS n FROM raw.orders AS o "
    "GROUP BY o.status, o.customer_id",
    "SELECT LOWER(x.status) AS s, SUM(x.n) AS n FROM (SELECT o.status, COUNT(*) AS n "
    "FROM raw.orders AS o GROUP BY o.status) AS x GROUP BY LOWER(x.status)",
    "SELECT o.status, MIN(STRUCT(o.amount, o.order_id)).order_id AS first_id "
    "FROM raw.orders AS o GROUP BY o.status",
)
