"""Who owns a model: the policy's last word, else CODEOWNERS as GitHub reads it."""

from __future__ import annotations

from ci_bot.bot.policy.model_owners import (
    CodeOwnersFile,
    ModelOwnershipByPolicy,
    find_ownership_by_policy,
)
from ci_bot.bot.policy.policy import PolicyScopeMatches
from ci_bot.protocol.review_inputs import ScopedModels
from tests.unit.policy.given import PATH, policy

OWNERS = """\
owners:
  - {models: mart.*, github: [alice, acme/data]}
  - {owner: finance, github: bob}
"""
FILE = CodeOwnersFile(".github/CODEOWNERS", "*.sql @carol @acme/bi\n")


def owned(
    before: list[str], after: list[str], path: str | None = "models/a.sql"
) -> ModelOwnershipByPolicy:
    """Who owns mart.a, where the second entry means these models before and after the change."""
    found = policy(OWNERS)
    first = ScopedModels(before=["mart.a"], after=["mart.a"])
    answers = [first, ScopedModels(before=before, after=after)]
    return find_ownership_by_policy(
        found, PolicyScopeMatches.from_answers(found.list_scopes(), answers), "mart.a", path, FILE
    )


def test_ownership__is_what_the_last_entry_says() -> None:
    assert owned([], []) == ModelOwnershipByPolicy(("alice",), ("acme/data",), f"{PATH} line 2")
    assert owned(["mart.a"], ["mart.a"]) == ModelOwnershipByPolicy(("bob",), (), f"{PATH} line 3")


def test_ownership__goes_by_the_model_before_the_change() -> None:
    assert owned([], ["mart.a"]).logins == ("alice",), "the pull request has given it that owner"
    assert owned(["mart.a"], []).logins == ("bob",), "or has taken it away"


def test_ownership__is_that_of_codeowners_where_the_policy_says_nothing() -> None:
    nobody = policy("")
    found = find_ownership_by_policy(nobody, PolicyScopeMatches(), "mart.a", "models/a.sql", FILE)
    assert found == ModelOwnershipByPolicy(("carol",), ("acme/bi",), ".github/CODEOWNERS line 1")
    assert (
        find_ownership_by_policy(nobody, PolicyScopeMatches(), "mart.a", None, FILE)
        == ModelOwnershipByPolicy()
    )
    assert (
        find_ownership_by_policy(nobody, PolicyScopeMatches(), "mart.a", "models/a.py", FILE)
        == ModelOwnershipByPolicy()
    )
    assert (
        find_ownership_by_policy(nobody, PolicyScopeMatches(), "mart.a", "models/a.sql", None)
        == ModelOwnershipByPolicy()
    )


def test_ownership__of_a_person_ignores_case() -> None:
    found = ModelOwnershipByPolicy(("Alice",), ("acme/alice",))
    assert found.names_person("aLICE")
    assert not found.names_person("acme/alice")
    assert not found.names_person("bob")
