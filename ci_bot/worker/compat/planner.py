"""SQLMesh's planner and the evaluator of its plans."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlmesh
from sqlglot import exp
from sqlmesh.core.console import Console
from sqlmesh.core.constants import EPOCH
from sqlmesh.core.context import Context
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.core.plan import BuiltInPlanEvaluator, Plan, PlanBuilder
from sqlmesh.core.plan.common import should_force_rebuild
from sqlmesh.core.scheduler import Scheduler
from sqlmesh.core.selector import parse
from sqlmesh.core.snapshot import (
    Snapshot,
    SnapshotEvaluator,
    SnapshotId,
)
from sqlmesh.utils import UniqueKeyDict
from sqlmesh.utils.dag import DAG
from sqlmesh.utils.date import make_exclusive, to_timestamp
from sqlmesh.utils.errors import NodeAuditsErrors

from ci_bot.errors import BadInput
from ci_bot.worker.compat.shortcuts.stored_nodes import loaded_nodes


def plan_builder(context: Context, environment: str, **options: Any) -> PlanBuilder:
    """SQLMesh's plan builder with these options; None is not handed on.

    Older versions do not have all of them. (`Context.plan_builder`)

    Raises:
        BadInput: one was asked for that the installed version does not know.
    """
    asked = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(asked.keys() - inspect.signature(context.plan_builder).parameters.keys())
    if unknown:
        named = ", ".join(f"`{name.replace('_', '-')}`" for name in unknown)
        raise BadInput(
            f"SQLMesh {sqlmesh.__version__} does not know {named}.",
            hint="Leave it out, or pin a newer version in `requirements`.",
        )
    with loaded_nodes(context):
        return context.plan_builder(environment, **asked)


def prod_interval_ends(context: Context) -> dict[str, datetime]:
    """How far prod's tables reach, by model name; empty without prod.

    The frontier of a plan is the latest of them. (`_get_max_interval_end_per_model`, which looks at
    snapshots only to find what some models read)
    """
    ends: dict[str, datetime] = context._get_max_interval_end_per_model({}, None)
    return ends


def previews_forward_only(context: Context) -> bool:
    """Whether plans of this project compute previews of forward-only models.

    (`_plan_preview_enabled`)
    """
    return bool(context._plan_preview_enabled)


def keep_model_caps(builder: PlanBuilder) -> None:
    """Keeps every model's own end at prod's frontier, or at the plan's end where that is earlier.

    With an explicit `end` SQLMesh drops the caps per model (`override_end`), and then backfills
    unmodified models into the very tables that prod reads. Where it has caps, it takes them and not
    the plan's end, so they must not be later. (`missing_intervals`)
    """
    builder.override_end = False
    if builder.end is not None:
        end = make_exclusive(builder.end)
        caps = builder._end_override_per_model or {}
        builder._end_override_per_model = {name: min(cap, end) for name, cap in caps.items()}


def expand_selection(context: Context, text: str) -> set[str]:
    """The models that one selection stands for, by fully qualified name.

    (`GenericContext._new_selector`)
    """
    found: set[str] = context._new_selector().expand_model_selections([text])
    return found


def parse_selection(text: str) -> None:
    """Reads one selection and gives nothing.

    Raises:
        Exception: SQLMesh cannot read it; its parser raises more than one kind.

    (`sqlmesh.core.selector.parse`)
    """
    parse(f"({text})")


def selector_of(
    context: Context, models: Mapping[str, Any], *, lineage: bool
) -> Callable[..., Any]:
    """What expands a list of selections over some models, by fully qualified name.

    Args:
        lineage: Whether a selection asks for what models read, or what reads them. Of a stored
            model that has to be computed.

    (`GenericContext._new_selector`)
    """
    known: UniqueKeyDict[str, Any] = UniqueKeyDict("models", **models)
    dag: DAG[str] = DAG()
    for name, model in models.items() if lineage else ():
        dag.add(name, model.depends_on)
    selector = context._new_selector(models=known, dag=dag)

    def expand(selections: Sequence[str]) -> set[str]:
        found: set[str] = selector.expand_model_selections(selections, models=dict(models))
        return found & models.keys()

    return expand


@dataclass(frozen=True)
class RefusedChange:
    """A model whose table a plan would have to alter, and the statements that would do it."""

    model: str
    statements: tuple[str, ...]


def note_refused_changes(builder: PlanBuilder) -> list[RefusedChange]:
    """A list that gets the change for which `build` refuses a destructive or additive change.

    The exception names neither the model nor the columns, only the console is told.
    (`PlanBuilder._check_destructive_additive_changes`)
    """
    refused: list[RefusedChange] = []
    told: Any = builder._console

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return getattr(told, name)

        def log_destructive_change(
            self, model: str, operations: Any, dialect: str, error: bool = True
        ) -> None:
            if error:
                told = tuple(operation.expression.sql(dialect) for operation in operations)
                refused.append(RefusedChange(model, told))

        log_additive_change = log_destructive_change

    listening: Any = Noting()
    builder._console = listening
    return refused


def inherits_intervals(old: Snapshot, new: Snapshot) -> bool:
    """Whether a new snapshot starts with the data of the one that it replaces: the same version,
    and nothing that has to be filled anew. (`PlanBuilder._adjust_snapshot_intervals`)
    """
    same = bool(new.version) and old.version_get_or_generate() == new.version
    return same and new.is_model and old.is_model and not should_force_rebuild(old, new)


def first_restatements(builder: PlanBuilder, plan: Plan) -> dict[SnapshotId, tuple[int, int]]:
    """What `plan` restates when it is applied for the first time, previews included.

    SQLMesh computes previews of forward-only models whose snapshots are new to the state, so once
    they are recorded the same plan restates nothing. (`PlanBuilder._build_restatements`)
    """
    if builder._restate_models:
        return dict(plan.restatements)
    diff = plan.context_diff
    changed = {
        s_id: snapshot
        for s_id, snapshot in diff.snapshots.items()
        if s_id in diff.added or snapshot.name in diff.modified_snapshots
    }
    builder._context_diff = diff.model_copy(update={"new_snapshots": changed})
    try:
        return dict(
            builder._build_restatements(builder._build_dag(), plan._earliest_interval_start)
        )
    finally:
        builder._context_diff = diff


def plan_models_to_backfill(plan: Plan, names: set[str]) -> Plan:
    """The same plan, restricted to building data for `names`. Views are not restricted."""
    restricted: Plan = plan.model_copy(update={"models_to_backfill": names})
    return restricted


@dataclass(frozen=True)
class AuditQuestion:
    """What an audit asked of a model's table over a range of time, to be put to another table.

    (`SnapshotEvaluator._audit`)
    """

    snapshot: Snapshot
    audit: Any
    arguments: Mapping[str, Any]
    start: int
    end: int
    execution_time: Any

    def over(self, other: AuditQuestion | None) -> AuditQuestion:
        """The same over both ranges, and what lies between them."""
        if other is None:
            return self
        return replace(self, start=min(self.start, other.start), end=max(self.end, other.end))

    def sql(self, adapter: Any, tables: Mapping[str, str]) -> str:
        """A query of how many rows the audit finds, with these tables (quoted names, as SQL) in
        the place of models (fully qualified names).

        Raises:
            KeyError: the audit's own model is none of them.
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
    """One audit of one batch; `failed_rows` is None where the audit was skipped."""

    audit: str
    blocking: bool
    failed_rows: int | None
    question: AuditQuestion | None = None


AuditListener = Callable[[Snapshot, Sequence[AuditOutcome]], None]
# Entered around one batch, in the thread that computes it, with the range in milliseconds.
AroundBatch = Callable[[Snapshot, tuple[int, int]], AbstractContextManager[None]]


class RecordingScheduler(Scheduler):
    """SQLMesh's scheduler, which also hands on the result of every audit.

    It has no notification targets: an apply to a PR environment must not ring the alarms that the
    project configured for prod. (`Scheduler._audit_snapshot`, `Scheduler.evaluate`)
    """

    def __init__(
        self, *args: Any, on_audits: AuditListener, around_batch: AroundBatch, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._on_audits = on_audits
        self._around_batch = around_batch

    def evaluate(
        self, snapshot: Snapshot, start: Any, end: Any, *args: Any, **kwargs: Any
    ) -> list[Any]:
        with self._around_batch(snapshot, (to_timestamp(start), to_timestamp(end))):
            results: list[Any] = super().evaluate(snapshot, start, end, *args, **kwargs)
        return results

    def _audit_snapshot(self, snapshot: Snapshot, *args: Any, **kwargs: Any) -> list[Any]:
        def question(result: Any) -> AuditQuestion | None:
            if not snapshot.is_model:
                return None
            return AuditQuestion(
                snapshot,
                result.audit,
                result.audit_args,
                to_timestamp(kwargs.get("start") or EPOCH),
                to_timestamp(kwargs.get("end") or EPOCH),
                kwargs.get("execution_time"),
            )

        try:
            results: list[Any] = super()._audit_snapshot(snapshot, *args, **kwargs)
        except NodeAuditsErrors as error:
            failed = [AuditOutcome(item.audit_name, True, int(item.count)) for item in error.errors]
            self._on_audits(snapshot, failed)
            raise
        self._on_audits(
            snapshot,
            [
                AuditOutcome(
                    result.audit.name,
                    bool(result.blocking),
                    None if result.skipped else int(result.count or 0),
                    question(result),
                )
                for result in results
            ],
        )
        return results


class LeasedPlanEvaluator(BuiltInPlanEvaluator):
    """SQLMesh's evaluator, which asks before it promotes: a circuit breaker is asked between
    batches only. (`visit_environment_record_update_stage`, `visit_virtual_layer_update_stage`)
    """

    promotion: Callable[[], AbstractContextManager[None]] = nullcontext

    def visit_environment_record_update_stage(self, stage: Any, plan: Any) -> None:
        with self.promotion():
            super().visit_environment_record_update_stage(stage, plan)

    def visit_virtual_layer_update_stage(self, stage: Any, plan: Any) -> None:
        with self.promotion():
            # The views take their time on Spark; no transaction on the state waits for that.
            pass
        super().visit_virtual_layer_update_stage(stage, plan)


def plan_evaluator(
    context: Context,
    console: Console,
    on_audits: AuditListener,
    *,
    max_workers: int | None,
    promotion: Callable[[], AbstractContextManager[None]],
    around_batch: AroundBatch = lambda _snapshot, _span: nullcontext(),
) -> BuiltInPlanEvaluator:
    """What executes a plan's stages, with our console and our scheduler.

    Args:
        max_workers: How many batches run at once; None takes the connection's setting.
        promotion: Entered around the write that promotes the environment in the state, and once
            more before its views are made. What it raises stops the plan.
        around_batch: Entered around each batch.
    """

    def scheduler(snapshots: Iterable[Snapshot], evaluator: SnapshotEvaluator) -> Scheduler:
        return RecordingScheduler(
            snapshots,
            evaluator,
            context.state_sync,
            default_catalog=context.default_catalog,
            max_workers=max_workers or context.concurrent_tasks,
            console=console,
            on_audits=on_audits,
            around_batch=around_batch,
        )

    evaluator = LeasedPlanEvaluator(
        state_sync=context.state_sync,
        snapshot_evaluator=context.snapshot_evaluator,
        create_scheduler=scheduler,
        default_catalog=context.default_catalog,
        console=console,
    )
    evaluator.promotion = promotion
    return evaluator
