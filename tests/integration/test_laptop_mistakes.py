"""What people mistype on a laptop: two lines (what, how), exit 2, no report, nothing left or read.

The values of single options stand in `tests/contract/test_wrong_values.py`; those that SQLMesh
knows, in `test_wrong_values.py` beside this file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.projects.repository import Repository, write_repository

MISTAKES: dict[str, tuple[str, str, str]] = {
    "a command": ("revew", "Did you mean 'review'?", "ci-bot --help"),
    "a directory": ("review nope", "`nope` does not exist", "SQLMesh project"),
    "a directory as an option": ("review --project nope", "`nope` does not exist", "SQLMesh"),
    "a directory of a doctor": ("doctor nope", "`nope` does not exist", "SQLMesh project"),
    "a file": ("review project/config.yaml", "is not a directory", "SQLMesh project"),
    "no project": ("review", "(config.yaml or config.py) in ", "`project` names the directory"),
    "a search path": (
        "review project --python-path lib",
        "`lib` does not exist",
        "`--python-path` names a directory",
    ),
    "a gateway": ("review project --gateway prod", "`prod`", "Known gateways: duck"),
    "a base": ("review project --base-ref mian", "'mian'", "Did you mean `main`?"),
    "an old commit": ("review project --base-ref HEAD~9", "'HEAD~9'", "git branch --all"),
    "a plan id": ("apply --environment pr_7 --plan-id zz", "8 to 64 hexadecimal", "--help"),
    "no environment": ("apply project", "`--environment` is missing", "ci-bot apply --help"),
    "no value": ("review --select-model", "requires an argument", "`ci-bot review --help`"),
    "an option": ("review --shrt", "no such option '--shrt'", "`ci-bot review --help`"),
    "a form": ("review --format jsn", "terminal, markdown, json", "`ci-bot review --help`"),
    "a colour": ("--color red review", "auto, always, never", "`ci-bot --help`"),
    "prod": ("review project --environment PROD", "`PROD` means prod", "Leave `--environment` out"),
    "a dash": ("review project --environment pr-7", "SQLMesh would make `pr_7`", "Write `pr_7`"),
    "a statement": (
        "apply project --environment pr;drop",
        "SQLMesh would make `pr_drop`",
        "Write `pr_drop`",
    ),
    "variables": ("review project --worker-env no-name!", "neither a name nor", "apart by spaces"),
    "a rule": ("explain R6", "no rule `R6`", "`R06-breaking-rebuild`"),
    "a rule of letters": ("explain select-stars", "no rule `select-stars`", "`select-star`"),
    "a policy": ("policy check project", "no policy", ".sqlmesh-review.yaml"),
    "a limit": ("review project --max-intervals many", "must be a whole number", "--help"),
    "the action's command": ("run", "is for GitHub Actions", "use `ci-bot review`"),
    "no token": ("sweep project", "no token to ask with", "GITHUB_TOKEN"),
    "two forms": (
        "review project --full --format json",
        "`--full` is for a terminal",
        "Leave out one of them",
    ),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return write_repository(tmp_path_factory.mktemp("mistakes") / "repository")


def everything(root: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.replace(" ", "-"))
@pytest.mark.by_day(3)
def test_mistake__is_told_in_two_lines_and_nothing_is_left(
    repository: Repository, case: str
) -> None:
    line, what, how = MISTAKES[case]
    before = everything(repository.root)
    outside = ("GITHUB_", "CI_BOT_")
    done = subprocess.run(
        [sys.executable, "-m", "ci_bot", *line.split()],
        cwd=repository.root,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(outside)},
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    first, second = told_by(done.stderr)
    assert what in first
    assert how in second
    assert everything(repository.root) == before


def told_by(text: str) -> list[str]:
    lines = text.splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith("ci-bot: ")) :]
