"""How well the review decides on the labelled changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, missing
from tests.corpus.runner import corpus_from_environment, score

pytestmark = pytest.mark.slow

# Interpreters side by side. They are fresh: a fork of pytest's own process, which holds all that
# the tests before it left behind, takes several times as long.
RUNNERS = 2
RUN_SECONDS = 1_500


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    corpus = corpus_from_environment()
    if corpus is None:
        missing("CI_BOT_CORPUS names no corpus of labelled changes")
        raise AssertionError
    out = tmp_path_factory.mktemp("reports")
    cases = sorted(case.stem for case in (corpus / "cases").glob("*.yaml"))
    runners = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.corpus.runner", str(out), *cases[part::RUNNERS]],
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
        )
        for part in range(RUNNERS)
    ]
    try:
        assert [runner.wait(RUN_SECONDS) for runner in runners] == [0] * RUNNERS
    finally:
        for runner in runners:
            runner.kill()
            runner.wait()
    found: dict[str, Any] = score(Path(corpus), out)["all"]
    return found


def test_corpus__every_case_has_a_report(scores: dict[str, Any]) -> None:
    assert scores["missing_reports"] == []


def test_corpus__no_dangerous_change_is_called_go(scores: dict[str, Any]) -> None:
    assert scores["dangerous_called_go"] == []


def test_corpus__at_most_one_in_twenty_harmless_changes_is_stopped(scores: dict[str, Any]) -> None:
    assert scores["false_no_go_rate"] <= 0.05, scores["false_no_go"]


def test_corpus__nine_of_ten_expected_findings_are_there(scores: dict[str, Any]) -> None:
    assert scores["findings_found"] >= 0.9


def test_corpus__no_false_alarm(scores: dict[str, Any]) -> None:
    assert scores["false_alarms"] == {}
