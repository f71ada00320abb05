"""What a comment holds that no template says: the hidden record of an earlier run for a later
one.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import Contract, Count, Name, PlanId, Sha, Timestamp
from ci_bot.protocol.plan import Decision, Window
from ci_bot.protocol.review_report import Report

Phase = Literal[
    "planning",
    "planned",
    "no_changes",
    "plan_failed",
    "applying",
    "applied",
    "apply_failed",
    "refused",
    "cancelled",
    "closed",
    "cleanup_failed",
]


class PlanHistoryEntry(Contract):
    """One earlier plan of the same pull request."""

    at: Timestamp
    head: Sha | None
    plan: PlanId | None
    decision: Decision | None
    run: Name | None


class Marker(Contract):
    """The first line of the comment. Readers take any `v` they know and ignore other comments.

    `key` tells projects in one repository apart; it is compared whole, never as a substring.
    """

    v: Literal[1] = 1
    key: Name
    pr: Count
    head: Sha | None = None
    base: Sha | None = None
    merge: Sha | None = None
    env: Name
    plan: PlanId | None = None
    window: Window | None = None
    phase: Phase
    decision: Decision | None = None
    run_id: Count = 0
    attempt: Count = 1
    valid_at: Timestamp = Field(description="When the facts in the comment were true.")
    report_sha256: Name | None = Field(
        default=None, description="Of report.json in the artifact of run `report_run`."
    )
    report_run: Count | None = None
    cut: list[Name] = Field(default_factory=list)
    history: list[PlanHistoryEntry] = Field(default_factory=list, max_length=20)


def review_phase(report: Report) -> Phase:
    """The state of the comment that a review ends in."""
    if report.failure is not None:
        return "plan_failed"
    return "no_changes" if report.decision == "no_changes" else "planned"


def apply_phase(result: str) -> Phase:
    """The state of the comment that an apply ends in."""
    phases: dict[str, Phase] = {
        "applied": "applied",
        "nothing_to_apply": "applied",
        "refused": "refused",
        "cancelled": "cancelled",
    }
    return phases.get(result, "apply_failed")
