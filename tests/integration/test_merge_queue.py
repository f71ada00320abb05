"""A merge queue's review: its event names the queue's branch, and the pull request has its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.github_standin import script
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.in_process import Ran, RunnerMachine
from tests.projects.duck import run_prod
from tests.projects.repository import Repository, write_repository

pytestmark = pytest.mark.standin

SUFFIX = "\ncicd_bot: {type: github, forward_only_branch_suffix: -fo}\n"


@pytest.fixture
def queued(tmp_path: Path) -> tuple[Repository, str, str]:
    """The shop with prod built, its base commit and one that changes the orders."""
    repository = write_repository(tmp_path / "repository")
    config = repository.read("project/config.yaml")
    base = repository.commit({"project/config.yaml": config + SUFFIX})
    run_prod(repository.shop, "2024-01-04")
    orders = repository.read("project/models/orders.sql")
    head = repository.commit(
        {"project/models/orders.sql": orders.replace("customer_id * 10", "customer_id * 20")}
    )
    return repository, base, head


def review(
    standin: GitHubStandin, repo: Repo, tmp_path: Path, queued: tuple[Repository, str, str]
) -> tuple[Ran, dict[str, Any]]:
    repository, base, head = queued
    repo.commit("change-fo", {"a": "1"}, start="main")
    number = repo.create_pull("change-fo").number
    machine = RunnerMachine(
        api_url=standin.url,
        repository=repo.full_name,
        token=standin.actions_token(repo),
        home=tmp_path / "runner",
    )
    event = {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head,
            "base_sha": base,
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-{number}-{base}",
            "base_ref": "refs/heads/main",
        },
        "repository": {"full_name": repo.full_name},
    }
    ran = machine.run("merge_group", event, workspace=repository.root, project="project")
    report = repository.root / ran.outputs["report-path"] / "report.json"
    return ran, json.loads(report.read_text("utf-8"))


def test_queue__plans_forward_only_by_the_pull_requests_own_branch(
    github_standin: GitHubStandin,
    github_repo: Repo,
    tmp_path: Path,
    queued: tuple[Repository, str, str],
) -> None:
    _, report = review(github_standin, github_repo, tmp_path, queued)

    assert report["failure"] is None
    assert report["identity"]["flags"]["forward_only"]
    assert [(option["name"], option["key"]) for option in report["options"]] == [
        ("forward-only", "cicd_bot.forward_only_branch_suffix")
    ]


@pytest.mark.night
def test_queue__without_an_answer_of_github_says_what_it_does_not_know(
    github_standin: GitHubStandin,
    github_repo: Repo,
    tmp_path: Path,
    queued: tuple[Repository, str, str],
) -> None:
    github_standin.script.on("GET", r".*/pulls/.*", script.server_error(503), forever=True)

    ran, report = review(github_standin, github_repo, tmp_path, queued)

    github_standin.reset()
    assert report["failure"] is None
    assert not report["identity"]["flags"]["forward_only"]
    assert any("The pull request's branch is not known" in told for told in ran.told("warning"))
