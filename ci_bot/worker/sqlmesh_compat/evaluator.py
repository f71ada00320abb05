"""SQLMesh's plan evaluator and scheduler, with callbacks, fences, and plans that are built only in
part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.console import Console
from sqlmesh.core.constants import EPOCH
from sqlmesh.core.context import Context
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.core.plan import BuiltInPlanEvaluator
from sqlmesh.core.plan.stages import (
    BackfillStage,
    CreateSnapshotRecordsStage,
    PhysicalLayerSchemaCreationStage,
)
from sqlmesh.core.scheduler import Scheduler
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot, SnapshotEvaluator, SnapshotId
from sqlmesh.utils.dag import DAG
from sqlmesh.utils.date import to_timestamp
from sqlmesh.utils.errors import NodeAuditsErrors

if TYPE_CHECKING:
    from sqlmesh.core.engine_adapter import EngineAdapter
    from sqlmesh.core.plan import EvaluatablePlan, stages
    from sqlmesh.core.state_sync import StateSync

SnapshotStage = TypeVar(
    "SnapshotStage", PhysicalLayerSchemaCreationStage, CreateSnapshotRecordsStage
)


@dataclass(frozen=True)
class SqlmeshAuditQuery:
    """An audit's query on a model's table and time range, to be run on another table.

    (`SnapshotEvaluator._audit`)
    """

    snapshot: Snapshot
    audit: Any
    arguments: Mapping[str, Any]
    start: int
    end: int
    execution_time: Any

    def cover_both(self, other: SqlmeshAuditQuery | None) -> SqlmeshAuditQuery:
        """Returns this query over both time ranges and the time between them."""
        if other is None:
            return self
        return replace(self, start=min(self.start, other.start), end=max(self.end, other.end))

    def render_sql(self, adapter: EngineAdapter, tables: Mapping[str, str]) -> str:
        """Renders a query that counts the audit's rows, with these tables (quoted SQL names) for
        models (fully qualified names).

        Raises:
            KeyError: `tables` has no table for the audit's own model.
            Exception: the audit's query cannot be rendered for that table.
        """
        query = self.snapshot.model.render_audit_query(
            self.audit,
            start=self.start,
            end=self.end,
            execution_time=self.execution_time,
            engine_adapter=adapter,
            runtime_stage=RuntimeStage.AUDITING,
            table_mapping=dict(tables),
            **{**self.arguments, "this_model": exp.to_table(tables[self.snapshot.name], "spark")},
        )
        counted = exp.select("COUNT(*)").from_(query.subquery("audit"))
        return str(counted.sql(dialect=adapter.dialect, identify=True))


@dataclass(frozen=True)
class AuditOutcome:
    """One audit of one batch; `failed_rows` is None if the audit was skipped.

    Attributes:
        query: The query that SQLMesh ran, which returns the failed rows.
    """

    audit: str
    blocking: bool
    failed_rows: int | None
    question: SqlmeshAuditQuery | None = None
    query: exp.Query | None = None


@dataclass(frozen=True)
class FailedAudit:
    """An audit whose query failed, and the file that defines it; None for SQLMesh's own."""

    name: str
    path: Path | None


_FAILED_AUDIT = "_ci_bot_failed_audit"


def find_failed_sqlmesh_audit(error: BaseException) -> FailedAudit | None:
    """Finds the audit that raised an error of a plan's evaluation; None if none did."""
    found = None
    step: BaseException | None = error
    while step is not None and found is None:
        found = getattr(step, _FAILED_AUDIT, None)
        step = step.__cause__ or step.__context__
    return found


def _let_sqlmesh_name_failing_audits(evaluator: SnapshotEvaluator) -> None:
    """Makes each error of an audit's query name its audit. (`SnapshotEvaluator._audit`)"""
    run = evaluator._audit
    if hasattr(run, _FAILED_AUDIT):
        return

    @wraps(run)
    def audit_by_name(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except Exception as error:
            audit = kwargs["audit"] if "audit" in kwargs else args[0]
            path = None if audit.name in BUILT_IN_AUDITS else audit._path
            if path == Path():  # of an audit that comes from the state
                path = None
            setattr(error, _FAILED_AUDIT, FailedAudit(audit.name, path))
            raise

    setattr(audit_by_name, _FAILED_AUDIT, True)
    setattr(evaluator, "_audit", audit_by_name)  # noqa: B010 - a method of the class elsewhere


AuditListener = Callable[[Snapshot, Sequence[AuditOutcome]], None]
# Called after a batch is in its table and before its audits, in the thread that computes it.
WriteListener = Callable[[Snapshot], None]
# Entered around one batch, in the thread that computes it, with the range in milliseconds.
AroundBatch = Callable[[Snapshot, tuple[int, int]], AbstractContextManager[None]]
StateFence = Callable[[], AbstractContextManager[None]]


class RecordingSqlmeshScheduler(Scheduler):
    """SQLMesh's scheduler, which also reports the result of every audit.

    It has no notification targets: an apply to a PR environment must not trigger the alerts that
    the project configured for prod. (`Scheduler._audit_snapshot`, `Scheduler.evaluate`)

    It also creates the tables of selected models that get no interval. SQLMesh does not do so if
    other models have batches, and readers of such a table would not find it. (`Scheduler._dag`)
    """

    def __init__(
        self,
        *args: Any,
        on_audits: AuditListener,
        on_table_written: WriteListener,
        around_batch: AroundBatch,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        _let_sqlmesh_name_failing_audits(self.snapshot_evaluator)
        self._on_audits = on_audits
        self._on_table_written = on_table_written
        self._around_batch = around_batch

    def run_merged_intervals(self, **kwargs: Any) -> Any:
        self._deployable: DeployabilityIndex = kwargs["deployability_index"]
        selected = None if kwargs.get("audit_only") else kwargs.get("selected_snapshot_ids")
        self._selected: Collection[SnapshotId] = selected or ()
        return super().run_merged_intervals(**kwargs)

    def _dag(
        self, batches: Any, snapshot_dag: Any = None, snapshots_to_create: Any = None
    ) -> DAG[Any]:
        created: set[SnapshotId] = set() if snapshots_to_create is None else snapshots_to_create
        # Changed in place, because SQLMesh continues with this set.
        created.update(self._list_missing_tables_without_batches(batches))
        dag: DAG[Any] = super()._dag(batches, snapshot_dag, created)
        return dag

    def _list_missing_tables_without_batches(
        self, batches: Mapping[Snapshot, Any]
    ) -> list[SnapshotId]:
        without = [
            snapshot
            for s_id in self._selected
            if (snapshot := self.snapshots[s_id]) not in batches
            and self._deployable.is_representative(snapshot)
            and not snapshot.intervals
            and snapshot.unpaused_ts is None  # prod's own
        ]
        if not without:
            return []  # then there is nothing to ask the engine
        missing = self.snapshot_evaluator.get_snapshots_to_create(without, self._deployable)
        return [snapshot.snapshot_id for snapshot in missing]

    def evaluate(
        self, snapshot: Snapshot, start: Any, end: Any, *args: Any, **kwargs: Any
    ) -> list[Any]:
        with self._around_batch(snapshot, (to_timestamp(start), to_timestamp(end))):
            results: list[Any] = super().evaluate(snapshot, start, end, *args, **kwargs)
        return results

    def _audit_snapshot(self, snapshot: Snapshot, *args: Any, **kwargs: Any) -> list[Any]:
        def make_question(result: Any) -> SqlmeshAuditQuery | None:
            if not snapshot.is_model:
                return None
            return SqlmeshAuditQuery(
                snapshot,
                result.audit,
                result.audit_args,
                to_timestamp(kwargs.get("start") or EPOCH),
                to_timestamp(kwargs.get("end") or EPOCH),
                kwargs.get("execution_time"),
            )

        self._on_table_written(snapshot)
        try:
            results: list[Any] = super()._audit_snapshot(snapshot, *args, **kwargs)
        except NodeAuditsErrors as error:
            failed = [
                AuditOutcome(item.audit_name, True, int(item.count), query=item.query)
                for item in error.errors
            ]
            self._on_audits(snapshot, failed)
            raise
        self._on_audits(
            snapshot,
            [
                AuditOutcome(
                    result.audit.name,
                    bool(result.blocking),
                    None if result.skipped else int(result.count or 0),
                    make_question(result),
                    result.query,
                )
                for result in results
            ],
        )
        return results


class FencedSqlmeshState:
    """SQLMesh's state, whose writes take effect only inside of a fence. (`StateSync`)

    A promotion has a fence of its own.
    """

    _WRITES = frozenset(
        {
            "add_interval",
            "add_snapshots_intervals",
            "finalize",
            "push_snapshots",
            "remove_intervals",
            "unpause_snapshots",
            "update_auto_restatements",
        }
    )

    def __init__(self, state: StateSync, fence: StateFence) -> None:
        self._state = state
        self._fence = fence

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._state, name)
        if name not in self._WRITES:
            return found

        def write_inside_fence(*args: Any, **kwargs: Any) -> Any:
            with self._fence():
                return found(*args, **kwargs)

        return write_inside_fence


class LeasedSqlmeshEvaluator(BuiltInPlanEvaluator):
    """SQLMesh's evaluator with a check before the promotion and before each stage that writes on
    Spark; SQLMesh checks its circuit breaker between batches only. (`visit_..._stage`) Recorded
    snapshots are not recorded again. (`visit_create_snapshot_records_stage`)
    """

    promotion: StateFence = nullcontext
    check: Callable[[], None] = staticmethod(lambda: None)

    def visit_before_all_stage(self, stage: stages.BeforeAllStage, plan: EvaluatablePlan) -> None:
        self.check()
        super().visit_before_all_stage(stage, plan)

    def visit_physical_layer_schema_creation_stage(
        self, stage: PhysicalLayerSchemaCreationStage, plan: EvaluatablePlan
    ) -> None:
        self.check()
        super().visit_physical_layer_schema_creation_stage(stage, plan)

    def visit_physical_layer_update_stage(
        self, stage: stages.PhysicalLayerUpdateStage, plan: EvaluatablePlan
    ) -> None:
        self.check()
        super().visit_physical_layer_update_stage(stage, plan)

    def visit_migrate_schemas_stage(
        self, stage: stages.MigrateSchemasStage, plan: EvaluatablePlan
    ) -> None:
        self.check()
        super().visit_migrate_schemas_stage(stage, plan)

    def visit_after_all_stage(self, stage: stages.AfterAllStage, plan: EvaluatablePlan) -> None:
        self.check()
        super().visit_after_all_stage(stage, plan)

    def visit_create_snapshot_records_stage(
        self, stage: CreateSnapshotRecordsStage, plan: EvaluatablePlan
    ) -> None:
        known = self.state_sync.snapshots_exist(each.snapshot_id for each in stage.snapshots)
        new = [each for each in stage.snapshots if each.snapshot_id not in known]
        if new:
            super().visit_create_snapshot_records_stage(replace(stage, snapshots=new), plan)

    def visit_environment_record_update_stage(
        self, stage: stages.EnvironmentRecordUpdateStage, plan: EvaluatablePlan
    ) -> None:
        with self.promotion():
            super().visit_environment_record_update_stage(stage, plan)

    def visit_virtual_layer_update_stage(
        self, stage: stages.VirtualLayerUpdateStage, plan: EvaluatablePlan
    ) -> None:
        with self.promotion():
            # Making views on Spark takes time; no transaction on the state should wait for it.
            pass
        super().visit_virtual_layer_update_stage(stage, plan)


@dataclass(frozen=True)
class PartOfSqlmeshPlan:
    """The part of a plan that a probe builds: a range of each of these snapshots, and views that
    they read.
    """

    batches: Mapping[SnapshotId, tuple[int, int]]
    views: Collection[SnapshotId]

    def __contains__(self, snapshot: Snapshot) -> bool:
        return snapshot.snapshot_id in self.batches or snapshot.snapshot_id in self.views

    def narrow_stage(self, stage: BackfillStage) -> BackfillStage:
        """Limits a stage to this part, without intervals that are already built."""
        wanted: dict[Snapshot, list[tuple[int, int]]] = {}
        for snapshot, missing in stage.snapshot_to_intervals.items():
            if snapshot.snapshot_id in self.views:
                wanted[snapshot] = list(missing)
            elif snapshot.snapshot_id in self.batches:
                low, high = self.batches[snapshot.snapshot_id]
                cut = [(max(low, start), min(high, end)) for start, end in missing]
                if left := [(start, end) for start, end in cut if start < end]:
                    wanted[snapshot] = left
        return replace(
            stage,
            snapshot_to_intervals=wanted,
            selected_snapshot_ids={snapshot.snapshot_id for snapshot in wanted},
        )


class ProbingSqlmeshEvaluator(LeasedSqlmeshEvaluator):
    """SQLMesh's evaluator for a part of a plan: it records and builds only the snapshots of that
    part.

    A snapshot that is not built stays new to the state. For new snapshots SQLMesh computes previews
    and runs changed audits on existing data; it would not do so once they are recorded.

    Statements before everything run, because models may need what they set up, and because a first
    apply runs them, too, before any view of the environment exists. Left out are: the environment's
    record and its views, because half a plan is no environment; statements after everything, which
    may need these; audits of data that was built before, which show nothing about costs. The apply
    that follows does all of it. (`BuiltInPlanEvaluator`)
    """

    part = PartOfSqlmeshPlan({}, ())

    def visit_create_snapshot_records_stage(
        self, stage: CreateSnapshotRecordsStage, plan: EvaluatablePlan
    ) -> None:
        super().visit_create_snapshot_records_stage(self._narrow_stage(stage), plan)

    def visit_physical_layer_schema_creation_stage(
        self, stage: PhysicalLayerSchemaCreationStage, plan: EvaluatablePlan
    ) -> None:
        super().visit_physical_layer_schema_creation_stage(self._narrow_stage(stage), plan)

    def visit_backfill_stage(self, stage: BackfillStage, plan: EvaluatablePlan) -> None:
        super().visit_backfill_stage(self.part.narrow_stage(stage), plan)

    def _narrow_stage(self, stage: SnapshotStage) -> SnapshotStage:
        return replace(stage, snapshots=[each for each in stage.snapshots if each in self.part])

    def _leave_out(self, stage: Any, plan: EvaluatablePlan) -> None:
        pass

    visit_physical_layer_update_stage = _leave_out
    visit_audit_only_run_stage = _leave_out
    visit_restatement_stage = _leave_out
    visit_environment_record_update_stage = _leave_out
    visit_migrate_schemas_stage = _leave_out
    visit_unpause_stage = _leave_out
    visit_virtual_layer_update_stage = _leave_out
    visit_finalize_environment_stage = _leave_out
    visit_after_all_stage = _leave_out


def make_sqlmesh_evaluator(
    context: Context,
    console: Console,
    on_audits: AuditListener,
    *,
    max_workers: int | None,
    promotion: StateFence,
    fence: StateFence = nullcontext,
    check: Callable[[], None] = lambda: None,
    on_table_written: WriteListener = lambda _snapshot: None,
    around_batch: AroundBatch = lambda _snapshot, _span: nullcontext(),
    part: PartOfSqlmeshPlan | None = None,
) -> BuiltInPlanEvaluator:
    """Makes the evaluator of a plan's stages, with our console and our scheduler.

    Args:
        max_workers: How many batches run at once; None takes the connection's setting.
        promotion: Entered around the write that promotes the environment in the state, and once
            more before its views are made. What it raises stops the plan.
        fence: Entered around every other write to the state.
        check: Called before each stage that writes on Spark. What it raises stops the plan.
        on_table_written: Called when a batch is in its table; also before an audit of data that
            was already there.
        around_batch: Entered around each batch.
        part: What to build; None: all of it, and the environment.
    """

    state: Any = FencedSqlmeshState(context.state_sync, fence)

    def make_scheduler(snapshots: Iterable[Snapshot], evaluator: SnapshotEvaluator) -> Scheduler:
        return RecordingSqlmeshScheduler(
            snapshots,
            evaluator,
            state,
            default_catalog=context.default_catalog,
            max_workers=max_workers or context.concurrent_tasks,
            console=console,
            on_audits=on_audits,
            on_table_written=on_table_written,
            around_batch=around_batch,
        )

    kind = LeasedSqlmeshEvaluator if part is None else ProbingSqlmeshEvaluator
    evaluator = kind(
        state_sync=state,
        snapshot_evaluator=context.snapshot_evaluator,
        create_scheduler=make_scheduler,
        default_catalog=context.default_catalog,
        console=console,
    )
    evaluator.promotion = promotion
    evaluator.check = check
    if isinstance(evaluator, ProbingSqlmeshEvaluator) and part is not None:
        evaluator.part = part
    return evaluator
