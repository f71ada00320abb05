"""Who owns a model: the policy's last word, else CODEOWNERS as GitHub reads it."""

from __future__ import annotations

import pytest

from ci_bot.bot.policy.model_owners import (
    CodeOwners,
    CodeOwnersFile,
    ModelOwnership,
    find_ownership,
    list_owners_of,
)
from ci_bot.bot.policy.policy import ScopeMatches
from ci_bot.protocol.review_inputs import ScopedModels
from tests.unit.policy.given import PATH, policy

# From GitHub's page about the file: pattern, a path, and whether it is meant.
PATTERNS = [
    ("*", "a/b.sql", True),
    ("*.js", "deep/in/a.js", True),
    ("*.js", "a.json", False),
    ("/build/logs/", "build/logs/x/y.txt", True),
    ("/build/logs/", "src/build/logs/x.txt", False),
    ("docs/*", "docs/getting-started.md", True),
    ("docs/*", "docs/build-app/troubleshooting.md", False),
    ("apps/", "src/apps/x.py", True),
    ("apps/", "apps", False),
    ("/docs/", "docs/a/b.md", True),
    ("/docs/", "x/docs/a.md", False),
    ("/scripts/", "scripts/run.sh", True),
    ("**/logs", "build/logs/a.txt", True),
    ("**/logs", "deeply/nested/logs", True),
    ("/apps/github", "apps/github", True),
    ("/apps/github", "apps/github/x", True),
    ("models/finance", "models/finance/a.sql", True),
    ("models/finance", "x/models/finance/a.sql", False),
    ("models/**/a.sql", "models/x/y/a.sql", True),
    ("models/**/a.sql", "models/a.sql", True),
    ("models/**", "models/x/y.sql", True),
    ("a?.sql", "x/ab.sql", True),
    ("a?.sql", "a/.sql", False),
    ("a.sql", "a-sql", False),
    (r"with\ blank.sql", "with blank.sql", True),
    ("!*.js", "a.js", False),
    ("[ab].sql", "a.sql", False),
]


@pytest.mark.parametrize(("pattern", "path", "meant"), PATTERNS)
def test_codeowners__pattern_means_what_it_means_to_github(
    pattern: str, path: str, meant: bool
) -> None:
    found = list_owners_of(f"{pattern} @alice\n", path)
    assert found == (CodeOwners(("alice",), 1) if meant else None)


def test_codeowners__last_line_that_matches_counts() -> None:
    text = "# all\n* @alice # everybody's\n\n*.sql @acme/data @bob mail@acme.example\n/x.sql\n"
    assert list_owners_of(text, "README.md") == CodeOwners(("alice",), 2)
    assert list_owners_of(text, "a/b.sql") == CodeOwners(("acme/data", "bob"), 4)
    assert list_owners_of(text, "x.sql") == CodeOwners((), 5), (
        "a line without owners takes them away"
    )


OWNERS = """\
owners:
  - {models: mart.*, github: [alice, acme/data]}
  - {owner: finance, github: bob}
"""
FILE = CodeOwnersFile(".github/CODEOWNERS", "*.sql @carol @acme/bi\n")


def owned(before: list[str], after: list[str], path: str | None = "models/a.sql") -> ModelOwnership:
    """Who owns mart.a, where the second entry means these models before and after the change."""
    found = policy(OWNERS)
    first = ScopedModels(before=["mart.a"], after=["mart.a"])
    answers = [first, ScopedModels(before=before, after=after)]
    return find_ownership(
        found, ScopeMatches.from_answers(found.list_scopes(), answers), "mart.a", path, FILE
    )


def test_ownership__is_what_the_last_entry_says() -> None:
    assert owned([], []) == ModelOwnership(("alice",), ("acme/data",), f"{PATH} line 2")
    assert owned(["mart.a"], ["mart.a"]) == ModelOwnership(("bob",), (), f"{PATH} line 3")


def test_ownership__goes_by_the_model_before_the_change() -> None:
    assert owned([], ["mart.a"]).logins == ("alice",), "the pull request has given it that owner"
    assert owned(["mart.a"], []).logins == ("bob",), "or has taken it away"


def test_ownership__is_that_of_codeowners_where_the_policy_says_nothing() -> None:
    nobody = policy("")
    found = find_ownership(nobody, ScopeMatches(), "mart.a", "models/a.sql", FILE)
    assert found == ModelOwnership(("carol",), ("acme/bi",), ".github/CODEOWNERS line 1")
    assert find_ownership(nobody, ScopeMatches(), "mart.a", None, FILE) == ModelOwnership()
    assert find_ownership(nobody, ScopeMatches(), "mart.a", "models/a.py", FILE) == ModelOwnership()
    assert (
        find_ownership(nobody, ScopeMatches(), "mart.a", "models/a.sql", None) == ModelOwnership()
    )


def test_ownership__of_a_person_ignores_case() -> None:
    found = ModelOwnership(("Alice",), ("acme/alice",))
    assert found.names_person("aLICE")
    assert not found.names_person("acme/alice")
    assert not found.names_person("bob")
