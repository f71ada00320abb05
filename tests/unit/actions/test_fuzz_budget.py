"""The amount of fuzzing that CI asks for is what issue and README promise."""

from __future__ import annotations

import importlib

from tests.oracle import fuzzing

PROMISED = 100_000


def test_fuzz_budget__reaches_what_is_promised() -> None:
    for module in (
        "tests.unit.actions.test_workflow_commands",
        "tests.unit.actions.test_step_files",
        "tests.unit.process.test_worker_answer",
        "tests.unit.test_redaction",
    ):
        importlib.import_module(module)
    ours = {name: amount for name, amount in fuzzing.planned.items() if name.startswith("tests.")}
    assert sum(ours.values()) >= PROMISED, ours
