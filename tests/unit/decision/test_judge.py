"""From risks to a decision."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.actions.inputs import FailOn
from ci_bot.bot.decision import choose_exit_code_of_decision, choose_exit_code_of_review_decision
from ci_bot.bot.decision.judgement import MOST_RISKS
from ci_bot.protocol.plan import SEVERITIES, EnvironmentStatement, Restatement
from ci_bot.protocol.review_report import PolicyUsed
from ci_bot.protocol.rules import quote_names
from tests.factories import make_report
from tests.unit.decision.facts import changed, found, judged, weights


@pytest.mark.parametrize(
    ("severity", "decision"),
    [
        ("blocker", "no_go"),
        ("high", "review"),
        ("medium", "go"),
        ("low", "go"),
        ("info", "go"),
        (None, "go"),
    ],
)
def test_decision__follows_the_heaviest_risk(severity: str | None, decision: str) -> None:
    findings = [found("some-rule", severity)] if severity else []

    assert judged(changes=[changed()], findings=findings).decision == decision


@pytest.mark.parametrize(
    ("severity", "decision"),
    [("blocker", "no_go"), ("high", "review"), ("medium", "no_changes"), (None, "no_changes")],
)
def test_no_changes__is_no_excuse_for_what_files_hold(severity: str | None, decision: str) -> None:
    findings = [found("hardcoded-secret", severity)] if severity else []

    assert judged(findings=findings).decision == decision


def test_no_changes__says_so() -> None:
    judgement = judged()

    assert judgement.reasons == ("No model, statement or interval differs from prod.",)
    assert judgement.risks == ()


@pytest.mark.parametrize(
    "parts",
    [
        {"statements": [EnvironmentStatement(when="before_all", sql="SET x = 1", change="added")]},
        {
            "restatements": [
                Restatement(
                    model="stg.orders",
                    start="2024-01-01T00:00:00Z",
                    end="2024-02-01T00:00:00Z",
                )
            ]
        },
    ],
)
def test_no_changes__statements_and_restatements_are_changes(parts: dict[str, object]) -> None:
    assert judged(**parts).decision == "go"


def test_reasons__name_the_rules_that_decided() -> None:
    judgement = judged(
        changes=[changed()],
        findings=[
            found("removed-audit", "high", model="stg.orders"),
            found("missing-grain", "low"),
        ],
    )

    assert judgement.reasons == ("removed-audit on stg.orders: seen",)


@pytest.mark.parametrize(("number", "told"), [(1, "1 note."), (2, "2 notes.")])
def test_reasons__count_what_is_no_problem(number: int, told: str) -> None:
    notes = [found(f"rule-{n}", "low") for n in range(number)]

    assert judged(findings=notes, changes=[changed(change="added")]).reasons[0].endswith(told)


def test_reasons__count_what_is_left_out() -> None:
    findings = [found(f"rule-{n:02}", "blocker") for n in range(20)]

    reasons = judged(findings=findings).reasons

    assert (len(reasons), reasons[-1]) == (9, "12 more of the same weight.")


def test_risks__repeated_ones_are_told_once_at_their_heaviest() -> None:
    twice = [found("a-rule", "low", model="a.b"), found("a-rule", "high", model="a.b")]

    assert weights(judged(findings=twice)) == {"a-rule": "high"}


def test_risks__are_told_once_for_each_thing_whatever_their_sentences() -> None:
    risks = judged(
        findings=[
            found("a-rule", "low", model="a.b", subject="x", evidence="one way to say it"),
            found("a-rule", "high", model="a.b", subject="x", evidence="another"),
            found("a-rule", "low", model="a.b", subject="y", evidence="one way to say it"),
            found("a-rule", "low", model="a.c", subject="x", evidence="one way to say it"),
        ]
    ).risks

    assert [(risk.model, risk.subject, risk.severity) for risk in risks] == [
        ("a.b", "x", "high"),
        ("a.b", "y", "low"),
        ("a.c", "x", "low"),
    ]


PLACES = [("b.sql", 1), (None, None), ("a.sql", 1), ("a.sql", None)]


def test_risks__of_no_file_come_before_those_of_one() -> None:
    same = [
        found("a-rule", "high", path=path, line=line, subject=str(number))
        for number, (path, line) in enumerate(PLACES)
    ]

    risks = [(risk.path, risk.line) for risk in judged(findings=same).risks]

    assert risks == [(None, None), ("a.sql", None), ("a.sql", 1), ("b.sql", 1)]


def test_risks__without_a_condition_clear_when_they_are_gone() -> None:
    (risk,) = judged(findings=[found("a-rule", "low")]).risks

    assert risk.clears_when == "the finding no longer appears"


severities = st.lists(st.sampled_from(SEVERITIES), max_size=8)


@given(severities)
def test_risks__heaviest_come_first(weights_in: list[str]) -> None:
    findings = [found(f"rule-{n}", weight) for n, weight in enumerate(weights_in)]

    order = [SEVERITIES.index(risk.severity) for risk in judged(findings=findings).risks]

    assert order == sorted(order)


@given(severities)
def test_decision__one_more_risk_never_makes_it_milder(weights_in: list[str]) -> None:
    order = ("no_changes", "go", "review", "no_go")
    findings = [found(f"rule-{n}", weight) for n, weight in enumerate(weights_in)]

    decisions = [
        order.index(judged(changes=[changed()], findings=findings[:n]).decision)
        for n in range(len(findings) + 1)
    ]

    assert decisions == sorted(decisions)


@pytest.mark.parametrize(
    ("decision", "fail_on", "code"),
    [
        ("no_go", "blocker", 1),
        ("review", "blocker", 0),
        ("review", "high", 1),
        ("no_go", "high", 1),
        ("go", "high", 0),
        ("no_changes", "high", 0),
        ("no_go", "never", 0),
    ],
)
def test_exit_code(decision: str, fail_on: str, code: int) -> None:
    assert choose_exit_code_of_decision(decision, fail_on) == code


@pytest.mark.parametrize(
    ("agreed", "given", "code"),
    [
        (None, None, 1),
        ("never", None, 0),
        ("never", "blocker", 1),
        ("high", "never", 0),
    ],
)
def test_review_exit_code__goes_by_the_input_then_by_the_policy(
    agreed: FailOn | None, given: FailOn | None, code: int
) -> None:
    policy = PolicyUsed(source="base", fail_on=agreed) if agreed else None
    report = make_report(decision="no_go", policy=policy)

    assert choose_exit_code_of_review_decision(report, given) == code


def test_listed__shows_the_first_and_counts_the_rest() -> None:
    assert quote_names([f"s.m{n}" for n in range(7)]) == (
        "`s.m0`, `s.m1`, `s.m2`, `s.m3`, `s.m4` and 2 more"
    )


def test_listed__leaves_files_with_dots_in_their_names_whole() -> None:
    assert quote_names(["data.2024.csv"]) == "`data.2024.csv`"


def test_judge__of_very_many_findings__lists_the_heaviest_and_counts_the_rest() -> None:
    light = [found(f"forged-{number}", "low") for number in range(MOST_RISKS)]
    heavy = [found("hardcoded-secret", "blocker", model=f"m{number}") for number in range(5)]
    judgement = judged(findings=[*light, *heavy])
    assert len(judgement.risks) == MOST_RISKS + 1
    assert [item.severity for item in judgement.risks[:6]] == ["blocker"] * 5 + ["low"]
    last = judgement.risks[-1]
    assert (last.rule, last.severity) == ("R10-not-listed", "low")
    assert last.evidence.startswith("5 more findings, none of them heavier")
    assert judgement.decision == "no_go"
