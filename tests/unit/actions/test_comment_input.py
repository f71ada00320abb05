"""The input `comment`: whether a pull request that changes no model gets a comment."""

from __future__ import annotations

import pytest

from ci_bot.bot.actions.inputs import ActionInputs
from ci_bot.bot.report.markdown.marker import decode_comment_marker
from tests.golden.conversation import Conversation
from tests.golden.samples import report

NEXT_HEAD = "b2c3d4e" + "0" * 33
CHANGES = ActionInputs(comment="changes")


def test_always__a_pull_request_without_model_changes_gets_one_line() -> None:
    found = report("no_changes")
    lines = Conversation(found).review(found).comment.splitlines()
    told = [line for line in lines if line and not line.startswith("<!--")]
    assert len(told) == 1
    assert told[0].startswith(
        "⚪ **No model changes** · `flights` → `pr_7` · ✅ 6 unit tests · ✅ lint"
    )
    assert "[full report](" in told[0]


def test_changes__a_pull_request_without_model_changes_gets_no_comment() -> None:
    found = report("no_changes")
    silent = Conversation(found, CHANGES).announce(NEXT_HEAD).review(found)
    assert not silent.has_comment


@pytest.mark.parametrize("name", ["small_change", "failed_plan", "leaked_key", "base_broken"])
def test_changes__whatever_else_there_is_to_say_is_said(name: str) -> None:
    found = report(name)
    said = Conversation(found, CHANGES).announce(NEXT_HEAD).review(found)
    assert said.has_comment
    marker = decode_comment_marker(said.comment)
    assert marker is not None
    assert marker.decision == found.decision


def test_changes__a_comment_that_is_there_does_not_lie() -> None:
    first = report("small_change")
    talk = Conversation(first, CHANGES).review(first)
    assert "Past numbers change" in talk.comment
    talk.announce(NEXT_HEAD)
    assert "Re-planning" in talk.comment
    talk.review(report("no_changes"))
    assert "No model changes" in talk.comment
    assert "Past numbers change" not in talk.comment
