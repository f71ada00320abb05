"""Comment commands from the event file to GitHub, against the stand-in, with no checkout anywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.actions import activities, choose_activity
from ci_bot.bot.actions.event import read_github_event
from ci_bot.bot.actions.inputs import ActionInputs
from ci_bot.bot.report.markdown import marker as markers
from ci_bot.protocol.plan import Window
from tests.factories import make_marker
from tests.github_standin import script
from tests.github_standin.pull import Pull
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.in_process import Ran, RunnerMachine

pytestmark = pytest.mark.standin

ROOT = Path(__file__).parents[2]
BOT = "github-actions[bot]"
PLAN = "9f3c21aa01bc" + "0" * 52


def example(name: str) -> dict[str, Any]:
    text = (ROOT / ".github" / "examples" / name).read_text("utf-8")
    return dict(YAML(typ="safe").load(text))


class Team:
    """A repository with an open pull request and the example workflows."""

    def __init__(self, standin: GitHubStandin, repo: Repo, home: Path) -> None:
        self.standin, self.repo = standin, repo
        repo.commit("feature", {"models/a.sql": "SELECT 1"}, start="main")
        self.pull: Pull = repo.create_pull("feature")
        for name in ("apply.yml", "review.yml"):
            declared = example(name)["on"]["workflow_dispatch"]["inputs"]
            repo.add_workflow(
                name, {name: bool(given.get("required")) for name, given in declared.items()}
            )
        job = example("comments.yml")["jobs"]["command"]
        self.machine = RunnerMachine(
            api_url=standin.url,
            repository=repo.full_name,
            token=standin.actions_token(repo, job["permissions"]),
            home=home,
        )

    def planned(self, **facts: Any) -> None:
        """The review's comment, as the review leaves it."""
        marker = make_marker(
            **{
                "key": self.repo.full_name.rpartition("/")[2],
                "pr": self.pull.number,
                "env": f"pr_{self.pull.number}",
                "head": self.pull.head_sha,
                "plan": PLAN,
                "window": Window(start=None, end=None, execution_time="2026-08-22T10:00:00Z"),
                **facts,
            }
        )
        self.pull.add_comment(f"{markers.encode_comment_marker(marker)}\nThe review.", BOT)

    def say(self, text: str, login: str = "writer") -> tuple[Ran, dict[str, Any]]:
        """Somebody comments, and GitHub starts comments.yml."""
        comment = self.pull.add_comment(text, login)
        return self.machine.run("issue_comment", self.pull.comment_event(comment)), comment

    def reactions(self, comment: dict[str, Any]) -> list[str]:
        found = next(each for each in self.pull.comments() if each["id"] == comment["id"])
        return [name for name in ("eyes", "rocket", "-1") if found["reactions"][name]]

    @property
    def replies(self) -> list[str]:
        bodies = [str(each["body"]) for each in self.pull.comments_by(BOT)]
        return [body for body in bodies if markers.decode_comment_marker(body) is None]


@pytest.fixture
def team(github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path) -> Team:
    return Team(github_standin, github_repo, tmp_path)


def test_apply__is_dispatched_to_the_example_workflow_as_it_declares_its_inputs(team: Team) -> None:
    team.planned()
    ran, comment = team.say(f"/sqlmesh apply {PLAN[:12]}\r\nplease")
    assert ran.exit_code == 0, ran.stdout
    (made,) = team.repo.dispatches
    assert (made.workflow, made.ref) == ("apply.yml", "main")
    assert dict(made.inputs) == {
        "pr-number": str(team.pull.number),
        "plan-id": PLAN[:12],
        "comment-id": str(comment["id"]),
        "mode": "apply",
        "override-reason": "",
    }
    assert team.reactions(comment) == ["eyes", "rocket"]
    assert team.replies == []
    assert len(team.standin.requests) == 7
    assert ran.result["result"] == "started"
    assert ran.outputs["environment"] == f"pr_{team.pull.number}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"/sqlmesh apply {PLAN[:12]}", activities.Apply),
        ("/sqlmesh plan", activities.Review),
        ("/sqlmesh cleanup", activities.Cleanup),
    ],
)
def test_command__starts_a_run_that_is_understood_as_it_was_meant(
    team: Team, text: str, kind: type
) -> None:
    """What the started workflow gets is read by the same code that will read it there."""
    team.planned()
    _, comment = team.say(text)
    (made,) = team.repo.dispatches
    payload = team.repo.dispatch_event(made)
    given = {name: str(value) for name, value in made.inputs.items()}
    # In review.yml the mode stands in the file; in apply.yml it is an input.
    steps = example(made.workflow)["jobs"].popitem()[1]["steps"]
    (step,) = (each["with"] for each in steps if "mode" in each.get("with", {}))
    mode = step["mode"] if made.workflow == "review.yml" else given["mode"]
    event = read_github_event("workflow_dispatch", json.dumps(payload))
    chosen = choose_activity.choose_activity(event, ActionInputs(mode=mode), actor=BOT)
    assert isinstance(chosen, kind)
    assert getattr(chosen, "number", None) == team.pull.number
    if not isinstance(chosen, activities.Review):
        assert getattr(chosen, "comment_id", None) == comment["id"]
    if isinstance(chosen, activities.Apply):
        assert chosen.command.plan_id == PLAN[:12]


@pytest.mark.parametrize("login", ["reader", "triager", "outsider"])
def test_command__of_somebody_who_may_not_write_is_refused(team: Team, login: str) -> None:
    team.planned()
    ran, comment = team.say(f"/sqlmesh apply {PLAN[:12]}", login)
    assert ran.exit_code == 3
    assert team.repo.dispatches == []
    assert team.reactions(comment) == ["-1"]
    (reply,) = team.replies
    assert "`permission`" in reply
    assert f"`@{login}`" in reply
    assert ran.outputs["reason-code"] == "permission"
    assert len(team.standin.requests) == 3


def test_command__override_reaches_the_workflow_word_by_word(team: Team) -> None:
    team.planned(decision="no_go")
    ran, _ = team.say(
        f'/sqlmesh apply {PLAN[:8]} --override "loss is fine; $(id) `x`"', "maintainer"
    )
    assert ran.exit_code == 0, ran.stdout
    (made,) = team.repo.dispatches
    assert made.inputs["override-reason"] == "loss is fine; $(id) `x`"


def test_command__status_and_help_answer_with_a_comment(team: Team) -> None:
    team.planned(phase="applied")
    ran, _ = team.say("/sqlmesh status")
    assert ran.exit_code == 0
    assert f"`pr_{team.pull.number}`" in team.replies[-1]
    assert f"`{PLAN[:12]}`" in team.replies[-1]
    ran, comment = team.say("/sqlmesh destroy everything")
    assert ran.exit_code == 2
    assert "This verb is not known." in team.replies[-1]
    assert "everything" not in team.replies[-1]
    assert team.reactions(comment) == ["eyes", "-1"]
    assert team.repo.dispatches == []


def test_command__without_actions_write_says_which_permission_is_missing(team: Team) -> None:
    team.machine.token = team.standin.actions_token(team.repo, {"pull-requests": "write"})
    ran, comment = team.say("/sqlmesh plan")
    assert ran.exit_code == 3
    assert "`actions: write`" in team.replies[-1]
    assert team.reactions(comment) == ["eyes", "-1"]


def test_plan__runs_where_the_credentials_only_read(team: Team) -> None:
    ran, _ = team.say("/sqlmesh plan")
    assert ran.exit_code == 0, ran.stdout
    (made,) = team.repo.dispatches
    assert (made.workflow, made.ref) == ("review.yml", "main")
    assert dict(made.inputs) == {"pr-number": str(team.pull.number)}
    job = example(made.workflow)["jobs"]["review"]
    assert job["environment"]["name"] == "sqlmesh-review"
    assert "WRITER" not in str(job)


@pytest.mark.parametrize(("text", "file"), [("plan", "review"), ("cleanup", "apply")])
def test_command__without_its_workflow_says_which_to_copy(team: Team, text: str, file: str) -> None:
    team.repo._state.workflows.clear()
    ran, _ = team.say(f"/sqlmesh {text}")
    assert ran.exit_code == 2
    assert "`workflow_not_started`" in team.replies[-1]
    assert f"does not start `{file}.yml`" in team.replies[-1]
    assert "examples" in team.replies[-1]


def test_plan__where_review_yml_is_of_an_earlier_release(team: Team) -> None:
    """GitHub's words where a workflow has no `workflow_dispatch`."""
    said = "Workflow does not have 'workflow_dispatch' trigger"
    reply = script.Reply(status=422, json={"message": said})
    team.standin.script.on("POST", r".*/dispatches", reply)
    ran, _ = team.say("/sqlmesh plan")
    assert ran.exit_code == 2
    assert ran.outputs["reason-code"] == "workflow_not_started"
    assert "does not have" in team.replies[-1]
    assert "defect of the bot" not in team.replies[-1]


def test_command__that_github_may_have_started_is_not_sent_twice(team: Team) -> None:
    team.standin.script.on("POST", r".*/dispatches", script.server_error(502, store_first=True))
    ran, _ = team.say("/sqlmesh plan")
    assert ran.exit_code == 1
    assert len(team.repo.dispatches) == 1
    assert "Actions tab" in team.replies[-1]


def test_command__plan_of_a_fork_starts_nothing(team: Team) -> None:
    fork = team.repo.fork("outsider")
    fork.commit("theirs", {"models/b.sql": "SELECT 2"}, start="main")
    pull = team.repo.create_pull("theirs", author="outsider", head_repo=fork)
    comment = pull.add_comment("/sqlmesh plan", "maintainer")
    ran = team.machine.run("issue_comment", pull.comment_event(comment))
    assert ran.exit_code == 3
    assert ran.outputs["reason-code"] == "fork"
    assert team.repo.dispatches == []


@pytest.mark.parametrize(
    "text",
    ["looks good", "> /sqlmesh apply 0123456789ab", "    /sqlmesh plan", "Please /sqlmesh plan"],
)
def test_comment__that_is_no_command_asks_github_nothing(team: Team, text: str) -> None:
    ran, comment = team.say(text)
    assert ran.exit_code == 0
    assert team.standin.requests == []
    assert team.reactions(comment) == []


def test_command__reads_nothing_of_a_checkout_and_needs_no_sqlmesh(team: Team) -> None:
    """The project that the inputs name does not exist, and nobody looks for it."""
    before = {name for name in sys.modules if name.partition(".")[0] in ("sqlmesh", "pyspark")}
    comment = team.pull.add_comment("/sqlmesh plan", "writer")
    ran = team.machine.run(
        "issue_comment",
        team.pull.comment_event(comment),
        workspace=Path("/nonexistent/checkout"),
        project="analytics",
        requirements="requirements.txt",
    )
    assert ran.exit_code == 0, ran.stdout
    after = {name for name in sys.modules if name.partition(".")[0] in ("sqlmesh", "pyspark")}
    assert after == before
