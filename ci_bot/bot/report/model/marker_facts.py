"""What the marker of a comment says of the plan, and of the plans before it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci_bot.protocol.base import PlanId, Sha
from ci_bot.protocol.comment_marker import Marker, PlanHistoryEntry
from ci_bot.protocol.plan import Decision, Window


@dataclass(frozen=True, kw_only=True)
class MarkerFacts:
    """What the marker says of the plan that the comment shows; null if there is none."""

    head: Sha | None = None
    base: Sha | None = None
    merge: Sha | None = None
    plan: PlanId | None = None
    window: Window | None = None
    decision: Decision | None = None
    report_sha256: str | None = None

    @classmethod
    def from_marker(cls, marker: Marker | None) -> MarkerFacts:
        """The facts that an earlier run wrote."""
        if marker is None:
            return cls()
        return cls(
            head=marker.head,
            base=marker.base,
            merge=marker.merge,
            plan=marker.plan,
            window=marker.window,
            decision=marker.decision,
            report_sha256=marker.report_sha256,
        )


def list_plans_before(
    marker: Marker | None,
    plan: PlanId | None,
    history: Sequence[PlanHistoryEntry] | None = None,
) -> list[PlanHistoryEntry]:
    """The earlier plans of a pull request, the oldest first.

    Args:
        marker: What an earlier run wrote.
        plan: The plan of now, which is no earlier one.
        history: What came before `marker`; else it says so itself.
    """
    if marker is None:
        return list(history or ())
    found = list(marker.history if history is None else history)
    if marker.plan is not None and marker.plan != plan:
        found.append(
            PlanHistoryEntry(
                at=marker.valid_at,
                head=marker.head,
                plan=marker.plan,
                decision=marker.decision,
                run=str(marker.run_id),
            )
        )
    return found
