"""The examples on the pages of rules do what the pages say."""

from __future__ import annotations

import re

import pytest

from ci_bot.protocol.rules import RULES, read_rule_page
from ci_bot.worker.project.merge_support import GatewayFacts
from ci_bot.worker.project.opening import ProjectConfigFacts
from tests.unit.rules.world import change, seen

# These need more than one model's text; their own tests run them.
ELSEWHERE = {
    "environment-statement",
    "environment-variable",
    "external-without-audits",
    "huge-full-model",
    "lint-rules-ignored",
    "model-renamed",
    "python-dependency-missing",
    "removed-model-read",
}
MODEL_RULES = [id_ for id_, s in RULES.items() if s.scope == "model" and id_ not in ELSEWHERE]
CHANGE_RULES = [
    id_ for id_, s in RULES.items() if s.scope in {"change", "statement"} and id_ not in ELSEWHERE
]
# What rules that need settings are given: Spark's own catalog, and no variable.
ON_SPARK = ProjectConfigFacts(gateways={"": GatewayFacts("spark", "spark_catalog")})
WITHOUT_DEFAULT_START = {"no-start"}


def section(rule: str, title: str) -> list[str]:
    text = read_rule_page(rule).split(title)[1].split("\n## ")[0]
    return re.findall(r"```\w+\n(.*?)```", text, flags=re.DOTALL)


def as_files(block: str) -> dict[str, str]:
    parts = re.split(r"^-- and, in another file:\n", block, flags=re.MULTILINE)
    return {f"models/m{number}.sql": text for number, text in enumerate(parts)}


def on_model(rule: str, title: str) -> list[str]:
    (block,) = section(rule, title)
    defaults = {"start": None} if rule in WITHOUT_DEFAULT_START else None
    more = {"config_after": ON_SPARK} if "settings" in RULES[rule].needs else {}
    inputs = change({}, as_files(block), defaults=defaults, **more)
    return [item.severity for item in seen(inputs, rule)]


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_model_page__first_example_fires(rule: str) -> None:
    assert on_model(rule, "## Fires") == [RULES[rule].severity]


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_model_page__second_example_stays_quiet(rule: str) -> None:
    assert on_model(rule, "## Stays quiet") == []


def on_change(rule: str, title: str) -> list[str]:
    before, after = section(rule, title)
    return [item.rule for item in seen(change(as_files(before), as_files(after)), rule)]


@pytest.mark.parametrize("rule", CHANGE_RULES)
def test_change_page__first_example_fires(rule: str) -> None:
    assert on_change(rule, "## Fires") == [rule]


@pytest.mark.by_day(15)
@pytest.mark.parametrize("rule", CHANGE_RULES)
def test_change_page__second_example_stays_quiet(rule: str) -> None:
    assert on_change(rule, "## Stays quiet") == []
