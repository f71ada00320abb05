"""Which models of a plan keep their history: forward-only ones, and those below a change."""

from __future__ import annotations

from ci_bot.contracts.documents.plan import COMPUTED_WHOLE, Change
from ci_bot.contracts.documents.report import Report, ReviewFacts


def forward_only_models(report: Report | ReviewFacts) -> frozenset[str]:
    """Models whose tables in `prod` keep their rows, so that only new intervals change.

    A forward-only reader of a breaking change has the category of its parent. It is known by its
    preview: a table of the environment alone that `prod` does not build anew after the merge.
    """
    found = {change.model for change in report.changes if _is_forward_only(change)}
    plan = report.prod_plan
    if plan is not None:
        found -= {item.model for item in plan.next_run}
    if plan is None:
        return frozenset(found)
    again = {item.model for item in plan.full_backfill}
    previews = {
        item.model
        for item in report.backfill
        if item.preview and item.action == "incremental" and item.model not in again
    }
    return frozenset(found | previews)


def _is_forward_only(change: Change) -> bool:
    kept = change.kind not in COMPUTED_WHOLE
    return kept and change.category == "forward_only" and change.change != "metadata"
