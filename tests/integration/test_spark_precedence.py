"""The tree that the reader of SQL works on is the one that Spark makes of the text that it gets.

Texts without brackets, of every pair of operators and many longer ones: what SQLGlot writes is
parsed by Spark, beside the same with brackets around everything as our tree has it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from ci_bot.worker.sql.spark_sql import read_as_spark
from tests.oracle.brackets import put_brackets, put_set_brackets
from tests.oracle.fuzzing import FULL

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

BETWEEN_TWO = (
    *("+", "-", "*", "/", "%", "DIV", "&", "|", "^", "||", "=", "==", "<=>", "<>", "!=", "<"),
    *("<=", ">", ">=", "AND", "OR", "LIKE", "NOT LIKE", "ILIKE", "RLIKE", "NOT RLIKE", "REGEXP"),
    *("IS DISTINCT FROM", "IS NOT DISTINCT FROM"),
)
BEHIND = (
    *("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "BETWEEN x AND y"),
    *("NOT BETWEEN x AND y", "IN (x, y)", "NOT IN (x)", "IN (SELECT 1)", "LIKE x ESCAPE '!'"),
    *("::INT", "[0]", ":p", "AT TIME ZONE 'UTC'"),
)
BEFORE = ("-", "+", "~", "NOT", "!")
FORMS = (
    *(("between", text) for text in BETWEEN_TWO),
    *(("behind", text) for text in BEHIND),
    *(("before", text) for text in BEFORE),
)
# Where an expression stands beside operators of its own.
AROUND = (
    *("IF({}, 1, 2)", "CASE WHEN {} THEN a ELSE {} END", "CAST({} AS STRING)", "f({}, b)"),
    *("TRANSFORM(a, x -> {})", "SUM(a) OVER (ORDER BY {})", "INTERVAL '1' DAY * b + {}"),
    *("COUNT(a) FILTER (WHERE {})", "STRUCT({} AS p)", "({}) % 2 + c", "NOT EXISTS(SELECT {})"),
)
# They leave our tree alone, and a proof ends there: the constructs that SQLGlot reads otherwise and
# nobody writes without brackets. Everything else is put right.
GAPS = frozenset(
    {"between", "escape", "in", "is", "like", "ilike", "regexplike", "nullsafeeq", "nullsafeneq"}
    | {"not", "neg", "bitwisenot", "bracket", "eq", "neq", "gt", "gte", "lt", "lte", "and", "or"}
    | {"add", "sub", "mul", "div", "intdiv", "mod", "bitwiseand", "bitwiseor", "bitwisexor"}
    | {"dpipe"}
)
SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")
ENDS = ("", " ORDER BY 1", " LIMIT 2", " ORDER BY 1 LIMIT 2")


class SparkParser:
    """Spark's own parser, from its jar."""

    def __init__(self, session: Any) -> None:
        self._parser = session._jsparkSession.sessionState().sqlParser()

    def expression(self, text: str) -> str | None:
        return self._tree(self._parser.parseExpression, text)

    def query(self, text: str) -> str | None:
        return self._tree(self._parser.parsePlan, text)

    def _tree(self, parse: Any, text: str) -> str | None:
        try:
            return re.sub(r"#\d+", "#", str(parse(text).treeString()))
        except ParseException:
            return None


@pytest.fixture(scope="module")
def parser(java: None) -> Iterator[SparkParser]:
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.catalogImplementation", "in-memory")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield SparkParser(session)
    session.stop()


def write_expressions(forms: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The texts with these operators one behind the other, prefixes before either operand."""
    for late in (False, True):
        text, waiting, names = "a", "", iter("bcdefgh")
        for kind, operator in forms:
            if kind == "between":
                text, waiting = f"{text} {operator} {waiting}{next(names)}", ""
            elif kind == "behind":
                text = f"{text}{operator}" if operator[0] in ":[" else f"{text} {operator}"
            elif late:
                waiting += f"{operator} "
            else:
                text = f"{operator} {text}"
        if not waiting:
            yield text


def list_expressions() -> list[str]:
    found = [text for count in (1, 2) for forms in product(FORMS, repeat=count)
             for text in write_expressions(forms)]  # fmt: skip
    random = Random(33)
    for _ in range(40_000 if FULL else 4_000):
        forms = tuple(random.choice(FORMS) for _ in range(random.choice((3, 4, 5))))
        found += write_expressions(forms)
    found += [
        random.choice(AROUND).replace("{}", text)
        for text in random.sample(found, 10_000 if FULL else 1_500)
    ]
    return list(dict.fromkeys(found))


def test_expressions__are_read_as_spark_reads_them(parser: SparkParser) -> None:
    wrong: list[tuple[str, str]] = []
    counts: Counter[str] = Counter()
    gaps: set[str] = set()
    for text in list_expressions():
        try:
            tree = parse_one(text, dialect="spark")
        except SqlglotError:
            continue
        sent = tree.sql(dialect="spark")
        theirs = parser.expression(sent)
        if theirs is None:
            continue  # a query that Spark refuses
        as_given = parser.expression(put_brackets(tree).sql(dialect="spark"))
        reading = read_as_spark(tree)
        if reading.gaps:
            gaps |= {gap.partition(" ")[0] for gap in reading.gaps}
            counts["gap, as given" if as_given == theirs else "gap"] += 1
            continue
        ours = parser.expression(put_brackets(reading.tree).sql(dialect="spark"))
        counts["right" if as_given == theirs else "put right"] += 1
        if ours != theirs or reading.tree.sql(dialect="spark") != sent:
            wrong.append((sent, put_brackets(reading.tree).sql(dialect="spark")))

    assert not wrong
    assert gaps <= GAPS
    assert counts["put right"] > 150
    assert counts["right"] > 1_500
    # What is left alone is what SQLGlot reads otherwise, with few exceptions.
    assert counts["gap, as given"] < counts["gap"] / 10
    assert counts["gap"] < counts["right"] / 2


def list_set_operations() -> Iterator[str]:
    for count in (2, 3):
        for kinds in product(SETS, repeat=count):
            branches = [f"SELECT {n} AS a" for n in range(len(kinds))]
            text = "SELECT x AS a FROM t"
            for kind, branch in zip(kinds, branches, strict=True):
                text += f" {kind} {branch}"
            end = ENDS[sum(map(len, kinds)) % len(ENDS)]
            yield f"{text}{end}"
            yield f"SELECT * FROM ({text}{end}) AS q WHERE a IN (WITH u AS (SELECT 1) {text})"
    yield "(SELECT 1 LIMIT 1) UNION SELECT 2 INTERSECT (SELECT 3 ORDER BY 1)"
    yield "SELECT 1 UNION (SELECT 2 UNION ALL SELECT 3 INTERSECT SELECT 4) EXCEPT SELECT 5"
    yield "WITH a AS (SELECT 1 UNION SELECT 2 INTERSECT SELECT 3) SELECT * FROM a"


def test_set_operations__are_read_as_spark_reads_them(parser: SparkParser) -> None:
    put_right = 0
    for text in list_set_operations():
        tree = parse_one(text, dialect="spark")
        sent = tree.sql(dialect="spark")
        theirs = parser.query(sent)
        assert theirs is not None, sent
        reading = read_as_spark(tree)
        assert not reading.gaps, sent
        assert reading.tree.sql(dialect="spark") == sent
        assert parser.query(put_set_brackets(reading.tree).sql(dialect="spark")) == theirs, sent
        put_right += parser.query(put_set_brackets(tree).sql(dialect="spark")) != theirs

    assert put_right > 100
