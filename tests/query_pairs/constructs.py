"""Grammars of queries about one construct each: structs, NULL, bits, groups by all, joins by names,
frames by values, cuts, and set operations of branches with other types.
"""

from __future__ import annotations

from tests.query_pairs.choices import Choices
from tests.query_pairs.expressions import expression


def structs(c: Choices) -> str:
    """Structs that are made, read, compared and grouped by; their fields' names may differ."""
    x, y = c.spell("fields", (("m", "n"), ("n", "m"), ("M", "n"), ("a", "b")))
    one, other = c.order("values", ["a", "b"])
    made = c.spell(
        "made",
        (
            f"NAMED_STRUCT('{x}', {one}, '{y}', {other})",
            f"STRUCT({one} AS {x}, {other} AS {y})",
            f"STRUCT({one}, {other})",
            f"({one}, {other})",
            "st",
            f"IF(id > 2, NAMED_STRUCT('{x}', {one}, '{y}', {other}), NULL)",
        ),
    )
    field = c.spell("field", (x, y, "a", "b", "A", "col1"))
    return c.spell(
        "query",
        (
            f"SELECT id, {made} AS v FROM t",
            f"SELECT id, v.{field} AS w FROM (SELECT id, {made} AS v FROM t)",
            f"SELECT id, q.v.{field} AS w FROM (SELECT id, {made} AS v FROM t) AS q",
            f"SELECT v.* FROM (SELECT {made} AS v FROM t)",
            f"SELECT id, st.{c.spell('own', ('A', 'a', 'b', 'B'))} AS w FROM t",
            f"SELECT id, {made} = STRUCT(b, a) AS w FROM t",
            f"SELECT id, {made} <=> STRUCT({one}, {other}) AS w FROM t",
            f"SELECT id, {made} IS NULL AS w FROM t",
            f"SELECT v, COUNT(*) AS n FROM (SELECT {made} AS v FROM t) GROUP BY v",
            f"SELECT COUNT(DISTINCT {made}) AS n FROM t",
            f"SELECT COUNT(DISTINCT {one}, {other}) AS n FROM t",
            f"SELECT DISTINCT {made} AS v FROM t",
            f"SELECT b, MAX({made}) AS v FROM t GROUP BY b",
            f"SELECT id, v.{field} AS w FROM (SELECT id, {made} AS v FROM t) WHERE v.{field} > 0",
            f"SELECT id, TO_JSON({made}) AS w FROM t",
            f"SELECT t.id FROM t JOIN u ON {made.replace('(a', '(t.a').replace('b)', 't.b)')} = STRUCT(u.a, u.b)"
            if made == "STRUCT(a, b)"
            else f"SELECT id FROM t WHERE {made} IN (STRUCT(1, 2), STRUCT(2, 1))",
        ),
    )


def null_logic(c: Choices) -> str:
    """Tests that are true, false or NULL, and what makes of NULL something else."""
    p = expression(c.at("first"), "boolean", 1)
    q = expression(c.at("second"), "boolean", 1)
    a, b = c.order("numbers", ["a", "b"])
    test = c.spell(
        "test",
        (
            f"({p}) AND ({q})",
            f"NOT (NOT ({p}) OR NOT ({q}))",
            f"NOT (({p}) IS NULL) AND ({q})",
            f"COALESCE({p}, false) AND ({q})",
            f"COALESCE(({p}) AND ({q}), false)",
            f"({p}) <=> ({q})",
            f"({p}) = ({q})",
            f"(({p}) = ({q})) IS NOT FALSE",
            f"(({p}) IS TRUE) = (({q}) IS TRUE)",
            f"{a} <=> {b}",
            f"{a} = {b} OR ({a} IS NULL AND {b} IS NULL)",
            f"{a} = {b} OR {a} IS NULL AND {b} IS NULL",
            f"COALESCE({a}, 0) = COALESCE({b}, 0)",
            f"NOT ({a} <> {b})",
            f"NVL({a} = {b}, {a} IS NULL AND {b} IS NULL)",
            f"NULLIF({a}, {b}) IS NULL",
            f"{a} NOT IN (1, {b})",
            f"{a} NOT IN (1, NULL)",
            f"NOT {a} IN (1, {b})",
            f"{a} <> 1 AND {a} <> {b}",
            f"CASE WHEN {p} THEN {q} END",
            f"CASE WHEN {p} THEN {q} ELSE false END",
            f"CASE WHEN NOT ({p}) THEN false ELSE {q} END",
            f"IF({p}, {q}, NULL)",
            f"EQUAL_NULL({a}, {b})",
            f"{a} IS DISTINCT FROM {b}",
            f"NOT {a} <=> {b}",
            f"CASE {a} WHEN {b} THEN true WHEN NULL THEN false END",
        ),
    )
    return c.pick(
        "query",
        (
            f"SELECT id, {test} AS x FROM t",
            f"SELECT id FROM t WHERE {test}",
            f"SELECT id FROM t WHERE NOT ({test})",
            f"SELECT COUNT(*) AS n, COUNT({a}) AS m FROM t WHERE {test}",
            f"SELECT b, COUNT(*) AS n FROM t GROUP BY b HAVING BOOL_OR({test})",
        ),
    )


_BITS = ("&", "|", "^", "+", "-", "*", "%", "=", "<", "<=>")


def bits(c: Choices) -> str:
    """Three or four numbers, with bit operators beside others, and shifts."""
    one, two, three = (c.pick(f"number{n}", ("a", "b", "c", "1", "2", "-1")) for n in range(3))
    first, second = (c.spell(f"operator{n}", _BITS[:7]) for n in range(2))
    last = c.pick("last", _BITS)
    left, right = c.order("sides", [one, two])
    value = c.spell(
        "value",
        (
            f"{left} {first} {right} {second} {three}",
            f"({left} {first} {right}) {second} {three}",
            f"{left} {first} ({right} {second} {three})",
            f"~{left} {first} {right}",
            f"~({left} {first} {right})",
            f"- {left} {first} {right} {second} {three}",
            f"SHIFTLEFT({left} {first} {right}, 1)",
            f"SHIFTRIGHT({left}, 1) {first} {right}",
            f"BIT_COUNT({left} {first} {right})",
            f"GETBIT({left}, 1) {first} {right}",
        ),
    )
    return c.pick(
        "query",
        (
            f"SELECT id, {value} AS x FROM t",
            f"SELECT id, x FROM (SELECT t.*, ({value}) AS x FROM t)",
            f"SELECT id, {value} {last} c AS x FROM t",
            f"SELECT id, c {last} {value} AS x FROM t",
            f"SELECT id FROM t WHERE {value} > 0 AND a IS NOT NULL",
            f"SELECT BIT_OR({value}) AS x, BIT_AND({left}) AS y, BIT_XOR({right}) AS z FROM t",
        ),
    )


def all_groups(c: Choices) -> str:
    """Groups that the results decide, or that are named by place or by a result's name."""
    key = c.spell("key", ("b", "b % 2", "COALESCE(b, 0)", "p", "CASE WHEN p THEN b END"))
    name = c.spell("name", ("k", "b", "a", "x"))
    total = c.pick("total", ("SUM(a)", "COUNT(*)", "MAX(a) - MIN(a)", "SUM(a) + 1", "COUNT(p)"))
    second = c.pick("second", ("p", "s", "1", "'x'"))
    results = c.order("results", [f"{key} AS {name}", f"{total} AS n", f"{second} AS y"])
    place = next(at for at, one in enumerate(results, start=1) if one.startswith(key))
    other = next(at for at, one in enumerate(results, start=1) if one.endswith(" y"))
    grouped = c.spell(
        "grouped",
        (
            "ALL",
            f"{place}, {other}",
            f"{other}, {place}",
            f"{key}, {second}" if second in "ps" else key,
            f"{name}, y",
            f"ROLLUP ({place}, {other})",
            f"ROLLUP ({name}, y)",
            f"GROUPING SETS (({place}, {other}), ({place}))",
            f"CUBE ({place}, {other})",
        ),
    )
    having = c.spell(
        "having", ("", "", " HAVING COUNT(*) > 1", " HAVING n > 1", f" HAVING {name} > 0")
    )
    return f"SELECT {', '.join(results)} FROM t GROUP BY {grouped}{having}"


def joins_by_names(c: Choices) -> str:
    """Joins with USING and NATURAL, whose key is one column or two."""
    word = c.pick("word", ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    right = c.spell(
        "right", ("(SELECT a, k FROM u)", "(SELECT a, b AS k FROM u)", "(SELECT k, a FROM u)")
    )
    left = c.spell("left", ("(SELECT id, a, c FROM t)", "(SELECT id, a, c FROM t WHERE a > 0)"))
    by = c.spell("by", ("USING (a)", "ON l.a = r.a", "ON r.a = l.a", "ON l.a <=> r.a", "NATURAL"))
    joined = (
        f"{left} AS l NATURAL {word} {right} AS r"
        if by == "NATURAL"
        else f"{left} AS l {word} {right} AS r {by}"
    )
    keys = ("a", "l.a", "r.a", "COALESCE(l.a, r.a)", "COALESCE(r.a, l.a)")
    key = c.spell("key", keys if by in ("NATURAL", "USING (a)") else keys[1:])
    third = c.spell(
        "third",
        (
            "",
            "",
            " JOIN w ON w.a = l.a",
            " LEFT JOIN w ON w.a = COALESCE(l.a, r.a)",
            " JOIN w USING (a)",
        )
        if by in ("NATURAL", "USING (a)")
        else ("", "", " JOIN w ON w.a = l.a", " LEFT JOIN w ON w.a = COALESCE(l.a, r.a)"),
    )
    where = c.pick("where", ("", "", " WHERE c > 0", " WHERE r.k IS NULL", " WHERE l.id IS NULL"))
    return c.spell(
        "query",
        (
            f"SELECT l.id, {key} AS x, r.k FROM {joined}{third}{where}",
            f"SELECT x, COUNT(*) AS n FROM (SELECT {key} AS x FROM {joined}{third}{where}) GROUP BY x",
            f"SELECT l.id, r.k FROM {joined}{third}{where}",
            f"SELECT l.*, r.k FROM {joined}{third}{where}",
        ),
    )


def ranges(c: Choices) -> str:
    """Windows whose frame counts rows, values or days."""
    key = c.pick("key", ("a", "id", "d", "b"))
    kind = c.spell("kind", ("RANGE", "ROWS"))
    is_date = key == "d" and kind == "RANGE"
    sizes = ("1", "30", "INTERVAL '1' MONTH") if is_date else ("1", "2", "0")
    start, end = (c.spell(f"size{n}", sizes) for n in range(2))
    frame = c.spell(
        "frame",
        (
            f"{start} PRECEDING AND CURRENT ROW",
            f"{start} PRECEDING AND {end} FOLLOWING",
            f"CURRENT ROW AND {end} FOLLOWING",
            f"UNBOUNDED PRECEDING AND {end} FOLLOWING",
            "UNBOUNDED PRECEDING AND CURRENT ROW",
            f"{start} PRECEDING AND UNBOUNDED FOLLOWING",
        ),
    )
    direction = c.spell("direction", ("", " ASC", " ASC NULLS FIRST", " DESC", " DESC NULLS LAST"))
    tie = ", id, a, b" if kind == "ROWS" else ""
    call = c.pick("call", ("COUNT(*)", "SUM(a)", "MIN(id)", "COUNT(DISTINCT b)", "AVG(a)"))
    call = "COUNT(b)" if "DISTINCT" in call else call
    part = c.pick("part", ("", "PARTITION BY p "))
    over = f"{part}ORDER BY {key}{direction}{tie} {kind} BETWEEN {frame}"
    return c.spell(
        "query",
        (
            f"SELECT id, {call} OVER ({over}) AS x FROM t",
            f"SELECT id, {call} OVER w AS x FROM t WINDOW w AS ({over})",
            f"SELECT id, x FROM (SELECT *, {call} OVER ({over}) AS x FROM t)",
            f"WITH v AS (SELECT * FROM t) SELECT v.id, {call} OVER ({over}) AS x FROM v",
        ),
    )


def cuts(c: Choices) -> str:
    """The first rows in an order that all columns decide, and QUALIFY-like filters."""
    order = ", ".join(c.order("keys", ["a", "b", "id"]))
    first = c.spell("direction", ("", " DESC", " ASC NULLS LAST", " NULLS FIRST"))
    order = order.replace(",", f"{first},", 1)
    number = c.spell("number", ("1", "2", "3"))
    where = c.pick("where", ("", " WHERE b > 0", " WHERE a IS NOT NULL"))
    ranked = c.spell("ranked", ("ROW_NUMBER", "RANK", "DENSE_RANK"))
    part = c.spell("part", ("PARTITION BY b ", "PARTITION BY p ", ""))
    inner = f"SELECT id, a, b, {ranked}() OVER ({part}ORDER BY {order}) AS n FROM t{where}"
    return c.spell(
        "query",
        (
            f"SELECT id, a FROM t{where} ORDER BY {order} LIMIT {number}",
            f"SELECT id, a FROM (SELECT * FROM t{where} ORDER BY {order} LIMIT {number})",
            f"SELECT id, a FROM ({inner}) WHERE n <= {number}",
            f"SELECT id, a FROM ({inner}) WHERE n < {number} + 1",
            f"SELECT id, a FROM ({inner}) WHERE n = {number}",
            f"WITH r AS ({inner}) SELECT id, a FROM r WHERE NOT n > {number}",
            f"SELECT DISTINCT id, a FROM ({inner}) WHERE n <= {number}",
            f"SELECT id, a FROM (SELECT * FROM ({inner}) WHERE n <= {number}){where}",
            f"SELECT id, a FROM t{where} ORDER BY {order} LIMIT {number} OFFSET 1",
        ),
    )


def typed_sets(c: Choices) -> str:
    """Set operations whose branches have other types, names, orders and cuts."""
    operation = c.pick(
        "operation", ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
    )
    one = c.spell(
        "one",
        (
            "SELECT a, b FROM u",
            "SELECT a AS x, b FROM u",
            "SELECT DISTINCT a, b FROM u",
            "SELECT a, b FROM u WHERE a IS NOT NULL",
            "SELECT a, b FROM u GROUP BY a, b",
            "SELECT a, NULL AS b FROM u",
        ),
    )
    other = c.spell(
        "other",
        (
            "SELECT a, b FROM w",
            "SELECT b, a FROM w",
            "SELECT CAST(a AS BIGINT), b FROM w",
            "SELECT a, CAST(b AS DOUBLE) FROM w",
            "SELECT a, b FROM w ORDER BY id, a, b LIMIT 2",
            "SELECT 1, 2",
            "SELECT a, NULL FROM w",
        ),
    )
    other = f"({other})" if "LIMIT" in other else other
    left, right = c.order("sides", [one, other])
    body = f"{left} {operation} {right}"
    return c.spell(
        "query",
        (
            body,
            f"SELECT * FROM ({body}) AS q",
            f"WITH q AS ({body}) SELECT * FROM q",
            f"SELECT DISTINCT * FROM ({body}) AS q",
            f"WITH q(a, b) AS ({body}) SELECT b, COUNT(*) AS n FROM q GROUP BY b",
            f"WITH q(a, b) AS ({body}) SELECT b, COUNT(DISTINCT a) AS n FROM q GROUP BY b",
            f"WITH q(a, b) AS ({body}) SELECT a FROM q WHERE b > 0",
            f"WITH q(a, b) AS ({body}) SELECT t.id FROM t WHERE t.a IN (SELECT a FROM q)",
            f"WITH q(a, b) AS ({body}) SELECT t.id FROM t LEFT ANTI JOIN q ON q.a = t.a",
        ),
    )
