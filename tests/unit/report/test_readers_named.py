"""Readers outside of the project in a comment's list: each is named where it is asked for."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.report.markdown.comments import render_review_comment
from tests.factories import make_context, make_report, make_risk


def read_by(reader: str, model: str, **more: Any) -> Any:
    return make_risk(
        rule=more.pop("rule", "exposure-affected"),
        severity="high",
        model=model,
        subject=reader,
        evidence=f"`{reader}` of `@ada` reads `amount`: `amount` is gone.",
        **more,
    )


def points(*risks: Any) -> list[str]:
    report = make_report(risks=list(risks)).model_copy(update={"decision": "review"})
    text = render_review_comment(report, make_context(phase="planned")).text.partition("<details>")[
        0
    ]
    return [line for line in text.splitlines() if line.startswith("- 🟠")]


def test_readers__beside_the_first_are_named_once_each() -> None:
    (point,) = points(
        read_by("Board", "a.a"),
        read_by("Board", "a.b"),
        read_by("Export | @all", "a.b"),
        read_by("Export | @all", "a.c"),
    )
    assert "and 3 more" in point
    assert "Other readers: `Export | @all`." in point


def test_readers__of_whom_there_are_many_are_four_and_a_number() -> None:
    (point,) = points(*(read_by(f"r{number}", f"a.m{number}") for number in range(1, 9)))
    assert "Other readers: `r2`, `r3`, `r4`, `r5` and 3 more." in point


def test_subjects__of_another_rule_are_no_readers() -> None:
    (point,) = points(*(read_by(name, "a.a", rule="join-changed") for name in ("x", "y")))
    assert "Other readers" not in point
