"""The demo's git repository: prod's models, a branch, a merge; and nothing of the user's own git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ci_bot.bot.cli.demo_story import (
    BRANCH,
    MAIN,
    DemoLayout,
    DemoRepository,
    list_files_of_demo_change,
)
from ci_bot.errors import BadInput
from tests.checkout import Repository


@pytest.fixture
def layout(tmp_path: Path) -> DemoLayout:
    found = DemoLayout(tmp_path / "a home")
    found.create_layout()
    return found


def test_repository__has_the_change_as_a_pull_request(layout: DemoLayout, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text(
        "[user]\n  name = Nobody\n[commit]\n  gpgsign = true\n"
    )
    around = {**os.environ, "HOME": str(tmp_path / "home"), "GIT_DIR": "/nowhere"}
    demo = DemoRepository(layout.project_directory, around)

    base = demo.create_repository()
    demo.start_branch()
    layout.apply_change()
    head = demo.commit_change("A change")
    merge = demo.merge_branch()

    git = Repository(layout.project_directory, new=False).git
    assert git("rev-parse", f"{merge}^1", f"{merge}^2").split() == [base, head]
    assert git("diff", "--name-only", base, head).splitlines() == list_files_of_demo_change()
    assert git("rev-parse", MAIN, BRANCH).split() == [merge, head]
    assert git("status", "--porcelain") == ""
    assert git("log", "-1", "--format=%an", merge) == "Demo"


def test_repository__without_git__says_so(layout: DemoLayout) -> None:
    with pytest.raises(BadInput, match="There is no git program"):
        DemoRepository(layout.project_directory, {"PATH": "/nowhere"}).create_repository()


def test_change__keeps_no_byte_code(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    repository = DemoRepository(tmp_path, os.environ)
    base = repository.create_repository()
    repository.start_branch()
    (tmp_path / "model.py").write_text("x = 2\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "model.cpython-311.pyc").write_bytes(b"x")
    head = repository.commit_change("Change it")
    named = ["git", "-C", str(tmp_path), "diff", "--name-only", base, head]
    changed = subprocess.run(named, capture_output=True, text=True, check=True).stdout
    assert changed.split() == ["model.py"]
