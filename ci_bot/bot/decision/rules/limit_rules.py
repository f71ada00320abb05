"""R06, R07 and batches: how much work is too much, by the limits that a team has drawn."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.bot.decision.given import BotFacts, Limits
from ci_bot.bot.decision.judged import Where, judged_costs, judged_work
from ci_bot.bot.decision.registry import judges
from ci_bot.bot.decision.risks import counted, listed, risk
from ci_bot.contracts.documents.plan import Cost
from ci_bot.contracts.documents.report import ReviewFacts, Risk
from ci_bot.contracts.durations import executor_time
from ci_bot.contracts.rules import rule

INTERVAL_LIMIT = rule("R06-interval-limit")
NEAR_BUDGET = rule("R07-near-budget")
NOT_KNOWN = rule("R07-not-known")
OVER_BUDGET = rule("R07-over-budget")
BATCH_SIZE_MISSING = rule("batch-size-missing")

BATCHLESS_INTERVALS = 100


@judges(INTERVAL_LIMIT)
def too_much_work(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R06: more intervals than the limit."""
    work = judged_work(facts)
    total = work.total.intervals
    if limits.max_intervals is not None and total > limits.max_intervals:
        yield risk(
            INTERVAL_LIMIT,
            f"{counted(total, 'interval')} to build {_place(work.where, facts.environment)}; "
            f"the limit is {limits.max_intervals:,}.",
            "the plan is smaller (`start`, `select-model`), or `max-intervals` is raised"
            if work.where == "environment"
            else "the change rebuilds less, or `max-intervals` is raised",
        )


def _place(where: Where, environment: str) -> str:
    return "in prod after the merge" if where == "prod" else f"in `{environment}`"


@judges(NEAR_BUDGET, NOT_KNOWN, OVER_BUDGET)
def over_budget(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """R07: the estimate is, or may be, above the budget, or nobody can tell."""
    cap = limits.max_executor_hours
    if cap is None:
        return
    costs = judged_costs(facts)
    clears = "the plan is smaller, or `max-executor-hours` is raised"
    dearest, where = costs[0]
    middle = dearest.hours_above(cap)
    if middle is not None:
        yield risk(
            OVER_BUDGET,
            f"{'At least' if dearest.unknown else 'About'} {executor_time(middle)} of executor "
            f"time {_place(where, facts.environment)}{_unknown(dearest)}; the limit is "
            f"{executor_time(cap)}.",
            clears,
        )
        return
    high = max((cost.executor_hours_high or 0.0 for cost, _ in costs), default=0.0)
    if high > cap:
        yield risk(
            NEAR_BUDGET,
            f"Up to {executor_time(high)} of executor time are possible; the limit is "
            f"{executor_time(cap)}.",
            clears,
        )
    incomplete = next(((cost, where) for cost, where in costs if cost.unknown), None)
    if incomplete is not None:
        cost, where = incomplete
        part = cost.executor_hours_mid
        known = "nothing" if part is None else f"at least {executor_time(part)}"
        yield risk(
            NOT_KNOWN,
            f"Whether the limit of {executor_time(cap)} holds "
            f"{_place(where, facts.environment)} cannot be told: {known} is expected"
            f"{_unknown(cost)}.",
            "an apply has left the figures of these models in the ledger",
        )


def _unknown(cost: Cost) -> str:
    if not cost.unknown:
        return ""
    return (
        f" ({len(cost.unknown):,} of {counted(cost.tables, 'table')} have no recorded run: "
        f"{listed(cost.unknown)})"
    )


@judges(BATCH_SIZE_MISSING)
def one_job_backfill(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """A long history computed by one job may run out of memory."""
    plan = facts.prod_plan
    built = {item.model for item in facts.backfill} - {item.model for item in facts.work}
    later = {item.model: item for item in plan.backfill} if plan else {}
    for name, judged in judged_work(facts).models.items():
        # Of what an apply has built here, the rest is left that prod does not take over.
        item = later.get(name) if name in built else judged.item
        where: Where = "prod" if name in built else judged.where
        if (
            item is not None
            and item.action == "incremental"
            and item.batches == 1
            and item.intervals > BATCHLESS_INTERVALS
        ):
            yield risk(
                BATCH_SIZE_MISSING,
                f"One job computes {counted(item.intervals, 'interval')} "
                f"{_place(where, facts.environment)}.",
                "the model has a `batch_size`",
                severity=None if item.kind == "INCREMENTAL_BY_TIME_RANGE" else "low",
                model=name,
            )
