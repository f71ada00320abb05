"""The ledger entries of an apply: the objects that it is about to make, and its outcome."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlmesh.core.snapshot import Snapshot, SnapshotId

from ci_bot.protocol.apply_report import AppliedModel
from ci_bot.protocol.cost import ActualCost, Price
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.protocol.plan import Cost
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost import BatchMeter, make_clock_cost, make_counted_cost
from ci_bot.worker.messages import extract_sentence_of_error, report_times
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.runtime import SparkCatalog, spark_catalog, write_worker_log_line
from ci_bot.worker.state_store import (
    KEEP_DAYS,
    ApplyRow,
    CostLedger,
    LeaseHold,
    LeaseLostError,
    Ledger,
    LedgerObject,
    LedgerPhase,
    LedgerRow,
    LedgerSnapshot,
    Outcome,
    RunRow,
    list_ledger_objects,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

    from ci_bot.protocol.environment import EnvironmentName


class ApplyRecord:
    """The ledger's row of one apply; it is written only under the lease."""

    def __init__(
        self,
        request: ApplyRequest,
        context: Context,
        ledger: Ledger,
        catalog: SparkCatalog,
        hold: LeaseHold,
    ) -> None:
        self._ask = request
        self._context = context
        self._ledger = ledger
        self._catalog = catalog
        self._hold = hold

    def write_begin(
        self,
        planned: BuiltPlan,
        plan_id: str | None,
        made: Collection[SnapshotId] | None = None,
    ) -> None:
        """Writes everything that the apply is about to make, before its first write.

        Args:
            made: Only these snapshots get a table, and there is no view; None: the whole plan.
                Objects that are not made now may belong to someone else later.

        Raises:
            LeaseLostError: another run has the environment by now; nothing was written.
        """
        default_catalog = str(self._context.default_catalog)
        environment = planned.plan.environment
        changed = [s for s in planned.changed_snapshots if made is None or s.snapshot_id in made]
        tables = spark_catalog.list_physical_spark_tables(
            changed, planned.deployable, default_catalog
        )
        views = (
            spark_catalog.list_spark_views_of_environment(self._context, environment)
            if made is None
            else {}
        )
        self._ledger.prepare_tables()
        before = self._ledger.read_row(self._ask.environment)
        found = list_ledger_objects(views.values(), tables, self._catalog)
        if before is not None:
            found = _keep_first_observation_of_apply(before, found)
        now = report_times.format_iso_in_message(report_times.read_milliseconds_now())
        owner = self._ask.owner
        with self._hold.fence_write():
            self._ledger.write_row(
                LedgerRow(
                    environment=self._ask.environment,
                    owner=owner.name,
                    pr_number=owner.pr_number,
                    head_sha=owner.head_sha,
                    plan_id=plan_id,
                    phase="applying",
                    gateway=self._context.selected_gateway,
                    catalog=default_catalog,
                    suffix_target=str(environment.naming_info.suffix_target.value),
                    snapshots=_list_snapshots_of_apply(
                        planned, changed, before, whole=made is None
                    ),
                    objects=found,
                    created_at=before.created_at if before else now,
                    updated_at=now,
                )
            )

    def write_end(self, phase: LedgerPhase) -> None:
        """Records how far the apply got; writes nothing without the lease.

        If the state does not answer, the report must not be lost; then the row is outdated.
        """
        try:
            with self._hold.fence_write():
                row = self._ledger.read_row(self._ask.environment)
                if row is not None:
                    now = report_times.format_iso_in_message(report_times.read_milliseconds_now())
                    self._ledger.write_row(
                        row.model_copy(update={"phase": phase, "updated_at": now})
                    )
        except LeaseLostError:
            pass
        except Exception as error:
            write_worker_log_line(
                f"The ledger could not record `{phase}`: {extract_sentence_of_error(error)}"
            )


def _list_snapshots_of_apply(
    planned: BuiltPlan, changed: Sequence[Snapshot], before: LedgerRow | None, *, whole: bool
) -> list[LedgerSnapshot]:
    """Lists the plan's snapshots that are made now, then those that only an earlier plan made.

    Args:
        whole: The environment will consist of these; else it stays as it is, if it exists.
    """
    new = {snapshot.snapshot_id for snapshot in planned.plan.new_snapshots}
    known = before.snapshots if before else []
    earlier = [item for item in known if item.ours or not whole]
    ours = {(item.name, item.identifier) for item in earlier if item.ours}
    now = {(snapshot.name, snapshot.identifier) for snapshot in changed}
    return [
        LedgerSnapshot(
            name=snapshot.name,
            identifier=snapshot.identifier,
            version=str(snapshot.version),
            dev_version=snapshot.dev_version,
            ours=snapshot.snapshot_id in new or (snapshot.name, snapshot.identifier) in ours,
        )
        for snapshot in changed
        if snapshot.is_model and snapshot.version
    ] + [item for item in earlier if (item.name, item.identifier) not in now]


def _keep_first_observation_of_apply(
    before: LedgerRow, found: list[LedgerObject]
) -> list[LedgerObject]:
    """Keeps objects that an earlier apply created as ours, although they exist by now."""
    known = {_make_key_of_ledger_object(item): item.existed for item in before.objects}
    kept = [
        item.model_copy(
            update={"existed": known.get(_make_key_of_ledger_object(item), item.existed)}
        )
        for item in found
    ]
    seen = {_make_key_of_ledger_object(item) for item in kept}
    # Objects of an earlier plan that this one no longer has must still be found by a cleanup.
    return kept + [item for item in before.objects if _make_key_of_ledger_object(item) not in seen]


def _make_key_of_ledger_object(item: LedgerObject) -> tuple[str, str, str, str]:
    return item.kind, item.catalog, item.db, item.name


# The cost of an apply, whatever its end: for its report, and for estimates of later plans.


class ApplyCostRecord:
    """Records the cost of one apply, once. Nothing here raises: an apply is complete without it.

    `rows` are the ledger's rows of each model: written, or prepared if writing failed.
    """

    def __init__(
        self,
        environment: EnvironmentName,
        context: Context,
        ledger: CostLedger,
        meter: BatchMeter,
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

    def write_cost(
        self,
        outcome: Outcome,
        models: Sequence[AppliedModel],
        *,
        versions: Mapping[str, str],
        plan_id: str | None,
        expected: Cost | None,
        wall_seconds: float,
    ) -> ActualCost | None:
        """Writes the cost into the ledger, and returns it for the report.

        It returns None if the cost is unknown or already reported.

        Args:
            models: The models that were built, with their counted rows.
            versions: The snapshot version of each model by name.
            wall_seconds: The time that building took.
        """
        with self._lock:
            if self._written:
                return None
            self._written = True
        try:
            self._meter.finish_metering()
            if self._meter.failure is not None:
                write_worker_log_line(f"Spark's counters could not be read: {self._meter.failure}")
            cost = self._measure_cost(wall_seconds)
        except Exception as error:
            write_worker_log_line(f"The costs are not known: {extract_sentence_of_error(error)}")
            return None
        try:
            self._keep_cost(cost, outcome, models, versions, plan_id, expected)
        except Exception as error:
            write_worker_log_line(
                f"The costs were not recorded: {extract_sentence_of_error(error)}"
            )
        return cost

    def _measure_cost(self, wall_seconds: float) -> ActualCost:
        if self._meter.is_complete:
            return make_counted_cost(self._meter, hour_price=self._hour_price)
        return make_clock_cost(
            wall_seconds,
            sqlmesh_compat.count_spark_executors_of_sqlmesh(self._context),
            hour_price=self._hour_price,
        )

    def _keep_cost(
        self,
        cost: ActualCost,
        outcome: Outcome,
        models: Sequence[AppliedModel],
        versions: Mapping[str, str],
        plan_id: str | None,
        expected: Cost | None,
    ) -> None:
        now = report_times.read_milliseconds_now()
        at = report_times.format_iso_in_message(now)
        oldest = report_times.format_iso_in_message(now - KEEP_DAYS * 86_400_000)
        known = {model.model: model for model in models if model.model in versions}
        self.rows = rows = (
            self._list_run_rows(known, versions, outcome, at)
            if cost.source == "counters"
            else _charge_wall_time_of_apply(known, versions, self._environment, cost, outcome, at)
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

    def _list_run_rows(
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
            for name, metered in self._meter.list_models().items()
            if name in versions
        ]


def _charge_wall_time_of_apply(
    models: Mapping[str, AppliedModel],
    versions: Mapping[str, str],
    environment: EnvironmentName,
    cost: ActualCost,
    outcome: Outcome,
    at: str,
) -> list[RunRow]:
    """Charges each model a share of the wall time, because models run side by side.

    The share is by the seconds of its batches.
    """
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
