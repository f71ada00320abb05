"""The amount of fuzzing that the nightly run asks for, counted over every property test that takes part."""

from __future__ import annotations

import ast
import importlib

from tests.conftest import REPOSITORY
from tests.oracle import fuzzing

PROMISED = 100_000
# Each escape and each parser: the property, and the test that shows it failing without its escape.
FUZZED = {
    "tests.unit.actions.test_workflow_commands": "identity",
    "tests.unit.actions.test_step_files": "other_ways",
    "tests.unit.sandbox.test_worker_answer": "without",
    "tests.unit.redaction.test_redaction": "identity",
}


def test_fuzz__is_at_least_what_is_promised() -> None:
    for module in FUZZED:
        importlib.import_module(module)
    amounts = {
        module: sum(
            amount for name, amount in fuzzing.planned.items() if name.startswith(f"{module}.")
        )
        for module in FUZZED
    }
    print(f"inputs with CI_BOT_FUZZ=full: {sum(amounts.values()):,} {amounts}")
    assert all(amounts.values())
    assert sum(amounts.values()) >= PROMISED, amounts


def test_fuzz__every_module_shows_that_it_would_notice() -> None:
    for module, word in FUZZED.items():
        tree = ast.parse((REPOSITORY / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert any(name.startswith("test_mutation__") and word in name for name in names), module
