"""A team's repository with the shop in it, on disk and on GitHub, and the life of a pull request."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from ci_bot.bot.report.markdown.marker import decode_comment_marker
from ci_bot.protocol.comment import Marker
from tests.e2e.job import Job, Outcome, Runner
from tests.github_standin.events import workflow_dispatch
from tests.github_standin.local_git import LocalGit
from tests.github_standin.pull import Pull
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.github_standin.state import Run
from tests.projects import Shop

REPOSITORY = Path(__file__).parents[2]
BOT = "github-actions[bot]"
PERMISSIONS = {
    "contents": "read",
    "pull-requests": "write",
    "actions": "read",
    "checks": "write",
}
ARTIFACT = "ci-bot-report"
PROJECT = "project"

_REVENUE = "SUM(o.amount) AS BIGINT) AS revenue"

Edit = Callable[[Shop], object]


def add_orders(shop: Shop) -> None:
    """A column more in a FULL model, and its unit test: a plan that nothing stands against."""
    shop.edit(
        "models/revenue.sql",
        _REVENUE,
        f"{_REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS orders",
    )
    shop.edit("tests/test_revenue.yaml", "revenue: 15}", "revenue: 15, orders: 2}")


def add_largest(shop: Shop) -> None:
    """One column more, on top of `add_orders`."""
    shop.edit(
        "models/revenue.sql",
        _REVENUE,
        f"{_REVENUE},\n  CAST(MAX(o.amount) AS INT) AS largest",
    )
    shop.edit("tests/test_revenue.yaml", "orders: 2}", "orders: 2, largest: 10}")


class Scene:
    """The repository. Its default branch holds the shop as prod was built from it."""

    def __init__(self, standin: GitHubStandin, shop: Shop, home: Path) -> None:
        self.standin = standin
        self.shop = shop
        self.home = home
        self.repo: Repo = standin.make_repo()
        self.git = LocalGit(home / "origin")
        # A runner fetches single commits, and GitHub allows that.
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        # The project is a directory of the repository, so that paths are mapped both ways.
        self.files = Shop(self.git.root)
        shutil.copytree(shop.project, self.files.project, ignore=shutil.ignore_patterns(".cache"))
        self.git.commit({"README.md": b"# Warehouse\n"}, "The shop")
        self.push("main")
        self.token = standin.actions_token(self.repo, PERMISSIONS)
        self.runner = Runner(
            api_url=standin.url,
            repository=self.repo.full_name,
            token=self.token,
            home=home / "runner",
        )
        self._workspaces = itertools.count(1)
        self._workflow = self.repo.add_workflow("sqlmesh.yml")

    def push(self, *branches: str) -> None:
        self.repo.push_git(self.git.root, {branch: branch for branch in branches})

    @property
    def main_sha(self) -> str:
        return self.git("rev-parse", "main")

    def commit(self, branch: str, edit: Edit, message: str = "Change the models") -> str:
        """Edits the project on a branch, which starts at main; returns the commit."""
        known = self.git("branch", "--list", branch)
        self.git("checkout", "-q", *([branch] if known else ["-b", branch, "main"]))
        edit(self.files)
        self.git.commit({}, message)
        return self.git("rev-parse", "HEAD")

    def merge_commit(self, branch: str) -> str:
        """What GitHub makes for a pull request: main and the branch, as if it were merged."""
        self.git("checkout", "-q", "--detach", "main")
        self.git("merge", "-q", "--no-ff", "-m", f"Merge {branch} into main", branch)
        return self.git("rev-parse", "HEAD")

    def end(self) -> None:
        """Cleans up what applies left: the shop is shared, and its next repository is another."""
        with duckdb.connect(str(self.shop.state)) as connection:
            known = "SELECT 1 FROM information_schema.tables WHERE table_schema = 'sqlmesh_ci_bot'"
            if not connection.execute(known).fetchall():
                return
            rows = connection.execute(
                "SELECT name FROM sqlmesh_ci_bot._environments WHERE owner = ? AND phase NOT IN "
                "('removed', 'reclaimable', 'reclaiming')",
                [self.repo.full_name],
            ).fetchall()
        for (name,) in rows:
            command = ["cleanup", "--project", str(self.shop.project), "--environment", name]
            subprocess.run(
                [sys.executable, "-m", "ci_bot", *command, "--claim"],
                cwd=REPOSITORY,
                check=True,
                capture_output=True,
                timeout=300,
            )

    def open(
        self, branch: str, edit: Edit, *, number: int | None = None, draft: bool = False
    ) -> Change:
        """Somebody pushes a branch and opens a pull request."""
        self.commit(branch, edit)
        self.push(branch)
        pull = self.repo.create_pull(branch, number=number, draft=draft)
        change = Change(self, branch, pull)
        change.pushed()
        return change

    def checkout(self, commit: str, *, depth: int = 2) -> Path:
        """A fresh workspace, as actions/checkout leaves it."""
        target = LocalGit(self.home / f"workspace-{next(self._workspaces)}")
        origin = self.git.root.resolve().as_uri()
        target("remote", "add", "origin", f"https://github.com/{self.repo.full_name}")
        target("fetch", "-q", "--no-tags", f"--depth={depth}", origin, commit)
        target("checkout", "-q", "--detach", commit)
        return target.root

    def new_run(self, branch: str, event: str) -> Run:
        """A run as GitHub lists it; the numbers grow."""
        return self.repo.add_run(self._workflow, branch, event=event)

    def run(self, job: Job, workspace: Path | None = None) -> Outcome:
        """Runs the action on the project, and keeps the requests that it made."""
        before = len(self.standin.requests)
        outcome = self.runner.run(
            replace(
                job,
                run_id=job.run_id or self.new_run("main", job.event).id,
                inputs={"project": PROJECT, **job.inputs},
            ),
            workspace or self.checkout(self.main_sha, depth=1),
        )
        return replace(outcome, requests=self.standin.requests[before:])


class Change:
    """A pull request, and what its team does with it."""

    def __init__(self, scene: Scene, branch: str, pull: Pull) -> None:
        self.scene = scene
        self.branch = branch
        self.pull = pull
        self.merge_sha = ""

    @property
    def number(self) -> int:
        return self.pull.number

    @property
    def environment(self) -> str:
        return f"pr_{self.number}"

    def pushed(self) -> None:
        """GitHub has made the test merge commit of what is there now."""
        git, repo = self.scene.git, self.scene.repo
        self.merge_sha = self.scene.merge_commit(self.branch)
        repo.push_git(
            git.root,
            {
                "main": "main",
                self.branch: self.branch,
                f"refs/pull/{self.number}/merge": self.merge_sha,
            },
        )
        self.pull.push(
            git("rev-parse", self.branch),
            merge_sha=self.merge_sha,
            base_sha=self.scene.main_sha,
        )

    def push(self, edit: Edit) -> None:
        """Somebody pushes to the branch."""
        self.scene.commit(self.branch, edit)
        self.pushed()

    # The workflows

    def review(self, action: str = "opened", *, keep: bool = True, **more: Any) -> Outcome:
        """review.yml on `pull_request`, and its last step, which keeps the report as an artifact."""
        job = Job("pull_request", self.pull.event(action), sha=self.merge_sha)
        run = self.scene.new_run(self.branch, "pull_request")
        outcome = self.scene.run(
            replace(job, run_id=run.id, **more), self.scene.checkout(self.merge_sha)
        )
        if keep and "report-path" in outcome.outputs:
            self.scene.repo.add_artifact(run, ARTIFACT, outcome.report_files())
        return outcome

    def dispatch(
        self,
        inputs: Mapping[str, str] | None = None,
        *,
        actor: str = "writer",
        workspace: Path | None = None,
        **more: Any,
    ) -> Outcome:
        """apply.yml on `workflow_dispatch`, by somebody under Actions."""
        given = {"pr-number": str(self.number), **(inputs or {})}
        payload = workflow_dispatch(given, repo=self.scene.repo.full_name, sender=actor)
        job = Job(
            "workflow_dispatch",
            payload,
            sha=self.scene.main_sha,
            actor=actor,
            inputs=given,
        )
        return self.scene.run(
            replace(job, **more), workspace or self.scene.checkout(self.merge_sha)
        )

    def review_again(
        self,
        inputs: Mapping[str, str] | None = None,
        *,
        actor: str = "writer",
        workspace: Path | None = None,
        **more: Any,
    ) -> Outcome:
        """review.yml on `workflow_dispatch`, as `/sqlmesh plan` starts it."""
        number = {"pr-number": str(self.number)}
        payload = workflow_dispatch(number, repo=self.scene.repo.full_name, sender=actor)
        job = Job(
            "workflow_dispatch",
            payload,
            sha=self.scene.main_sha,
            actor=actor,
            inputs={**number, "mode": "review", **(inputs or {})},
        )
        return self.scene.run(
            replace(job, **more), workspace or self.scene.checkout(self.merge_sha)
        )

    def merge(self) -> None:
        """A maintainer merges it: main now has the change."""
        self.scene.git("checkout", "-q", "main")
        self.scene.git("merge", "-q", "--no-ff", "-m", f"Merge #{self.number}", self.branch)
        self.scene.push("main")
        self.pull.merge(merge_sha=self.scene.main_sha)

    def close(self) -> None:
        """Somebody closes it without merging."""
        self.pull.close()

    def closed(self, event: str = "pull_request_target", **more: Any) -> Outcome:
        """cleanup.yml on `closed`: main is checked out, and nothing of the change."""
        job = Job(
            event, self.pull.event("closed"), sha=self.scene.main_sha, inputs={"mode": "cleanup"}
        )
        return self.scene.run(
            replace(job, **more), self.scene.checkout(self.scene.main_sha, depth=1)
        )

    # What it looks like

    def comments(self) -> list[dict[str, Any]]:
        """The bot's comments."""
        return self.pull.comments_by(BOT)

    def sticky(self) -> str:
        """The text of the one comment with a marker; there must be exactly one."""
        found = [
            comment
            for comment in self.comments()
            if decode_comment_marker(comment["body"]) is not None
        ]
        assert len(found) == 1, f"{len(found)} comments carry the marker"
        text = str(found[0]["body"])
        assert "Traceback" not in text
        assert self.scene.token not in text
        return text

    def sticky_id(self) -> int:
        return next(
            int(comment["id"])
            for comment in self.comments()
            if decode_comment_marker(comment["body"]) is not None
        )

    def marker(self) -> Marker:
        marker = decode_comment_marker(self.sticky())
        assert marker is not None
        return marker

    def check(self) -> dict[str, Any]:
        """The newest check at the head, which is the one that GitHub shows."""
        checks = self.scene.repo.checks(self.pull.head_sha)
        assert {each["name"] for each in checks} == {f"sqlmesh plan ({PROJECT})"}
        assert all(each["status"] == "completed" for each in checks)
        return checks[-1]

    def notes(self) -> list[str]:
        """The bot's short comments, which notify people."""
        return [
            str(comment["body"])
            for comment in self.comments()
            if decode_comment_marker(comment["body"]) is None
        ]
