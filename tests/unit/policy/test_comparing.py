"""What a change of a policy would loosen: told where it does, and where nobody can tell."""

from __future__ import annotations

import pytest

from ci_bot.bot.policy.comparison import PolicyChange, list_policy_changes
from tests.unit.policy.given import PATH, TODAY, WEIGHTS, policy


def difference(before: str, after: str) -> list[PolicyChange]:
    return list_policy_changes(policy(before), policy(after), weights=WEIGHTS, today=TODAY)


def weight(rule: str, severity: str, models: str = "", reason: str = "x") -> str:
    where = f", models: {models}" if models else ""
    return f"- {{rule: {rule}, severity: {severity}{where}, reason: {reason}}}\n"


def ignore(until: str, models: str = "a.b", rule: str = "join-changed") -> str:
    return f"- {{rule: {rule}, models: {models}, reason: x, until: {until}}}\n"


SEVERITY, IGNORE, OWNERS = "severity:\n", "ignore:\n", "owners:\n"

LOOSER = {
    "trust": (
        "",
        "trust: {code-on-load: writers}\n",
        "code that runs on load is trusted, if people with write permission wrote it",
    ),
    "trust that is no longer denied": (
        "trust: {code-on-load: nobody}\n",
        "trust: {code-on-load: writers}\n",
        "and would be a note",
    ),
    "a rule lighter": (
        "",
        SEVERITY + weight("join-changed", "medium"),
        "`join-changed` would weigh med",
    ),
    "a rule off": ("", SEVERITY + weight("join-changed", "off"), "would weigh nothing (off)"),
    "every rule lighter": (
        "",
        SEVERITY + weight("'*'", "low", "sandbox.*"),
        "every rule on `sandbox.*` would weigh at most low",
    ),
    "one of the weights that a rule has by itself": (
        "",
        SEVERITY + weight("R04-model-removed", "high"),
        "`R04-model-removed` would weigh high",
    ),
    "a weight lower": (
        SEVERITY + weight("join-changed", "blocker"),
        SEVERITY + weight("join-changed", "high"),
        "would weigh high",
    ),
    "a heavy weight gone": (
        SEVERITY + weight("select-star", "blocker"),
        "",
        "`select-star` would no longer weigh blocker",
    ),
    "a weight gone that undid a lighter one": (
        SEVERITY + weight("join-changed", "off") + weight("join-changed", "high", "mart.*"),
        SEVERITY + weight("join-changed", "off"),
        "`join-changed` on `mart.*` would no longer weigh high",
    ),
    "more models for a light weight": (
        SEVERITY + weight("join-changed", "low", "staging.*"),
        SEVERITY + weight("join-changed", "low", "s*"),
        "`join-changed` on `s*` would weigh low",
    ),
    "another order": (
        SEVERITY + weight("join-changed", "low") + weight("join-changed", "blocker", "mart.*"),
        SEVERITY + weight("join-changed", "blocker", "mart.*") + weight("join-changed", "low"),
        "would be in another order, and the last one counts",
    ),
    "an ignore": (
        "",
        IGNORE + ignore("2027-01-01"),
        "`join-changed` on `a.b` would be ignored until",
    ),
    "an ignore for longer": (
        IGNORE + ignore("2027-01-01"),
        IGNORE + ignore("2027-02-01"),
        "would be ignored until 2027-02-01",
    ),
    "a statement": (
        "",
        "statements:\n- {target: audit.*, does: [writes, drops], models: a.*, reason: x}",
        "it would be allowed that something writes or drops `audit.*` by statements of `a.*`",
    ),
    "a schema for personal data": (
        "personal-data: {schemas: crm}",
        "personal-data: {schemas: [crm, mart]}",
        "schemas `mart` would be allowed to hold personal data",
    ),
    "a limit raised": (
        "limits: {max-executor-hours: 4}",
        "limits: {max-executor-hours: 40}",
        "`max-executor-hours` would be 40.0 instead of 4.0",
    ),
    "a limit gone": ("limits: {max-intervals: 4}", "", "would be not set instead of 4"),
    "a tolerance": ("", "limits: {diff-tolerance: 0.1}", "would be 0.1 instead of not set"),
    "a check that fails later": ("limits: {fail-on: high}", "", "would be not set instead of high"),
    "a check that never fails": ("", "limits: {fail-on: never}", "would be never"),
    "a tolerance for a model": (
        "",
        "data-diff:\n- {models: a.*, tolerance: 0.05, reason: x}",
        "a data diff of 5.0000% of the rows of `a.*` would be tolerated",
    ),
    "an exception from a tolerance gone": (
        "data-diff:\n- {models: a.*, tolerance: 0.5, reason: x}\n"
        "- {models: a.b, tolerance: 0, reason: x}",
        "data-diff:\n- {models: a.*, tolerance: 0.5, reason: x}",
        "of `a.b` would no longer be tolerated",
    ),
    "an owner": ("", OWNERS + "- {models: a.*, github: bob}", "`a.*` would be owned by `@bob`"),
    "another owner": (
        OWNERS + "- {models: a.*, github: bob}",
        OWNERS + "- {models: a.*, github: [bob, eve]}",
        "`a.*` would be owned by `@bob` and `@eve`",
    ),
    "no owner": (
        OWNERS + "- {owner: finance, github: bob}",
        "",
        "models of `finance` would no longer be owned by `@bob`",
    ),
    "owners in another order": (
        OWNERS + "- {models: a.*, github: bob}\n- {models: a.b, github: eve}",
        OWNERS + "- {models: a.b, github: eve}\n- {models: a.*, github: bob}",
        "the owners would be in another order",
    ),
}

TIGHTER = {
    "trust that is gone": (
        "trust: {code-on-load: writers}\n",
        "",
        "would no longer be a note for people with write permission",
    ),
    "a rule heavier": ("", SEVERITY + weight("select-star", "high"), "would weigh high"),
    "a rule heavier than every weight of its own": (
        "",
        SEVERITY + weight("R04-model-removed", "blocker"),
        "would weigh blocker",
    ),
    "a light weight gone": (
        SEVERITY + weight("join-changed", "off"),
        "",
        "no longer weigh nothing",
    ),
    "an ignore gone": (IGNORE + ignore("2027-01-01"), "", "would no longer be ignored"),
    "an ignore for a shorter time": (
        IGNORE + ignore("2027-02-01"),
        IGNORE + ignore("2027-01-01"),
        "would be ignored until 2027-01-01",
    ),
    "an ignore that is over": (
        "",
        IGNORE + ignore("2026-11-21"),
        "would be ignored until 2026-11-21",
    ),
    "a statement gone": (
        "statements:\n- {target: audit.*, reason: x}",
        "",
        "would no longer be allowed",
    ),
    "a schema gone": (
        "personal-data: {schemas: [crm, mart]}",
        "personal-data: {schemas: crm}",
        "schemas `mart` would no longer be allowed",
    ),
    "a limit lowered": (
        "limits: {max-intervals: 5}",
        "limits: {max-intervals: 4}",
        "would be 4 instead of 5",
    ),
    "a limit set": ("", "limits: {max-intervals: 5}", "would be 5 instead of not set"),
    "a check that fails sooner": ("", "limits: {fail-on: high}", "would be high instead of not"),
    "a tolerance gone": ("limits: {diff-tolerance: 0.1}", "", "would be not set instead of 0.1"),
    "a model's tolerance gone": (
        "data-diff:\n- {models: a.*, tolerance: 0.05, reason: x}",
        "",
        "would no longer be tolerated",
    ),
}


@pytest.mark.parametrize("case", LOOSER)
def test_change__that_loosens_is_told_first(case: str) -> None:
    before, after, told = LOOSER[case]
    found = difference(before, after)
    assert found[0].loosens
    assert any(told in item.sentence for item in found if item.loosens), [
        item.sentence for item in found
    ]


@pytest.mark.parametrize("case", TIGHTER)
def test_change__that_tightens_is_told_and_loosens_nothing(case: str) -> None:
    before, after, told = TIGHTER[case]
    found = difference(before, after)
    assert [item.loosens for item in found] == [False] * len(found)
    assert any(told in item.sentence for item in found), [item.sentence for item in found]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "# a comment\nversion: 1\n"),
        (
            SEVERITY + weight("join-changed", "low"),
            "\n\n" + SEVERITY + weight("join-changed", "low"),
        ),
        (
            SEVERITY + weight("join-changed", "low", "a.*"),
            SEVERITY + weight("[join-changed]", "low", "[a.*]", reason="said better"),
        ),
        ("", "comment: {executor-hour-price: 3 EUR}"),
    ],
)
def test_change__that_means_nothing_is_none(before: str, after: str) -> None:
    assert difference(before, after) == []


def test_change__has_its_line_in_the_new_version() -> None:
    new = "version: 1\n" + SEVERITY + weight("select-star", "high") + weight("join-changed", "low")
    (low, high) = difference("", new)
    assert (low.path, low.line) == (PATH, 4)
    assert (high.path, high.line) == (PATH, 3)


def test_words__that_change__are_said_and_loosen_nothing() -> None:
    before = policy("comment: {header: Old words}\n")
    after = policy("comment: {footer: New words}\nmessages: [{rule: join-changed, message: Ask}]\n")
    found = list_policy_changes(before, after, weights=WEIGHTS, today=TODAY)
    assert [item.sentence for item in found] == [
        "the comment would have no header",
        "the comment would have another footer",
        "the team says of `join-changed`: Ask",
    ]
    assert not any(item.loosens for item in found)
