"""What a run says at its end survives GitHub, and a wish to stop is never taken for a failure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ci_bot.actions.files import Outputs
from ci_bot.errors import BotError, Cancelled, GitHubUnavailable
from ci_bot.pull_request.desk import Facts
from ci_bot.rendering.context import CommentContext, Rendered
from tests.unit.test_command_activity import Memory, desk_of


def unwilling(error: BotError) -> Memory:
    """A GitHub that fails, or in the middle of whose answer a signal comes."""
    return Memory(failing={"list_comments": error, "create_comment": error})


def render(_context: CommentContext, _budget: int | None) -> Rendered:
    return Rendered("text", [])


def test_try__a_failure_of_github_is_told_and_nothing_more() -> None:
    desk = desk_of(unwilling(GitHubUnavailable("GitHub is down.")))

    assert not desk.try_post("applying", Facts(), render)
    assert not desk.try_note("a note")

    out = desk.around.out
    assert isinstance(out, io.StringIO)
    assert "The comment could not be updated: GitHub is down." in out.getvalue()
    assert "No note could be written: GitHub is down." in out.getvalue()


def test_try__a_wish_to_stop_goes_through() -> None:
    desk = desk_of(unwilling(Cancelled("The run was terminated.")))

    with pytest.raises(Cancelled):
        desk.try_post("applying", Facts(), render)
    with pytest.raises(Cancelled):
        desk.try_note("a note")


def test_outputs__know_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "output"
    outputs = Outputs(path, delimiter=lambda: "0" * 64)
    assert not outputs.holds("result")

    outputs.set("other", "x\nresult<<no\n")
    assert not outputs.holds("result")

    outputs.set("result", "{}")
    assert outputs.holds("result")
    assert not Outputs(None, delimiter=lambda: "0" * 64).holds("result")
