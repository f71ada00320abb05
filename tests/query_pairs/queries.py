"""Grammars of whole queries: what stands where, under which name, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from tests.query_pairs.choices import Choices
from tests.query_pairs.constructs import (
    all_groups,
    bits,
    cuts,
    joins_by_names,
    null_logic,
    ranges,
    structs,
    typed_sets,
)
from tests.query_pairs.expressions import expression
from tests.query_pairs.names_and_places import functions, generators, names, resolution, values

Grammar = Callable[[Choices], str]
_SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")


def set_operation_pairs() -> Iterator[tuple[str, str, str]]:
    """Name and both texts: two set operations side by side, grouped and turned in each way."""
    x, y, z = (f"SELECT a, b FROM {table}" for table in "tuw")
    for one, other in product(_SETS, repeat=2):
        flat = f"{x} {one} {y} {other} {z}"
        left, right = f"({x} {one} {y}) {other} {z}", f"{x} {one} ({y} {other} {z})"
        yield f"{one} {other} left", flat, left
        yield f"{one} {other} right", flat, right
        yield f"{one} {other} both", left, right
        yield f"{one} {other} first swapped", flat, f"{y} {one} {x} {other} {z}"
        yield f"{one} {other} last swapped", flat, f"{x} {one} {z} {other} {y}"
        yield (
            f"{one} {other} in a CTE",
            flat,
            f"WITH v AS ({x} {one} {y}) SELECT * FROM v {other} {z}",
        )
        yield (
            f"{one} {other} in a subquery",
            flat,
            f"SELECT * FROM ({x} {one} {y}) AS v {other} {z}",
        )


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


GRAMMARS: Mapping[str, Grammar] = {
    grammar.__name__: grammar
    for grammar in (
        *(scalars, filters, set_operations, names, resolution, generators, values, groupings),
        *(aggregates, windows, joins, subqueries, pivots, functions),
        *(structs, null_logic, bits, all_groups, joins_by_names, ranges, cuts, typed_sets),
    )
}
