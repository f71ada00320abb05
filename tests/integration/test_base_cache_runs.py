"""`cache: base` as workflows use it: a sweep on the default branch writes, a review reads."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.github_standin import events
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.in_process import RunnerMachine
from tests.projects.duck import run_prod
from tests.projects.repository import Repository, write_repository

pytestmark = pytest.mark.standin

ORDERS = "models/orders.sql"
# What differs between two runs of anything.
_OF_A_RUN = ("timings", "seconds", "created_at", "run")


@dataclass(frozen=True)
class Team:
    """The shop with prod built, a pull request that changes its orders, and a runner."""

    repository: Repository
    runner: RunnerMachine
    event: dict[str, Any]
    base: str
    merge: str

    def sweep(self) -> list[str]:
        """The nightly run on the default branch; its notices."""
        self.repository.git("checkout", "-q", self.base)
        event = events.schedule(repo=self.runner.repository)
        ran = self.runner.run("schedule", event, workspace=self.repository.root, **INPUTS)
        assert ran.exit_code == 0, ran.stdout
        return ran.told("notice")

    def review(self, cache: str) -> dict[str, Any]:
        """The report of the pull request, without what is another one in each run."""
        self.repository.git("checkout", "-q", self.merge)
        inputs = {**INPUTS, "cache": cache}
        ran = self.runner.run("pull_request", self.event, workspace=self.repository.root, **inputs)
        path = self.repository.root / ran.outputs["report-path"] / "report.json"
        report: dict[str, Any] = json.loads(path.read_text("utf-8"))
        assert report["failure"] is None
        del report["checks"]["tests"]["seconds"]
        return {name: value for name, value in report.items() if name not in _OF_A_RUN}

    @property
    def cache(self) -> Path:
        (found,) = (self.repository.root / ".ci-bot-cache").glob("base-*.json")
        return found


INPUTS = {"project": "project", "cache": "base"}


@pytest.fixture
def team(github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path) -> Team:
    repository = write_repository(tmp_path / "repository")
    git = repository.git
    base = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "work")
    orders = repository.read(f"project/{ORDERS}")
    head = repository.commit({f"project/{ORDERS}": orders.replace("* 10", "* 20")})
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "merge", "work")
    merge = git("rev-parse", "HEAD")
    git("checkout", "-q", base)
    # After the last commit, which would take the state along.
    run_prod(repository.shop, "2024-01-04")
    name = github_repo.full_name
    facts = events.PullFacts(
        repo=name,
        head_repo=name,
        head_ref="work",
        head_sha=head,
        base_sha=base,
        merge_sha=merge,
    )
    runner = RunnerMachine(
        api_url=github_standin.url,
        repository=name,
        token=github_standin.actions_token(github_repo),
        home=tmp_path / "runner",
    )
    return Team(repository, runner, events.pull_request("opened", facts), base, merge)


@pytest.mark.night
def test_sweep__writes_what_a_review_reads_and_tells_the_same_with(team: Team) -> None:
    (told,) = [line for line in team.sweep() if line.startswith("Base cache: ")]
    known = json.loads(team.cache.read_text("utf-8"))
    assert told.startswith(f"Base cache: {len(known['files'])} of {known['models']} models")
    assert f"project/{ORDERS}" in {file["path"] for file in known["files"]}
    before = team.cache.read_bytes()

    report = team.review("base")

    assert report == team.review("none")
    assert [change["model"] for change in report["changes"]][:1] == ["shop.orders"]
    assert team.cache.read_bytes() == before, "a review writes nothing there"


@pytest.mark.night
def test_review__reads_what_the_pull_request_changes_from_its_files(team: Team) -> None:
    """Whatever a cache says of them, even one that somebody could write."""
    team.sweep()
    document = json.loads(team.cache.read_text("utf-8"))
    team.repository.git("checkout", "-q", team.merge)
    changed = (team.repository.root / "project" / ORDERS).read_bytes()
    for file in document["files"]:
        if file["path"] == f"project/{ORDERS}":
            file["content"] = hashlib.sha256(changed).hexdigest()
    team.cache.write_text(json.dumps(document), encoding="utf-8")

    assert "shop.orders" in {change["model"] for change in team.review("base")["changes"]}
