"""What is said of the team's policy itself: how it changes, and what of it is over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ci_bot.bot.decision import BotFacts
from ci_bot.bot.decision.plan_rules import MOST_CHANGES
from ci_bot.bot.policy.comparison import PolicyChange
from ci_bot.bot.policy.policy import PolicyScopeMatches
from ci_bot.bot.policy.severity_overrides import PolicyWeighing
from ci_bot.protocol.review_inputs import ScopedModels
from tests.unit.decision.facts import changed, judged, only
from tests.unit.policy.given import PATH, TODAY, policy

IGNORE = "ignore:\n- {rule: join-changed, models: stg.*, reason: we know, until: 2026-11-22}\n"


def change(told: str, *, loosens: bool) -> PolicyChange:
    return PolicyChange(told, loosens, PATH, 3)


@pytest.mark.parametrize(
    ("loosens", "weight", "words"),
    [
        (True, "high", "This loosens the review from the merge on: `fail-on` changes."),
        (False, "low", "The policy changes from the merge on: `fail-on` changes."),
    ],
)
def test_policy__that_changes__is_told(loosens: bool, weight: str, words: str) -> None:
    bot = BotFacts(policy_changes=(change("`fail-on` changes", loosens=loosens),))

    found = only(judged(bot), "policy-changed")

    assert (found.severity, found.evidence, found.path, found.line) == (weight, words, PATH, 3)


@pytest.mark.parametrize(("last_loosens", "weight"), [(True, "high"), (False, "low")])
def test_policy__that_changes_in_very_much__is_counted(last_loosens: bool, weight: str) -> None:
    many = [change(f"`{number}` changes", loosens=False) for number in range(MOST_CHANGES)]
    bot = BotFacts(policy_changes=(*many, change("`last` changes", loosens=last_loosens)))

    found = [risk for risk in judged(bot).risks if risk.rule == "policy-changed"]

    (rest,) = [risk for risk in found if risk.evidence == "1 more change of the policy."]
    assert (len(found), rest.severity, rest.path) == (MOST_CHANGES + 1, weight, PATH)


@pytest.mark.parametrize(
    ("model", "weight"), [("stg.orders", "medium"), ("mart.else", "info")], ids=["its", "another"]
)
def test_ignore__whose_last_day_has_passed__counts_where_its_model_changes(
    model: str, weight: str
) -> None:
    text = policy(IGNORE)
    meant = [ScopedModels(before=["stg.orders"], after=["stg.orders"]) for _ in text.list_scopes()]
    weighing = PolicyWeighing(
        text,
        PolicyScopeMatches.from_answers(text.list_scopes(), meant),
        today=TODAY + timedelta(days=1),
    )

    found = only(judged(BotFacts(weighing=weighing), changes=[changed(model)]), "policy-expired")

    assert found.severity == weight
    assert "`join-changed` is no longer ignored (we know)" in found.evidence


def test_ignore__holds_on_its_last_day() -> None:
    weighing = PolicyWeighing(policy(IGNORE), today=TODAY)

    assert not [
        risk for risk in judged(BotFacts(weighing=weighing)).risks if risk.rule == "policy-expired"
    ]
