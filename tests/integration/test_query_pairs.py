"""What is expected of the pairs of queries is what Spark says. One session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.fuzzing import FULL
from tests.query_pairs.judge import models_of, rendered_text
from tests.query_pairs.on_spark import ANSI_MODES, SparkJudge, open_judge
from tests.query_pairs.pairs import Data, QueryPair, load_pairs

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# Random data sets of a pair that is the same.
DATA_SETS = 30 if FULL else 2


@pytest.fixture(scope="module")
def judge(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkJudge]:
    with open_judge(tmp_path_factory.mktemp("spark")) as found:
        yield found


def differences(judge: SparkJudge, pair: QueryPair, data: Data, mode: str) -> set[str]:
    """How the pair differs over a data set, as it is written and as SQLMesh renders it."""
    judge.set_ansi("false")
    judge.create_tables(pair.tables, data)
    judge.set_ansi(mode)
    base, head = (rendered_text(model) for model in models_of(pair))
    found = (judge.compare(pair.base, pair.head), judge.compare(base, head))
    assert found[0] == found[1], f"{pair.name}: SQLMesh renders what gives something else"
    return set(found) - {""}


def test_pairs__of_the_same_result_agree_on_all_data(judge: SparkJudge) -> None:
    wrong = [
        (pair.name, mode, data)
        for pair in load_pairs()
        if pair.expected == "same"
        for place, data in enumerate((*pair.data_sets, *pair.random_data_sets(DATA_SETS)))
        for mode in ANSI_MODES[place % 2 :: 2]
        if differences(judge, pair, data, mode)
    ]

    assert not wrong


def test_pairs__of_other_results_differ_somewhere(judge: SparkJudge) -> None:
    alike = [
        pair.name
        for pair in load_pairs()
        if pair.expected == "differs"
        and not any(
            differences(judge, pair, data, "false") & {"rows", "columns"} for data in pair.data_sets
        )
    ]

    assert not alike
