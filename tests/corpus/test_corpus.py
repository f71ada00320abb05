"""How well the review decides on labelled changes: those of this repository, always, and those of
a larger corpus where CI_BOT_CORPUS names one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import REPOSITORY
from tests.corpus.labelled import Case, Outcome, outcome, read_cases, share

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
KEYWORDS = yaml.safe_load((HERE / "keywords.yaml").read_text("utf-8"))
OWN_CASES = 20
# Interpreters side by side. They are fresh: a fork of pytest's own process, which holds all that
# the tests before it left behind, takes several times as long.
RUNNERS = 2
RUN_SECONDS = 1_500


def corpora() -> dict[str, Path]:
    """Every corpus that is scored. One that is named and not there fails its tests."""
    named = os.environ.get("CI_BOT_CORPUS")
    return {"repository": HERE} | ({"CI_BOT_CORPUS": Path(named)} if named else {})


@pytest.fixture(scope="module", params=corpora())
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Outcome]:
    corpus = corpora()[request.param]
    cases = read_cases(corpus)
    assert cases, f"{corpus} holds no labelled changes"
    out = tmp_path_factory.mktemp("reports")
    ids = [case.id for case in cases]
    runners = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.corpus.runner", str(corpus), str(out), *part],
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
        )
        for part in (ids[number::RUNNERS] for number in range(RUNNERS))
    ]
    try:
        assert [runner.wait(RUN_SECONDS) for runner in runners] == [0] * RUNNERS
    finally:
        for runner in runners:
            runner.kill()
            runner.wait()
    return [_outcome(case, out / case.id / "report.json") for case in cases]


def _outcome(case: Case, report: Path) -> Outcome:
    told = json.loads(report.read_text("utf-8")) if report.is_file() else None
    return outcome(case, told, KEYWORDS)


def test_corpus__of_the_repository_is_complete() -> None:
    cases = read_cases(HERE)
    assert len(cases) == OWN_CASES
    assert 5 < sum(case.danger for case in cases) < 15, "dangerous ones and harmless ones"
    assert all(case.wanted for case in cases if case.danger)
    assert all(case.unwanted for case in cases if not case.danger)


def test_corpus__every_case_has_a_report(outcomes: list[Outcome]) -> None:
    assert [one.case.id for one in outcomes if one.decision is None] == []


def test_corpus__no_dangerous_change_is_called_go(outcomes: list[Outcome]) -> None:
    assert [one.case.id for one in outcomes if one.let_through] == []


def test_corpus__at_most_one_in_twenty_harmless_changes_is_stopped(outcomes: list[Outcome]) -> None:
    harmless = [one for one in outcomes if not one.case.danger]
    stopped = [one.case.id for one in harmless if one.decision == "no_go"]
    assert share(stopped, harmless) <= 0.05, stopped


def test_corpus__nineteen_of_twenty_decisions_are_a_right_one(outcomes: list[Outcome]) -> None:
    wrong = {one.case.id: one.decision for one in outcomes if not one.right}
    assert share(wrong, outcomes) <= 0.05, wrong


def test_corpus__nine_of_ten_expected_findings_are_there(outcomes: list[Outcome]) -> None:
    wanted = [want for one in outcomes for want in one.case.wanted]
    lacking = {one.case.id: one.lacking for one in outcomes if one.lacking}
    missed = [want for one in outcomes for want in one.lacking]
    assert share(missed, wanted) <= 0.1, lacking


def test_corpus__no_false_alarm(outcomes: list[Outcome]) -> None:
    assert {one.case.id: one.alarms for one in outcomes if one.alarms} == {}
