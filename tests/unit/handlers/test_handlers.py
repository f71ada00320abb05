"""The table of handlers: one for each activity, loaded when it is found."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.handlers import handler as handlers

ACTIVITIES = [kind for kind in get_args(activities.Activity) if kind is not activities.NothingToDo]


@pytest.mark.parametrize("kind", ACTIVITIES, ids=lambda kind: kind.__name__)
def test_handler__of_each_activity_handles_that_activity(kind: type[activities.Activity]) -> None:
    handler = handlers.find_handler(object.__new__(kind))
    (base,) = type(handler).__orig_bases__  # type: ignore[attr-defined] # of any generic class
    assert get_args(base) == (kind,)


def test_handler__of_a_skip__is_none_that_exists() -> None:
    with pytest.raises(KeyError):
        handlers.find_handler(activities.NothingToDo("nothing to do"))


def test_handler__of_a_comment__loads_no_review() -> None:
    code = (
        "import sys; from ci_bot.bot.actions import activities as job;"
        "from ci_bot.bot.handlers.handler import find_handler;"
        "find_handler(object.__new__(job.CommentCommand));"
        "sys.exit('ci_bot.bot.handlers.review' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
