"""What is expected of the pairs of queries is what Spark says. One session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle

import pytest

from tests.oracle.fuzzing import FULL
from tests.query_pairs.judge import models_of, rendered_text
from tests.query_pairs.on_spark import ANSI_MODES, SparkJudge, open_judge
from tests.query_pairs.pairs import Data, QueryPair, load_pairs

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# Random data sets of a pair that is the same.
DATA_SETS = 30 if FULL else 2
# What is expected of a pair hardly ever changes: by day each twentieth is asked again.
STEP = 1 if FULL else 20


@pytest.fixture(scope="module")
def judge(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkJudge]:
    with open_judge(tmp_path_factory.mktemp("spark")) as found:
        yield found


def list_pairs(expected: str) -> list[QueryPair]:
    """The pairs of this run, spread over all of one expectation."""
    found = [
        pair for pair in load_pairs() if pair.expected == expected and not pair.only_in_ansi_mode
    ][::STEP]
    assert found
    return found


def differences(
    judge: SparkJudge, pair: QueryPair, runs: Iterable[tuple[Data, str]]
) -> Iterator[tuple[str, str, Data]]:
    """How the pair differs on data sets and in modes, as written and as SQLMesh renders it."""
    base, head = (rendered_text(model) for model in models_of(pair))
    for data, mode in runs:
        judge.set_ansi("false")
        judge.create_tables(pair.tables, data)
        judge.set_ansi(mode)
        written, rendered = judge.compare(pair.base, pair.head), judge.compare(base, head)
        if pair.as_written == pair.expected and written != rendered:
            yield f"SQLMesh renders what gives something else ({written}, {rendered})", mode, data
        elif rendered:
            yield rendered, mode, data


def test_pairs__of_the_same_result_agree_on_all_data(judge: SparkJudge) -> None:
    wrong = [
        (pair.name, *found)
        for pair in list_pairs("same")
        for found in differences(
            judge,
            pair,
            zip(
                (*pair.data_sets, *pair.random_data_sets(DATA_SETS)),
                cycle(ANSI_MODES),
                strict=False,
            ),
        )
    ]

    assert not wrong


def test_pairs__of_other_results_differ_somewhere(judge: SparkJudge) -> None:
    wrong = {}
    for pair in list_pairs("differs"):
        runs = ((data, "false") for data in pair.data_sets)
        found = {how for how, _, _ in differences(judge, pair, runs)}
        if not found & {"rows", "columns"} or found - {"rows", "columns", "types"}:
            wrong[pair.name] = found

    assert not wrong


def test_pairs__that_differ_in_ansi_mode_fail_on_one_side(judge: SparkJudge) -> None:
    pairs = [pair for pair in load_pairs() if pair.only_in_ansi_mode]
    wrong = {}
    for pair in pairs:
        found = {how for how, _, _ in differences(judge, pair, [(next(pair.data_sets), "true")])}
        if found != {"error"}:
            wrong[pair.name] = found

    assert pairs
    assert not wrong


def test_pairs__that_are_rendered_alike_differ_as_written(judge: SparkJudge) -> None:
    pairs = [pair for pair in load_pairs() if pair.as_written != pair.expected]
    judge.set_ansi("false")

    for pair in pairs:
        judge.create_tables(pair.tables, next(pair.data_sets))
        assert judge.compare(pair.base, pair.head) == "rows", pair.name
    assert pairs
