"""Where the worker's project finds its modules, and where its relative paths begin."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ci_bot.bot.sandbox.launch import prepend_python_path_in_sandbox
from ci_bot.bot.sandbox.run_directories import list_search_path_of_sandbox
from ci_bot.bot.worker_client.session import get_start_directory_of_worker
from ci_bot.errors import BadInput
from ci_bot.worker.runtime import imports


def test_search_path__is_relative_to_the_checkout_and_each_once(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    given = ["lib", ".", str(tmp_path / "lib"), "lib/", "not/there"]
    assert list_search_path_of_sandbox(tmp_path, given) == ["lib", ".", "not/there"]


def test_search_path__names_all_that_leave_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "a.py").touch()
    with pytest.raises(BadInput) as refused:
        list_search_path_of_sandbox(tmp_path, ["../x", "lib", "out", "/usr/lib", "a.py"])
    assert refused.value.exit_code == 2
    for name in ("../x", "out", "/usr/lib", "a.py"):
        assert f"`{name}`" in refused.value.message
    assert "`lib`" not in refused.value.message


def test_python_path__stands_before_what_the_user_has_set() -> None:
    found = prepend_python_path_in_sandbox(
        {"PYTHONPATH": "/mine", "A": "1"}, ["/c/lib", "/c/models"]
    )
    assert found == {"PYTHONPATH": os.pathsep.join(["/c/lib", "/c/models", "/mine"]), "A": "1"}
    assert prepend_python_path_in_sandbox({"A": "1"}, ["/c/lib"]) == {
        "PYTHONPATH": "/c/lib",
        "A": "1",
    }
    assert prepend_python_path_in_sandbox({"A": "1"}, []) == {"A": "1"}


def test_start__of_a_workflow_is_the_project_and_of_several_the_checkout() -> None:
    root = Path("/somewhere/repository")
    assert get_start_directory_of_worker(root, ["analytics"], user=None) == root / "analytics"
    assert get_start_directory_of_worker(root, ["."], user=None) == root
    assert get_start_directory_of_worker(root, ["a", "b"], user=None) == root


def test_start__of_a_laptop_is_where_the_user_is() -> None:
    assert get_start_directory_of_worker(Path("/r"), ["a"], user=Path("/home/me")) == Path(
        "/home/me"
    )


def test_use__comes_before_everything_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/overlay", "/usr/lib/python3", "/c/models"])
    imports.add_search_paths_of_worker(["/c/lib", "/c/models"])
    assert sys.path == ["/c/lib", "/overlay", "/usr/lib/python3", "/c/models"]


def test_move__takes_search_path_and_directory_to_the_other_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "project" / "deep").mkdir(parents=True)
    (new / "project").mkdir(parents=True)
    # A virtual environment inside the checkout is no part of the project.
    packages = f"{old}/.venv/lib/python3.11/site-packages"
    monkeypatch.setattr(sys, "path", [f"{old}/lib", "/overlay", packages])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([f"{old}/lib", "/overlay"]))
    monkeypatch.chdir(old / "project" / "deep")
    imports.move_search_paths_of_worker([f"{old}/lib"], old, new)
    assert sys.path == [f"{new}/lib", "/overlay", packages]
    assert os.environ["PYTHONPATH"] == os.pathsep.join([f"{new}/lib", "/overlay"])
    assert Path.cwd() == (new / "project").resolve()


def test_move__leaves_a_directory_outside_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    imports.move_search_paths_of_worker([], tmp_path / "old", tmp_path / "new")
    assert Path.cwd() == elsewhere.resolve()
