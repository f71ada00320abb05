"""GitHub refuses a comment, or keeps another: what the run says of it, and how it ends."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.actions.workflow_commands import ActionStepOutputs, ActionStepSummary
from ci_bot.bot.handlers import review
from ci_bot.bot.report.markdown.marker import decode_comment_marker, encode_comment_marker
from ci_bot.errors import GitHubUnavailable
from ci_bot.protocol.plan import Decision
from ci_bot.protocol.review_report import Report
from tests.factories import HEAD, make_context, make_marker, make_report
from tests.oracle.runner import read_file_command
from tests.publishing import RUNNER, Memory, publisher_of

OLD_HEAD = "d" * 40
LIMITED = GitHubUnavailable("GitHub limits this token.", hint="Run the job again.")


def shows(github: Memory, decision: Decision, author: str | None = None, **facts: Any) -> None:
    given = {"head": OLD_HEAD, "decision": decision, "phase": "planned", "run_id": 3, **facts}
    text = f"{encode_comment_marker(make_marker(**given))}\nThe review."
    github.say(text, author) if author else github.say(text)


class Run:
    """A review that ends with a report."""

    def __init__(self, github: Memory, tmp_path: Path, **inputs: Any) -> None:
        runner = replace(RUNNER, workspace=str(tmp_path), run_id=7)
        settings = ActionSettings(inputs=ActionInputs(**inputs), runner=runner)
        self.publisher = publisher_of(github, settings=settings, template=make_context(marker=None))
        self.publisher.outputs = ActionStepOutputs(
            tmp_path / "output", delimiter=lambda: "d" * 32, warn=pytest.fail
        )
        self.publisher.summary = ActionStepSummary(tmp_path / "summary", warn=pytest.fail)
        self._settings = settings
        self._path = tmp_path

    def end(self, report: Report) -> int:
        activity = activities.Review(number=142, head_sha=report.head_sha, base_sha=report.base_sha)
        return review.publish_review(report, activity, self._settings, self.publisher)

    @property
    def outputs(self) -> dict[str, str]:
        return dict(read_file_command((self._path / "output").read_text()))

    @property
    def summary(self) -> str:
        return (self._path / "summary").read_text()

    @property
    def log(self) -> str:
        out = self.publisher.machine.out
        assert isinstance(out, io.StringIO)
        return out.getvalue()


def report(decision: Decision) -> Report:
    return make_report().model_copy(update={"decision": decision, "head_sha": HEAD})


def test_announcement__that_is_refused__is_one_line_and_the_report_comes(tmp_path: Path) -> None:
    github = Memory()
    shows(github, "go")
    run = Run(github, tmp_path)
    github.failing["update_comment"] = LIMITED
    review.announce_planning_in_comment(HEAD, run.publisher)
    assert github.waits == [5.0], "no rate limit is waited for before the plan"
    assert "::warning" not in run.log
    assert "does not say yet that a plan is being made: GitHub limits this token." in run.log
    del github.failing["update_comment"]
    assert run.end(report("review")) == 0
    marker = decode_comment_marker(github.comments[0].body)
    assert marker is not None and (marker.head, marker.decision) == (HEAD, "review")
    assert "could not be" not in run.log


def test_announcement__whose_comments_cannot_be_read__leaves_the_report_its_comment(
    tmp_path: Path,
) -> None:
    github = Memory()
    shows(github, "go")
    run = Run(github, tmp_path)
    github.failing["list_comments"] = LIMITED
    review.announce_planning_in_comment(HEAD, run.publisher)
    github.failing.clear()
    assert run.end(report("go")) == 0
    assert len([text for text in github.comments if decode_comment_marker(text.body)]) == 1
    marker = decode_comment_marker(github.comments[0].body)
    assert marker is not None and marker.head == HEAD


@pytest.mark.parametrize(
    ("shown", "decision", "fail_on", "code"),
    [
        ("go", "review", None, 1),
        ("no_changes", "review", None, 1),
        ("go", "review", "high", 1),
        ("go", "no_go", None, 1),
        # What is shown is as strict as what is true, or people alone decide.
        ("go", "go", None, 0),
        ("no_changes", "go", None, 0),
        ("review", "review", None, 0),
        ("no_go", "review", None, 0),
        ("review", "go", None, 0),
        ("go", "review", "never", 0),
        ("go", "no_go", "never", 0),
    ],
)
def test_report__that_github_refuses__never_passes_below_a_lighter_one(
    tmp_path: Path, shown: Decision, decision: Decision, fail_on: Any, code: int
) -> None:
    github = Memory(failing={"update_comment": LIMITED})
    shows(github, shown)
    run = Run(github, tmp_path, fail_on=fail_on)
    assert run.end(report(decision)) == code
    assert "could not be updated: GitHub limits this token. Run the job again." in run.log
    assert f"commit {OLD_HEAD[:7]}." in run.log
    assert "could not be updated" in run.summary
    assert f"`{OLD_HEAD[:7]}`" in run.summary
    assert '"reported":false' in run.outputs["result"]
    assert f'"exit_code":{code}' in run.outputs["result"]
    assert run.outputs["decision"] == decision
    misleads = code == 1 and decision != "no_go" and fail_on is None
    assert (run.outputs["reason-code"] == "not_reported") is misleads
    assert ("This check fails because" in run.log) is misleads


def test_report__with_no_comment_to_deceive__ends_with_its_decision(tmp_path: Path) -> None:
    run = Run(Memory(failing={"create_comment": LIMITED}), tmp_path)
    assert run.end(report("review")) == 0
    assert "It shows" not in run.log


def test_report__below_what_seems_newer__is_said_with_the_way_out(tmp_path: Path) -> None:
    github = Memory()
    shows(github, "go", run_id=10**9)
    run = Run(github, tmp_path)
    assert run.end(report("review")) == 0
    for text in (run.log, run.summary.replace("`", "")):
        assert "run 1000000000 has written what seems to be newer" in text
        assert "It shows Go for commit ddddddd." in text
        assert "/sqlmesh plan" in text


def test_others__with_our_mark__are_named_in_comment_and_log(tmp_path: Path) -> None:
    """The token was changed: the comment of the one before is not ours, and goes on to say Go."""
    github = Memory()
    shows(github, "go", "octo-bot[bot]")
    run = Run(github, tmp_path)
    assert run.end(report("review")) == 0
    told = github.comments[1].body
    assert "`octo-bot[bot]`, carries the mark of these reports, too" in told
    assert github.comments[0].url in told
    assert "only this one counts" in told
    assert run.log.count("carries the mark of these reports") == 1
    assert "octo-bot" in run.log
    assert github.comments[0].body.endswith("The review."), "what is not ours stays as it is"
