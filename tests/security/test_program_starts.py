"""No program is started through a shell. Who imports whom: tests/contract/test_architecture.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "ci_bot"
SHELLS = {"system", "popen", "getoutput", "getstatusoutput"}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_programs__are_started_from_lists_and_never_through_a_shell(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            given = {word.arg: word.value for word in node.keywords}
            shell = given.get("shell")
            assert shell is None or (isinstance(shell, ast.Constant) and shell.value is False)
            if isinstance(node.func, ast.Attribute):
                assert node.func.attr not in SHELLS, f"line {node.lineno}"
