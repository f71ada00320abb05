"""What a run reports at its end reaches GitHub, and a request to stop is no failure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ci_bot.bot.actions.workflow_commands import ActionStepOutputs
from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.markdown.marker import CommentMarkerFacts
from ci_bot.bot.report.model.context import CommentViewContext, RenderedText
from ci_bot.bot.worker_client.failures import make_activity_failure_of_worker
from ci_bot.errors import BotError, GitHubUnavailable, RunCancelled
from ci_bot.redaction import Redactor
from tests.factories import make_context, make_report
from tests.publishing import Memory, publisher_of


def unwilling(error: BotError) -> Memory:
    """A GitHub that fails, or in the middle of whose answer a signal comes."""
    return Memory(failing={"list_comments": error, "create_comment": error})


def render(_context: CommentViewContext, _budget: int | None) -> RenderedText:
    return RenderedText("text", [])


def test_try__a_failure_of_github_is_told_and_nothing_more() -> None:
    desk = publisher_of(unwilling(GitHubUnavailable("GitHub is down.")))

    assert not desk.try_post("applying", CommentMarkerFacts(), render)
    assert not desk.try_note("a note")

    out = desk.machine.out
    assert isinstance(out, io.StringIO)
    assert "The comment could not be updated: GitHub is down." in out.getvalue()
    assert "No note could be written: GitHub is down." in out.getvalue()


def test_try__a_wish_to_stop_goes_through() -> None:
    desk = publisher_of(unwilling(RunCancelled("The run was terminated.")))

    with pytest.raises(RunCancelled):
        desk.try_post("applying", CommentMarkerFacts(), render)
    with pytest.raises(RunCancelled):
        desk.try_note("a note")


def test_earlier_review__loses_what_only_this_run_knows() -> None:
    """The comment was written by a run that was not told of this secret."""
    body = render_review_comment(make_report(), make_context()).text.replace(
        "how to reproduce", "how to hunter22x"
    )
    assert "hunter22x" in body
    github = Memory()
    github.say(body)
    desk = publisher_of(github)
    told = desk.read_earlier_review()
    assert told is not None and "hunter22x" in told.text

    desk.redactor = Redactor(["hunter22x"])

    told = desk.read_earlier_review()
    assert told is not None and "hunter22x" not in told.text


def test_failure__of_the_bot_itself_loses_its_secrets() -> None:
    error = BotError("No login for hunter22x.", hint="Not hunter22x.", path="a/hunter22x.sql")
    failure = make_activity_failure_of_worker(error, "plan", Redactor(["hunter22x"]))
    assert "hunter22x" not in failure.to_json()
    assert failure.message == "No login for ***."


def test_outputs__know_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "output"
    outputs = ActionStepOutputs(path, delimiter=lambda: "0" * 64, warn=pytest.fail)
    assert not outputs.has_output("result")

    outputs.set_output("other", "x\nresult<<no\n")
    assert not outputs.has_output("result")

    outputs.set_output("result", "{}")
    assert outputs.has_output("result")
    assert not ActionStepOutputs(None, delimiter=lambda: "0" * 64, warn=pytest.fail).has_output(
        "result"
    )
