"""The text about drift: what it says, what it leaves out, and that nothing in it becomes markup."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.markdown.comments import render_drift_markdown
from ci_bot.protocol.cleanup_report import DriftReport, StateSurvey
from tests.factories import HEAD, NOW, PLAN, make_context

CLEAN: dict[str, Any] = {
    "behind": [],
    "behind_models": 0,
    "lasting": [],
    "unused": [],
    "unused_versions": 0,
    "estimates": [],
    "applies": 0,
}


def make_drift(survey: dict[str, Any] | None = None, **overrides: Any) -> DriftReport:
    values: dict[str, Any] = {
        "commit": HEAD,
        "planned_at": NOW,
        "plan_id": None,
        "models": [],
        "changed_models": 0,
        "other_changes": 0,
        "prod_missing": None,
        "failure": None,
        "environments": [],
        "survey": StateSurvey.model_validate(CLEAN | (survey or {})),
    }
    return DriftReport.model_validate(values | overrides)


def text_of(report: DriftReport) -> str:
    return render_drift_markdown(report, make_context())


def test_drift__of_nothing__is_one_sentence_without_a_table() -> None:
    text = text_of(make_drift())
    assert "No drift" in text
    assert "|" not in text


CASES: dict[str, tuple[DriftReport, str, str]] = {
    "undeployed": (
        make_drift(
            plan_id=PLAN,
            changed_models=4,
            models=[
                {"model": "a.new", "change": "added"},
                {"model": "a.gone", "change": "removed"},
                {"model": "a.other", "change": "direct"},
                {"model": "a.below", "change": "indirect"},
            ],
        ),
        "undeployed",
        "| `a.gone` | still there |",
    ),
    "statements": (make_drift(other_changes=2, plan_id=PLAN), "undeployed", "2 statements"),
    "behind": (
        make_drift(
            {
                "behind_models": 1,
                "behind": [{"model": "a.b", "start": NOW, "end": "2026-08-23T00:00:00Z"}],
            }
        ),
        "behind",
        "| `a.b` | 2026-08-22 10:14 UTC | 2026-08-23 00:00 UTC |",
    ),
    "closed pull request": (
        make_drift(environments=[{"environment": "pr_7", "pr_number": 7, "why": "it is closed"}]),
        "environments",
        "pull/7",
    ),
    "never expires": (
        make_drift({"lasting": [{"environment": "dev", "expires_at": None}]}),
        "environments",
        "never expires",
    ),
    "expired": (
        make_drift({"lasting": [{"environment": "dev", "expires_at": "2026-08-01T00:00:00Z"}]}),
        "environments",
        "it expired on 2026-08-01",
    ),
    "unused tables": (
        make_drift({"unused_versions": 3, "unused": [{"model": "a.b", "versions": 3}]}),
        "unused_tables",
        "3 versions of models belong to no environment",
    ),
    "estimates": (
        make_drift(
            {
                "applies": 9,
                "estimates": [
                    {"environment": "pr_7", "at": NOW, "expected_hours": 1.0, "used_hours": 3.5}
                ],
            }
        ),
        "estimates",
        "1 of 9 applies",
    ),
    "no prod": (
        make_drift(prod_missing="No prod was found in it."),
        "no_plan",
        "No prod was found",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_drift__of_each_kind__is_named_and_shown(case: str) -> None:
    report, kind, told = CASES[case]
    assert report.findings == [kind]
    assert not report.is_clean
    text = text_of(report)
    assert told in text, text
    assert "Prod and the default branch differ" in text


def test_drift__names_are_no_markup_and_mention_nobody() -> None:
    evil = "x` | @admin <b> [a](http://e)"
    text = text_of(
        make_drift(
            {"lasting": [{"environment": evil, "expires_at": None}]},
            changed_models=1,
            models=[{"model": evil, "change": "direct"}],
            environments=[{"environment": evil, "pr_number": None, "why": evil}],
        )
    )
    for line in text.splitlines():
        outside = line.split("`")[::2] if "``" not in line else []
        assert not any("@admin" in part or "<b>" in part for part in outside), line


def test_drift__of_very_many_models__fits_into_an_issue() -> None:
    models = [{"model": f"{'m' * 60}.{n}", "change": "direct"} for n in range(200)]
    behind = [{"model": f"{'b' * 60}.{n}", "start": NOW, "end": NOW} for n in range(200)]
    unused = [{"model": f"{'u' * 60}.{n}", "versions": 2} for n in range(200)]
    lasting = [{"environment": f"{'e' * 60}_{n}", "expires_at": None} for n in range(200)]
    text = text_of(
        make_drift(
            {
                "behind": behind,
                "behind_models": 1_000,
                "unused": unused,
                "unused_versions": 2_000,
                "lasting": lasting,
            },
            changed_models=5_000,
            models=models,
        )
    )
    assert len(text) < 60_000
    assert "4,950 more are not listed here." in text
    assert "950 more models" in text
