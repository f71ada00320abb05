"""When a run writes a check, and what becomes of it where GitHub does not take one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.handlers import review
from ci_bot.errors import BotError, GitHubUnavailable, RequestRefused
from tests.factories import HEAD
from tests.publishing import Memory
from tests.unit.handlers.test_comment_not_shown import Run, report, shows

FORBIDDEN = RequestRefused("The token may not write a check.", reason_code="missing_permission")
ANNOTATED = re.compile("^::(?:error|warning|notice)", re.MULTILINE)
DOWN = GitHubUnavailable("GitHub did not answer.", hint="Run the job again.")


def test_review__writes_one_check_at_the_head(tmp_path: Path) -> None:
    github = Memory()
    run = Run(github, tmp_path)
    assert run.end(report("review")) == 0
    (check,) = github.checks
    assert (check.head, check.conclusion) == (HEAD, "neutral")
    assert len(check.annotations) == 1
    assert not ANNOTATED.search(run.log), "a finding stands at its line once"


def test_review__without_the_permission__says_so_once_and_is_as_before(tmp_path: Path) -> None:
    github = Memory(failing={"write_check": FORBIDDEN})
    run = Run(github, tmp_path)
    assert run.end(report("go")) == 0
    assert run.log.count("checks: write") == 1
    assert len(ANNOTATED.findall(run.log)) == 1, "the finding, and nothing about the check"
    assert run.outputs["reason-code"] == "go"
    assert github.calls.count("write_check") == 1


@pytest.mark.parametrize("error", [DOWN, BotError("It is not taken.", hint="Report it.")])
def test_review__whose_check_github_does_not_take__warns_and_passes(
    tmp_path: Path, error: BotError
) -> None:
    github = Memory(failing={"write_check": error})
    run = Run(github, tmp_path)
    assert run.end(report("go")) == 0
    assert run.log.count("::warning::The check was not written") == 1


def test_review__of_a_fork__writes_no_check(tmp_path: Path) -> None:
    github = Memory()
    run = Run(github, tmp_path)
    activity = activities.Review(number=142, head_sha=HEAD, untrusted="It is a fork.")
    review.publish_review(report("go"), activity, run.publisher.settings, run.publisher)
    assert github.checks == []


def test_review__below_a_newer_comment__leaves_the_check_as_well(tmp_path: Path) -> None:
    github = Memory()
    shows(github, "no_go", head=HEAD, run_id=9)
    run = Run(github, tmp_path)
    run.end(report("go"))
    assert "does not show the result of this run" in run.log
    assert github.checks == []


def test_review__without_a_comment__of_a_merge_queue__writes_the_check(tmp_path: Path) -> None:
    github = Memory()
    run = Run(github, tmp_path)
    run.publisher.sticky = None
    run.end(report("go"))
    assert [check.conclusion for check in github.checks] == ["success"]
