"""`.pre-commit-hooks.yaml`: its entry stops a commit that is a No-Go, and lets others through."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.checkout import GIT
from tests.conftest import REPOSITORY
from tests.integration.test_laptop import KEY, ORDERS, doubled
from tests.projects.repository import Repository, write_repository


def hook() -> dict[str, Any]:
    (found,) = YAML(typ="safe").load((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8"))
    return dict(found)


@pytest.fixture
def team(tmp_path: Path) -> Repository:
    """A repository whose git runs the hook's entry before each commit, as pre-commit does."""
    repository = write_repository(tmp_path / "repository")
    program, *words = shlex.split(hook()["entry"])
    assert program == "ci-bot"
    # git gives a hook its own index and directory in variables.
    line = shlex.join([sys.executable, "-m", "ci_bot", *words, "project"])
    path = repository.root / ".git/hooks/pre-commit"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(REPOSITORY))} exec {line}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return repository


def commit(repository: Repository, *more: str) -> subprocess.CompletedProcess[str]:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(
        [GIT, *identity, "commit", "-q", "-m", "x", *more],
        cwd=repository.root,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.night
def test_hook__stops_a_leaked_key_and_lets_a_change_through(team: Repository) -> None:
    before = team.git("rev-parse", "HEAD")
    (team.root / "project/keys.yaml").write_text(f"key: {KEY}\n")
    team.git("add", ".")

    stopped = commit(team)

    assert stopped.returncode == 1
    assert "No-Go" in stopped.stderr + stopped.stdout
    assert "hardcoded-secret in project/keys.yaml" in stopped.stderr + stopped.stdout
    assert KEY not in stopped.stderr + stopped.stdout
    assert team.git("rev-parse", "HEAD") == before

    team.git("rm", "-q", "--cached", "project/keys.yaml")
    (team.root / "project/keys.yaml").unlink()
    (team.root / ORDERS).write_text(doubled(team)[ORDERS])

    # Git then hands over an index of its own, beside the repository's.
    passed = commit(team, "--all")

    assert passed.returncode == 0, passed.stderr
    assert team.git("rev-parse", "HEAD^") == before
    assert team.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("models/orders.sql", True),
        ("config.yaml", True),
        (".sqlmesh-review.yaml", True),
        ("macros/ours.py", True),
        ("seeds/customers.csv", True),
        ("README.md", False),
        ("state.db", False),
    ],
)
def test_hook__is_asked_about_files_of_a_project(path: str, asked: bool) -> None:
    assert bool(re.search(hook()["files"], path)) is asked
