"""One table of reason codes, held against the code that says them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ci_bot
from ci_bot.bot.github import failures
from ci_bot.bot.sandbox.answer_validation import normalize_reasons_of_sandboxed_worker
from ci_bot.protocol import reasons
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import FailedAnswer
from tests.contract.test_readme import rows
from tests.factories import VERSIONS

ROOT = Path(ci_bot.__file__).parent
# The step's output that has the code of a run.
OUTPUT = "reason-code"


def said_in(path: Path) -> Iterator[str]:
    """Every literal that a module gives to a reason code: as an argument, an attribute, a key."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        values: list[ast.expr] = []
        if isinstance(node, ast.Call):
            values = [k.value for k in node.keywords if k.arg == "reason_code"]
            if [each.value for each in node.args[:1] if isinstance(each, ast.Constant)] == [OUTPUT]:
                values += node.args[1:2]
        elif isinstance(node, ast.Assign):
            named = [t.id for t in node.targets if isinstance(t, ast.Name)]
            values = [node.value] if "reason_code" in named else []
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values = [
                v
                for k, v in pairs
                if isinstance(k, ast.Constant) and k.value in ("reason_code", OUTPUT)
            ]
        elif isinstance(node, ast.arguments):
            named_only = zip(node.kwonlyargs, node.kw_defaults, strict=True)
            values = [v for arg, v in named_only if arg.arg == "reason_code" and v is not None]
        for value in values:
            for part in ast.walk(value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value:
                    yield part.value


# A program of its own beside the worker: it answers no request, and the demo tells its end.
DEMO = ROOT / "worker" / "demo_prod.py"


def said(*parts: str) -> set[str]:
    found: set[str] = set()
    for part in parts:
        path = ROOT / part
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            found |= set(said_in(file))
    return found


def said_in_answers() -> set[str]:
    files = [path for path in (ROOT / "worker").rglob("*.py") if path != DEMO]
    return said("protocol/environment.py").union(*map(said_in, files))


def test_reasons__of_the_worker_are_those_that_it_says() -> None:
    """`errors` holds the words of the classes that both processes raise."""
    both = {"failed", "bad_input", "refused", "incomplete", "cancelled"}
    assert said_in_answers() | both == {
        *reasons.OF_THE_WORKER,
        *reasons.RESULTS,
    }


def test_reasons__of_the_bot_are_those_that_it_says() -> None:
    of_the_network = {code for code, _ in failures._SETTINGS.values()}
    everything = (said(".") | of_the_network) - said_in_answers()
    shared = set(reasons.OF_THE_WORKER)
    assert everything - shared == set(reasons.OF_THE_BOT)


def test_reasons__are_one_word_each_and_say_what_they_mean() -> None:
    tables = (reasons.RESULTS, reasons.OF_THE_WORKER, reasons.OF_THE_BOT)
    every = [code for table in tables for code in table]
    assert len(every) == len(set(every)), "a code is in one table only"
    for table in tables:
        assert list(table) == sorted(table)
        for code, meaning in table.items():
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code), code
            assert meaning
            assert not meaning.endswith(".")


def test_troubleshooting__has_one_row_for_each_reason() -> None:
    """Why it happens, and what to do."""
    page = (ROOT.parent / "docs" / "troubleshooting.md").read_text("utf-8")
    listed = [row for row in rows(page) if re.fullmatch(r"`[a-z_]+`", row[0])]
    tables = (reasons.RESULTS, reasons.OF_THE_WORKER, reasons.OF_THE_BOT)
    assert sorted(row[0].strip("`") for row in listed) == sorted(code for t in tables for code in t)
    for code, why, action in listed:
        assert why.endswith("."), code
        assert action.endswith("."), code


def failure(code: str) -> Failure:
    return Failure(stage="plan", reason_code=code, exit_code=1, message="x")


@pytest.mark.parametrize(
    "forged", ["ok", "applied", "no_changes", "go", "no_go", "timeout", "x" * 999]
)
def test_answer__with_a_word_of_its_own__says_failed(forged: str) -> None:
    answer = normalize_reasons_of_sandboxed_worker(FailedAnswer(failure=failure(forged)))
    assert isinstance(answer, FailedAnswer)
    assert answer.failure.reason_code == "failed"


@pytest.mark.parametrize("code", sorted(reasons.OF_THE_WORKER))
def test_answer__with_a_word_of_ours__keeps_it(code: str) -> None:
    answer = normalize_reasons_of_sandboxed_worker(FailedAnswer(failure=failure(code)))
    assert isinstance(answer, FailedAnswer)
    assert answer.failure.reason_code == code


def document(code: str | None) -> ApplyDocument:
    return ApplyDocument(
        environment="pr_7",
        plan_id=None,
        result="failed",
        reason_code=code,
        seconds=0.0,
        timings={},
        versions=VERSIONS,
        failure=failure(code) if code else None,
    )


@pytest.mark.parametrize(
    ("said_", "kept"),
    [("already_applied", "already_applied"), ("applied", "failed"), ("held", "held"), (None, None)],
)
def test_apply_document__has_its_own_word_looked_at_too(
    said_: str | None, kept: str | None
) -> None:
    answer = normalize_reasons_of_sandboxed_worker(document(said_))
    assert isinstance(answer, ApplyDocument)
    assert answer.reason_code == kept
    assert answer.failure is None or answer.failure.reason_code in ("failed", "held")
