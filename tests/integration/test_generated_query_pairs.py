"""What the product calls the same is the same on Spark: generated pairs, in one session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from tests.oracle.fuzzing import FULL
from tests.query_pairs.generate import generate_mix, generate_operator_pairs, generate_pairs
from tests.query_pairs.on_spark import SparkJudge, open_judge
from tests.query_pairs.queries import GRAMMARS
from tests.query_pairs.run_generated import GeneratedRun

# By night alone until a whole run has been seen to end well: by day only the pairs by hand are judged.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm, pytest.mark.night]

NIGHTLY = 5_000
CALLED_SAME = 300


@pytest.fixture(scope="module")
def judge(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkJudge]:
    with open_judge(tmp_path_factory.mktemp("spark")) as found:
        yield found


def test_generated_pairs__called_the_same_give_the_same_rows(judge: SparkJudge) -> None:
    found = GeneratedRun(judge).run(
        generate_mix(0, NIGHTLY), called_same=None if FULL else CALLED_SAME
    )
    print(found)

    wrong = [*found.wrong, *found.crashing]
    assert not wrong, "\n".join(map(str, wrong))
    assert found.counts["same"] >= CALLED_SAME


@pytest.mark.night
def test_operators__called_the_same_give_the_same_rows(judge: SparkJudge) -> None:
    found = GeneratedRun(judge).run(generate_operator_pairs())
    print(found)

    wrong = [*found.wrong, *found.crashing]
    assert not wrong, "\n".join(map(str, wrong))
    assert found.counts["same"] >= CALLED_SAME


@pytest.mark.night
@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars__make_pairs_that_run_and_of_which_some_differ(
    name: str, judge: SparkJudge
) -> None:
    of_grammar = (pair for pair in generate_pairs() if pair.pair.name.split()[0] == name)
    run = GeneratedRun(judge, claim=lambda pair: "same")
    counts = Counter(run.check(pair).partition(":")[0] for pair in islice(of_grammar, 40))
    print(f"{name}: {dict(counts)}")

    assert counts["differs"] >= 4
    assert counts["same"] + counts["one text"] >= 4


def test_mutation__a_claim_that_forgets_parentheses_is_caught(judge: SparkJudge) -> None:
    run = GeneratedRun(judge, claim=lambda pair: "same")
    pairs = (pair for pair in generate_operator_pairs() if pair.pair.name == "+ * left")

    assert [wrong.how for wrong in run.run(pairs).wrong] == ["rows"]
