"""A fork's report from the other run's artifact to the comment, against the stand-in, no checkout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.report.markdown import marker as markers
from ci_bot.protocol.review_report import Report
from tests.factories import make_change, make_report, make_risk
from tests.github_standin import events, script
from tests.github_standin.pull import Pull
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.github_standin.state import Run
from tests.in_process import Ran, RunnerMachine
from tests.unit.report.dom import parse

pytestmark = pytest.mark.standin

ROOT = Path(__file__).parents[2]
BOT = "github-actions[bot]"
EXAMPLE = ROOT / ".github" / "examples" / "comments.yml"


class Fork:
    """A repository with a pull request from a fork, whose review ran and left what it left."""

    def __init__(self, standin: GitHubStandin, repo: Repo, home: Path) -> None:
        self.standin, self.repo = standin, repo
        self.copy = repo.fork("outsider")
        self.copy.commit("theirs", {"models/a.sql": "SELECT 1"}, start="main")
        self.pull: Pull = repo.create_pull("theirs", author="outsider", head_repo=self.copy)
        workflow = repo.add_workflow("review.yml")
        repo.set_ref("theirs-head", self.pull.head_sha)
        self.review: Run = repo.add_run(workflow, "theirs-head")
        job = YAML(typ="safe").load(EXAMPLE.read_text("utf-8"))["jobs"]["fork-report"]
        self.machine = RunnerMachine(
            api_url=standin.url,
            repository=repo.full_name,
            token=standin.actions_token(repo, job["permissions"]),
            home=home,
        )

    def report(self, **facts: Any) -> Report:
        return make_report(
            **{
                "head_sha": self.pull.head_sha,
                "environment": f"pr_{self.pull.number}",
                "baseline": "base-branch",
                **facts,
            }
        )

    def leave(self, content: Report | bytes) -> None:
        """The review's last step uploads its directory."""
        data = content.to_json().encode() if isinstance(content, Report) else content
        files = {"report.json": data, "report.md": b"# Approved\n@admin merge this"}
        self.repo.add_artifact(self.review, "ci-bot-report", files)

    def post(self, **changes: Any) -> Ran:
        """GitHub starts comments.yml."""
        facts = events.PullFacts.from_api(self.pull.json)
        event = events.workflow_run(facts=facts, run_id=self.review.id)
        event["workflow_run"] |= changes
        return self.machine.run("workflow_run", event)

    @property
    def comments(self) -> list[str]:
        return [str(each["body"]) for each in self.pull.comments_by(BOT)]


@pytest.fixture
def fork(github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path) -> Fork:
    return Fork(github_standin, github_repo, tmp_path)


def test_post__writes_the_report_as_our_comment_and_then_edits_it(fork: Fork) -> None:
    fork.leave(fork.report())
    ran = fork.post()
    assert ran.exit_code == 0, ran.stdout
    (comment,) = fork.comments
    marker = markers.decode_comment_marker(comment)
    assert marker is not None
    assert (marker.pr, marker.env) == (fork.pull.number, f"pr_{fork.pull.number}")
    assert (marker.head, marker.phase) == (fork.pull.head_sha, "planned")
    assert marker.plan is None, "an apply must not be able to start from it"
    assert "This pull request comes from a fork" in comment
    assert "`stg.orders`" in comment
    assert f"/actions/runs/{fork.review.id}#artifacts" in comment
    assert "merge this" not in comment
    assert ran.result["pr_number"] == fork.pull.number
    fork.machine.clock.sleep(60)
    fork.leave(fork.report(decision="no_go", reasons=["`x`: worse"]))
    assert fork.post().exit_code == 0
    (again,) = fork.comments
    assert "No-Go" in again


def test_post__costs_at_most_six_requests(fork: Fork) -> None:
    fork.leave(fork.report())
    fork.post()
    api = [each for each in fork.standin.requests if "/_downloads/" not in each.request.path]
    assert len(api) <= 6, [str(each) for each in api]
    assert len(fork.standin.writes) == 1


def test_post__takes_no_identity_from_the_artifact(fork: Fork) -> None:
    """Another pull request, its environment and its base, all claimed by a valid report."""
    fork.repo.commit("other", {"b": "2"}, start="main")
    other = fork.repo.create_pull("other", number=fork.pull.number + 3)
    claimed = fork.report(
        environment=f"pr_{other.number}", base_sha="f" * 40, decision="go", baseline="state"
    )
    fork.leave(claimed)
    ran = fork.post()
    assert ran.exit_code == 0, ran.stdout
    assert other.comments_by(BOT) == []
    (comment,) = fork.comments
    assert f"pr_{other.number}" not in comment
    assert "f" * 7 not in comment
    assert "🟢" not in comment
    assert ran.outputs["decision"] == "review"
    assert ran.outputs["environment"] == f"pr_{fork.pull.number}"


def test_post__shows_hostile_names_as_nothing_but_text(fork: Fork) -> None:
    evil = "x`|<img src=x onerror=alert(1)>\n\n@acme #1 https://evil.example ]( </details> <!--"
    fork.leave(
        fork.report(
            reasons=[evil],
            changes=[make_change(evil, path=evil, owner=evil, diff=f"```\n{evil}")],
            risks=[make_risk(evil, model=evil, path=evil, evidence=evil, clears_when=evil)],
            notes=[evil],
        )
    )
    ran = fork.post()
    assert ran.exit_code == 0, ran.stdout
    for text in (*fork.comments, ran.summary):
        page = parse(text)
        assert page.tags["img"] == 0
        assert all(link.startswith("https://github.com/") for link in page.links)
        assert not [found for found in page.plain if "@acme" in found or "evil.example" in found]
        assert not page.stray
    assert "::error" not in ran.stdout


@pytest.mark.parametrize("known", [True, False])
def test_post__shows_no_secret_of_the_artifact(
    fork: Fork, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its form, and by what this run knows although that one did not."""
    secret = "Orbit-Meadow-71" if known else "ghp_" + "a1B2" * 9
    monkeypatch.setenv("SPARK_LAKE_KEY", "Orbit-Meadow-71")
    told = f"no login with {secret}"
    fork.leave(fork.report(reasons=[told], risks=[make_risk(evidence=told)]))
    ran = fork.post()
    (comment,) = fork.comments
    assert "no login with" in comment
    assert secret not in comment + ran.summary + ran.stdout + str(ran.outputs)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fork: b"{}",
        lambda fork: b"not json",
        lambda fork: fork.report(head_sha="e" * 40),
        lambda fork: json.dumps({**json.loads(fork.report().to_json()), "pr": 1}).encode(),
    ],
)
def test_post__of_something_else_writes_nothing(
    fork: Fork, spoil: Callable[[Fork], Report | bytes]
) -> None:
    fork.leave(spoil(fork))
    ran = fork.post()
    assert ran.exit_code == 3
    assert ran.outputs["reason-code"] == "report_refused"
    assert "not posted" in ran.told("error")[0]
    assert fork.comments == []
    assert ran.summary == ""


def test_post__without_an_artifact_says_that_there_is_none(fork: Fork) -> None:
    ran = fork.post()
    assert ran.exit_code == 0
    assert "left no report" in ran.told("notice")[0]
    assert fork.comments == []


def test_post__after_another_push_leaves_the_newer_review_alone(fork: Fork) -> None:
    fork.leave(fork.report())
    facts = events.PullFacts.from_api(fork.pull.json)
    event = events.workflow_run(facts=facts, run_id=fork.review.id)
    newer = fork.copy.commit("theirs", {"models/a.sql": "SELECT 2"})
    fork.repo.fetch(fork.copy, newer)
    fork.pull.push(newer)
    nothing = script.Reply(json=[])
    fork.standin.script.on("GET", r".*/commits/[0-9a-f]+/pulls", nothing)
    ran = fork.machine.run("workflow_run", event)
    assert ran.exit_code == 0, ran.stdout
    assert "No open pull request" in ran.told("notice")[0]
    assert fork.comments == []


def test_post__where_github_does_not_answer_fails_and_keeps_the_summary(fork: Fork) -> None:
    fork.leave(fork.report())
    broken = script.server_error(503)
    rule = fork.standin.script.on("GET", r".*/issues/\d+/comments", broken, forever=True)
    ran = fork.post()
    assert rule.served > 1
    assert ran.exit_code == 1
    assert "stg.orders" in ran.summary
    assert ran.result["reason_code"] == "github_unavailable"


@pytest.mark.parametrize(("files", "shown"), [({"docs.md": "x"}, "no_changes"), ({}, "review")])
def test_post__believes_no_changes_where_github_lists_none_in_the_project(
    fork: Fork, files: dict[str, str], shown: str
) -> None:
    if files:
        fork.copy.set_ref("docs", str(fork.copy.tip("main")))
        fork.copy.commit("docs", files)
        fork.pull = fork.repo.create_pull("docs", author="outsider", head_repo=fork.copy)
    fork.leave(fork.report(decision="no_changes", changes=[], backfill=[], work=[], risks=[]))
    facts = events.PullFacts.from_api(fork.pull.json)
    event = events.workflow_run(facts=facts, run_id=fork.review.id)
    ran = fork.machine.run("workflow_run", event, project="analytics" if files else ".")
    assert ran.exit_code == 0, ran.stdout
    assert ran.outputs["decision"] == shown


def test_run__of_a_branch_of_this_repository_is_skipped_without_a_request(
    fork: Fork, github_standin: GitHubStandin
) -> None:
    fork.repo.commit("ours", {"c": "3"}, start="main")
    pull = fork.repo.create_pull("ours")
    event = events.workflow_run(facts=events.PullFacts.from_api(pull.json), run_id=fork.review.id)
    ran = fork.machine.run("workflow_run", event)
    assert ran.exit_code == 0
    assert github_standin.requests == []
