"""Rarer kinds of query: what SQL can do with names, places, rows and nested values."""

from __future__ import annotations

from tests.unit.sql.lineage.parts import NUMBER, TEXT, Parts, Table

Made = tuple[str, dict[str, str]]


def _one(w: Parts) -> tuple[Table, str, str, str, str]:
    """A table under an alias, and three numbers that are made of it."""
    table, alias = w.table(), w.alias()
    return (table, alias, *(w.number((alias, table)) for _ in range(3)))  # type: ignore[return-value]


def natural(w: Parts) -> Made:
    (t, a, x, y, z), (u, b, p, q, _) = _one(w), _one(w)
    items = w.random.choice(["v, w", "*", "n.*, m.w", "k, w"])
    columns = {"v, w": "vw", "*": "kvw", "n.*, m.w": "kvw", "k, w": "kw"}[items]
    how = w.random.choice(["NATURAL JOIN", "NATURAL LEFT JOIN"])
    return (
        f"SELECT {items} FROM (SELECT {x} AS k, {y} AS v FROM {t.name} AS {a} WHERE {z} > 0) AS n "
        f"{how} (SELECT {p} AS k, {q} AS w FROM {u.name} AS {b}) AS m",
        dict.fromkeys(columns, NUMBER),
    )


def star_over_using(w: Parts) -> Made:
    (t, a, x, y, _), (u, b, p, q, _) = _one(w), _one(w)
    star = (
        f"SELECT * FROM (SELECT {y} AS v, {x} AS k FROM {t.name} AS {a}) AS n "
        f"JOIN (SELECT {q} AS w, {p} AS k FROM {u.name} AS {b}) AS m USING (k)"
    )
    if w.random.random() < 0.5:
        return star, dict.fromkeys("vkw", NUMBER)
    return (
        f"SELECT g, h FROM ({star}) AS d(f, g, h) UNION ALL SELECT {x}, {y} FROM {t.name} AS {a}",
        dict.fromkeys("gh", NUMBER),
    )


def fields(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    field = w.random.choice(["d.pack.one", "pack.one", "d.pack['one']", "d.pack.inner.three"])
    return (
        f"SELECT {field} AS f, d.rest FROM (SELECT {{'one': {x}, 'inner': {{'three': {y}}}}} "
        f"AS pack, {z} AS rest FROM {t.name} AS {a}) AS d",
        {"f": NUMBER, "rest": NUMBER},
    )


def unpivoted(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    return (
        f"SELECT u.k, u.n, u.v FROM (SELECT {x} AS k, CAST({y} AS BIGINT) AS one, "
        f"CAST({z} AS BIGINT) AS two FROM {t.name} AS {a}) UNPIVOT (v FOR n IN (one, two)) AS u",
        {"k": NUMBER, "n": TEXT, "v": NUMBER},
    )


def pivoted(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    return (
        f'SELECT p.k, p."1" AS one, p."2" AS two FROM (SELECT {x} AS k, {y} AS n, {z} AS v '
        f"FROM {t.name} AS {a}) PIVOT (MAX(v) FOR n IN (1, 2)) AS p",
        {"k": NUMBER, "one": NUMBER, "two": NUMBER},
    )


def framed(w: Parts) -> Made:
    t, a, x, y, _ = _one(w)
    order, over = w.order(a, t), f"w{w.random.randint(0, 1_000_000)}"
    forms = [
        f"CAST(SUM({x}) OVER ({over} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS BIGINT) AS c",
        f"LAG({x}) OVER {over} AS c",
        f"FIRST_VALUE({x}) OVER (PARTITION BY {y} ORDER BY {order}) AS c",
        f"COUNT({x}) OVER (ORDER BY {order} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS c",
    ]
    items, columns = w.items((a, t), most=2)
    name = w.fresh("c", columns)
    form = w.random.choice(forms).removesuffix("c") + name
    return (
        f"SELECT {items}, {form} FROM {t.name} AS {a} WINDOW {over} AS (ORDER BY {order})",
        {**columns, name: NUMBER},
    )


def bags(w: Parts) -> Made:
    (t, a, x, y, _), (u, b, p, q, _) = _one(w), _one(w)
    kind = w.random.choice(["EXCEPT ALL", "INTERSECT ALL", "UNION ALL BY NAME", "UNION BY NAME"])
    right = f"{q} AS two, {p} AS one" if "NAME" in kind else f"{p}, {q}"
    return (
        f"SELECT {x} AS one, {y} AS two FROM {t.name} AS {a} {kind} "
        f"SELECT {right} FROM {u.name} AS {b}",
        {"one": NUMBER, "two": NUMBER},
    )


def first_of_each(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    return (
        f"SELECT DISTINCT ON ({x} + 0) {y} AS one, {z} AS two FROM {t.name} AS {a} "
        f"ORDER BY {x} + 0, {w.order(a, t)}",
        {"one": NUMBER, "two": NUMBER},
    )


def grouping_sets(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    sets = w.random.choice(["GROUPING SETS ((p), (q), ())", "ROLLUP (p, q)", "CUBE (p, q)"])
    return (
        f"SELECT d.p, d.q, MAX(d.v) AS v, COUNT(*) AS n FROM (SELECT {x} AS p, {y} AS q, {z} AS v "
        f"FROM {t.name} AS {a}) AS d GROUP BY {sets.replace('p', 'd.p').replace('q', 'd.q')}",
        {"p": NUMBER, "q": NUMBER, "v": NUMBER, "n": NUMBER},
    )


def renamed_by_place(w: Parts) -> Made:
    """A self-join in which each side is called otherwise, and a CTE whose columns are."""
    t = w.table()
    names = [f"p{number}" for number in range(len(t.columns))]
    one, other = w.random.choice(names), w.random.choice(names)
    key = w.random.choice(names)
    kinds = dict(zip(names, t.columns.values(), strict=True))
    listed = ", ".join(names)
    forms = [
        f"SELECT l.{one} AS l1, r.{other} AS r1 FROM {t.name} AS l({listed}) "
        f"JOIN {t.name} AS r({listed}) ON l.{key} = r.{key}",
        f"WITH c({listed}) AS (SELECT * FROM {t.name}) SELECT l.{one} AS l1, r.{other} AS r1 "
        f"FROM c AS l LEFT JOIN c AS r ON l.{key} = r.{key}",
    ]
    return w.random.choice(forms), {"l1": kinds[one], "r1": kinds[other]}


def correlated(w: Parts) -> Made:
    (t, a, x, y, z), (u, b, p, q, _) = _one(w), _one(w)
    inner = p.replace(f"{b}.", "i.")
    conditions = [
        f"{x} > (SELECT AVG({p}) FROM {u.name} AS {b} WHERE {q} = {y})",
        f"{x} >= ALL (SELECT {p} FROM {u.name} AS {b} WHERE {p} IS NOT NULL AND {q} < {y})",
        f"{x} NOT IN (SELECT {p} FROM {u.name} AS {b} WHERE {q} IS NOT NULL)",
        f"EXISTS (SELECT MAX({p}) FROM {u.name} AS {b} WHERE {q} = {y} HAVING COUNT(*) > 1)",
        f"EXISTS (SELECT 1 FROM {u.name} AS {b} WHERE {q} = (SELECT MAX({inner}) FROM {u.name} AS i "
        f"WHERE {inner} <= {y}))",
        f"{x} IN (SELECT {p} FROM {u.name} AS {b} WHERE {q} = {y} UNION ALL SELECT {z})",
    ]
    return (
        f"SELECT {y} AS one, {z} AS two FROM {t.name} AS {a} WHERE {w.random.choice(conditions)}",
        {"one": NUMBER, "two": NUMBER},
    )


def whole_rows(w: Parts) -> Made:
    t, a, x, _, _ = _one(w)
    whole = w.random.choice([f"CAST({a} AS VARCHAR)", f"CAST(TO_JSON({a}) AS VARCHAR)"])
    return f"SELECT {whole} AS whole, {x} AS one FROM {t.name} AS {a}", {
        "whole": TEXT,
        "one": NUMBER,
    }


def lists(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    forms = [
        f"[x + {z} FOR x IN [{x}, {y}] IF x > {z}][1]",
        f"LIST_SUM(LIST_TRANSFORM([{x}, {y}], x -> x + {z}))",
        f"LIST_REDUCE([{x}, {y}, 1], (one, two) -> one + two * {z})",
        f"LENGTH(LIST_FILTER([{x}, {y}], one -> one > {z}))",
    ]
    return f"SELECT CAST({w.random.choice(forms)} AS BIGINT) AS made FROM {t.name} AS {a}", {
        "made": NUMBER
    }


def ordered_aggregates(w: Parts) -> Made:
    t, a, x, y, _ = _one(w)
    order = w.order(a, t)
    forms = [
        (f"STRING_AGG(CAST({x} AS VARCHAR), ',' ORDER BY {order})", TEXT),
        (f"(LIST({x} ORDER BY {order}))[1]", NUMBER),
        (f"FIRST({x} ORDER BY {order})", NUMBER),
    ]
    form, holds = w.random.choice(forms)
    return (
        f"SELECT {y} AS k, {form} AS made FROM {t.name} AS {a} GROUP BY ALL",
        {"k": NUMBER, "made": holds},
    )


def rows_of_an_aggregate(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    forms = [
        f"SELECT UNNEST(LIST({x} ORDER BY {w.order(a, t)})) AS made FROM {t.name} AS {a}",
        f"SELECT MAX({x}) AS made FROM {t.name} AS {a} WHERE {y} > 0 HAVING COUNT({z}) > 3",
        f"SELECT DISTINCT MAX({x}) AS made FROM {t.name} AS {a} GROUP BY {y} + 0",
        f"SELECT MAX({x}) AS made FROM {t.name} AS {a} LIMIT (SELECT COUNT({y}) FROM {t.name} "
        f"AS {a})",
    ]
    return w.random.choice(forms), {"made": NUMBER}


def own_aliases(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    u, v = w.fresh("own_u", t.columns), w.fresh("own_v", t.columns)
    forms = [
        f"SELECT {x} AS {u}, {u} + {y} AS {v} FROM {t.name} AS {a} WHERE {u} > 1",
        f"SELECT {x} AS {u}, COUNT(*) AS {v} FROM {t.name} AS {a} GROUP BY {u} HAVING MAX({y}) > 1",
        f"SELECT {x} AS {u}, {y} AS {v} FROM {t.name} AS {a} "
        f"QUALIFY RANK() OVER (PARTITION BY {u} ORDER BY {z}) = 1",
    ]
    number = next((name for name, holds in t.columns.items() if holds == NUMBER), None)
    if number is not None and w.random.random() < 0.3:  # the table's column hides the alias
        query = f"SELECT {x} AS {number}, {number} + 1 AS {v} FROM {t.name} AS {a}"
        return query, {number: NUMBER, v: NUMBER}
    return w.random.choice(forms), {u: NUMBER, v: NUMBER}


def odd_names(w: Parts) -> Made:
    """Dots in names, and other cases than where these were given."""
    t, a, x, y, z = _one(w)
    forms = [
        f'SELECT "O.A"."a.B" AS one, PLAIN AS two FROM (SELECT {x} AS "A.b", {y} AS plain, '
        f'{z} AS "Last One" FROM {t.name} AS {a}) AS "o.a" WHERE "last one" > 1',
        f'WITH "{t.name}" AS (SELECT {x} AS k, {y} AS one FROM {t.name} AS {a}) '
        f'SELECT c.ONE AS one, {z} AS two FROM "{t.name}" AS c JOIN {t.name} AS {a} ON c.k = {x}',
    ]
    return w.random.choice(forms), {"one": NUMBER, "two": NUMBER}


def hidden_names(w: Parts) -> Made:
    """CTEs that are called as tables, columns or other CTEs are."""
    (t, a, x, y, _), (u, b, p, q, _) = _one(w), _one(w)
    name = t.name.rpartition(".")[2]
    return (
        f"WITH {name} AS (SELECT {x} AS k, {y} AS one FROM {t.name} AS {a}), other AS ("
        f"WITH {name} AS (SELECT {p} AS k, {q} AS one FROM {u.name} AS {b}) "
        f"SELECT k, one FROM {name} WHERE k > 0) "
        f"SELECT {name}.one, other.one AS two FROM {name} JOIN other ON {name}.k = other.k",
        {"one": NUMBER, "two": NUMBER},
    )


def listed_values(w: Parts) -> Made:
    t, a, x, y, _ = _one(w)
    how = w.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
    return (
        f"SELECT v.w AS one, {y} AS two FROM {t.name} AS {a} {how} "
        f"(VALUES (0, 5), (1, 6), (1, 7)) AS v(k, w) ON v.k = {x}",
        {"one": NUMBER, "two": NUMBER},
    )


def spread_columns(w: Parts) -> Made:
    t, a, x, y, z = _one(w)
    inner = f"(SELECT {x} AS one, {y} AS two, {z} AS three FROM {t.name} AS {a}) AS d"
    forms = [
        (f"SELECT COLUMNS(c -> c <> 'three') FROM {inner}", ("one", "two")),
        (f"SELECT MAX(COLUMNS(*)) FROM {inner}", ("one", "two", "three")),
        (f"SELECT d.* RENAME (one AS four) FROM {inner}", ("four", "two", "three")),
        (f"SELECT * EXCLUDE (one) REPLACE (two + three AS two) FROM {inner}", ("two", "three")),
    ]
    query, names = w.random.choice(forms)
    return query, dict.fromkeys(names, NUMBER)


RARE = (
    *(natural, star_over_using, fields, unpivoted, pivoted, framed, bags, first_of_each),
    *(grouping_sets, renamed_by_place, correlated, whole_rows, lists, ordered_aggregates),
    *(rows_of_an_aggregate, own_aliases, odd_names, hidden_names, listed_values, spread_columns),
)
