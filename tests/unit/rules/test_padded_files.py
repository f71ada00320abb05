"""Files that somebody has made long or deep: read in a moment, or the report says that they were not."""

from __future__ import annotations

from time import process_time

import pytest

from ci_bot.jinja_text import list_templates, replace_templates
from ci_bot.worker.rules.files.configuration import flatten_configuration_file
from ci_bot.worker.rules.run_rules import find_file_findings
from tests.unit.rules.world import files

LETTERS = 60_000
PADDED = {
    "at": "@" * LETTERS,
    "at and comments": "@a /* " * (LETTERS // 6),
    "at and lines": "-- @\n" * (LETTERS // 5),
    "at and blanks": "@\n" * (LETTERS // 2),
    "open templates": "{{" * (LETTERS // 2),
    "open blocks": "{%" * (LETTERS // 2),
    "conditions": "{% if a %} " * (LETTERS // 11),
    "open remarks": "{#" * (LETTERS // 2),
    "comments": "/* a */ " * (LETTERS // 8) + "INSERT",
    "definitions": "@DEF (a, " * (LETTERS // 9),
    "audits": "AUDIT (\n" * (LETTERS // 8),
    "seeds": "MODEL ( name a kind SEE " * (LETTERS // 24),
}


@pytest.mark.parametrize(
    "path", ["config.yaml", "tests/test_a.yaml", "models/a.sql", "seeds/a.csv"]
)
@pytest.mark.parametrize("text", PADDED.values(), ids=PADDED)
def test_file__that_is_padded__takes_no_rule_long(text: str, path: str) -> None:
    """Patterns that look on from each bracket took minutes."""
    begun = process_time()

    find_file_findings(files({path: "a: 1\n"}, {path: text}))

    assert process_time() - begun < 20


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("models/a.py", "x = " + "-" * 5_000 + "1\n", "parser"),
        ("models/a.py", "x = " + "lambda: " * 3_000 + "1\n", "parser"),
        ("config.yaml", "variables: " + "[" * 200 + "]" * 200 + "\n", "100 deep"),
        ("tests/test_a.yaml", "a: " + "{b: " * 150 + "1" + "}" * 150 + "\n", "100 deep"),
    ],
)
def test_file__that_no_parser_follows__is_said_not_to_be_read(
    path: str, text: str, why: str
) -> None:
    found = [
        one
        for one in find_file_findings(files({path: ""}, {path: text}))
        if one.rule == "rule-crashed"
    ]

    assert [(one.severity, one.path, why in one.evidence) for one in found] == [
        ("high", path, True)
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("models/a.py", "x = (((((1)))))\n"),
        ("models/a.py", "x = (\n"),
        ("config.yaml", "variables: {a: [1]}\n"),
        ("config.yaml", "variables: {a: [1]\n"),
        ("notes/deep.yaml", "[" * 200 + "]" * 200),
    ],
)
def test_file__that_is_read_or_no_program__is_not_said_to_be_unread(path: str, text: str) -> None:
    assert not [
        one
        for one in find_file_findings(files({path: ""}, {path: text}))
        if one.rule == "rule-crashed"
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a {{ b }} c {% d %} e {# f #} g", "a < b > c < d > e < f > g"),
        ("{{ a {{ b }} c }}", "< a {{ b > c }}"),
        ("{{ a", "{{ a"),
        ("{{ a {% b %} {{ c }}", "< a {% b %} {{ c >"),
        ("{{{ a }}", "<{ a >"),
        ("{% if a %}b{% else %}c{% endif %} d", "< if a %}b{% else %}c{% endif > d"),
        ("{% if a %}\nb\n{% endif %} d", "< if a >\nb\n< endif > d"),
        ("{%- if a -%} {{ b }} {% endif -%}", "<- if a -%} {{ b }} {% endif ->"),
        ("{% if a {{ b }}", "{% if a < b >"),
        ("{%{% a %}", "<{% a >"),
    ],
)
def test_templates__begin_and_end_as_jinja_has_them(text: str, shown: str) -> None:
    assert replace_templates(text, lambda one: f"<{one[2:-2]}>", whole_conditions=True) == shown


def test_templates__of_kinds_that_are_not_asked_for__are_text() -> None:
    assert list(list_templates("{# a #} {{ b }} {% c %}", ("{{",))) == [(8, 15)]


def test_sqlmesh_yaml__is_a_configuration_too() -> None:
    text = "model_defaults:\n  dialect: spark\n  start: '2024-01-01'\n"

    found = find_file_findings(
        files({"sqlmesh.yaml": text}, {"sqlmesh.yaml": text.replace("2024", "2025")})
    )

    assert [one.rule for one in found] == ["model-default-changed"]
    assert flatten_configuration_file(text) == {
        "model_defaults\x00dialect": "spark",
        "model_defaults\x00start": "2024-01-01",
    }
