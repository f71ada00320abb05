"""Events that need nothing: a notice, exit 0, nothing asked of GitHub, and nothing heavy imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.imports import imported
from tests.e2e.job import Job, Outcome, Runner
from tests.github_standin import events
from tests.github_standin.events import PullFacts
from tests.github_standin.scripted import ScriptedServer

REPOSITORY = "acme/warehouse"
GOAL_SECONDS = 0.4
# What a review needs and a skipped event does not: GitHub's client, templates, and of course
# everything of the worker.
HEAVY = {"sqlmesh", "sqlglot", "pyspark", "pandas", "duckdb", "github", "requests", "jinja2"}

NOT_SERVED = {
    "push": ("push", {"ref": "refs/heads/main"}, "`push` asks for nothing"),
    "issues": ("issues", {"action": "opened"}, "`issues` asks for nothing"),
    "labeled": ("pull_request", events.pull_request("labeled"), "`pull_request` labeled"),
    "edited": (
        "pull_request",
        events.pull_request("edited"),
        "its base branch was not, so the plan",
    ),
    "draft": (
        "pull_request",
        events.pull_request("converted_to_draft"),
        "`pull_request` converted_to_draft",
    ),
    "talk": ("issue_comment", events.issue_comment("Looks good to me."), "no command"),
    "mention": (
        "issue_comment",
        events.issue_comment("Shall we /sqlmesh apply this?"),
        "no command",
    ),
    "on an issue": (
        "issue_comment",
        events.issue_comment("/sqlmesh plan", on_pull=False),
        "not on a pull request",
    ),
    "edited comment": (
        "issue_comment",
        events.issue_comment("/sqlmesh plan", action="edited"),
        "Only new comments",
    ),
    "a bot's comment": (
        "issue_comment",
        events.issue_comment("/sqlmesh plan", login="github-actions[bot]"),
        "by a bot",
    ),
    "our own review": ("workflow_run", events.workflow_run(facts=PullFacts()), "own comment"),
}


@pytest.fixture
def runner(scripted_github: ScriptedServer, tmp_path: Path) -> Runner:
    return Runner(
        api_url=scripted_github.url,
        repository=REPOSITORY,
        token="ghs_" + "notserved" * 4,
        home=tmp_path / "runner",
    )


def run(
    runner: Runner, event: str, payload: Mapping[str, Any], where: Path, **more: Any
) -> Outcome:
    return runner.run(Job(event, payload, run_id=1, **more), where)


@pytest.mark.parametrize("case", NOT_SERVED, ids=lambda case: case.replace(" ", "-"))
def test_not_served__is_a_notice_and_nothing_else(
    case: str, runner: Runner, scripted_github: ScriptedServer, tmp_path: Path
) -> None:
    event, payload, says = NOT_SERVED[case]

    outcome = run(runner, event, payload, tmp_path)

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.commands) == 1
    assert says in outcome.annotations("notice")[0]
    assert outcome.outputs == {}
    assert outcome.summary == ""
    assert scripted_github.requests == []


def test_not_served__imports_nothing_heavy(runner: Runner, tmp_path: Path) -> None:
    outcome = run(runner, "push", {"ref": "refs/heads/main"}, tmp_path, python=("-X", "importtime"))

    assert outcome.exit_code == 0
    found = imported(outcome.stderr)
    assert "ci_bot.bot.handlers.run_action" in found, (
        "the list of imports is not what this test takes it for"
    )
    assert {name.partition(".")[0] for name in found} & HEAVY == set()


def test_not_served__time_is_measured(
    runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = min(run(runner, "push", {}, tmp_path).seconds for _ in range(5))

    with capsys.disabled():
        print(f"\n  an event that needs nothing: {seconds:.2f} s (goal {GOAL_SECONDS} s)")
    # The figure depends on what else the machine does; a whole project's load would be seconds.
    assert seconds < 10 * GOAL_SECONDS
