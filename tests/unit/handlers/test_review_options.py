"""What only GitHub and the inputs know of a pull request reaches the review."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_bot.bot.actions.activities import Review
from ci_bot.bot.actions.inputs import ActionInputs, ActionRunnerFacts, ActionSettings
from ci_bot.bot.github.port import PullRequest
from ci_bot.bot.handlers.review import make_options_of_review_run
from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits, WorkerReviewOptions
from tests.unit.handlers.test_gate import PULL

RUNNER = ActionRunnerFacts(
    repository="shop/warehouse",
    api_url="https://api.github.com",
    server_url="https://github.com",
    workspace="/nowhere",
    event_name="pull_request",
    event_path="/nowhere/event.json",
)


def options(pull: PullRequest | None, untrusted: str | None = None) -> WorkerReviewOptions:
    settings = ActionSettings(
        inputs=ActionInputs(max_intervals=7, max_executor_hours=2.5), runner=RUNNER
    )
    activity = Review(number=7, untrusted=untrusted)
    return make_options_of_review_run(activity, settings, "pr_7", RequestedReviewCommits(), pull)


@pytest.mark.parametrize(
    ("pull", "conflict"),
    [
        (PULL, False),
        (replace(PULL, mergeable=None), False),
        (replace(PULL, mergeable=False), True),
        (None, False),
    ],
)
def test_conflict__is_what_github_says(pull: PullRequest | None, conflict: bool) -> None:
    assert options(pull).conflict is conflict


def test_fork__is_reviewed_without_state() -> None:
    found = options(PULL, untrusted="It comes from a fork.")
    assert (found.fork, found.baseline) == (True, "base-branch")
    assert not options(PULL).fork


def test_limits__are_the_inputs() -> None:
    limits = options(PULL).limits
    assert (limits.max_intervals, limits.max_executor_hours) == (7, 2.5)
