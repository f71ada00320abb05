"""A query is read as Spark reads its text; where that is not known, nothing is proved.

`tests/integration/test_spark_precedence.py` holds the same against Spark's parser.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp, parse_one

from ci_bot.worker.sql.equivalence.blocks import KeyInterner
from ci_bot.worker.sql.equivalence.proof import NormalForm, QueryMeaning, normalize_query
from ci_bot.worker.sql.lineage.propagation import OwnPart, list_own_changes
from ci_bot.worker.sql.lineage.sources import LineageModel, ModelDefinition
from ci_bot.worker.sql.spark_sql import read_as_spark
from tests.oracle.brackets import put_brackets, put_set_brackets


def parse(text: str) -> Any:
    return parse_one(text, dialect="spark")


def read_forms(before: str, after: str) -> tuple[NormalForm, NormalForm]:
    keys = KeyInterner()
    old, new = normalize_query(parse(before), keys), normalize_query(parse(after), keys)
    if old is None or new is None:
        raise AssertionError("a query cannot be taken apart")
    return old, new


def list_parts(before: str, after: str) -> list[OwnPart]:
    model = LineageModel(
        "a.b",
        parents=("raw.t",),
        change="direct",
        before=lambda: ModelDefinition(rendered=parse(before)),
        after=lambda: ModelDefinition(rendered=parse(after)),
    )
    return list_own_changes(model, {"raw.t": ("a", "b", "c", "f")})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a + b % 2", "a + (b % 2)"),
        ("a % b * c", "(a % b) * c"),
        ("a + b % 2 - c % 3 * d", "(a + (b % 2)) - ((c % 3) * d)"),
        ("a | b & 1", "a | (b & 1)"),
        ("a | b ^ c & 1 = d", "(a | (b ^ (c & 1))) = d"),
        ("a || b + c", "(a || b) + c"),
        ("a = b > c", "(a = b) > c"),
        ("a < b = c", "(a < b) = c"),
        ("f(a + b % 2, x -> x % y * 2)", "F((a + (b % 2)), x -> ((x % y) * 2))"),
        ("(a + b) % 2", "(a + b) % 2"),
        ("a + b * c", "a + (b * c)"),
        ("NOT a = b AND c", "(NOT (a = b)) AND c"),
    ],
)
def test_operators__are_put_right(text: str, read: str) -> None:
    reading = read_as_spark(parse(text))

    assert not reading.gaps
    assert put_brackets(reading.tree).sql(dialect="spark") == read
    assert reading.tree.sql(dialect="spark") == parse(text).sql(dialect="spark")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A UNION B INTERSECT C", "A UNION (B INTERSECT C)"),
        ("A INTERSECT B UNION C", "(A INTERSECT B) UNION C"),
        (
            "A EXCEPT B UNION ALL C INTERSECT D LIMIT 1",
            "(A EXCEPT B) UNION ALL (C INTERSECT D) LIMIT 1",
        ),
        ("(A UNION B) INTERSECT C", "(A UNION B) INTERSECT C"),
    ],
)
def test_set_operations__are_put_right(text: str, read: str) -> None:
    queries = {letter: f"SELECT {letter.lower()} FROM t" for letter in "ABCD"}
    written = " ".join(
        queries.get(word.strip("()"), word).join(_around(word)) for word in text.split()
    )
    reading = read_as_spark(parse(written))

    found = put_set_brackets(reading.tree).sql(dialect="spark")
    for letter, query in queries.items():
        found = found.replace(query, letter)
    assert not reading.gaps
    assert found == read


def _around(word: str) -> tuple[str, str]:
    return "(" * word.count("("), ")" * word.count(")")


@pytest.mark.parametrize(
    "text",
    [
        "a = b IS NULL",
        "f = a BETWEEN 1 AND 2",
        "f = b LIKE 'x'",
        "f = a IN (1, 2)",
        "a <=> b IS NULL",
        "NOT f = a IN (1)",
        "a + b IS NULL = f",
    ],
)
def test_predicates__behind_a_comparison_are_a_gap(text: str) -> None:
    reading = read_as_spark(parse(text))

    assert reading.gaps

    query = f"SELECT {text} AS v FROM raw.t"
    old, new = read_forms(query, query)
    assert not new.proves_same(old)
    assert new.proves_same(old, one_text=True)
    found = list_parts(query, f"SELECT NOT {text} AS v FROM raw.t")
    assert {part.how for part in found} == {"unknown"}


@pytest.mark.parametrize(
    "text",
    ["a = 1 AND b IS NULL OR NOT f", "a BETWEEN b + 1 AND c * 2", "-a * b", "a % 2 = 0", "a = -b"],
)
def test_usual_texts__are_left_as_they_are(text: str) -> None:
    tree = parse(text)

    assert read_as_spark(tree).tree is tree
    assert not read_as_spark(tree).gaps


def test_comma_before_an_outer_join__is_a_gap() -> None:
    tree = parse("SELECT 1 FROM a CROSS JOIN b RIGHT JOIN c ON b.x = c.x")
    assert not read_as_spark(tree).gaps
    comma = tree.args["joins"][0]
    comma.set("kind", None)  # as older versions of SQLGlot have it

    assert read_as_spark(tree).gaps == ("a comma beside an outer join",)


def test_given_tree__stays_as_it_is() -> None:
    tree = parse("SELECT a + b % 2 AS v FROM raw.t")
    before = repr(tree)

    assert read_as_spark(tree).tree is not tree
    assert repr(tree) == before


def test_unknown_operator__is_a_gap() -> None:
    tree = exp.Overlaps(this=exp.column("a"), expression=exp.column("b"))

    assert read_as_spark(tree).gaps == ("overlaps beside other operators without brackets",)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT TO_JSON(STRUCT(t.a AS Foo)) AS v FROM raw.t", "Foo"),
        ("SELECT T.a AS v FROM raw.T AS T", "T"),
        ("SELECT t.Foo AS v FROM raw.t AS t", "Foo"),
        ("SELECT t.a AS Foo FROM raw.t AS t", "Foo"),
    ],
)
def test_names__of_another_case_are_other_names(before: str, after: str) -> None:
    lower = before.replace(after, after.lower())
    old, new = read_forms(before, lower)

    assert not new.proves_same(old)
    assert list_parts(before, lower)
    assert old.proves_same(old)


def test_names__that_differ_in_case_only_are_a_gap() -> None:
    text = "WITH A AS (SELECT 1 AS x) SELECT q.x FROM a AS q"

    assert "names that differ in case only" in read_forms(text, text)[0].gaps


SHAPES = (
    "(SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) AS rn FROM raw.x) AS q",
    "(SELECT DISTINCT * FROM raw.x) AS q",
    "(SELECT * FROM raw.x LIMIT 5) AS q",
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [2, 7, 40])
def test_filters__on_columns_of_a_star_are_told_apart(shape: str, count: int) -> None:
    for place in range(count):
        conditions = [f"q.c{number} = 0" for number in range(count)]
        before = f"SELECT q.id FROM {shape} WHERE {' AND '.join(conditions)}"
        conditions[place] = "q.other = 0"
        after = f"SELECT q.id FROM {shape} WHERE {' AND '.join(conditions)}"
        old, new = (QueryMeaning(form, "spark") for form in read_forms(before, after))

        assert len(old.filters) == count
        assert old.filters != new.filters


def test_star__of_unknown_columns_shows_what_it_leaves_out() -> None:
    for text in ("EXCEPT (b)", "REPLACE (c AS a)", "RENAME (a AS z)", "EXCEPT (a, b)"):
        found = list_parts("SELECT * EXCEPT (a) FROM raw.u", f"SELECT * {text} FROM raw.u")
        assert found, text
