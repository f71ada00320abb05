"""Code whose results hang on the machine, and signals that hold nothing back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ci_bot.worker.rules.changes.model_block import find_signal_changes
from ci_bot.worker.rules.models.declarations import EnvironmentVariable
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.sql.model_code import find_environment_reads, is_signal_always_ready
from tests.unit.rules.world import files


def model(*code: str, is_python: bool = False) -> Any:
    env = {
        f"part{number}": SimpleNamespace(kind="definition", payload=text)
        for number, text in enumerate(code)
    }
    return SimpleNamespace(python_env=env, is_python=is_python, is_sql=not is_python)


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("import os\ndef f(e):\n    return os.environ['RATE']", ["RATE"]),
        ("import os\ndef f(e):\n    return os.environ.get('RATE', 1)", ["RATE"]),
        ("import os as o\ndef f(e):\n    return o.getenv('RATE')", ["RATE"]),
        ("from os import environ\ndef f(e):\n    return environ['RATE']", ["RATE"]),
        ("from os import getenv as g\ndef f(e, n):\n    return g(n)", ["…"]),
        ("import os\ndef f(e):\n    os.environ['RATE'] = '1'", []),
        ("def f(e, environ):\n    return environ['RATE']", []),
        ("def f(e):\n    return e.var('RATE')", []),
    ],
)
def test_environment__reads_are_found_behind_aliases(code: str, read: list[str]) -> None:
    assert find_environment_reads(model(code)) == read


def weights(one: Any) -> list[tuple[str, str]]:
    rule = EnvironmentVariable(ProjectView({}))
    return [(told.weight, told.described_text) for told in rule.find_observations(one)]


def test_environment__in_a_macro_is_high_and_in_a_model_medium() -> None:
    code = "import os\ndef f(e):\n    return os.getenv('RATE')"
    ((macro, words),) = weights(model(code))
    assert macro == "high"
    assert "`RATE`" in words
    assert [weight for weight, _ in weights(model(code, is_python=True))] == ["medium"]


def test_environment__is_where_credentials_come_from() -> None:
    assert weights(model("import os\ndef f(e):\n    return os.environ['API_TOKEN']")) == []


@pytest.mark.parametrize(
    ("code", "ready"),
    [
        ("def s(batch):\n    return True", True),
        ("def s(batch, hours=6):\n    return batch", True),
        ("def s(batch):\n    return False", False),
        ("def s(batch):\n    return [b for b in batch if b[1] < now()]", False),
        ("def s(batch):\n    if late():\n        return False\n    return True", False),
        ("def s(batch):\n    batch = batch[:1]\n    return batch", False),
        (None, False),
        ("no python at all (", False),
    ],
)
def test_signal__that_lets_everything_through(code: str | None, ready: bool) -> None:
    assert is_signal_always_ready(code) is ready


def waiting(body: str) -> Any:
    """A model that waits for a signal with this code."""
    env = {"done": SimpleNamespace(kind="definition", payload=body)}
    return SimpleNamespace(signals=[("done", {})], python_env=env)


def test_signal__whose_code_changes_is_told_and_high_where_it_is_always_ready() -> None:
    asks = "def done(batch):\n    return [b for b in batch if is_there(b)]"
    found: list[tuple[str, str]] = []
    for after in (
        asks.replace("is_there", "may_be_there"),
        "def done(batch):\n    return True",
        asks,
    ):
        pair: Any = SimpleNamespace(before=waiting(asks), after=waiting(after))
        found += [(one.weight, *one.subject) for one in find_signal_changes(pair, files({}, {}))]
    assert found == [("medium", "code of done"), ("high", "code of done")]
