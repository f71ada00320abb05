"""Grammars of queries in which a name or a place decides what a value is of."""

from __future__ import annotations

from collections.abc import Mapping

from tests.query_pairs.choices import Choices


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
            f"(q.{x}, q.{y})",
            f"(q.{x}, 1)",
            f"CAST(STRUCT(q.id) AS STRUCT<{field}: INT>)",
            f"FROM_JSON('{{\"n\":1}}', '{field} INT')",
        ),
    )
    shown = c.pick("shown", (f"TO_JSON(ARRAY({value}))", value, f"CAST({value} AS STRING)"))
    source = f"SELECT {', '.join(columns)} FROM t"
    other = value.replace(f"'{field}'", "'z'").replace(f" AS {field}", " AS z")
    return c.spell(
        "nesting",
        (
            f"SELECT id, {value} AS j FROM ({source}) AS q UNION ALL SELECT id, {other} FROM ({source}) AS q",
            f"SELECT id, {other} AS j FROM ({source}) AS q UNION ALL SELECT id, {value} FROM ({source}) AS q",
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
