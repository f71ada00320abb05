"""What findings weigh by a policy: lighter only where that is sure, heavier where one side says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from ci_bot.bot.policy.model_owners import FilesOfOwnedModels
from ci_bot.bot.policy.policy import (
    Policy,
    PolicyIgnoreComments,
    PolicyScopeMatches,
    compare_ignore_comments_for_policy,
)
from ci_bot.bot.policy.severity_overrides import ChangeAuthors, PolicyWeighing
from ci_bot.protocol.plan import StatementEffect
from ci_bot.protocol.review_inputs import ScopedModels
from ci_bot.protocol.review_report import Risk
from tests.unit.policy.given import PATH, TODAY, WEIGHTS, policy


def risk(rule: str = "join-changed", severity: str = "high", **more: Any) -> Risk:
    values: dict[str, Any] = {
        "rule": rule,
        "severity": severity,
        "model": "mart.a",
        "path": "models/a.sql",
        "evidence": "The join changes.",
        "clears_when": "it does not",
    }
    return Risk(**values | more)


def weighing(
    text: str | Policy, *, before: tuple[str, ...] = (), after: tuple[str, ...] = (), **more: Any
) -> PolicyWeighing:
    """Every scope of the policy means the same models."""
    found = policy(text) if isinstance(text, str) else text
    scopes = found.list_scopes()
    answers = [ScopedModels(before=list(before), after=list(after)) for _ in scopes]
    return PolicyWeighing(
        found, PolicyScopeMatches.from_answers(scopes, answers), **{"today": TODAY, **more}
    )


def weight_of(weighing: PolicyWeighing, item: Risk | None = None) -> str:
    """The weight that a finding has in the end; `none` where it does not count."""
    done = weighing.weigh_risks([item or risk()])
    assert len(done.counting) + len(done.set_aside) == 1
    return done.counting[0].severity if done.counting else "none"


LOW = "severity:\n- {rule: join-changed, severity: low, models: mart.*, reason: we know}\n"
OFF = "severity:\n- {rule: join-changed, severity: 'off', reason: we know}\n"
BLOCKER = "severity:\n- {rule: join-changed, severity: blocker, models: mart.*, reason: we know}\n"
IGNORE = "ignore:\n- {rule: join-changed, models: mart.*, reason: we know, until: 2026-11-22}\n"
BOTH: dict[str, Any] = {"before": ("mart.a",), "after": ("mart.a",)}


def test_weight__that_a_policy_gives__says_what_it_was_and_why() -> None:
    done = weighing(LOW, **BOTH).weigh_risks([risk()])
    (found,) = done.counting
    assert (found.severity, done.set_aside) == ("low", ())
    assert found.weighed is not None
    assert found.weighed.model_dump(exclude_none=True) == {
        "by": "severity",
        "weight": "high",
        "reason": "we know",
        "place": f"{PATH} line 2",
    }


def test_rule__that_is_off__is_set_aside_with_its_own_weight() -> None:
    done = weighing(OFF).weigh_risks([risk()])
    (found,) = done.set_aside
    assert (found.severity, found.weighed and found.weighed.by) == ("high", "off")
    assert done.counting == ()


def test_ignore__is_set_aside_and_says_until_when() -> None:
    (found,) = weighing(IGNORE, **BOTH).weigh_risks([risk()]).set_aside
    assert found.weighed is not None
    assert (found.weighed.by, found.weighed.until) == ("ignore", "2026-11-22")


@pytest.mark.parametrize("text", [LOW, IGNORE])
@pytest.mark.parametrize(
    "sides",
    [{"before": ("mart.a",)}, {"after": ("mart.a",)}, {}],
    ids=["prod alone", "the pull request alone", "neither"],
)
def test_finding__becomes_lighter_only_where_both_versions_are_meant(
    text: str, sides: dict[str, Any]
) -> None:
    assert weight_of(weighing(text, **sides)) == "high"


@pytest.mark.parametrize("sides", [{"before": ("mart.a",)}, {"after": ("mart.a",)}, BOTH])
def test_finding__becomes_heavier_where_one_version_is_meant(sides: dict[str, Any]) -> None:
    assert weight_of(weighing(BLOCKER, **sides)) == "blocker"


def test_finding__of_no_model_is_in_no_scope_of_models() -> None:
    assert weight_of(weighing(LOW, **BOTH), risk(model=None)) == "high"


def test_scope__that_was_not_answered_means_nothing() -> None:
    found = policy(LOW)
    assert (
        weight_of(
            PolicyWeighing(
                found, PolicyScopeMatches.from_answers(found.list_scopes(), []), today=TODAY
            )
        )
        == "high"
    )


@pytest.mark.parametrize("text", [LOW, OFF, IGNORE, "statements: [{target: a.b, reason: x}]"])
def test_finding__on_a_branch_that_anybody_can_make_becomes_no_lighter(text: str) -> None:
    item = risk(effect=StatementEffect(action="writes", target=["a", "b"]))
    assert weight_of(weighing(text, **BOTH, loosens=False), item) == "high"


def test_finding__on_a_branch_that_anybody_can_make_becomes_heavier() -> None:
    assert weight_of(weighing(BLOCKER, **BOTH, loosens=False)) == "blocker"


def test_severity__last_one_that_applies_counts() -> None:
    assert weight_of(weighing(LOW + BLOCKER.removeprefix("severity:\n"), **BOTH)) == "blocker"
    assert weight_of(weighing(BLOCKER + LOW.removeprefix("severity:\n"), **BOTH)) == "low"


def test_severity__that_may_not_apply_leaves_the_one_before_it() -> None:
    text = OFF + "- {rule: join-changed, severity: low, models: mart.*, reason: x}\n"
    assert weight_of(weighing(text)) == "none"
    assert weight_of(weighing(text, **BOTH)) == "low"


@pytest.mark.parametrize(("own", "expected"), [("high", "low"), ("low", "low"), ("info", "info")])
def test_severity__of_every_rule_is_an_upper_bound(own: str, expected: str) -> None:
    text = "severity:\n- {rule: '*', severity: low, models: mart.*, reason: x}\n"
    assert weight_of(weighing(text, **BOTH), risk(severity=own)) == expected


def test_severity__of_every_rule_leaves_the_protected_ones() -> None:
    text = "severity:\n- {rule: '*', severity: low, models: mart.*, reason: x}\n"
    for rule in ("hardcoded-secret", "destructive-statement"):
        assert weight_of(weighing(text, **BOTH), risk(rule, "blocker")) == "blocker"
    for rule in ("R12-code-on-load", "policy-changed"):
        assert weight_of(weighing(text, **BOTH), risk(rule, "high")) == "high"


def test_ignore__of_every_rule_leaves_those_that_have_one_weight() -> None:
    text = IGNORE.replace("join-changed", "'*'")
    assert weight_of(weighing(text, **BOTH), risk("R12-code-on-load")) == "high"
    assert weight_of(weighing(text, **BOTH), risk("hardcoded-secret", "blocker")) == "none"


def test_ignore__holds_on_its_last_day_and_no_longer() -> None:
    tomorrow = TODAY + timedelta(days=1)
    assert weight_of(weighing(IGNORE, **BOTH)) == "none"
    assert weight_of(weighing(IGNORE, **BOTH, today=tomorrow)) == "high"


@pytest.mark.parametrize(
    ("path", "moved", "expected"),
    [
        ("scratch/a.sql", (), "none"),
        ("scratch/x/a.sql", (), "none"),
        ("models/a.sql", (), "high"),
        ("scratch/a.sql", ("scratch/a.sql",), "high"),
        (None, (), "high"),
    ],
)
def test_ignore__of_files_is_about_files_that_were_there(
    path: str | None, moved: tuple[str, ...], expected: str
) -> None:
    text = "ignore:\n- {rule: join-changed, paths: scratch/*, reason: x, until: 2026-12-01}\n"
    assert (
        weight_of(weighing(text, files=FilesOfOwnedModels(new=frozenset(moved))), risk(path=path))
        == expected
    )


@pytest.mark.parametrize(
    ("action", "target", "expected"),
    [
        ("writes", ["audit", "log"], "none"),
        ("writes", ["audit", "other"], "none"),
        ("drops", ["audit", "log"], "blocker"),
        ("writes", ["prod", "audit", "log"], "blocker"),
        ("writes", ["audit", "log", "x"], "blocker"),
        ("writes", ["auditing", "log"], "blocker"),
        ("writes", ["log"], "blocker"),
    ],
)
def test_statement__is_allowed_by_what_it_does_to_whom(
    action: str, target: list[str], expected: str
) -> None:
    text = "statements:\n- {target: AUDIT.*, models: mart.*, reason: x}\n"
    item = risk(
        "destructive-statement", "blocker", effect=StatementEffect(action=action, target=target)
    )
    assert weight_of(weighing(text, **BOTH), item) == expected
    assert weight_of(weighing(text), item) == "blocker"


def test_statement__whose_target_nobody_knows_is_not_allowed() -> None:
    text = "statements:\n- {target: '*', reason: x}\n"
    assert weight_of(weighing(text), risk("destructive-statement", "blocker")) == "blocker"


BASE = "MODEL (name mart.a);\n-- review: ignore[join-changed, select-star] the source is unique\nSELECT 1"


def comments(before: str | None, after: str | None) -> PolicyIgnoreComments:
    return compare_ignore_comments_for_policy([("models/a.sql", before, after)], WEIGHTS)


def test_comment__that_the_base_branch_has__counts() -> None:
    found = weighing(Policy(), comments=comments(BASE, f"\n{BASE}"))
    (item,) = found.weigh_risks([risk()]).set_aside
    assert item.weighed is not None
    assert item.weighed.model_dump(exclude_none=True) == {
        "by": "comment",
        "weight": "high",
        "reason": "the source is unique",
        "place": "models/a.sql line 3",
    }
    assert weight_of(found, risk("missing-grain", "low")) == "low"
    assert weight_of(found, risk(path="models/b.sql")) == "high"
    assert weight_of(replace(found, loosens=False)) == "high"


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, BASE), ("SELECT 1", BASE), (BASE, "SELECT 1"), (BASE, None)],
    ids=["in a new file", "new", "taken out", "file gone"],
)
def test_comment__on_one_side_does_not_count(before: str | None, after: str | None) -> None:
    found = comments(before, after)
    assert weight_of(weighing(Policy(), comments=found)) == "high"
    new = ["join-changed", "select-star"] if after == BASE else []
    assert [item.rule for item in found.added] == new


@pytest.mark.parametrize(
    "text",
    [
        "-- review: ignore[join-changed]",
        "-- review: ignore[join-changed]   ",
        "-- review: ignore[joinchanged] reason",
        "-- review: ignore[hardcoded-secret] reason",
        "-- review: ignore[R12-code-on-load] reason",
        "-- ignore[join-changed] reason",
        "-- review: ignore join-changed reason",
        "-- review: ignore[join-changed\n] reason",
    ],
)
def test_comment__that_says_too_little_or_too_much_never_counts(text: str) -> None:
    found = weighing(Policy(), comments=comments(text, text))
    for rule in ("join-changed", "hardcoded-secret", "R12-code-on-load"):
        assert weight_of(found, risk(rule, "high")) == "high"


def test_weight__of_every_finding_without_a_policy_is_its_own() -> None:
    items = [risk(), risk("select-star", "medium", model=None)]
    done = PolicyWeighing(today=date(2026, 1, 1)).weigh_risks(items)
    assert (list(done.counting), done.set_aside) == (items, ())


TRUST = "trust: {code-on-load: writers}\n"
WRITERS = ChangeAuthors(writers=("ada", "bob"), commits=3, refused_because=None)


def code_on_load(**more: Any) -> Risk:
    return risk("R12-code-on-load", model=None, evidence="`m.py` runs.", **more)


def test_trust__makes_writers_code_on_load_a_note_that_says_who_and_what_is_given_up() -> None:
    (found,) = weighing(TRUST, authors=WRITERS).weigh_risks([code_on_load()]).counting
    assert (found.severity, found.evidence) == ("low", "`m.py` runs.")
    assert found.weighed is not None
    assert (found.weighed.by, found.weighed.weight) == ("severity", "high")
    assert found.weighed.place == f"{PATH} line 1"
    assert "`@ada` and `@bob` may write" in found.weighed.reason
    assert "all 3 commits" in found.weighed.reason
    assert "could still be forged" in found.weighed.reason


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("", {"authors": WRITERS}),
        ("trust: {code-on-load: nobody}\n", {"authors": WRITERS}),
        (TRUST, {"authors": WRITERS, "loosens": False}),
        (TRUST, {}),
        (TRUST, {"authors": ChangeAuthors(refused_because="it comes from a fork")}),
    ],
)
def test_trust__leaves_the_finding_high__otherwise(text: str, more: dict[str, Any]) -> None:
    (found,) = weighing(text, **more).weigh_risks([code_on_load()]).counting
    assert (found.severity, found.weighed) == ("high", None)


def test_trust__that_does_not_cover_a_change__says_why() -> None:
    authors = ChangeAuthors(refused_because="it comes from a fork")
    (found,) = weighing(TRUST, authors=authors).weigh_risks([code_on_load()]).counting
    assert "`trust` does not cover this change: it comes from a fork." in found.evidence


def test_trust__is_about_no_other_rule() -> None:
    assert weight_of(weighing(TRUST, authors=WRITERS)) == "high"


def test_trust__of_several_files__one_that_says_nobody_wins() -> None:
    files = policy(TRUST, "trust: {code-on-load: nobody}\n")
    assert weight_of(weighing(files, authors=WRITERS), code_on_load()) == "high"
    assert weight_of(weighing(policy("", TRUST), authors=WRITERS), code_on_load()) == "low"


MESSAGES = """\
messages:
- {rule: '*', models: mart.*, message: "Ask the mart team."}
- {rule: join-changed, message: "[Joins](https://wiki.acme.example/joins)"}
"""


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (risk(), "[Joins](https://wiki.acme.example/joins)"),
        (risk("select-star", "medium"), "Ask the mart team."),
        # Also where the rule cannot be weighed: it is only said.
        (risk("R12-code-on-load"), "Ask the mart team."),
        (risk("select-star", "medium", model=None), None),
    ],
)
def test_message__is_that_of_the_last_entry_about_the_finding(item: Risk, said: str | None) -> None:
    found = weighing(MESSAGES, after=("mart.a",)).weigh_risks([item]).counting
    assert [(one.message, one.severity) for one in found] == [(said, item.severity)]


def test_message__of_a_policy_that_anybody_can_write__is_not_shown() -> None:
    (found,) = weighing(MESSAGES, **BOTH, loosens=False).weigh_risks([risk()]).counting
    assert found.message is None
