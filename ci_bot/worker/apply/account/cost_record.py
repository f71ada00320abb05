"""What an apply has cost, however it ended: for its report, and for estimates of later plans."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ci_bot.contracts.cost.figures import ActualCost, Price
from ci_bot.contracts.documents.apply import AppliedModel
from ci_bot.contracts.documents.plan import Cost
from ci_bot.worker import compat
from ci_bot.worker.cost.counters.actual import clock_cost, counted_cost
from ci_bot.worker.cost.counters.meter import Meter
from ci_bot.worker.process.channel import log
from ci_bot.worker.records.cost_ledger import ApplyRow, CostLedger, Outcome, RunRow
from ci_bot.worker.records.ledger_schema import KEEP_DAYS
from ci_bot.worker.words import times
from ci_bot.worker.words.problems import sentence


class CostRecord:
    """Writes it once. An apply without it is as good, so nothing here raises.

    `rows` is what was written of each model, or was to be.
    """

    def __init__(
        self,
        environment: str,
        context: Any,
        ledger: CostLedger,
        meter: Meter,
        hour_price: Price | None = None,
    ) -> None:
        self._environment = environment
        self._context = context
        self._ledger = ledger
        self._meter = meter
        self._hour_price = hour_price
        self._lock = threading.Lock()
        self._written = False
        self.rows: list[RunRow] = []

    def write(
        self,
        outcome: Outcome,
        models: Sequence[AppliedModel],
        *,
        versions: Mapping[str, str],
        plan_id: str | None,
        expected: Cost | None,
        wall_seconds: float,
    ) -> ActualCost | None:
        """Into the ledger; gives what is to be told, None where nothing is known, or was told.

        Args:
            models: What was built, with the rows that were counted.
            versions: The snapshot version of each model by name.
            wall_seconds: How long building took.
        """
        with self._lock:
            if self._written:
                return None
            self._written = True
        try:
            self._meter.finish()
            if self._meter.failure is not None:
                log(f"Spark's counters could not be read: {self._meter.failure}")
            cost = self._cost(wall_seconds)
        except Exception as error:
            log(f"The costs are not known: {sentence(error)}")
            return None
        try:
            self._keep(cost, outcome, models, versions, plan_id, expected)
        except Exception as error:
            log(f"The costs were not recorded: {sentence(error)}")
        return cost

    def _cost(self, wall_seconds: float) -> ActualCost:
        if self._meter.counted:
            return counted_cost(self._meter, hour_price=self._hour_price)
        return clock_cost(
            wall_seconds, compat.executor_count(self._context), hour_price=self._hour_price
        )

    def _keep(
        self,
        cost: ActualCost,
        outcome: Outcome,
        models: Sequence[AppliedModel],
        versions: Mapping[str, str],
        plan_id: str | None,
        expected: Cost | None,
    ) -> None:
        now = times.now_milliseconds()
        at, oldest = times.iso(now), times.iso(now - KEEP_DAYS * 86_400_000)
        known = {model.model: model for model in models if model.model in versions}
        self.rows = rows = (
            self._counted(known, versions, outcome, at)
            if cost.source == "counters"
            else _by_the_clock(known, versions, self._environment, cost, outcome, at)
        )
        complete = expected is not None and not expected.unknown
        self._ledger.add_runs(rows, forget_before=oldest)
        self._ledger.add_apply(
            ApplyRow(
                environment=self._environment,
                plan_id=plan_id,
                at=at,
                outcome=outcome,
                expected_hours=expected.executor_hours_mid if expected and complete else None,
                allocated_hours=cost.allocated_hours,
                core_hours=cost.core_hours,
                used_hours=cost.counters.used_seconds / 3_600 if cost.counters else None,
            ),
            forget_before=oldest,
        )

    def _counted(
        self,
        models: Mapping[str, AppliedModel],
        versions: Mapping[str, str],
        outcome: Outcome,
        at: str,
    ) -> list[RunRow]:
        return [
            RunRow(
                environment=self._environment,
                model=name,
                version=versions[name],
                intervals=metered.intervals,
                batches=metered.batches,
                seconds=models[name].seconds if name in models else 0.0,
                executor_seconds=round(metered.allocated.executors, 3),
                rows=models[name].rows if name in models else None,
                at=at,
                source="counters",
                outcome=outcome,
                counters=metered.counters,
                lost_seconds=round(metered.lost.executors, 3),
            )
            for name, metered in self._meter.models().items()
            if name in versions
        ]


def _by_the_clock(
    models: Mapping[str, AppliedModel],
    versions: Mapping[str, str],
    environment: str,
    cost: ActualCost,
    outcome: Outcome,
    at: str,
) -> list[RunRow]:
    """Each model is charged its share of the wall time by the seconds of its batches, because
    models run side by side."""
    busy = sum(model.seconds for model in models.values())
    return [
        RunRow(
            environment=environment,
            model=model.model,
            version=versions[model.model],
            intervals=model.intervals,
            batches=model.batches,
            seconds=model.seconds,
            executor_seconds=round(model.seconds / busy * cost.allocated_hours * 3_600, 3),
            rows=model.rows,
            at=at,
            outcome=outcome,
        )
        for model in models.values()
        if model.intervals and model.seconds > 0
    ]
