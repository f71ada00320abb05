"""Whether an estimate is above what a team is ready to pay for one plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.contracts.base import Failure
from ci_bot.contracts.cost.figures import CostLayer
from ci_bot.contracts.documents.plan import Cost
from ci_bot.contracts.durations import executor_time
from ci_bot.errors import EXIT_REFUSED

_DEAREST = 3
_FROM: Mapping[CostLayer, str] = {
    "ledger": "its own applies",
    "event_logs": "prod's runs",
    "input_size": "the size of its input",
}


def over_budget(cost: Cost, hours: float | None, environment: str) -> Failure | None:
    """The failure of an estimate above the limit; None where it holds, as far as anybody knows.

    Args:
        hours: The most executor-hours that building may take; None: no limit.
    """
    middle = cost.hours_above(hours)
    if hours is None or middle is None:
        return None
    dearest = ", ".join(
        f"{item.model} {executor_time(item.executor_hours_mid)} ({_FROM[item.layer]})"
        for item in cost.models[:_DEAREST]
    )
    rest = len(cost.models) - _DEAREST
    more = f" and {rest:,} more" if rest > 0 else ""
    unknown = f"; {len(cost.unknown):,} of {cost.tables:,} tables unknown" if cost.unknown else ""
    return Failure(
        stage="estimate",
        reason_code="over_budget",
        exit_code=EXIT_REFUSED,
        message=f"Building {environment} would take {'at least' if cost.unknown else 'about'} "
        f"{executor_time(middle)} of executor time, and the limit is {executor_time(hours)}: "
        f"{dearest}{more}{unknown}. Nothing was built.",
        hint="Plan less (`start`, `select-model`), or raise `max-executor-hours`.",
    )
