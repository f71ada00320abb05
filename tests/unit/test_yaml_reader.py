"""YAML that says more than it is long is not walked through, and every refusal is one error."""

from __future__ import annotations

import time

import pytest
from ruamel.yaml import YAML

from ci_bot.worker.rules import find_file_findings, find_statement_findings
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.yaml_reader import MOST_NODES, UnfitYaml, read_yaml, read_yaml_or_none


def of_aliases(lines: int) -> str:
    """Nine times as much with every line."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, lines)]
    return "\n".join(rows)


def of_merges(lines: int) -> str:
    """Twice as much with every line, of which one key is left."""
    rows = ["a0: &a0 {k: 1}"]
    rows += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, lines)]
    return "\n".join(rows)


@pytest.mark.parametrize(
    "text", [of_aliases(9), of_merges(40), "a: &a\n  b: *a\n", "a: &a [*a]\n", "[" * 20_000]
)
def test_load__of_what_has_no_end__is_nothing(text: str) -> None:
    begun = time.process_time()
    assert read_yaml_or_none(text) is None
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: [", 2, "it is not YAML: "),
        ("a: 1\nb:\n  c: 1\n  'c': 2\n", 4, "the key `c` is in line 3, too"),
        ("a: 1\n---\nb: 1\n", 2, "a second document begins: there may be one"),
        ("a: 1\nb: \x07\n", 2, "it holds values or characters that YAML does not allow"),
        ('a: "\\U99999999"\n', 1, "it holds values or characters that YAML does not allow"),
        ("a: !!int\n", 1, "it holds values or characters that YAML does not allow"),
        ("a: 2024-13-45\n", 1, "it holds values or characters that YAML does not allow"),
        ("a: !environ X\n", 1, "it is not YAML: "),
        ("[" * 101, 1, "it is nested more than 100 deep"),
    ],
)
def test_read__of_what_is_no_document__says_in_which_line(
    text: str, line: int, message: str
) -> None:
    with pytest.raises(UnfitYaml) as refusal:
        read_yaml(text)
    assert (refusal.value.line, refusal.value.message[: len(message)]) == (line, message)


def test_read__is_what_sqlmesh_reads() -> None:
    text = "%YAML 1.1\n---\na: &a {on: 2024-01-05, n: 0x1F}\nb: {<<: *a, t: !!str 5}\n"
    assert read_yaml(text) == YAML(typ="safe").load(text)


def test_load__with_a_few_aliases__is_the_document() -> None:
    assert read_yaml_or_none("a: &a {x: 1}\nb: *a\n") == {"a": {"x": 1}, "b": {"x": 1}}
    assert read_yaml_or_none("\n".join(f"- {n}" for n in range(MOST_NODES // 10))) is not None


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

    find_file_findings(inputs)
    find_statement_findings(inputs)

    assert time.process_time() - begun < 5
