"""Whole workflows: the files of .github/examples, run by act with the built images.

Both images as a release names them, the GitHub stand-in on loopback, prod built on Spark. Stand-ins are
the code of actions/checkout and actions/upload-artifact, which is published on GitHub only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.act.machine import EXAMPLES, ActMachine, Images, WorkflowRun
from tests.container.engine import Engine
from tests.container.runner import RUNNER_UID
from tests.container.test_life import open_up
from tests.e2e.scene import PROJECT, Change, Scene, add_orders
from tests.github_standin import events
from tests.github_standin.standin import GitHubStandin
from tests.projects import Shop

pytestmark = [
    pytest.mark.standin,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a workspace of another owner needs root"),
]

PASSWORDS = {
    "STATE_READER_PASSWORD": "reads-0123456789",
    "STATE_WRITER_PASSWORD": "writes-9876543210",
}
SECRETS = {**PASSWORDS, "WAREHOUSE_TOKEN": "warehouse-5647382910"}
# Rendered only where each name has arrived in the worker: SQLMesh refuses a variable that is not set.
CONNECTION = """\
        spark.shop.user: "{{ env_var('STATE_USER') }}"
        spark.shop.password: "{{ env_var('STATE_PASSWORD') }}"
        spark.shop.token: "{% if env_var('STATE_USER') == 'writer' %}{{ env_var('WAREHOUSE_TOKEN') }}{% endif %}"
"""
REPORT = {"report.json", "report.md", "report.html", "report.sarif"}


@dataclass
class Team:
    """The scene, and the workflows in its repository."""

    scene: Scene
    machine: ActMachine

    def run(
        self,
        workflow: str,
        event: str,
        payload: Mapping[str, Any],
        *,
        sha: str,
        actor: str = "author",
        fork: bool = False,
    ) -> WorkflowRun:
        """Runs a workflow with the permissions, variables and secrets that GitHub would give it.

        Args:
            fork: GitHub gives a fork's run no secrets, and a token that reads.
        """
        jobs = YAML(typ="safe").load((EXAMPLES / workflow).read_text("utf-8"))["jobs"]
        # Of comments.yml each event starts one of two jobs. Drift, which follows a sweep, gets the
        # sweep's token here, and so no issue. A condition that names no event is of a first job.
        named = [job for job in jobs.values() if event in job.get("if", event)]
        job = (named or list(jobs.values()))[0]
        permissions = {"contents": "read"} if fork else job["permissions"]
        open_up(self.scene.shop.root)
        ran = self.machine.run(
            workflow,
            event,
            payload,
            token=self.scene.standin.actions_token(self.scene.repo, permissions),
            sha=sha,
            run_id=self.scene.new_run("main", event).id,
            actor=actor,
            variables={
                "STATE_HOST": str(self.scene.shop.state),
                "STATE_READER": "reader",
                "STATE_WRITER": "writer",
            },
            secrets={} if fork else SECRETS,
        )
        for secret in SECRETS.values():
            assert secret not in ran.text
        assert "Traceback (most recent call last)" not in ran.text
        return ran

    def review(self, change: Change, *, fork: bool = False) -> WorkflowRun:
        self._merge_ref(change)
        payload = change.pull.event("opened")
        return self.run("review.yml", "pull_request", payload, sha=change.merge_sha, fork=fork)

    def comment(self, change: Change, body: str, login: str) -> WorkflowRun:
        """Somebody writes a comment."""
        payload = change.pull.comment_event(change.pull.add_comment(body, login))
        main = self.scene.main_sha
        return self.run("comments.yml", "issue_comment", payload, sha=main, actor=login)

    def dispatched(self, change: Change) -> WorkflowRun:
        """The workflow that was dispatched last."""
        self._merge_ref(change)
        dispatch = self.scene.repo.dispatches[-1]
        return self.run(
            Path(dispatch.workflow).name,
            "workflow_dispatch",
            self.scene.repo.dispatch_event(dispatch),
            sha=self.scene.main_sha,
            actor=dispatch.login,
        )

    def _merge_ref(self, change: Change) -> None:
        """GitHub keeps the test merge commit under a ref."""
        self.scene.git("update-ref", f"refs/pull/{change.number}/merge", change.merge_sha)


@pytest.fixture
def team(
    github_standin: GitHubStandin,
    built_shop: Shop,
    tmp_path: Path,
    engine: Engine,
    image: str,
    review_image: str,
    act_program: Path,
) -> Team:
    scene = Scene(github_standin, built_shop, tmp_path)
    scene.files.edit("config.yaml", str(built_shop.state), "{{ env_var('STATE_HOST') }}")
    scene.files.edit(
        "config.yaml",
        "        spark.app.name: shop\n",
        "        spark.app.name: shop\n" + CONNECTION,
    )
    scene.git.commit({}, "Accounts from the environment")
    scene.push("main")
    scene.repo.add_workflow("review.yml")
    scene.repo.add_workflow("apply.yml")
    machine = ActMachine(
        program=act_program,
        images=Images(full=image, review=review_image),
        engine=engine.host,
        api_url=github_standin.url,
        repository=scene.repo.full_name,
        origin=scene.git.root,
        mounts=[built_shop.root],
        edits={"project: . #": f"project: {PROJECT} #"},
        home=tmp_path,
    )
    return Team(scene, machine)


def owners(directory: Path) -> set[int]:
    return {path.lstat().st_uid for path in (directory, *directory.rglob("*"))}


def add_days(shop: Shop) -> None:
    """A column of this test's own: the warehouse is shared, and built tables are not built again."""
    revenue = "SUM(o.amount) AS BIGINT) AS revenue"
    more = f"{revenue},\n  CAST(COUNT(DISTINCT o.order_date) + 1 AS BIGINT) AS days"
    shop.edit("models/revenue.sql", revenue, more)
    shop.edit("tests/test_revenue.yaml", "revenue: 15}", "revenue: 15, days: 3}")


def test_review_workflow__comments_and_keeps_the_runners_report(team: Team) -> None:
    change = team.scene.open("in-a-workflow", add_orders)

    ran = team.review(change)

    assert ran.exit_code == 0, ran.text[-9000:]
    outputs = ran.outputs("review")
    assert outputs["decision"] == "go"
    assert set(ran.results.values()) == {"success"}
    assert change.marker().plan == outputs["plan-id"]
    assert change.marker().run_id > 0
    assert owners(ran.workspace / outputs["report-path"]) == {RUNNER_UID}
    assert set(ran.artifact()) == REPORT
    report = json.loads(ran.artifact()["report.json"])
    assert (report["baseline"], report["decision"]) == ("state", "go")


def test_commands_workflow__starts_no_job_for_other_comments(team: Team) -> None:
    change = team.scene.open("talked-about", add_orders)

    for body, login in (("looks good", "writer"), ("/sqlmesh plan", "github-actions[bot]")):
        ran = team.comment(change, body, login)
        assert ran.exit_code == 0, ran.text[-3000:]
        assert ran.results == {}

    assert team.scene.repo.dispatches == []


@pytest.mark.night
def test_workflows__life_by_comments(team: Team) -> None:
    """review, commands for a plan and an apply, what they start, and the cleanup after the merge."""
    scene = team.scene
    change = scene.open("by-comments", add_days)
    first = team.review(change)
    assert first.exit_code == 0, first.text[-9000:]

    asked = team.comment(change, "/sqlmesh plan", "writer")
    assert asked.exit_code == 0, asked.text[-9000:]
    assert asked.results == {"Answer": "success"}
    assert scene.repo.dispatches[-1].workflow == "review.yml"
    again = team.dispatched(change)
    assert again.exit_code == 0, again.text[-9000:]
    plan = again.outputs("review")["plan-id"]
    assert plan == first.outputs("review")["plan-id"]
    assert set(again.artifact()) == REPORT

    team.comment(change, f"/sqlmesh apply {plan[:12]}", "writer")
    assert scene.repo.dispatches[-1].workflow == "apply.yml"
    applied = team.dispatched(change)
    assert applied.exit_code == 0, applied.text[-9000:]
    outputs = applied.outputs("apply")
    assert (outputs["reason-code"], outputs["plan-id"]) == ("applied", plan)
    assert owners(applied.workspace / outputs["report-path"]) == {RUNNER_UID}
    assert "apply.json" in applied.artifact()
    assert change.marker().phase == "applied"

    change.merge()
    closed = change.pull.event("closed")
    removed = team.run("cleanup.yml", "pull_request_target", closed, sha=scene.main_sha)
    assert removed.exit_code == 0, removed.text[-9000:]
    assert removed.outputs("cleanup")["reason-code"] == "removed"
    assert owners(removed.workspace / "ci-bot-report") == {RUNNER_UID}
    assert change.marker().phase == "closed"


@pytest.mark.night
def test_sweep_workflow__removes_what_a_cleanup_missed(team: Team) -> None:
    scene = team.scene
    change = scene.open("forgotten", add_days)
    plan = team.review(change).outputs("review")["plan-id"]
    team.comment(change, f"/sqlmesh apply {plan[:12]}", "writer")
    assert team.dispatched(change).exit_code == 0
    change.close()

    event = events.schedule(repo=scene.repo.full_name)
    swept = team.run("cleanup.yml", "schedule", event, sha=scene.main_sha)

    assert swept.exit_code == 0, swept.text[-9000:]
    assert change.marker().phase == "closed"
    assert change.environment not in scene.shop.not_cleaned_up()


@pytest.mark.night
def test_fork_comment_workflow__posts_what_the_forks_own_run_could_not(team: Team) -> None:
    scene = team.scene
    scene.commit("from-outside", add_orders)
    fork = scene.repo.fork("outsider")
    fork.push_git(scene.git.root, {"from-outside": "from-outside"})
    change = Change(
        scene,
        "from-outside",
        scene.repo.create_pull("from-outside", author="outsider", head_repo=fork),
    )
    change.pushed()
    reviewed = team.review(change, fork=True)
    assert reviewed.exit_code == 0, reviewed.text[-9000:]
    assert change.comments() == []
    run = scene.repo.add_run(scene.repo.add_workflow("review-of-fork.yml"), "from-outside")
    scene.repo.add_artifact(run, "ci-bot-report", reviewed.artifact())
    event = events.workflow_run(facts=events.PullFacts.from_api(change.pull.json), run_id=run.id)

    posted = team.run("comments.yml", "workflow_run", event, sha=scene.main_sha)

    assert posted.exit_code == 0, posted.text[-9000:]
    assert "This pull request comes from a fork" in change.sticky()
    own = team.scene.open("from-inside", add_orders)
    event = events.workflow_run(facts=events.PullFacts.from_api(own.pull.json), run_id=run.id)
    skipped = team.run("comments.yml", "workflow_run", event, sha=scene.main_sha)
    assert (skipped.exit_code, skipped.results) == (0, {})


@pytest.mark.night
def test_review_workflow__of_a_no_go_fails_and_keeps_the_report(team: Team) -> None:
    change = team.scene.open(
        "wrong", lambda shop: shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amounts)")
    )

    ran = team.review(change)

    assert ran.exit_code == 1
    assert ran.outputs("review")["decision"] == "no_go"
    assert ran.results["Review"] == "failure"
    assert ran.results["Keep the complete report"] == "success"
    assert set(ran.artifact()) == REPORT
