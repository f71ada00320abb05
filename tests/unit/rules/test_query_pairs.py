"""The pairs of queries are what they are meant to be, and the product is right about them.

What is expected of each is Spark's answer: `tests/integration/test_query_pairs.py`.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice, product

import duckdb
import pytest

from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.sql import ModelQueries
from tests.oracle.fuzzing import FULL
from tests.query_pairs.expressions import BINARY, POSTFIX, PREFIX
from tests.query_pairs.generate import (
    Generated,
    data_sets,
    generate_mix,
    generate_operator_pairs,
    generate_pairs,
)
from tests.query_pairs.judge import Verdict, claim_same, execution_of, is_proved_same, load_model
from tests.query_pairs.pairs import QueryPair, load_pairs, parse_table
from tests.query_pairs.queries import GRAMMARS
from tests.query_pairs.score import format_score, list_wrong

# The half of the 120 pairs that were asked for.
HALF = 60
# How many are proved today; fewer are a proof that got weaker.
PROVED = 667
# A claim needs the proof and an execution. The proof is asked about all pairs. By day each sixth of
# the proved ones is executed, too: execution takes ten times as long as the proof.
STEP = 1 if FULL else 6


@pytest.fixture(scope="module")
def proved() -> list[QueryPair]:
    return [pair for pair in load_pairs() if is_proved_same(pair)]


def test_pairs__are_enough_of_both_kinds() -> None:
    counts = Counter(pair.expected for pair in load_pairs())

    assert counts["same"] >= HALF
    assert counts["differs"] >= HALF
    assert len({pair.name for pair in load_pairs()}) == counts.total()
    assert len({(pair.base, pair.head) for pair in load_pairs()}) == counts.total()


def test_pairs__have_the_same_random_data_each_time() -> None:
    pair = load_pairs()[0]

    assert list(pair.random_data_sets(3)) == list(pair.random_data_sets(3))
    assert len({str(data) for data in pair.random_data_sets(30)}) > 20


def test_pairs__that_differ_are_not_proved_and_so_never_called_the_same(
    proved: list[QueryPair],
) -> None:
    assert [pair.name for pair in proved if pair.expected != "same"] == []


def test_pairs__that_are_the_same_are_recognised(proved: list[QueryPair]) -> None:
    refuted = [pair.name for pair in proved[::STEP] if execution_of(pair).verdict == "differs"]

    assert refuted == []
    assert len(proved) >= PROVED


def test_pair__that_only_spark_gives_the_same_for_is_not_called_the_same() -> None:
    table = parse_table("o", {"columns": {"s": "string"}, "rows": ["'abc'"]})
    base, head = (f"SELECT SUBSTRING(s, {start}, 2) AS v FROM o" for start in (0, 1))
    rows = [duckdb.sql(f"WITH o AS (SELECT 'abc' AS s) {one}").fetchall() for one in (base, head)]
    assert rows[0] != rows[1]

    assert (
        claim_same(QueryPair("parts", base, head, "differs", (table,), dialect="duckdb")) != "same"
    )


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("LEFT(s, -1)", "SUBSTRING(s, 1, -1)"),
        ("CONCAT(s, 'x')", "s || 'x'"),
    ],
)
def test_pair__that_spark_replaces_is_not_called_the_same_for_another_engine(
    base: str, head: str
) -> None:
    table = parse_table("o", {"columns": {"s": "string"}, "rows": ["'abc'", "NULL"]})
    queries = f"SELECT {base} AS v FROM o", f"SELECT {head} AS v FROM o"
    data = "WITH o AS (SELECT UNNEST(['abc', NULL]) AS s)"
    rows = [duckdb.sql(f"{data} {query}").fetchall() for query in queries]
    assert rows[0] != rows[1]

    verdicts = {
        dialect: claim_same(
            QueryPair("forms", queries[0], queries[1], "differs", (table,), dialect=dialect)
        )
        for dialect in ("spark", "databricks", "duckdb")
    }

    assert verdicts == {"spark": "same", "databricks": "same", "duckdb": "not known"}


def test_pair__of_sparks_dialect_on_a_gateway_of_another_engine_is_not_called_the_same() -> None:
    table = parse_table("o", {"columns": {"s": "string"}, "rows": ["'abc'"]})
    queries = [f"SELECT {one} AS v FROM o" for one in ("LEFT(s, -1)", "SUBSTRING(s, 1, -1)")]
    before, after = (load_model(query, (table,), "spark") for query in queries)

    claims = [
        ModelPair(before, after, (), ModelQueries(), engines={"": engine}).is_proved_same
        for engine in ("spark", "duckdb")
    ]

    assert claims == [True, False]


def test_pair__of_equal_texts_on_an_engine_that_may_fold_their_case_is_not_proved() -> None:
    tables = [
        parse_table(name, {"columns": {"k": "string"}, "rows": ["'x'"]}) for name in ("o", "c")
    ]
    queries = [f"SELECT {side}.k AS v FROM o JOIN c ON o.k = c.k" for side in ("o", "c")]
    before, after = (load_model(query, tables, "spark") for query in queries)

    claims = [
        ModelPair(before, after, (), ModelQueries(), engines={"": engine}).is_proved_same
        for engine in ("spark", "mysql")
    ]

    assert claims == [True, False]


def test_pair__with_equal_keys_in_a_rollup_is_not_proved() -> None:
    tables = [parse_table(name, {"columns": {"id": "int"}, "rows": ["1"]}) for name in ("o", "c")]
    query = "SELECT {}.id AS v FROM o JOIN c ON o.id = c.id GROUP BY ROLLUP (o.id, c.id)"
    before, after = (load_model(query.format(side), tables, "spark") for side in ("o", "c"))

    assert not ModelPair(before, after, (), ModelQueries()).is_proved_same


def test_score__counts_and_names_what_is_wrong() -> None:
    pairs = [
        QueryPair("one", "SELECT 1", "SELECT 2", "differs", ()),
        QueryPair("two", "SELECT 1", "SELECT 1 AS x", "same", ()),
        QueryPair("three", "SELECT 3", "SELECT 3", "same", ()),
    ]
    told: dict[str, Verdict] = {"one": "same", "two": "not known", "three": "same"}

    text = format_score(pairs, told)

    assert list_wrong(pairs, told) == ["one"]
    assert "| same | 2 | 1 | 0 | 1 |\n| differs | 1 | 1 | 0 | 0 |" in text
    assert "## Wrong (1)\n\n- one" in text
    assert "## The same, and not called so (1)\n\n- two" in text


def test_operators__each_meets_each() -> None:
    met = {
        generated.pair.name.removeprefix("operators ") for generated in generate_operator_pairs()
    }

    assert {f"{one} {other} left" for one, other in product(BINARY, repeat=2)} <= met
    assert {f"{one} {other} whole" for one, other in product(PREFIX, BINARY)} <= met
    assert {f"{one} {other} whole" for one, other in product(BINARY, POSTFIX)} <= met


def test_generated_pairs__are_the_same_each_time_and_of_every_grammar() -> None:
    def made() -> list[Generated]:
        return list(islice(generate_pairs(), 300))

    assert [one.pair for one in made()] == [one.pair for one in made()]
    assert {one.pair.name.split()[0] for one in made()} == set(GRAMMARS)
    assert all(one.pair.base != one.pair.head for one in made())


def test_generated_pairs__are_made_smaller_by_one_decision() -> None:
    generated = next(generate_pairs(7))

    for smaller in generated.smaller():
        assert smaller.base is not None and generated.base is not None
        changed = {n for n in generated.base if smaller.base.get(n) != generated.base[n]}
        assert len(changed) <= 1
    assert list(generated.smaller())


def test_mix__has_as_many_as_asked_for() -> None:
    kinds = Counter(generated.pair.name.split()[0] for generated in generate_mix(0, 400))

    assert kinds.total() == 400
    assert kinds["operators"] + kinds["sets"] == 100
    assert kinds["trees"] == 40
    assert set(GRAMMARS) <= set(kinds)


def test_data__has_many_rows_few_rows_and_empty_tables() -> None:
    sizes = [{name: len(rows) for name, rows in data.items()} for data in data_sets()]

    assert sizes[0]["t"] > 20
    assert any(size["t"] == 0 for size in sizes)
    assert any(size["t"] and not size["u"] for size in sizes)
    assert all(
        rows[-1] == rows[-2] for data in data_sets() for rows in data.values() if len(rows) > 1
    )
