"""`ci-bot init --pull-request`, with git itself; `gh` is a program that writes down what it gets."""

from __future__ import annotations

import io
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.cli.setup.setup_command import SetupOptions, set_up_repository
from ci_bot.errors import BadInput, BotError
from ci_bot.host import Machine, make_process_machine
from tests.setup_layouts import DUCKDB, RELEASE

ADDRESS = "https://github.com/acme/shop/pull/1"
GH = f"""#!/bin/sh
echo "$@" > "$GH_HEARD"
echo "Creating pull request for sqlmesh-plan-review into main in acme/shop" >&2
echo "{ADDRESS}"
"""


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A person", "-c", "user.email=a@example.org"]
    command = ["git", *who, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with one commit, somebody's unfinished work, and a place that it can be pushed to."""
    root = tmp_path / "shop"
    root.mkdir()
    git(tmp_path, "init", "--quiet", "--bare", "origin.git")
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / "config.yaml").write_text(DUCKDB)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "A project")
    git(root, "remote", "add", "origin", str(tmp_path / "origin.git"))
    (root / "notes.txt").write_text("not finished")
    git(root, "add", "notes.txt")
    return root


@pytest.fixture
def machine(clone: Path, tmp_path: Path) -> Machine:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    environ = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "GH_HEARD": str(tmp_path / "heard"),
        "GIT_AUTHOR_NAME": "A person",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A person",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    return replace(make_process_machine(), directory=clone, environ=environ, out=io.StringIO())


def told(machine: Machine) -> str:
    assert isinstance(machine.out, io.StringIO)
    return machine.out.getvalue()


def init(machine: Machine, **options: object) -> int:
    given = SetupOptions(action=RELEASE, pull_request=True)
    return set_up_repository(machine, replace(given, **options))


def test_pull_request__has_the_written_files_and_nothing_else(
    machine: Machine, clone: Path, tmp_path: Path
) -> None:
    assert init(machine) == 0

    assert told(machine).endswith(f"\nPull request: {ADDRESS}\n")
    assert "git push" not in told(machine), "what is done is not left to do"
    origin = tmp_path / "origin.git"
    pushed = git(origin, "diff", "--name-only", "sqlmesh-plan-review~", "sqlmesh-plan-review")
    assert ".github/workflows/review.yml" in pushed.splitlines()
    assert "notes.txt" not in pushed
    assert git(clone, "diff", "--cached", "--name-only") == "notes.txt"
    assert (tmp_path / "heard").read_text() == "pr create --fill\n"


def test_pull_request__where_nothing_is_written__is_none(machine: Machine, tmp_path: Path) -> None:
    set_up_repository(machine, SetupOptions(action=RELEASE))
    assert init(machine) == 0
    assert "Pull request:" not in told(machine)
    assert "No pull request was opened." in told(machine)
    assert not (tmp_path / "heard").exists()


def test_pull_request__a_second_run_finds_nothing_to_write(machine: Machine, clone: Path) -> None:
    assert init(machine) == 0
    commit = git(clone, "rev-parse", "HEAD")
    assert init(machine) == 0
    assert "Nothing is to be written" in told(machine)
    assert git(clone, "rev-parse", "HEAD") == commit


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        ("gh", "GitHub's command line `gh` is not installed"),
        ("origin", "has no remote `origin`"),
        ("name", "The branch sqlmesh-plan-review is there already"),
    ],
)
def test_pull_request__that_cannot_be_opened__is_refused_before_a_file_is_written(
    machine: Machine, clone: Path, tmp_path: Path, lacks: str, words: str
) -> None:
    if lacks == "gh":
        (tmp_path / "programs/gh").unlink()
    elif lacks == "origin":
        git(clone, "remote", "remove", "origin")
    else:
        git(clone, "branch", "sqlmesh-plan-review")
    with pytest.raises(BadInput, match=words):
        init(machine)
    assert not (clone / ".github").exists()


def test_push__that_is_refused__leaves_the_files_and_the_commands(
    machine: Machine, clone: Path, tmp_path: Path
) -> None:
    (tmp_path / "origin.git/hooks").mkdir(exist_ok=True)
    hook = tmp_path / "origin.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(BotError, match="`git push` failed") as refused:
        init(machine)
    assert refused.value.hint is not None
    assert refused.value.hint.splitlines()[1:] == [
        "git push --set-upstream origin sqlmesh-plan-review",
        "gh pr create --fill",
    ]
    assert (clone / ".github/workflows/review.yml").is_file()


@pytest.mark.parametrize("other", [{"dry_run": True}, {"output": "elsewhere"}])
def test_pull_request__of_files_that_are_not_written_here__is_refused(
    machine: Machine, other: dict[str, object]
) -> None:
    with pytest.raises(BadInput, match="--pull-request"):
        init(machine, **other)


def test_pull_request__is_not_opened_with_the_placeholder(machine: Machine, clone: Path) -> None:
    with pytest.raises(BadInput, match="was not installed from a release") as refused:
        init(machine, action=f"acme/sqlmesh-plan-review@{'0' * 40}")
    assert "--action" in (refused.value.hint or "")
    assert not (clone / ".github").exists()


def test_pull_request__on_its_branch_is_told_to_push(machine: Machine, clone: Path) -> None:
    assert init(machine) == 0
    (clone / ".github/workflows/review.yml").unlink()
    with pytest.raises(BadInput, match="is there already") as refused:
        init(machine)
    assert "You are on it" in (refused.value.hint or "")
    git(clone, "switch", "--quiet", "--discard-changes", "main")
    with pytest.raises(BadInput, match="is there already") as refused:
        init(machine)
    assert "git branch --delete" in (refused.value.hint or "")
