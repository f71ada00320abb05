"""What `allow-destructive` allows is a question for an owner, and blocks no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from tests.projects.history import CONFIG, Repository
from tests.worker import Client

HISTORY = """\
MODEL (name shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day{more}));

SELECT CAST('2024-01-05' AS DATE) AS day, 1 AS one{column}
WHERE CAST('2024-01-05' AS DATE) BETWEEN @start_ds AND @end_ds
"""
RULE = "forward-only-destructive"


def reviewed(tmp_path: Path, more: str, **flags: object) -> Report:
    """The review of a change that drops a column."""
    repository = Repository(tmp_path / "project")
    base, head = (HISTORY.format(more=more, column=column) for column in (", 2 AS two", ""))
    commits = repository.pull_request(
        {"config.yaml": CONFIG, "models/days.sql": base}, {"models/days.sql": head}
    )
    report: Report = Client(repository.root).review(
        "pr_7",
        commits=commits,
        baseline="base-branch",
        flags=GivenFlags.model_validate(flags),
    )
    return report


@pytest.mark.parametrize("selection", ["shop.days", "shop.*"])
@pytest.mark.by_day(1)
def test_allowed__is_planned_and_asked_of_the_owner(tmp_path: Path, selection: str) -> None:
    report = reviewed(tmp_path, ", forward_only true", allow_destructive=[selection])
    assert report.failure is None
    assert {risk.severity for risk in report.risks if risk.rule == RULE} == {"high"}
    assert report.decision == "review"
    assert not any("refuses" in risk.evidence for risk in report.risks)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("more", "flags"), [(", forward_only true", {}), ("", {"forward_only": True})]
)
def test_not_allowed__is_refused_and_told_once(
    tmp_path: Path, more: str, flags: dict[str, object]
) -> None:
    report = reviewed(tmp_path, more, **flags)
    assert report.failure is not None
    assert report.decision == "no_go"
    assert [risk.severity for risk in report.risks if risk.rule == RULE] == ["blocker"]
    assert not any(risk.rule == "R05-forward-only-destructive" for risk in report.risks)


@pytest.mark.night
def test_allowed__in_a_forward_only_plan__is_asked_of_the_owner(tmp_path: Path) -> None:
    report = reviewed(tmp_path, "", forward_only=True, allow_destructive=["shop.days"])
    assert report.failure is None
    assert {risk.severity for risk in report.risks if risk.rule == RULE} == {"high"}
