"""An acceptance covers what was seen, as long as the model is what it was."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.decision import decide_on_review_again
from ci_bot.bot.policy.model_owners import AcceptancesByOwners
from ci_bot.bot.policy.severity_overrides import PolicyWeighing
from ci_bot.bot.worker_client.team_policy import describe_fallen_acceptances
from ci_bot.protocol.review_report import Acceptance
from tests.factories import make_change, make_report, make_risk
from tests.unit.policy.test_weighing import risk, weighing, weight_of

NOW = "a-b-c"


def acceptance(**more: Any) -> Acceptance:
    values: dict[str, Any] = {
        "rule": "join-changed",
        "model": "mart.a",
        "fingerprint": NOW,
        "severity": "high",
        "subjects": [""],
        "by": "alice",
        "at": "2026-11-22T10:00:00Z",
        "reason": "one row per key",
        "comment_id": 7,
    }
    return Acceptance(**values | more)


def kept(*items: Acceptance, fingerprint: str | None = NOW) -> AcceptancesByOwners:
    change = make_change("mart.a", fingerprint=fingerprint)
    return AcceptancesByOwners.from_items(items or [acceptance()], [change])


def test_acceptance__takes_the_finding_out_and_says_who() -> None:
    done = PolicyWeighing(acceptances=kept()).weigh_risks([risk()])
    (found,) = done.set_aside
    assert done.counting == ()
    assert found.severity == "high"
    assert found.weighed is not None
    assert found.weighed.model_dump(exclude_none=True) == {
        "by": "acceptance",
        "weight": "high",
        "reason": "one row per key",
        "who": "alice",
        "at": "2026-11-22T10:00:00Z",
    }


@pytest.mark.parametrize("fingerprint", ["x-b-c", "a-x-c", "a-b-x", None])
def test_acceptance__falls_with_the_fingerprint(fingerprint: str | None) -> None:
    found = kept(fingerprint=fingerprint)
    assert weight_of(PolicyWeighing(acceptances=found)) == "high"
    assert found.find_fallen_acceptance(risk()) == acceptance()
    assert kept().find_fallen_acceptance(risk()) is None


@pytest.mark.parametrize(
    "item",
    [
        risk("filter-changed"),
        risk(model="mart.b"),
        risk(model=None),
        risk(severity="blocker"),
    ],
    ids=["another rule", "another model", "no model", "it blocks"],
)
def test_acceptance__covers_nothing_else(item: Any) -> None:
    assert weight_of(PolicyWeighing(acceptances=kept()), item) == item.severity


def test_acceptance__covers_no_other_subject_of_the_rule() -> None:
    """A second column, say, that the same rule is about since something else was pushed."""
    seen = kept(acceptance(subjects=["amount"]))
    assert weight_of(PolicyWeighing(acceptances=seen), risk(subject="amount")) == "none"
    assert weight_of(PolicyWeighing(acceptances=seen), risk(subject="price")) == "high"
    assert weight_of(PolicyWeighing(acceptances=seen)) == "high"


def test_acceptance__covers_no_more_than_was_seen() -> None:
    found = kept(acceptance(severity="medium"))
    assert weight_of(PolicyWeighing(acceptances=found), risk(severity="high")) == "high"
    assert weight_of(PolicyWeighing(acceptances=found), risk(severity="medium")) == "none"
    assert weight_of(PolicyWeighing(acceptances=found), risk(severity="low")) == "none"


def test_acceptance__of_a_blocker_that_somebody_has_written_anyway_is_none() -> None:
    found = kept(acceptance(severity="blocker"))
    assert weight_of(PolicyWeighing(acceptances=found), risk(severity="blocker")) == "blocker"


def test_acceptance__of_what_always_counts_is_none() -> None:
    item = acceptance(rule="R12-code-on-load")
    assert weight_of(PolicyWeighing(acceptances=kept(item)), risk("R12-code-on-load")) == "high"


def test_acceptance__does_not_hold_where_nothing_becomes_lighter() -> None:
    assert weight_of(PolicyWeighing(acceptances=kept(), loosens=False)) == "high"


def test_acceptance__of_a_weight_that_the_policy_gives() -> None:
    text = "severity:\n- {rule: join-changed, severity: blocker, models: mart.*, reason: x}\n"
    both: dict[str, Any] = {"before": ("mart.a",), "after": ("mart.a",)}
    assert weight_of(weighing(text, **both, acceptances=kept())) == "blocker"


def test_acceptance__of_a_removed_model_falls_when_it_comes_back() -> None:
    item = acceptance(fingerprint="removed")
    gone = AcceptancesByOwners.from_items(
        [item], [make_change("mart.a", change="removed", category=None)]
    )
    assert weight_of(PolicyWeighing(acceptances=gone)) == "none"
    assert weight_of(PolicyWeighing(acceptances=kept(item))) == "high"


def test_acceptance__that_no_longer_holds_is_told_once() -> None:
    weighed = PolicyWeighing(acceptances=kept(fingerprint="x-b-c"))
    (told,) = describe_fallen_acceptances(
        weighed, [risk(), risk(subject="price"), risk("filter-changed")]
    )
    assert told.startswith("What `@alice` accepted on 2026-11-22 no longer holds: `join-changed`")
    assert describe_fallen_acceptances(PolicyWeighing(acceptances=kept()), [risk()]) == []


def test_judge_again__decides_anew_and_keeps_the_finding_in_sight() -> None:
    found = make_risk("join-changed", model="mart.a", severity="high")
    other = make_risk("filter-changed", model="mart.a", severity="high")
    report = make_report(risks=[found, other])
    once = decide_on_review_again(report, kept())
    assert (once.decision, [r.rule for r in once.risks]) == ("review", ["filter-changed"])
    assert [r.rule for r in once.set_aside] == ["join-changed"]
    twice = decide_on_review_again(once, kept(acceptance(), acceptance(rule="filter-changed")))
    assert twice.decision == "go"
    assert [r.rule for r in twice.set_aside] == ["filter-changed", "join-changed"]
