"""Which part of the package may load what: the wall that keeps PR code out of the bot's process."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "ci_bot"
ENGINES = {"sqlmesh", "pyspark", "sqlglot", "pandas", "duckdb"}
# The worker's own rooms; `demo` holds a project that only the worker loads.
WORKER_ROOMS = {"worker", "demo"}
SHELLS = {"system", "popen", "getoutput", "getstatusoutput"}


def imported(tree: ast.AST) -> set[str]:
    """The top-level names of everything that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def modules(*, of_worker: bool) -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if (path.relative_to(PACKAGE).parts[0] in WORKER_ROOMS) is of_worker
    ]


@pytest.mark.parametrize("path", modules(of_worker=False), ids=lambda path: path.stem)
def test_bot__imports_nothing_that_loads_a_project(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert not imported(tree) & ENGINES
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert not node.module.startswith("ci_bot.worker."), f"line {node.lineno}"


@pytest.mark.parametrize("path", modules(of_worker=True), ids=lambda path: path.stem)
def test_worker__knows_neither_github_nor_the_bot(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    if path.relative_to(PACKAGE).parts[0] == "worker":
        assert not imported(tree) & {"github", "requests", "urllib3"}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith(("ci_bot.github", "ci_bot.actions"))


@pytest.mark.parametrize(
    "path", modules(of_worker=False) + modules(of_worker=True), ids=lambda path: path.stem
)
def test_programs__are_started_from_lists_and_never_through_a_shell(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            given = {word.arg: word.value for word in node.keywords}
            shell = given.get("shell")
            assert shell is None or (isinstance(shell, ast.Constant) and shell.value is False)
            if isinstance(node.func, ast.Attribute):
                assert node.func.attr not in SHELLS, f"line {node.lineno}"
