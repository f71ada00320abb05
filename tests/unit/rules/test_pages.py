"""Every rule has a page, and the examples on it do what the page says."""

from __future__ import annotations

import re

import pytest

from ci_bot.worker.rules import SPECS
from tests.conftest import REPOSITORY
from tests.unit.rules.world import change, seen

PAGES = REPOSITORY / "docs" / "rules"
SECTIONS = ("## Fires", "## Stays quiet", "## How to clear it")
# These need more than one model's text; their own tests run them.
ELSEWHERE = {
    "batch-size-missing",
    "external-without-audits",
    "huge-full-model",
    "lint-rules-ignored",
}
MODEL_RULES = sorted(s.id for s in SPECS.values() if s.scope == "model" and s.id not in ELSEWHERE)
CHANGE_RULES = sorted(s.id for s in SPECS.values() if s.scope == "change" and s.id not in ELSEWHERE)
WITHOUT_DEFAULT_START = {"no-start"}


def page(rule: str) -> str:
    return (PAGES / f"{rule}.md").read_text(encoding="utf-8")


def section(rule: str, title: str) -> list[str]:
    text = page(rule).split(title)[1].split("\n## ")[0]
    return re.findall(r"```\w+\n(.*?)```", text, flags=re.DOTALL)


def as_files(block: str) -> dict[str, str]:
    parts = re.split(r"^-- and, in another file:\n", block, flags=re.MULTILINE)
    return {f"models/m{number}.sql": text for number, text in enumerate(parts)}


@pytest.mark.parametrize("rule", sorted(SPECS))
def test_page__explains_the_rule(rule: str) -> None:
    text = page(rule)

    assert text.startswith(f"# {SPECS[rule].title}\n")
    assert f"`{rule}` · {SPECS[rule].severity} by default" in text
    assert [title for title in SECTIONS if title in text] == list(SECTIONS)


def test_pages__belong_to_rules_that_exist() -> None:
    own = {path.stem for path in PAGES.glob("*.md") if not re.match(r"R\d\d|matrix", path.stem)}

    assert own == set(SPECS)


def on_model(rule: str, title: str) -> list[str]:
    (block,) = section(rule, title)
    defaults = {"start": None} if rule in WITHOUT_DEFAULT_START else None
    inputs = change({}, as_files(block), defaults=defaults)
    return [item.severity for item in seen(inputs, rule)]


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_model_page__first_example_fires(rule: str) -> None:
    assert on_model(rule, "## Fires") == [SPECS[rule].severity]


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_model_page__second_example_stays_quiet(rule: str) -> None:
    assert on_model(rule, "## Stays quiet") == []


def on_change(rule: str, title: str) -> list[str]:
    before, after = section(rule, title)
    return [item.rule for item in seen(change(as_files(before), as_files(after)), rule)]


@pytest.mark.parametrize("rule", CHANGE_RULES)
def test_change_page__first_example_fires(rule: str) -> None:
    assert on_change(rule, "## Fires") == [rule]


@pytest.mark.parametrize("rule", CHANGE_RULES)
def test_change_page__second_example_stays_quiet(rule: str) -> None:
    assert on_change(rule, "## Stays quiet") == []
