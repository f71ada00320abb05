"""What documents and editors are told of a policy is what the program reads."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from ci_bot.bot.policy.document import render_policy_schema
from ci_bot.bot.policy.policy_file import UnfitPolicy, read_policy
from ci_bot.bot.policy.weighable_rules import PROTECTED, UNWEIGHED, list_rules_that_policy_may_weigh
from tests.conftest import REPOSITORY
from tests.unit.policy.test_policy_file import WRONG

PAGE = (REPOSITORY / "docs" / "policy.md").read_text("utf-8")
SCHEMA = REPOSITORY / "docs" / "policy.schema.json"
# What a schema cannot say: what is close to a rule, a day of the calendar, a key that stands twice.
NOT_IN_THE_SCHEMA = {
    "an end in many years",
    "ignore of everything",
    "an owner of nothing",
    "every rule without a scope",
    "no such day",
    "a protected rule made lighter",
    "empty reason",
    "reason of control characters",
    "selection by git",
    "an account with a blank",
    "a key that is a list",
    "a key twice",
    "an alias",
    "a merge",
    "a tag",
    "two documents",
    "no YAML",
    "an open account",
    "a control character",
}


def example() -> str:
    (found,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def validator() -> Any:
    return jsonschema.Draft202012Validator(
        render_policy_schema(), format_checker=jsonschema.FormatChecker()
    )


def test_schema__is_the_one_that_is_checked_in() -> None:
    kept = json.loads(SCHEMA.read_text("utf-8"))
    assert kept == render_policy_schema(), "run `ci-bot schema policy > docs/policy.schema.json`"


def test_example__is_a_policy_with_every_key() -> None:
    found = read_policy(
        example().encode(),
        path="x",
        rules=list_rules_that_policy_may_weigh(),
        today=date(2026, 11, 22),
    )
    data = YAML(typ="safe", pure=True).load(example())
    assert set(data) == {str(field.alias) for field in type(found).model_fields.values()}
    schema: dict[str, Any] = render_policy_schema()
    for key, item in schema["$defs"].items():
        if key == "RuleName":
            continue
        for name in item["properties"]:
            assert re.search(rf"\b{name}:", example()), f"the example lacks {key}.{name}"


def test_schema__takes_the_example() -> None:
    data = YAML(typ="safe", pure=True).load(re.sub(r"(\d{4}-\d\d-\d\d)", r"'\1'", example()))
    assert not [error.message for error in validator().iter_errors(data)]


@pytest.mark.parametrize("case", sorted(set(WRONG) - NOT_IN_THE_SCHEMA))
def test_schema__refuses_what_the_program_refuses(case: str) -> None:
    data = YAML(typ="safe", pure=True).load(WRONG[case][0])
    assert [*validator().iter_errors(data)], WRONG[case][0]


def test_rules__that_are_protected_exist_and_are_explained() -> None:
    rules = list_rules_that_policy_may_weigh()
    told = set(re.findall(r"`([A-Za-z0-9-]+)`", PAGE.partition("## What is not made lighter")[2]))
    for name in (*PROTECTED, *UNWEIGHED):
        assert name in rules
        assert name in told, f"docs/policy.md does not say why {name} keeps its weight"
    assert not set(PROTECTED) & set(UNWEIGHED)


@pytest.mark.parametrize("name", PROTECTED)
def test_rule__that_is_protected_is_not_made_lighter(name: str) -> None:
    for severity in ("high", "off"):
        text = f"severity:\n- {{rule: {name}, severity: '{severity}', models: a.*, reason: x}}\n"
        with pytest.raises(UnfitPolicy, match="is not made lighter"):
            read_policy(
                text.encode(),
                path="x",
                rules=list_rules_that_policy_may_weigh(),
                today=date(2026, 1, 1),
            )
    text = f"ignore:\n- {{rule: {name}, models: a.b, reason: x, until: 2026-02-01}}\n"
    assert read_policy(
        text.encode(), path="x", rules=list_rules_that_policy_may_weigh(), today=date(2026, 1, 1)
    )
