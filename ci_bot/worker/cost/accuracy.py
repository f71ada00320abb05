"""How far off our own estimates were: each apply's estimate beside what it has then cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from ci_bot.contracts.cost.figures import Accuracy
from ci_bot.worker.records.cost_ledger import ApplyRow, CostLedger

# The newest say how good the estimates are now; fewer than five say nothing.
NEWEST, FEWEST = 20, 5
# An apply whose estimate knew every model is not rare, and these rows are small.
_LOOKED_AT = 200


def accuracy(rows: Iterable[ApplyRow]) -> Accuracy | None:
    """How far the newest complete estimates were off; None with fewer than five.

    Only an apply that came to its end tells: half of the work costs half. The error is the
    difference as a share of what it has cost.

    Args:
        rows: Newest first.
    """
    errors = sorted(
        [
            abs(row.expected_hours - row.allocated_hours) / row.allocated_hours
            for row in rows
            if row.outcome == "applied" and row.expected_hours and row.allocated_hours > 0
        ][:NEWEST]
    )
    if len(errors) < FEWEST:
        return None
    nine = errors[math.ceil(0.9 * len(errors)) - 1]
    return Accuracy(
        estimates=len(errors), median=round(median(errors), 4), nine_of_ten=round(nine, 4)
    )


def known_accuracy(ledger: CostLedger) -> Accuracy | None:
    """`accuracy` of what the ledger holds."""
    return accuracy(ledger.applies(newest=_LOOKED_AT))


def sentence_of(found: Accuracy) -> str:
    """ "the last 20 estimates: median error 18 %, 90 % within 41 %"."""
    return (
        (
            f"the last {found.estimates} estimates: median error {found.median:.0%}, 90 % within "
            f"{found.nine_of_ten:.0%}"
        )
        .replace("%", " %")
        .replace("  %", " %")
    )
