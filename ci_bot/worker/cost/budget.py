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
    "probe": "its newest batch",
    "ledger": "its own applies",
    "event_logs": "prod's runs",
    "input_size": "the size of its input",
}


def over_budget(
    cost: Cost,
    hours: float | None,
    environment: str,
    *,
    after_merge: Cost | None = None,
    what: str = "Building",
) -> Failure | None:
    """The failure of an estimate above the limit; None where it holds, as far as anybody knows.

    Args:
        cost: Of building the environment.
        hours: The most executor-hours that building either may take; None: no limit.
        after_merge: Of what prod builds after the merge; None: not known.
        what: is done to the environment, as the begin of a sentence.
    """
    here, there = cost.hours_above(hours), after_merge.hours_above(hours) if after_merge else None
    if hours is None or (here is None and there is None):
        return None
    figures = [f"{what} {environment} would take {_about(cost)}"]
    if after_merge is not None:
        figures.append(f"what prod builds after the merge {_about(after_merge)}")
    dearer = after_merge if after_merge is not None and (there or 0.0) > (here or 0.0) else cost
    return Failure(
        stage="estimate",
        reason_code="over_budget",
        exit_code=EXIT_REFUSED,
        message=f"{', and '.join(figures)}; the limit is {executor_time(hours)} of executor time. "
        f"{_dearest(dearer)}. Nothing was built.",
        hint="Plan less (`start`, `select-model`), or raise `max-executor-hours`."
        if there is None
        else "Let prod rebuild less (a forward-only change, a later `start` of the model), or "
        "raise `max-executor-hours`.",
    )


def _about(cost: Cost) -> str:
    middle = cost.executor_hours_mid
    if middle is None:
        return "a time that is not known" if cost.tables else "nothing"
    return f"{'at least' if cost.unknown else 'about'} {executor_time(middle)}"


def _dearest(cost: Cost) -> str:
    named = ", ".join(
        f"{item.model} {executor_time(item.executor_hours_mid)} ({_FROM[item.layer]})"
        for item in cost.models[:_DEAREST]
    )
    rest = len(cost.models) - _DEAREST
    more = f" and {rest:,} more" if rest > 0 else ""
    unknown = f"; {len(cost.unknown):,} of {cost.tables:,} tables unknown" if cost.unknown else ""
    return f"The dearest: {named}{more}{unknown}"
