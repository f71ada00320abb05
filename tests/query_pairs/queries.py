"""Grammars of whole queries: what stands where, under which name, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.query_pairs.choices import Choices
from tests.query_pairs.expressions import expression

Grammar = Callable[[Choices], str]
_SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")


def scalars(c: Choices) -> str:
    """Expressions in the select list and in a filter."""
    kind = c.pick("kind", ("int", "int", "boolean", "boolean", "string", "date", "array"))
    value = expression(c.at("value"), kind, c.pick("depth", (2, 1, 3)))
    where = c.pick("where", ("", "", f" WHERE {expression(c.at('filter'), 'boolean', 2)}"))
    return f"SELECT id, {value} AS x FROM t{where}"


def filters(c: Choices) -> str:
    """Conditions that only decide which rows stay."""
    parts = [expression(c.at(f"filter{n}"), "boolean", 1) for n in range(3)]
    one, two, three = c.order("order", [f"({part})" for part in parts])
    where = c.spell(
        "where",
        (
            f"{one} AND {two} AND {three}",
            f"{one} AND ({two} AND {three})",
            f"{one} AND NOT (NOT {two} OR NOT {three})",
            f"{one} AND COALESCE({two} AND {three}, false)",
            f"{one} AND ({two} AND {three}) IS TRUE",
            f"{one} AND ({two} AND {three}) IS NOT FALSE",
            f"{one} OR {two} AND {three}",
        ),
    )
    return c.spell(
        "nesting",
        (
            f"SELECT id, s FROM t WHERE {where}",
            f"SELECT id, s FROM (SELECT * FROM t WHERE {two} AND {three}) WHERE {one}",
            f"WITH f AS (SELECT * FROM t WHERE {where}) SELECT f.id, f.s FROM f",
            f"SELECT id, s FROM t GROUP BY id, s, p, q, a, b, c, r, d, e, xs, ys HAVING {where}",
        ),
    )


def set_operations(c: Choices) -> str:
    """Three or four branches, in any grouping."""
    branches = [_branch(c.at(f"branch{n}")) for n in range(4)]
    one, two, three, four = branches
    first, second, third = (c.pick(f"operation{n}", _SETS) for n in range(3))
    body = c.spell(
        "grouping",
        (
            f"{one} {first} {two} {second} {three}",
            f"({one} {first} {two}) {second} {three}",
            f"{one} {first} ({two} {second} {three})",
            f"{two} {first} {one} {second} {three}",
            f"SELECT * FROM ({one} {first} {two}) AS z {second} {three}",
            f"WITH z AS ({one} {first} {two}) SELECT a, b FROM z {second} {three}",
            f"{one} {first} {two} {second} {three} {third} {four}",
            f"({one} {first} {two} {second} {three}) {third} {four}",
            f"({one} {first} {two}) {second} ({three} {third} {four})",
            f"{one} {first} ({two} {second} {three}) {third} {four}",
        ),
    )
    return c.pick("outside", (body, body, f"SELECT DISTINCT b, a FROM ({body}) AS y WHERE a > 0"))


def _branch(c: Choices) -> str:
    table = c.pick("table", ("t", "u", "w"))
    one, other = c.order("columns", ["a", "b"])
    names = c.spell("names", ("", " AS a", " AS x"))
    return c.spell(
        "branch",
        (
            f"SELECT {one}{names}, {other} FROM {table}",
            f"(SELECT {one}{names}, {other} FROM {table})",
            f"SELECT {one}, {other} FROM {table} WHERE a > 0",
            f"SELECT DISTINCT {one}, {other} FROM {table}",
        ),
    )


def names(c: Choices) -> str:
    """Values that carry the names of what they are made from."""
    x, y = c.spell("x", ("x", "v", "X", "y", "a")), c.spell("y", ("z", "w", "Z"))
    field = c.spell("field", ("n", "N", "m"))
    columns = c.order("columns", [f"xs AS {x}", f"ys AS {y}", "id", "st"])
    value = c.pick(
        "value",
        (
            f"ARRAYS_ZIP(q.{x}, q.{y})",
            f"STRUCT(q.{x}, q.{y})",
            f"STRUCT(q.{x} AS {field}, q.{y})",
            f"NAMED_STRUCT('{field}', q.{x}, 'o', q.{y})",
            f"NAMED_STRUCT('{field}', q.st.A, 'o', q.st)",
            f"MAP('{field}', q.{x})",
            f"STRUCT(q.id AS {field}, q.st AS o)",
            f"ARRAY(STRUCT(q.id AS {field}))",
            "STRUCT(q.*)",
            f"NAMED_STRUCT('{field}', q.id).{c.spell('access', ('n', 'N', 'm'))}",
            f"TRANSFORM(q.{x}, {y} -> STRUCT({y}))",
            f"TRANSFORM(q.{x}, {y} -> STRUCT({y} AS {field}, q.id))",
        ),
    )
    shown = c.pick("shown", (f"TO_JSON(ARRAY({value}))", value, f"CAST({value} AS STRING)"))
    source = f"SELECT {', '.join(columns)} FROM t"
    return c.spell(
        "nesting",
        (
            f"SELECT id, {shown} AS j FROM ({source}) AS q",
            f"WITH q AS ({source}) SELECT id, {shown} AS j FROM q",
            f"SELECT q.id, {shown} AS j FROM ({source}) AS q",
        ),
    )


def resolution(c: Choices) -> str:
    """Names that could be of two things: an alias, a column, a CTE, a table outside."""
    name = c.spell("name", ("x", "b", "A", "c", "`b`", "`x`", "B"))
    other = c.spell("other", ("x", "b", "a", "X"))
    source = c.spell("source", ("t", "T", "(SELECT * FROM t)", "(SELECT a, b, c, id FROM t)"))
    return c.pick(
        "query",
        (
            f"SELECT id, a + 1 AS {name}, {other} + 1 AS y FROM (SELECT *, c AS x FROM t) AS t",
            f"SELECT a % 2 AS {name}, COUNT(*) AS n FROM {source} AS t GROUP BY {name}",
            f"SELECT a % 2 AS {name}, COUNT(*) AS n FROM {source} AS t GROUP BY a % 2, b",
            f"SELECT b, SUM(a) AS {name} FROM {source} AS t GROUP BY b HAVING {name} > 1",
            f"SELECT a, b AS {name} FROM {source} AS t ORDER BY {other}, 1, 2 LIMIT 2",
            f"SELECT a, b AS {name} FROM (SELECT a, b, a AS x FROM t) AS t ORDER BY {other}, b LIMIT 2",
            f"WITH u AS (SELECT a, b FROM {source} AS t) SELECT {other} FROM (SELECT *, 1 AS x FROM u)",
            f"WITH u AS (SELECT a, b, 1 AS x FROM u) SELECT {other} AS y FROM u",
            f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {other} = t.a)".replace(
                "x", "k"
            ),
            "SELECT id FROM t WHERE a IN (SELECT {} FROM u)".format(
                c.spell("in", ("a", "c", "u.a", "t.c"))
            ),
            f"SELECT * FROM (SELECT a AS {name}, b AS y FROM t) AS q",
            f"SELECT q.* FROM (SELECT b AS y, a AS {name} FROM {source} AS t) AS q",
        ),
    )


def generators(c: Choices) -> str:
    """Functions that make rows, whose aliases go by place."""
    x, p = c.order("aliases", [c.spell("x", ("x", "el", "id")), c.spell("p", ("p", "pos"))])
    outer = c.spell("outer", ("", "OUTER "))
    made, list_ = c.pick(
        "generator",
        (
            ("POSEXPLODE(xs)", f"{x}, {p}"),
            ("INLINE(ARRAY(STRUCT(a, b), STRUCT(b, c)))", f"{x}, {p}"),
            ("INLINE(ARRAYS_ZIP(xs, ys))", f"{x}, {p}"),
            ("STACK(2, a, b, c, id)", f"{x}, {p}"),
            ("STACK(2, a, c, b, id)", f"{x}, {p}"),
            ("EXPLODE(MAP(a, b))", f"{x}, {p}"),
            ("EXPLODE(MAP(COALESCE(b, 0), a))", f"{x}, {p}"),
        ),
    )
    names = {"x": x, "p": p}
    first, second = c.order("results", ["x", "p"])
    results = f"l.{names['x']} AS {first}, l.{names['p']} AS {second}"
    second_view = c.pick("second", ("", "", " LATERAL VIEW EXPLODE(ys) m AS y"))
    return c.spell(
        "query",
        (
            f"SELECT t.id, {results} FROM t LATERAL VIEW {outer}{made} l AS {list_}{second_view}",
            f"SELECT t.id, {results} FROM t LATERAL VIEW {made} l AS {list_}{second_view}",
            f"SELECT t.id, {results} FROM t, LATERAL {made} AS l({list_})",
            f"SELECT t.id, {results} FROM t CROSS JOIN LATERAL {made} AS l({list_})",
            f"SELECT t.id, {results} FROM t LEFT JOIN LATERAL {made} AS l({list_}) ON true",
            f"SELECT l.id, {results} FROM (SELECT id, {made} AS ({list_}) FROM t) AS l",
        ),
    )


def values(c: Choices) -> str:
    """Rows that are written down, and names that go by place."""
    one, other = c.order("names", ["k", "v"])
    rows = c.order("rows", ["(1, 2)", "(2, NULL)", "(3, 1)"])
    if c.spell("twice", (False, True)):
        rows = [*rows, rows[0]]
    listed = ", ".join(rows)
    source = c.spell(
        "source",
        (
            f"(VALUES {listed}) AS m({one}, {other})",
            f"VALUES {listed} AS m({one}, {other})",
            f"(SELECT col1 AS {one}, col2 AS {other} FROM VALUES {listed}) AS m",
            f"(SELECT * FROM VALUES {listed} AS n({one}, {other})) AS m",
        ),
    )
    return c.pick(
        "query",
        (
            f"SELECT m.k, m.v FROM {source}",
            f"SELECT t.id, m.v FROM t JOIN {source} ON t.a = m.k",
            f"SELECT * FROM {source} WHERE k > 1",
            f"SELECT id FROM t WHERE a IN (SELECT k FROM {source})",
        ),
    )


def groupings(c: Choices) -> str:
    """GROUP BY with all that may stand in it."""
    one, other = c.order("keys", ["p", "b"])
    clause = c.spell(
        "clause",
        (
            f"{one}, {other}",
            f"ROLLUP ({one}, {other})",
            f"CUBE ({one}, {other})",
            f"{one}, ROLLUP ({other})",
            f"{one}, CUBE ({other})",
            f"GROUPING SETS (({one}, {other}), ({one}), ())",
            f"GROUPING SETS (({one}), ({other}))",
            f"GROUPING SETS ({one}, {other}, ())",
            f"{one}, {other} WITH ROLLUP",
            f"{one}, {other} GROUPING SETS (({one}, {other}), ({other}))",
            f"ROLLUP (({one}, {other}))",
        ),
    )
    value = c.pick(
        "value",
        (
            "SUM(a)",
            "COUNT(*)",
            "GROUPING_ID()",
            f"GROUPING_ID({one}, {other})",
            f"GROUPING({one})",
            "GROUPING(b)",
            "COUNT(DISTINCT a)",
        ),
    )
    results = c.order("results", ["p", "b", f"{value} AS x"])
    having = c.pick("having", ("", "", " HAVING p IS NULL", " HAVING COUNT(*) > 1"))
    where = c.pick("where", ("", "", " WHERE p", " WHERE b > 0"))
    return f"SELECT {', '.join(results)} FROM t{where} GROUP BY {clause}{having}"


def aggregates(c: Choices) -> str:
    """What is summed up, over which rows."""
    value = expression(c.at("value"), "int", 1)
    test = expression(c.at("test"), "boolean", 1)
    name = c.pick("function", ("SUM", "COUNT", "MAX", "MIN", "AVG", "ANY_VALUE", "COLLECT_SET"))
    total = c.spell(
        "total",
        (
            f"{name}({value})",
            f"{name}(DISTINCT {value})",
            f"{name}({value}) FILTER (WHERE {test})",
            f"{name}(CASE WHEN {test} THEN {value} END)",
            f"{name}(IF({test}, {value}, NULL))",
            f"{name}(CASE WHEN {test} THEN {value} ELSE 0 END)",
            f"{name}(COALESCE({value}, 0))",
            f"COALESCE({name}({value}), 0)",
        ),
    )
    total = f"SORT_ARRAY({total})" if total.startswith("COLLECT") else total
    condition = expression(c.at("condition"), "boolean", 1).replace("p", "b").replace("q", "b")
    return c.spell(
        "query",
        (
            f"SELECT b, {total} AS x FROM t GROUP BY b",
            f"SELECT b, {total} AS x FROM t WHERE {test} GROUP BY b",
            f"SELECT b, {total} AS x FROM t GROUP BY b HAVING {condition.replace('a', 'b')}",
            f"SELECT {total} AS x FROM t",
            f"SELECT {total} AS x FROM t HAVING COUNT(*) > 0",
            f"SELECT DISTINCT b, {total} AS x FROM t GROUP BY b",
            f"SELECT b, {total} AS x FROM t GROUP BY b, b",
            f"SELECT b, {total} AS x FROM t GROUP BY ALL",
            f"SELECT b, x FROM (SELECT b, a % 2 AS m, {total} AS x FROM t GROUP BY b, a % 2)",
        ),
    )


def windows(c: Choices) -> str:
    """Partitions, orders and frames."""
    keys = ", ".join(c.order("partition", ["b", "p"])[: c.pick("keys", (1, 2, 0))])
    order = c.pick("column", ("id", "a", "d"))
    direction = c.spell("direction", ("", " ASC", " DESC"))
    nulls = c.spell("nulls", ("", " NULLS FIRST", " NULLS LAST"))
    frame = c.spell(
        "frame",
        (
            "",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS UNBOUNDED PRECEDING",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ),
    )
    call = c.pick(
        "call",
        (
            *(
                "SUM(a)",
                "COUNT(*)",
                "COUNT(a)",
                "MAX(a)",
                "RANK()",
                "DENSE_RANK()",
                "LAST_VALUE(a)",
            ),
            *("FIRST_VALUE(a)", "PERCENT_RANK()", "CUME_DIST()", "FIRST_VALUE(a, true)"),
            *("FIRST_VALUE(a) IGNORE NULLS", "SUM(DISTINCT a)", "ROW_NUMBER()", "LAG(a)"),
            *("LAG(a, 1)", "LEAD(a, -1)", "LAG(a, 1, 0)", "LEAD(a)", "LAG(a) IGNORE NULLS"),
        ),
    )
    by = f"PARTITION BY {keys} " if keys else ""
    ordered = c.spell("ordered", (True, True, False))
    tail = c.pick("tie", (", id, a, b", ""))
    inside = f"{by}ORDER BY {order}{direction}{nulls}{tail}{frame}" if ordered else by.strip()
    return c.spell(
        "query",
        (
            f"SELECT id, {call} OVER ({inside}) AS x FROM t",
            f"SELECT id, {call} OVER w AS x FROM t WINDOW w AS ({inside})",
            f"SELECT id, x FROM (SELECT *, {call} OVER ({inside}) AS x FROM t)",
            f"SELECT id, x FROM (SELECT *, {call} OVER ({inside}) AS x FROM t) WHERE b > 0",
            f"SELECT id, {call} OVER ({inside}) AS x FROM t WHERE b > 0",
            f"SELECT DISTINCT id, {call} OVER ({inside}) AS x FROM t",
        ),
    )


def joins(c: Choices) -> str:
    """Ways of joining, and where a condition stands."""
    way = c.pick(
        "way",
        (
            *("JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN"),
            *("LEFT SEMI JOIN", "LEFT ANTI JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN"),
        ),
    )
    extra = c.pick("extra", ("u.b > 0", "t.b > 0", "t.b = u.b", "u.k IS NULL", "u.k = 'x'"))
    one_sided = "SEMI" in way or "ANTI" in way
    equal = c.spell("equal", ("t.a = u.a", "u.a = t.a", "t.a <=> u.a", "NOT t.a <> u.a"))
    key = "t.a" if one_sided else c.spell("key", ("t.a", "u.a", "COALESCE(t.a, u.a)"))
    other = "t.b" if one_sided else c.pick("other", ("u.k", "t.b", "u.b"))
    left, right = (
        "t",
        c.spell("right", ("u", "(SELECT * FROM u) AS u", "(SELECT * FROM u WHERE b > 0) AS u")),
    )
    on = c.spell(
        "on", (f"ON {equal}", f"ON {equal} AND {extra}", "USING (a)", f"ON {extra} AND {equal}")
    )
    if on.startswith("USING"):
        key = (
            c.spell("merged", ("a", "t.a")) if one_sided else c.spell("merged", ("a", "t.a", "u.a"))
        )
    if not one_sided and c.spell("turned", (False, False, True)):
        left, right = right, left
        way = c.spell("turn", (way.replace("LEFT", "RIGHT"), way, way.replace("RIGHT", "LEFT")))
    where = "" if one_sided else c.spell("where", ("", "", f" WHERE {extra}", f" WHERE {key} = 1"))
    third = c.pick(
        "third", ("", "", " JOIN w ON w.a = t.a", " LEFT JOIN w ON w.a = t.a AND w.b > 0")
    )
    return f"SELECT t.id, {key} AS x, {other} AS y FROM {left} {way} {right} {on}{third}{where}"


def subqueries(c: Choices) -> str:
    """Subqueries in a filter and in the select list."""
    equal = c.spell("equal", ("u.a = t.a", "t.a = u.a", "u.a <=> t.a", "u.a = a"))
    extra = c.pick("extra", ("", " AND u.b > 0", " AND u.b > t.b", " AND u.k = 'x'"))
    inner = f"u WHERE {equal}{extra}"
    plain = c.pick("plain", ("u", "u WHERE u.b > 0", "u WHERE a IS NOT NULL", "u WHERE u.k = t.s"))
    no = c.spell("no", ("", "NOT "))
    return c.spell(
        "query",
        (
            f"SELECT id FROM t WHERE {no}EXISTS (SELECT 1 FROM {inner})",
            f"SELECT id FROM t WHERE {no}EXISTS (SELECT u.b, NULL FROM {inner})",
            f"SELECT id FROM t WHERE {no}EXISTS (SELECT MAX(u.b) FROM {inner})",
            f"SELECT id FROM t WHERE {no}EXISTS (SELECT 1 FROM {inner} LIMIT 1)",
            f"SELECT id FROM t WHERE {no}EXISTS (SELECT u.a FROM {inner} GROUP BY u.a)",
            f"SELECT id FROM t WHERE {no}t.a IN (SELECT u.a FROM {plain})",
            f"SELECT id FROM t WHERE t.a {no}IN (SELECT DISTINCT u.a FROM {plain})",
            f"SELECT id FROM t WHERE {no}(t.a, t.b) IN (SELECT u.a, u.b FROM {plain})",
            f"SELECT id FROM t WHERE (SELECT COUNT(*) FROM {inner}) > 0",
            f"SELECT id FROM t WHERE COALESCE((SELECT MAX(u.a) FROM {inner}), 0) > 0",
            f"SELECT id, (SELECT MAX(u.b) FROM {inner}) AS x FROM t",
            f"SELECT id, (SELECT COUNT(u.b) FROM {inner}) AS x FROM t",
            f"SELECT id, COALESCE((SELECT COUNT(u.b) FROM {inner}), 0) AS x FROM t",
            f"SELECT id, {no}EXISTS (SELECT 1 FROM {inner}) AS x FROM t",
            f"SELECT id, {no}t.a IN (SELECT u.a FROM {plain}) AS x FROM t",
            f"SELECT id FROM t LEFT SEMI JOIN u ON {equal}{extra}",
            f"SELECT id FROM t LEFT ANTI JOIN u ON {equal}{extra}",
        ),
    )


def pivots(c: Choices) -> str:
    """PIVOT and UNPIVOT."""
    x, y = c.spell("names", (("x", "y"), ("y", "x")))
    one, other = c.spell("values", (("1", "2"), ("2", "1")))
    source = c.spell(
        "source",
        ("SELECT p, b, a FROM t", "SELECT b, a, p FROM t", "SELECT p, b, a, s FROM t"),
    )
    call = c.pick("call", ("SUM(a)", "COUNT(a)", "MAX(a)", "COUNT(*)"))
    columns = ", ".join(c.order("columns", ["a", "b"]))
    nulls = c.spell("nulls", ("", "INCLUDE NULLS ", "EXCLUDE NULLS "))
    return c.pick(
        "query",
        (
            f"SELECT * FROM ({source}) PIVOT ({call} FOR b IN ({one} AS {x}, {other} AS {y}))",
            f"SELECT p, {x}, {y} FROM ({source}) PIVOT ({call} AS n FOR b IN ({one} AS {x}, {other} AS {y}))",
            f"SELECT p, x_n FROM ({source}) PIVOT ({call} AS n, MAX(a) AS m FOR b IN ({one} AS {x}, {other} AS {y}))",
            f"SELECT id, {x}, {y} FROM (SELECT id, a, b FROM t) UNPIVOT {nulls}({x} FOR {y} IN ({columns}))",
            f"SELECT id, x, y FROM (SELECT id, a, b FROM t) UNPIVOT {nulls}({x} FOR {y} IN (a AS {'xy'[x == 'y']}, b))",
        ),
    )


_CALLS: Mapping[str, tuple[str, ...]] = {
    "a, b": (
        *(
            "COALESCE",
            "NULLIF",
            "GREATEST",
            "LEAST",
            "MOD",
            "PMOD",
            "NVL",
            "IFNULL",
            "POW",
            "POWER",
        ),
        *(
            "SHIFTLEFT",
            "SHIFTRIGHT",
            "SHIFTRIGHTUNSIGNED",
            "ATAN2",
            "HYPOT",
            "ROUND",
            "BROUND",
            "DIV",
        ),
        *(
            "EQUAL_NULL",
            "TRY_ADD",
            "TRY_SUBTRACT",
            "TRY_DIVIDE",
            "LOG",
            "FORMAT_NUMBER",
            "MAP",
            "ARRAY",
        ),
    ),
    "s, r": (
        *("CONCAT", "INSTR", "LOCATE", "POSITION", "STARTSWITH", "ENDSWITH", "CONTAINS", "RLIKE"),
        *("REGEXP", "REGEXP_LIKE", "LEVENSHTEIN", "SPLIT", "CONCAT_WS", "REPLACE", "FIND_IN_SET"),
        *(
            "NULLIF",
            "COALESCE",
            "STRPOS",
            "CHARINDEX",
            "REGEXP_COUNT",
            "TRANSLATE",
            "LTRIM",
            "RTRIM",
        ),
    ),
    "s": (
        *(
            "UPPER",
            "UCASE",
            "LOWER",
            "LCASE",
            "INITCAP",
            "TRIM",
            "LTRIM",
            "RTRIM",
            "BTRIM",
            "REVERSE",
        ),
        *(
            "LENGTH",
            "LEN",
            "CHAR_LENGTH",
            "CHARACTER_LENGTH",
            "OCTET_LENGTH",
            "BIT_LENGTH",
            "ASCII",
        ),
        *("MD5", "SHA", "SHA1", "CRC32", "HASH", "XXHASH64", "STRING", "SOUNDEX", "BASE64", "HEX"),
        *("ISNULL", "ISNOTNULL", "TO_DATE", "TO_TIMESTAMP", "TRY_TO_TIMESTAMP", "INT", "DOUBLE"),
    ),
    "a": (
        *(
            "ABS",
            "NEGATIVE",
            "POSITIVE",
            "SIGN",
            "SIGNUM",
            "CEIL",
            "CEILING",
            "FLOOR",
            "ROUND",
            "BROUND",
        ),
        *(
            "STRING",
            "BOOLEAN",
            "INT",
            "BIGINT",
            "DOUBLE",
            "EXP",
            "LN",
            "LOG",
            "LOG10",
            "LOG2",
            "SQRT",
        ),
        *(
            "BIT_COUNT",
            "BIN",
            "HEX",
            "CHR",
            "CHAR",
            "FACTORIAL",
            "CBRT",
            "ISNULL",
            "TYPEOF",
            "RINT",
        ),
    ),
    "d": (
        *("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFMONTH", "DAYOFWEEK", "WEEKDAY", "DAYOFYEAR"),
        *("WEEKOFYEAR", "LAST_DAY", "UNIX_DATE", "TO_DATE", "DATE", "TIMESTAMP", "TO_TIMESTAMP"),
        *("HOUR", "UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP", "STRING", "TO_TIMESTAMP_NTZ", "EXTRACT"),
    ),
    "d, a": ("DATE_ADD", "DATEADD", "DATE_SUB", "ADD_MONTHS", "MONTHS_BETWEEN", "TRUNC"),
    "d, e": ("DATEDIFF", "DATE_DIFF", "MONTHS_BETWEEN", "GREATEST", "LEAST", "NULLIF", "COALESCE"),
    "xs": (
        *(
            "SIZE",
            "CARDINALITY",
            "ARRAY_SIZE",
            "ARRAY_MAX",
            "ARRAY_MIN",
            "SORT_ARRAY",
            "ARRAY_SORT",
        ),
        *("ARRAY_DISTINCT", "REVERSE", "ARRAY_COMPACT", "TO_JSON", "HASH", "FLATTEN"),
    ),
    "xs, a": (
        *(
            "ELEMENT_AT",
            "TRY_ELEMENT_AT",
            "GET",
            "ARRAY_CONTAINS",
            "ARRAY_POSITION",
            "ARRAY_REMOVE",
        ),
        *("ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_REPEAT"),
    ),
    "xs, ys": (
        *(
            "CONCAT",
            "ARRAY_UNION",
            "ARRAY_INTERSECT",
            "ARRAY_EXCEPT",
            "ARRAYS_OVERLAP",
            "ARRAYS_ZIP",
        ),
        *("EQUAL_NULL", "MAP_FROM_ARRAYS"),
    ),
}
_TOTALS = (
    *("SUM", "AVG", "MEAN", "MIN", "MAX", "COUNT", "COUNT_IF", "STD", "STDDEV", "STDDEV_SAMP"),
    *("STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP", "SKEWNESS", "KURTOSIS", "MEDIAN", "MODE"),
    *("BIT_AND", "BIT_OR", "BIT_XOR", "TRY_SUM", "TRY_AVG", "APPROX_COUNT_DISTINCT", "ANY_VALUE"),
)
_TRUTH_TOTALS = ("BOOL_AND", "EVERY", "BOOL_OR", "SOME", "ANY", "COUNT_IF", "MAX", "MIN", "COUNT")


def functions(c: Choices) -> str:
    """Calls of one function or of another one with the same arguments."""
    given = c.pick("arguments", (*_CALLS, *_CALLS, "total", "truth"))
    if given == "total":
        return f"SELECT b, {c.spell('total', _TOTALS)}(a) AS x FROM t GROUP BY b"
    if given == "truth":
        return f"SELECT b, {c.spell('truth', _TRUTH_TOTALS)}(p) AS x FROM t GROUP BY b"
    name = c.spell(f"name of {given}", _CALLS[given])
    arguments = ", ".join(c.order("order", given.split(", ")))
    return f"SELECT id, {name}({arguments}) AS x FROM t"


GRAMMARS: Mapping[str, Grammar] = {
    grammar.__name__: grammar
    for grammar in (
        *(scalars, filters, set_operations, names, resolution, generators, values, groupings),
        *(aggregates, windows, joins, subqueries, pivots, functions),
    )
}
