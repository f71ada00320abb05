"""Pairs of queries on which a reader of SQL may be wrong about Spark: how it reads brackets, what
takes its names from columns, what counts places, NULL, types, groups, windows, joins, chance.

Written from Spark's documentation (SQL reference, functions, ANSI compliance, migration guide).
`tests/integration/test_spark_pairs.py` runs each pair on Spark: what is called OTHER differs there
on the rows below, what is called SAME does not. `test_spark_pairs.py` reads them without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

TABLES: Mapping[str, Mapping[str, str]] = {
    "raw.n": {"id": "INT", "a": "INT", "b": "INT", "c": "INT", "s": "STRING", "f": "BOOLEAN"},
    "raw.k": {"id": "INT", "k": "INT", "v": "STRING"},
    "raw.o": {
        "id": "INT",
        "xs": "ARRAY<INT>",
        "ys": "ARRAY<INT>",
        "m": "MAP<STRING, INT>",
        "st": "STRUCT<p: INT, q: STRING>",
        "d": "DATE",
        "ts": "TIMESTAMP",
        "dec": "DECIMAL(10, 2)",
        "dbl": "DOUBLE",
        "big": "BIGINT",
        "str": "STRING",
    },
    "raw.e": {"id": "INT", "a": "INT"},
}
# A table whose columns nobody declared.
UNDECLARED: Mapping[str, Mapping[str, str]] = {
    "raw.u": {"id": "INT", "a": "INT", "b": "INT", "st": "STRUCT<p: INT>"}
}
ROWS: Mapping[str, tuple[str, ...]] = {
    "raw.n": (
        "1, 1, 2, 3, 'aa', true",
        "2, 5, 3, 2, 'b', false",
        "3, 6, 5, 4, NULL, NULL",
        "4, NULL, 1, 7, 'abc', true",
        "5, 3, NULL, 1, 'A', false",
        "6, 0, 0, 0, '1', true",
        "6, 0, 0, 0, '1', true",
        "7, 2, 2, 2, '01', NULL",
        "8, -7, 4, 1, '', false",
        "9, NULL, NULL, 5, NULL, NULL",
    ),
    "raw.k": (
        "1, 1, 'x'",
        "2, 1, 'y'",
        "3, 5, NULL",
        "4, NULL, 'z'",
        "5, 9, 'x'",
        "6, 0, 'w'",
    ),
    "raw.o": (
        "1, array(1, 2), array(3), map('a', 1, 'b', 2), struct(1, 'x'), DATE '2024-01-31', "
        "TIMESTAMP '2024-01-31 10:00:00', 1.25, 1.5, 7, '7'",
        "2, array(2, 1), array(4, 5), map('c', 3), struct(2, 'y'), DATE '2024-02-29', "
        "TIMESTAMP '2024-02-29 23:59:59', 2.50, -0.5, 8, '08'",
        "3, NULL, array(), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        "4, array(), array(6), map(), struct(NULL, 'z'), DATE '2023-12-31', "
        "TIMESTAMP '2023-12-31 00:00:00', -3.75, 2.5, -7, 'x'",
    ),
    "raw.e": (),
    "raw.u": ("1, 1, 2, struct(1)", "2, 5, 3, struct(2)", "3, NULL, 1, NULL"),
}

Pair = tuple[str, str]


def _value(before: str, after: str, table: str = "raw.n AS t") -> Pair:
    return tuple(f"SELECT t.id, {text} AS v FROM {table}" for text in (before, after))  # type: ignore[return-value]


def _where(before: str, after: str, table: str = "raw.n AS t") -> Pair:
    return tuple(f"SELECT t.id FROM {table} WHERE {text}" for text in (before, after))  # type: ignore[return-value]


_O = "raw.o AS t"
_SETS = "SELECT a FROM raw.n {} SELECT b FROM raw.n {} SELECT c FROM raw.n"


def _sets(before: str, after: str) -> Pair:
    """`A`, `B` and `C` in set operations."""
    texts = []
    for text in (before, after):
        for letter in "ABC":
            text = text.replace(letter + "_", f"SELECT t.{letter.lower()} AS v FROM raw.n AS t")  # noqa: PLW2901
        texts.append(f"SELECT q.v FROM ({text}) AS q")
    return texts[0], texts[1]


OTHER: Mapping[str, Pair] = {
    "digests of two lengths": _value("SHA2(t.s, 0)", "SHA2(t.s, 224)"),
    "minutes are no months": _value("DATE_TRUNC('MINUTE', t.ts)", "DATE_TRUNC('MM', t.ts)", _O),
    "a day that TRUNC does not know": _value("TRUNC(t.d, 'DD')", "TRUNC(t.d, 'MM')", _O),
    # Brackets.
    "a sum before a remainder": _value("(t.a + t.b) % 2", "t.a + t.b % 2"),
    "a difference before a remainder": _value("(t.a - t.b) % 3", "t.a - t.b % 3"),
    "a remainder by a product": _value("t.a % (t.b * 2)", "t.a % t.b * 2"),
    "a remainder by a quotient": _value("t.a % (t.b / 2)", "t.a % t.b / 2"),
    "a remainder by a whole quotient": _value("t.a % (t.b DIV 2)", "t.a % t.b DIV 2"),
    "a filter by a remainder": _where("(t.a + t.b) % 2 = 0", "t.a + t.b % 2 = 0"),
    "operands of a sum with a remainder": _value("t.a + t.b % 2", "t.b + t.a % 2"),
    "operands of a product with a remainder": _value("t.id % t.a * t.c", "t.id % t.c * t.a"),
    "bits: or before and": _value("(t.a | t.b) & 1", "t.a | t.b & 1"),
    "bits: xor before and": _value("(t.a ^ t.b) & 1", "t.a ^ t.b & 1"),
    "bits: or before xor": _value("(t.a | t.b) ^ 1", "t.a | t.b ^ 1"),
    "texts joined before a sum": _value("CONCAT(t.a, t.b + t.c)", "t.a || t.b + t.c"),
    "equal to whether it is NULL": _value("t.f = (t.b IS NULL)", "t.f = t.b IS NULL"),
    "equal to a range": _value(
        "t.f = (t.f BETWEEN FALSE AND TRUE)", "t.f = t.f BETWEEN FALSE AND TRUE"
    ),
    "equal to a pattern": _value("t.f = (t.s LIKE 'a%')", "t.f = t.s LIKE 'a%'"),
    "NOT of one or of both": _where("(NOT t.f) AND t.a > 1", "NOT (t.f AND t.a > 1)"),
    "a sign before a remainder": _value("-(t.a % 3)", "-(t.a) % (-3) + 1"),
    "a union met by an intersection": _sets("(A_ UNION B_) INTERSECT C_", "A_ UNION B_ INTERSECT C_"),
    "a union of all met by an intersection": _sets(
        "(A_ UNION ALL B_) INTERSECT C_", "A_ UNION ALL B_ INTERSECT C_"
    ),
    "a difference met by an intersection": _sets(
        "(A_ EXCEPT B_) INTERSECT C_", "A_ EXCEPT B_ INTERSECT C_"
    ),
    "branches exchanged beside an intersection": _sets(
        "A_ UNION B_ INTERSECT C_", "C_ UNION B_ INTERSECT A_"
    ),
    "a union within a difference": _sets("A_ EXCEPT (B_ UNION C_)", "A_ EXCEPT B_ UNION C_"),
    # Names that become names of fields.
    "fields of zipped arrays": (
        "WITH q AS (SELECT id, xs, ys FROM raw.o)"
        " SELECT q.id, TO_JSON(ARRAYS_ZIP(q.xs, q.ys)) AS v FROM q",
        "WITH q AS (SELECT id, xs AS zs, ys FROM raw.o)"
        " SELECT q.id, TO_JSON(ARRAYS_ZIP(q.zs, q.ys)) AS v FROM q",
    ),
    "fields of a row": (
        "WITH q AS (SELECT id, str FROM raw.o) SELECT q.id, TO_JSON((q.str, 1)) AS v FROM q",
        "WITH q AS (SELECT id, str AS x FROM raw.o) SELECT q.id, TO_JSON((q.x, 1)) AS v FROM q",
    ),
    "fields of a structure": (
        "WITH q AS (SELECT id, str FROM raw.o) SELECT q.id, TO_JSON(STRUCT(q.str)) AS v FROM q",
        "WITH q AS (SELECT id, str AS x FROM raw.o) SELECT q.id, TO_JSON(STRUCT(q.x)) AS v FROM q",
    ),
    "a named structure": _value("TO_JSON(NAMED_STRUCT('x', t.a))", "TO_JSON(NAMED_STRUCT('y', t.a))"),
    "the type of a structure": _value("TYPEOF(STRUCT(t.a AS x))", "TYPEOF(STRUCT(t.a AS y))"),
    "structures of two branches": (
        "SELECT q.s AS v FROM (SELECT STRUCT(1 AS p) AS s UNION ALL SELECT STRUCT(2 AS r)) AS q",
        "SELECT q.s AS v FROM (SELECT STRUCT(2 AS r) AS s UNION ALL SELECT STRUCT(1 AS p)) AS q",
    ),
    "structures in arrays of two branches": (
        "SELECT q.s AS v FROM"
        " (SELECT ARRAY(STRUCT(1 AS p)) AS s UNION ALL SELECT ARRAY(STRUCT(2 AS r))) AS q",
        "SELECT q.s AS v FROM"
        " (SELECT ARRAY(STRUCT(2 AS r)) AS s UNION ALL SELECT ARRAY(STRUCT(1 AS p))) AS q",
    ),
    "structures of undeclared types in two branches": (
        "SELECT q.st AS v FROM (SELECT st FROM raw.u UNION ALL SELECT STRUCT(9 AS r)) AS q",
        "SELECT q.st AS v FROM (SELECT STRUCT(9 AS r) AS st UNION ALL SELECT st FROM raw.u) AS q",
    ),
    "a LIMIT behind a scalar query": _value(
        "(SELECT MAX(k.k) FROM raw.k AS k)", "((SELECT MAX(k.k) FROM raw.k AS k) LIMIT 0)"
    ),
    "a LIMIT behind a listed query": _where(
        "t.a IN (SELECT k.k FROM raw.k AS k ORDER BY k.k)",
        "t.a IN ((SELECT k.k FROM raw.k AS k ORDER BY k.k) LIMIT 1)",
    ),
    "fields turned": _value("TO_JSON(STRUCT(t.a AS x, t.b AS y))", "TO_JSON(STRUCT(t.b AS y, t.a AS x))"),
    "values of fields turned": _value(
        "TO_JSON(STRUCT(t.a AS x, t.b AS y))", "TO_JSON(STRUCT(t.b AS x, t.a AS y))"
    ),
    "another field": _value("t.st.p", "t.st.q", _O),
    "another key of a map": _value("t.m['a']", "t.m['b']", _O),
    "the case of a key": _value("t.m['a']", "t.m['A']", _O),
    # Places.
    "aliases of POSEXPLODE": (
        "SELECT t.id, x.p, x.e FROM raw.o AS t LATERAL VIEW POSEXPLODE(t.xs) x AS p, e",
        "SELECT t.id, x.p, x.e FROM raw.o AS t LATERAL VIEW POSEXPLODE(t.xs) x AS e, p",
    ),
    "aliases of EXPLODE of a map": (
        "SELECT t.id, x.k, x.w FROM raw.o AS t LATERAL VIEW EXPLODE(t.m) x AS k, w",
        "SELECT t.id, x.k, x.w FROM raw.o AS t LATERAL VIEW EXPLODE(t.m) x AS w, k",
    ),
    "aliases of INLINE": (
        "SELECT t.id, x.p, x.q FROM raw.o AS t LATERAL VIEW INLINE(ARRAYS_ZIP(t.xs, t.ys)) x AS p, q",
        "SELECT t.id, x.p, x.q FROM raw.o AS t LATERAL VIEW INLINE(ARRAYS_ZIP(t.xs, t.ys)) x AS q, p",
    ),
    "aliases of STACK": (
        "SELECT t.id, x.p, x.q FROM raw.n AS t LATERAL VIEW STACK(2, t.a, t.b, t.b, t.c) x AS p, q",
        "SELECT t.id, x.p, x.q FROM raw.n AS t LATERAL VIEW STACK(2, t.a, t.b, t.b, t.c) x AS q, p",
    ),
    "aliases of a result's POSEXPLODE": (
        "SELECT t.id, POSEXPLODE(t.xs) AS (p, e) FROM raw.o AS t",
        "SELECT t.id, POSEXPLODE(t.xs) AS (e, p) FROM raw.o AS t",
    ),
    "aliases of VALUES": (
        "SELECT q.x, q.y FROM VALUES (1, 2), (3, 4) AS q(x, y)",
        "SELECT q.x, q.y FROM VALUES (1, 2), (3, 4) AS q(y, x)",
    ),
    "aliases of a CTE's columns": (
        "WITH q(x, y) AS (SELECT a, b FROM raw.n) SELECT q.x, q.y FROM q",
        "WITH q(y, x) AS (SELECT a, b FROM raw.n) SELECT q.x, q.y FROM q",
    ),
    "the order under ROLLUP": (
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY t.a, t.b WITH ROLLUP",
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY t.b, t.a WITH ROLLUP",
    ),
    "the order within ROLLUP": (
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY ROLLUP(t.a, t.b)",
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY ROLLUP(t.b, t.a)",
    ),
    "the order under CUBE, counted": (
        "SELECT t.a, t.b, GROUPING_ID() AS g FROM raw.n AS t GROUP BY t.a, t.b WITH CUBE",
        "SELECT t.a, t.b, GROUPING_ID() AS g FROM raw.n AS t GROUP BY t.b, t.a WITH CUBE",
    ),
    "the order within GROUPING SETS, counted": (
        "SELECT t.a, t.b, GROUPING_ID() AS g FROM raw.n AS t GROUP BY GROUPING SETS ((t.a, t.b), (t.a))",
        "SELECT t.a, t.b, GROUPING_ID() AS g FROM raw.n AS t GROUP BY GROUPING SETS ((t.b, t.a), (t.a))",
    ),
    "results turned under numbers in ROLLUP": (
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY ROLLUP(1, 2)",
        "SELECT t.b, t.a, COUNT(*) AS n FROM raw.n AS t GROUP BY ROLLUP(1, 2)",
    ),
    "results turned under numbers in GROUPING SETS": (
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY GROUPING SETS ((1), (1, 2))",
        "SELECT t.b, t.a, COUNT(*) AS n FROM raw.n AS t GROUP BY GROUPING SETS ((1), (1, 2))",
    ),
    "columns of GROUPING_ID": (
        "SELECT t.a, t.b, GROUPING_ID(t.a, t.b) AS g FROM raw.n AS t GROUP BY CUBE(t.a, t.b)",
        "SELECT t.a, t.b, GROUPING(t.b) AS g FROM raw.n AS t GROUP BY CUBE(t.a, t.b)",
    ),
    "columns of a branch turned": (
        "SELECT a, b FROM raw.n UNION ALL SELECT b, c FROM raw.n",
        "SELECT a, b FROM raw.n UNION ALL SELECT c, b FROM raw.n",
    ),
    "ORDER BY a place below a LIMIT": (
        "SELECT q.id FROM (SELECT t.id, t.a FROM raw.n AS t ORDER BY 1, 2 LIMIT 2) AS q",
        "SELECT q.id FROM (SELECT t.id, t.a FROM raw.n AS t ORDER BY 2, 1 LIMIT 2) AS q",
    ),
    "an argument of COALESCE": _value("COALESCE(t.a, t.b, 0)", "COALESCE(t.b, t.a, 0)"),
    "an array's items turned": _value("ARRAY(t.a, t.b)", "ARRAY(t.b, t.a)"),
    # NULL.
    "NOT IN of a subquery with NULL": _where(
        "t.a NOT IN (SELECT k FROM raw.k)",
        "NOT EXISTS (SELECT 1 FROM raw.k AS k WHERE k.k = t.a)",
    ),
    "equal or null-safe equal": _where("t.a = t.b", "t.a <=> t.b"),
    "unequal or distinct from": _where("t.a <> t.b", "t.a IS DISTINCT FROM t.b"),
    "COUNT of a column": (
        "SELECT COUNT(t.a) AS v FROM raw.n AS t", "SELECT COUNT(*) AS v FROM raw.n AS t"
    ),
    "COUNT of two columns": (
        "SELECT COUNT(t.a, t.b) AS v FROM raw.n AS t", "SELECT COUNT(t.a) AS v FROM raw.n AS t"
    ),
    "COUNT of NULL": (
        "SELECT COUNT(NULL) AS v FROM raw.n AS t", "SELECT COUNT(1) AS v FROM raw.n AS t"
    ),
    "COUNT of a default": (
        "SELECT COUNT(COALESCE(t.a, 0)) AS v FROM raw.n AS t",
        "SELECT COUNT(t.a) AS v FROM raw.n AS t",
    ),
    "IS TRUE": _where("NOT t.f IS TRUE", "NOT t.f"),
    "IS FALSE": _where("t.f IS FALSE", "NOT t.f IS TRUE"),
    "GREATEST skips NULL": _value("GREATEST(t.a, t.b)", "IF(t.a > t.b, t.a, t.b)"),
    "the sum of a sum": (
        "SELECT SUM(t.a + t.b) AS v FROM raw.n AS t", "SELECT SUM(t.a) + SUM(t.b) AS v FROM raw.n AS t"
    ),
    "an average with NULL as zero": (
        "SELECT AVG(t.a) AS v FROM raw.n AS t", "SELECT AVG(COALESCE(t.a, 0)) AS v FROM raw.n AS t"
    ),
    "NULLIF": _value("NULLIF(t.a, 0)", "NULLIF(t.a, t.a)"),
    "a range with NULL": _where("t.a BETWEEN t.b AND 9", "t.a >= t.b OR t.a <= 9"),
    "ends of a range turned": _where("t.a BETWEEN 1 AND 5", "t.a BETWEEN 5 AND 1"),
    # Types.
    "a quotient of whole numbers": _value("t.a / t.b", "t.a DIV t.b"),
    "the scale of a decimal": _value("CAST(t.dbl AS DECIMAL(10, 1))", "CAST(t.dbl AS DECIMAL(10, 2))", _O),
    "a cast to a whole number": _value("CAST(t.dbl AS INT)", "ROUND(t.dbl)", _O),
    "a text compared with a number": _where("t.str = 8", "t.str = '8'", _O),
    "a text with leading zero": _where("t.s = 1", "t.s = '1'"),
    "a number, a text": _value("TYPEOF(1)", "TYPEOF('1')"),
    "a whole number, a decimal": _value("TYPEOF(1)", "TYPEOF(1.0)"),
    "a decimal, a double": _value("TYPEOF(1.0)", "TYPEOF(1.0D)"),
    "zeros behind the point": _value("TYPEOF(1.0)", "TYPEOF(1.00)"),
    "a bigint": _value("TYPEOF(1L)", "TYPEOF(1)"),
    "a sum of decimals": _value("TYPEOF(t.dec + 1)", "TYPEOF(t.dec + 1.000)", _O),
    "a date for a timestamp": _where("t.ts <= DATE '2024-01-31'", "CAST(t.ts AS DATE) <= DATE '2024-01-31'", _O),
    "a union of a number and a text": (
        "SELECT q.v + 1 AS v FROM (SELECT a AS v FROM raw.n UNION ALL SELECT 1) AS q",
        "SELECT q.v + 1 AS v FROM (SELECT a AS v FROM raw.n UNION ALL SELECT '1') AS q",
    ),
    "CASE of two types": _value("TYPEOF(CASE WHEN t.f THEN 1 ELSE 2 END)", "TYPEOF(CASE WHEN t.f THEN 1 ELSE 2.5 END)"),
    "COALESCE of two types": _value("TYPEOF(COALESCE(t.a, 0))", "TYPEOF(COALESCE(t.a, 0.0))"),
    "a month added to the last day": _value("ADD_MONTHS(t.d, 1)", "t.d + INTERVAL 31 DAYS", _O),
    "a unit in small letters": _value("DATE_FORMAT(t.ts, 'MM')", "DATE_FORMAT(t.ts, 'mm')", _O),
    "a pattern with another case": _where("t.s LIKE 'a%'", "t.s ILIKE 'a%'"),
    "a pattern or a regular expression": _where("t.s LIKE 'a'", "t.s RLIKE 'a'"),
    "a padded text": _value("LENGTH(CAST(t.s AS STRING))", "LENGTH(RPAD(t.s, 3, ' '))"),
    "TRY_CAST of a text": _value("CAST(t.str AS INT)", "CAST(t.str AS DOUBLE)", _O),
    "the place of rounding": _value("ROUND(t.dbl)", "BROUND(t.dbl)", _O),
    "a floor or a cut": _value("FLOOR(t.dbl)", "CAST(t.dbl AS BIGINT)", _O),
    "the sign of a remainder": _value("t.a % 4", "PMOD(t.a, 4)"),
    "an index of an array": _value("t.xs[0]", "ELEMENT_AT(t.xs, 1) + 1", _O),
    "parts of SUBSTRING": _value("SUBSTRING(t.s, 1, 1)", "SUBSTRING(t.s, 2, 1)"),
    # Groups.
    "an aggregate of an empty table": (
        "SELECT COUNT(*) AS n FROM raw.e AS t", "SELECT COUNT(*) AS n FROM raw.e AS t GROUP BY t.a"
    ),
    "an aggregate of an empty table by a constant": (
        "SELECT COUNT(*) AS n FROM raw.e AS t", "SELECT COUNT(*) AS n FROM raw.e AS t GROUP BY 'x'"
    ),
    "HAVING TRUE makes one row": (
        "SELECT 1 AS v FROM raw.n AS t", "SELECT 1 AS v FROM raw.n AS t HAVING TRUE"
    ),
    "HAVING without groups": (
        "SELECT 1 AS v FROM raw.n AS t WHERE 1 = 1", "SELECT 1 AS v FROM raw.n AS t HAVING 1 = 1"
    ),
    "GROUP BY an alias that is a column": (
        "SELECT t.a % 2 AS b, COUNT(*) AS n FROM raw.n AS t GROUP BY t.a % 2",
        "SELECT MAX(t.a % 2) AS b, COUNT(*) AS n FROM raw.n AS t GROUP BY b",
    ),
    "HAVING on the result or on the column": (
        "SELECT t.f, SUM(t.b) AS b FROM raw.n AS t GROUP BY t.f HAVING SUM(t.b) > 5",
        "SELECT t.f, SUM(t.b) AS b FROM raw.n AS t GROUP BY t.f HAVING MAX(t.b) > 5",
    ),
    "a filter before or after an aggregate": (
        "SELECT t.f, SUM(t.b) AS v FROM raw.n AS t WHERE t.b > 2 GROUP BY t.f",
        "SELECT t.f, SUM(t.b) AS v FROM raw.n AS t GROUP BY t.f HAVING SUM(t.b) > 2",
    ),
    "a FILTER or a WHERE": (
        "SELECT t.f, COUNT(*) FILTER (WHERE t.a > 2) AS n FROM raw.n AS t GROUP BY t.f",
        "SELECT t.f, COUNT(*) AS n FROM raw.n AS t WHERE t.a > 2 GROUP BY t.f",
    ),
    "DISTINCT within an aggregate": (
        "SELECT SUM(t.c) AS v FROM raw.n AS t", "SELECT SUM(DISTINCT t.c) AS v FROM raw.n AS t"
    ),
    "DISTINCT of one column or of two": (
        "SELECT COUNT(DISTINCT t.a, t.b) AS v FROM raw.n AS t",
        "SELECT COUNT(DISTINCT t.a) AS v FROM raw.n AS t",
    ),
    "a filter of rolled up groups": (
        "SELECT q.a, q.n FROM (SELECT t.a, COUNT(*) AS n FROM raw.n AS t GROUP BY ROLLUP(t.a)) AS q WHERE q.a = 0",
        "SELECT q.a, q.n FROM (SELECT t.a, COUNT(*) AS n FROM raw.n AS t WHERE t.a = 0 GROUP BY ROLLUP(t.a)) AS q",
    ),
    "grouping sets twice": (
        "SELECT t.a, COUNT(*) AS n FROM raw.n AS t GROUP BY GROUPING SETS ((t.a), ())",
        "SELECT t.a, COUNT(*) AS n FROM raw.n AS t GROUP BY GROUPING SETS ((t.a), (), ())",
    ),
    "an alias of a CTE's column that nobody reads": (
        "WITH q AS (SELECT u.a AS x, x + 1 AS y FROM raw.u AS u) SELECT q.y FROM q",
        "WITH q AS (SELECT u.b AS x, x + 1 AS y FROM raw.u AS u) SELECT q.y FROM q",
    ),
    # Windows.
    "a parameter or the item's place": _value(
        "TRANSFORM(t.xs, (x, i) -> x * 10 + i)", "TRANSFORM(t.xs, (i, x) -> x * 10 + i)", _O
    ),
    "a parameter that hides a column": _value(
        "TRANSFORM(t.xs, id -> id + 1)", "TRANSFORM(t.xs, x -> id + 1)", _O
    ),
    "a parameter of the lambda around": _value(
        "TRANSFORM(t.xs, x -> AGGREGATE(t.ys, 0, (s, y) -> s + x))",
        "TRANSFORM(t.xs, x -> AGGREGATE(t.ys, 0, (s, x) -> s + x))",
        _O,
    ),
    "fields by parameters' names": _value(
        "TRANSFORM(ARRAY(t.st), p -> CAST(p.p AS STRING))",
        "TRANSFORM(ARRAY(t.st), q -> CAST(q.q AS STRING))",
        _O,
    ),
    "the order of a named window": (
        "SELECT t.id, SUM(t.a) OVER w AS v FROM raw.n AS t WINDOW w AS (PARTITION BY t.f ORDER BY t.id)",
        "SELECT t.id, SUM(t.a) OVER w AS v FROM raw.n AS t WINDOW w AS (PARTITION BY t.f ORDER BY t.c)",
    ),
    "two named windows": (
        "SELECT t.id, SUM(t.a) OVER w AS v FROM raw.n AS t WINDOW w AS (ORDER BY t.id), u AS (ORDER BY t.b)",
        "SELECT t.id, SUM(t.a) OVER u AS v FROM raw.n AS t WINDOW w AS (ORDER BY t.id), u AS (ORDER BY t.b)",
    ),
    "a frame of rows or of a range": _value(
        "SUM(t.c) OVER (ORDER BY t.c)",
        "SUM(t.c) OVER (ORDER BY t.c ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    ),
    "the last value": _value(
        "MAX(t.c) OVER (PARTITION BY t.f ORDER BY t.id)", "MAX(t.c) OVER (PARTITION BY t.f)"
    ),
    "a filter below or above a window": (
        "SELECT q.id, q.n FROM (SELECT t.id, COUNT(*) OVER () AS n, t.a FROM raw.n AS t) AS q WHERE q.a > 1",
        "SELECT t.id, COUNT(*) OVER () AS n FROM raw.n AS t WHERE t.a > 1",
    ),
    "DISTINCT below or above a window": (
        "SELECT DISTINCT t.id, COUNT(*) OVER () AS n FROM raw.n AS t",
        "SELECT q.id, COUNT(*) OVER () AS n FROM (SELECT DISTINCT id FROM raw.n) AS q",
    ),
    "RANK and ROW_NUMBER": _value(
        "RANK() OVER (ORDER BY t.c)", "DENSE_RANK() OVER (ORDER BY t.c)"
    ),
    "LAG by two": _value("LAG(t.a) OVER (ORDER BY t.id, t.c)", "LAG(t.a, 2) OVER (ORDER BY t.id, t.c)"),
    "LAG of NULL": _value(
        "LAG(t.a) OVER (ORDER BY t.id, t.c)", "LAG(t.a) IGNORE NULLS OVER (ORDER BY t.id, t.c)"
    ),
    # Joins.
    "a filter of the left side in ON": (
        "SELECT t.id, k.v FROM raw.n AS t LEFT JOIN raw.k AS k ON t.a = k.k AND t.b > 1",
        "SELECT t.id, k.v FROM raw.n AS t LEFT JOIN raw.k AS k ON t.a = k.k WHERE t.b > 1",
    ),
    "a filter of the right side in WHERE": (
        "SELECT t.id, k.v FROM raw.n AS t LEFT JOIN raw.k AS k ON t.a = k.k AND k.v = 'x'",
        "SELECT t.id, k.v FROM raw.n AS t LEFT JOIN raw.k AS k ON t.a = k.k WHERE k.v = 'x'",
    ),
    "an anti join's condition in WHERE": (
        "SELECT t.id FROM raw.n AS t LEFT ANTI JOIN raw.k AS k ON t.a = k.k AND t.b > 1",
        "SELECT t.id FROM raw.n AS t LEFT ANTI JOIN raw.k AS k ON t.a = k.k WHERE t.b > 1",
    ),
    "a semi join for a join": (
        "SELECT t.id FROM raw.n AS t LEFT SEMI JOIN raw.k AS k ON t.a = k.k",
        "SELECT t.id FROM raw.n AS t JOIN raw.k AS k ON t.a = k.k",
    ),
    "an IN for a join": (
        "SELECT t.id FROM raw.n AS t WHERE t.a IN (SELECT k FROM raw.k)",
        "SELECT t.id FROM raw.n AS t JOIN raw.k AS k ON t.a = k.k",
    ),
    "the key of USING": (
        "SELECT a, b, v FROM raw.n FULL JOIN (SELECT k AS a, v FROM raw.k) AS k USING (a)",
        "SELECT n.a, b, v FROM raw.n AS n FULL JOIN (SELECT k AS a, v FROM raw.k) AS k ON n.a = k.a",
    ),
    "a right join's key": (
        "SELECT t.a, k.v FROM raw.n AS t RIGHT JOIN raw.k AS k ON t.a = k.k",
        "SELECT k.k AS a, k.v FROM raw.n AS t RIGHT JOIN raw.k AS k ON t.a = k.k",
    ),
    "a join before or after an outer join": (
        "SELECT t.id, k.v FROM raw.n AS t LEFT JOIN raw.k AS k ON t.a = k.k JOIN raw.n AS s ON s.id = k.id",
        "SELECT t.id, k.v FROM raw.n AS t LEFT JOIN"
        " (SELECT k.k, k.v FROM raw.k AS k JOIN raw.n AS s ON s.id = k.id) AS k ON t.a = k.k",
    ),
    "a null-safe join": (
        "SELECT t.id, k.v FROM raw.n AS t JOIN raw.k AS k ON t.a = k.k",
        "SELECT t.id, k.v FROM raw.n AS t JOIN raw.k AS k ON t.a <=> k.k",
    ),
    "a constant below an outer join": (
        "SELECT t.id, k.x FROM raw.n AS t LEFT JOIN (SELECT k, 1 AS x FROM raw.k) AS k ON t.a = k.k",
        "SELECT t.id, 1 AS x FROM raw.n AS t LEFT JOIN raw.k AS k ON t.a = k.k",
    ),
    "a natural join of another column": (
        "SELECT n.id FROM raw.n AS n NATURAL JOIN raw.k AS k",
        "SELECT n.id FROM raw.n AS n JOIN raw.k AS k ON n.a = k.k",
    ),
    "a lateral view that keeps": (
        "SELECT t.id, x.e FROM raw.o AS t LATERAL VIEW EXPLODE(t.xs) x AS e",
        "SELECT t.id, x.e FROM raw.o AS t LATERAL VIEW OUTER EXPLODE(t.xs) x AS e",
    ),
    "EXISTS of an aggregate": _where(
        "EXISTS (SELECT k.id FROM raw.k AS k WHERE k.k = 77)",
        "EXISTS (SELECT MAX(k.id) FROM raw.k AS k WHERE k.k = 77)",
    ),
    "a correlated count": _value(
        "(SELECT COUNT(*) FROM raw.k AS k WHERE k.k = t.a)",
        "(SELECT NULLIF(COUNT(*), 0) FROM raw.k AS k WHERE k.k = t.a)",
    ),
    # Sets and rows.
    "UNION keeps one": (
        "SELECT a FROM raw.n UNION SELECT a FROM raw.n", "SELECT a FROM raw.n"
    ),
    "INTERSECT ALL": _sets("A_ INTERSECT B_", "A_ INTERSECT ALL B_"),
    "EXCEPT ALL": _sets("A_ EXCEPT C_", "A_ EXCEPT ALL C_"),
    "EXCEPT turned": _sets("A_ EXCEPT B_", "B_ EXCEPT A_"),
    "DISTINCT above a union of all": _sets("A_ UNION ALL B_", "A_ UNION B_"),
    "a LIMIT behind a set operation": (
        "(SELECT a FROM raw.n ORDER BY a LIMIT 2) UNION ALL SELECT 100",
        "SELECT a FROM raw.n UNION ALL SELECT 100 AS a ORDER BY a LIMIT 2",
    ),
    "a LIMIT moved": (
        "SELECT q.id FROM (SELECT id, a FROM raw.k JOIN (SELECT 1 AS a) ORDER BY id LIMIT 3) AS q WHERE q.id > 1",
        "SELECT q.id FROM (SELECT id, a FROM raw.k JOIN (SELECT 1 AS a) WHERE id > 1 ORDER BY id LIMIT 3) AS q",
    ),
}  # fmt: skip

SAME: Mapping[str, Pair] = {
    "brackets of a remainder": _value("t.a + t.b % 2", "t.a + (t.b % 2)"),
    "brackets of a remainder of a sum": _value("t.a % t.b * t.c", "(t.a % t.b) * t.c"),
    "operands of a sum beside a remainder": _value("t.a + t.b % 2", "t.b % 2 + t.a"),
    "brackets of bits": _where("t.a & 1 = 1", "(t.a & 1) = 1"),
    "brackets of bits in OR": _value("t.a | t.b & 1", "t.a | (t.b & 1)"),
    "brackets of text": _value("t.s || '-' || t.s", "(t.s || '-') || t.s"),
    "brackets of an intersection": _sets("A_ UNION B_ INTERSECT C_", "A_ UNION (B_ INTERSECT C_)"),
    "branches of a union beside an intersection": _sets(
        "A_ UNION B_ INTERSECT C_", "C_ INTERSECT B_ UNION A_"
    ),
    "a CTE of zipped arrays": (
        "SELECT t.id, ARRAYS_ZIP(t.xs, t.ys) AS v FROM raw.o AS t",
        "WITH q AS (SELECT id, xs, ys FROM raw.o) SELECT q.id, ARRAYS_ZIP(q.xs, q.ys) AS v FROM q",
    ),
    "a CTE of a structure": (
        "SELECT t.id, TO_JSON(STRUCT(t.a AS x, t.b)) AS v FROM raw.n AS t",
        "WITH q AS (SELECT id, a AS z, b FROM raw.n)"
        " SELECT q.id, TO_JSON(STRUCT(q.z AS x, q.b)) AS v FROM q",
    ),
    "a row in a list": _where("(t.a, t.b) IN ((1, 2), (5, 3))", "(t.a, t.b) IN ((5, 3), (1, 2))"),
    "a row in a list, of a CTE": (
        "SELECT t.id FROM raw.n AS t WHERE (t.a, t.b) IN ((1, 2))",
        "WITH q AS (SELECT id, a AS x, b AS y FROM raw.n) SELECT q.id FROM q WHERE (q.x, q.y) IN ((1, 2))",
    ),
    "grouping sets of a CTE": (
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY GROUPING SETS ((t.a, t.b), (t.a))",
        "WITH q AS (SELECT a AS x, b AS y FROM raw.n)"
        " SELECT q.x AS a, q.y AS b, COUNT(*) AS n FROM q GROUP BY GROUPING SETS ((q.x, q.y), (q.x))",
    ),
    "NOT LIKE": _where("t.s NOT LIKE 'a%'", "NOT (t.s LIKE 'a%')"),
    "NOT RLIKE": _where("t.s NOT RLIKE 'a'", "NOT t.s RLIKE 'a'"),
    "NOT IN": _where("t.a NOT IN (1, 2)", "NOT t.a IN (2, 1)"),
    "a digest of the default length": _value("SHA2(t.s, 0)", "SHA2(t.s, 256)"),
    "three letters of a month": _value("TRUNC(t.d, 'MON')", "TRUNC(t.d, 'MM')", _O),
    "two letters of a year": _value("TRUNC(t.d, 'yy')", "TRUNC(t.d, 'YEAR')", _O),
    "a month of a time": _value("DATE_TRUNC('mon', t.ts)", "DATE_TRUNC('MONTH', t.ts)", _O),
    "NOT BETWEEN": _where("t.a NOT BETWEEN 1 AND 2", "NOT (t.a >= 1 AND t.a <= 2)"),
    "BETWEEN": _where("t.a BETWEEN 1 AND 5 AND t.f", "t.f AND t.a >= 1 AND 5 >= t.a"),
    "IFNULL": _value("IFNULL(t.a, 0)", "COALESCE(t.a, 0)"),
    "CASE to IF": _value("CASE WHEN t.a > 1 THEN 1 ELSE 0 END", "IF(t.a > 1, 1, 0)"),
    "ELSE NULL": _value("CASE WHEN t.a > 1 THEN 1 END", "IF(t.a > 1, 1, NULL)"),
    "two names of one comparison": _where("t.a <> t.b", "t.a != t.b"),
    "an alias of the table": (
        "SELECT t.id, t.a FROM raw.n AS t", "SELECT other.id, other.a FROM raw.n AS other"
    ),
    "a CTE to a subquery": (
        "WITH q AS (SELECT id, a FROM raw.n WHERE b > 1) SELECT q.id, k.v FROM q JOIN raw.k AS k ON q.a = k.k",
        "SELECT x.id, y.v FROM (SELECT id, a FROM raw.n WHERE b > 1) AS x JOIN raw.k AS y ON y.k = x.a",
    ),
    "a CTE written into the query": (
        "WITH q AS (SELECT id, a FROM raw.n WHERE b > 1) SELECT q.id, k.v FROM q JOIN raw.k AS k ON q.a = k.k",
        "SELECT n.id, k.v FROM raw.n AS n JOIN raw.k AS k ON n.a = k.k WHERE n.b > 1",
    ),
    "inner joins in another order": (
        "SELECT n.id, k.v, o.d FROM raw.n AS n JOIN raw.k AS k ON n.a = k.k JOIN raw.o AS o ON o.id = n.id",
        "SELECT n.id, k.v, o.d FROM raw.o AS o JOIN raw.n AS n ON n.id = o.id JOIN raw.k AS k ON k.k = n.a",
    ),
    "outer joins in another order": (
        "SELECT n.id, k.v, o.d FROM raw.n AS n LEFT JOIN raw.k AS k ON n.a = k.k LEFT JOIN raw.o AS o ON o.id = n.id",
        "SELECT n.id, k.v, o.d FROM raw.n AS n LEFT JOIN raw.o AS o ON o.id = n.id LEFT JOIN raw.k AS k ON n.a = k.k",
    ),
    "an alias in POSEXPLODE": (
        "SELECT t.id, x.p, x.e FROM raw.o AS t LATERAL VIEW POSEXPLODE(t.xs) x AS p, e",
        "SELECT t.id, y.n AS p, y.w AS e FROM raw.o AS t LATERAL VIEW POSEXPLODE(t.xs) y AS n, w",
    ),
    "branches of a union": (
        "SELECT a FROM raw.n UNION ALL SELECT k AS a FROM raw.k",
        "SELECT k AS a FROM raw.k UNION ALL SELECT a FROM raw.n",
    ),
    "keys of GROUP BY": (
        "SELECT t.a, t.b, COUNT(*) AS n FROM raw.n AS t GROUP BY t.a, t.b",
        "SELECT t.a, t.b, COUNT(1) AS n FROM raw.n AS t GROUP BY t.b, t.a",
    ),
    "DISTINCT to GROUP BY": (
        "SELECT DISTINCT t.a, t.b FROM raw.n AS t", "SELECT t.a, t.b FROM raw.n AS t GROUP BY 1, 2"
    ),
    "HAVING to a filter around": (
        "SELECT t.a, COUNT(*) AS n FROM raw.n AS t GROUP BY t.a HAVING COUNT(*) > 1",
        "SELECT q.a, q.n FROM (SELECT a, COUNT(*) AS n FROM raw.n GROUP BY a) AS q WHERE q.n > 1",
    ),
    "a column of a union that nobody reads": (
        "SELECT q.a FROM (SELECT a, b FROM raw.n UNION ALL SELECT k, id FROM raw.k) AS q",
        "SELECT q.a FROM (SELECT a FROM raw.n UNION ALL SELECT k FROM raw.k) AS q",
    ),
    "a lambda": _value("TRANSFORM(t.xs, x -> x + 1 % 2)", "TRANSFORM(t.xs, x -> x + (1 % 2))", _O),
    "a window's default frame": _value(
        "SUM(t.c) OVER (ORDER BY t.a)",
        "SUM(t.c) OVER (ORDER BY t.a RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    ),
    "rows in another order": (
        "SELECT q.x, q.y FROM VALUES (1, 'a'), (-2, NULL) AS q(x, y)",
        "SELECT v.x, v.y FROM VALUES (-2, NULL), (1, 'a') AS v(x, y)",
    ),
    "a parameter of a lambda": _value(
        "TRANSFORM(t.xs, x -> x + t.id)", "TRANSFORM(t.xs, item -> item + t.id)", _O
    ),
    "parameters of nested lambdas": _value(
        "TRANSFORM(t.xs, x -> AGGREGATE(t.ys, x, (s, y) -> s * 2 + y))",
        "TRANSFORM(t.xs, y -> AGGREGATE(t.ys, y, (x, s) -> x * 2 + s))",
        _O,
    ),
    "a field by a parameter's name": _value(
        "TRANSFORM(ARRAY(t.st), p -> p.p)", "TRANSFORM(ARRAY(t.st), q -> q.p)", _O
    ),
    "a named window": (
        "SELECT t.id, SUM(t.a) OVER w AS v FROM raw.n AS t WINDOW w AS (PARTITION BY t.f ORDER BY t.id)",
        "SELECT t.id, SUM(t.a) OVER (PARTITION BY t.f ORDER BY t.id) AS v FROM raw.n AS t",
    ),
    "MINUS": _sets("A_ MINUS B_", "A_ EXCEPT B_"),
}  # fmt: skip
