"""Documents, templates and code are in plain English, as far as a linter sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import (
    CONTRIBUTING,
    ROOT,
    blank_all_but_prose,
    find_faults,
    find_faults_in_code,
    list_modules,
    list_pages,
    read_words_to_avoid,
)

PAGE = Path("docs/page.md")


@pytest.mark.parametrize("path", list_pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_page__is_in_plain_english(path: Path) -> None:
    found = [*find_faults(path.relative_to(ROOT), path.read_text("utf-8"))]
    assert found == [], "\n".join(found)


def test_code__is_in_plain_english() -> None:
    found = [
        line
        for path in list_modules()
        for line in find_faults_in_code(path.relative_to(ROOT), path.read_text("utf-8"))
    ]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('def f():\n    """Plans the\n    table anew."""\n', 3),
        ('x = 1\nraise ValueError(f"{x} of the tables is built anew.")\n', 2),
        ('x = (\n    "The plan of a table "\n    "is made anew."\n)\n', 2),
    ],
)
def test_code__what_people_read_of_it_is_noticed(source: str, line: int) -> None:
    (found,) = find_faults_in_code(Path("a.py"), source)
    assert found.startswith(f"a.py:{line}: 'anew'")


@pytest.mark.parametrize(
    "source",
    [
        "# The table is built anew.\n",
        'x = "anew"\n',
        'x = r"\\bthe table anew\\b"\n',
        'x = "weekday weekday of the_week".split()\n',
        'x = f"the table {anew}"\n',
        '"""The SQL that a star stands for."""\n',
        'x = "of the table"\ny = "table of a model"\n',
    ],
)
def test_code__all_else_is_no_prose(source: str) -> None:
    assert [*find_faults_in_code(Path("a.py"), source)] == []


@pytest.mark.parametrize("phrase", sorted(read_words_to_avoid(CONTRIBUTING.read_text("utf-8"))))
def test_words__each_is_noticed_also_where_a_line_ends_in_it(phrase: str) -> None:
    text = f"# Page\n\nThe report, {phrase.replace(' ', chr(10))} here, has a line.\n"
    assert any(f"page.md:3: {phrase!r}" in line for line in find_faults(PAGE, text))


def test_words__that_are_only_alike_are_no_finding() -> None:
    text = "Where `prod` is built, commandments, beliefs and the amended renewal stand.\n"
    assert [*find_faults(PAGE, text)] == []


def test_proselint__notices_what_it_always_knew() -> None:
    assert any("archaic" in line for line in find_faults(PAGE, "It stays for ever.\n"))


@pytest.mark.parametrize(
    "text",
    [
        "Run `sqlmesh mend` now.\n",
        "```sql\nSELECT anew\n```\n",
        "[This](../anew.md) page.\n",
        "<!-- anew -->\n",
        "{% if anew %}The{{ anew|told }}{# anew #} table{% endif %}\n",
        "---\ntitle: anew\n---\n\nThe table.\n",
    ],
)
def test_prose__is_what_people_read(text: str) -> None:
    assert [*find_faults(PAGE, text)] == []
    assert blank_all_but_prose(text).count("\n") == text.count("\n"), "a finding names its line"
