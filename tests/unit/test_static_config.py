"""A name in a configuration that nobody renders or runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.protocol.environment import EnvironmentName, is_environment_prefix
from ci_bot.static_config import WrittenPrefix, read_written_keys, read_written_prefix

BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n"
    for before, name in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("cicd_bot:\n  type: github\n  pr_environment_name: shop\n", "shop"),
        ("cicd_bot: {pr_environment_name: 'My-Team'}\n", "my_team"),  # as SQLMesh's bot makes it
        # A template elsewhere does not matter, in quotes or not.
        ("x:\n  password: {{ env_var('P') }}\ncicd_bot:\n  pr_environment_name: shop\n", "shop"),
        ("{# old: pr_environment_name: a #}\ncicd_bot:\n  pr_environment_name: shop\n", "shop"),
        ("x:\n  {{ a }}: 1\n  {{ b }}: 2\ncicd_bot:\n  pr_environment_name: shop\n", "shop"),
        (f"{BOMB}cicd_bot:\n  pr_environment_name: shop\n", "shop"),
    ],
)
def test_prefix__that_is_plain_text_is_taken(text: str, prefix: str) -> None:
    assert read_written_prefix(text) == WrittenPrefix(prefix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "model_defaults:\n  dialect: spark\n",
        "cicd_bot:\n  # pr_environment_name: shop\n  type: github\n",
        "cicd_bot:\n  pr_environment_name:\n",
        "other:\n  pr_environment_name: shop\n",
        "pr_environment_name: shop\n",
        "- pr_environment_name\n",
    ],
)
def test_prefix__that_is_not_written_is_no_problem(text: str) -> None:
    assert read_written_prefix(text) == WrittenPrefix()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cicd_bot:\n  pr_environment_name: \"{{ env_var('X') }}\"", "is made by a template"),
        ("cicd_bot:\n  pr_environment_name: a_{{ user() }}", "is made by a template"),
        (
            "{% if true %}\ncicd_bot:\n  pr_environment_name: shop\n{% endif %}",
            "is in a file that a template makes",
        ),
        ("cicd_bot:\n  pr_environment_name: [a]", "is no text"),
        ("cicd_bot:\n  pr_environment_name: 12", "is no text"),
        ("cicd_bot:\n  pr_environment_name: 7up", "does not begin with a letter"),
        (f"cicd_bot:\n  pr_environment_name: {'a' * 32}", "is longer than 31 characters"),
        ("cicd_bot:\n  pr_environment_name: größe", "letters other than a to z"),
        ("cicd_bot: {pr_environment_name: a", "is not YAML"),
        # SQLMesh refuses it, too; neither of the two names is honoured.
        ("cicd_bot:\n  pr_environment_name: a\n  pr_environment_name: b\n", "is not YAML"),
        (f"cicd_bot: {'[' * 3_000}pr_environment_name", "is not YAML"),
    ],
)
def test_prefix__that_cannot_be_honoured_says_why(text: str, problem: str) -> None:
    found = read_written_prefix(text)

    assert found.prefix is None
    assert problem in (found.problem or "")


@given(st.text(max_size=60))
def test_prefix__of_any_text_makes_a_name_or_none(name: str) -> None:
    quoted = name.replace("\\", "").replace('"', "")
    found = read_written_prefix(f'cicd_bot:\n  pr_environment_name: "{quoted}"\n')

    if found.prefix is not None:
        assert is_environment_prefix(found.prefix)
        assert (
            EnvironmentName.for_pull_request(found.prefix, 7).pull_request_number(found.prefix) == 7
        )
        assert found.problem is None


def test_keys__that_are_written() -> None:
    text = "cicd_bot:\n  type: github\n  skip_pr_backfill: false\n  x: {{ a }}\n"

    assert read_written_keys(text, "cicd_bot") == ["type", "skip_pr_backfill", "x"]
    assert read_written_keys("cicd_bot: 3", "cicd_bot") == []
    assert read_written_keys("{", "cicd_bot") == []
