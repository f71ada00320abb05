"""YAML that says more than it is long is not walked through."""

from __future__ import annotations

import time

import pytest

from ci_bot.worker.messages.yaml_data import MOST_NODES, load_yaml
from ci_bot.worker.rules import find_in_files, find_in_statements
from ci_bot.worker.rules.inputs import RuleInputs


def of_aliases(lines: int) -> str:
    """Nine times as much with every line."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, lines)]
    return "\n".join(rows)


@pytest.mark.parametrize("text", [of_aliases(9), "a: &a\n  b: *a\n", "a: &a [*a]\n", "[" * 20_000])
def test_load__of_what_has_no_end__is_nothing(text: str) -> None:
    assert load_yaml(text) is None


def test_load__with_a_few_aliases__is_the_document() -> None:
    assert load_yaml("a: &a {x: 1}\nb: *a\n") == {"a": {"x": 1}, "b": {"x": 1}}
    assert load_yaml("\n".join(f"- {n}" for n in range(MOST_NODES // 10))) is not None


@pytest.mark.parametrize("path", ["config.yaml", "tests/test_a.yaml", "models/a.yaml"])
def test_rules__end_soon_whatever_the_yaml_says(path: str) -> None:
    inputs = RuleInputs(
        before={},
        after={},
        loaded=False,
        changed_files=(path,),
        files_after=lambda name: of_aliases(9).encode() if name == path else None,
    )
    begun = time.process_time()

    find_in_files(inputs)
    find_in_statements(inputs)

    assert time.process_time() - begun < 5
