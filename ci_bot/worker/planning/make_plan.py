"""Makes a plan of a loaded project that is pinned in time and compared with prod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.plan import Plan
from sqlmesh.core.plan.definition import EvaluatablePlan
from sqlmesh.core.plan.stages import PlanStage, build_plan_stages
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot, SnapshotChangeCategory, SnapshotId
from sqlmesh.core.snapshot.definition import missing_intervals
from sqlmesh.core.state_sync import StateReader
from sqlmesh.utils.errors import NoChangesPlanError, PlanError

from ci_bot.errors import BadInput
from ci_bot.protocol.plan import Category, Window
from ci_bot.protocol.plan_identity import PlanFlags, PlanOption
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning import plan_options
from ci_bot.worker.planning.plan_options import PlanOptions, name_plan_option

if TYPE_CHECKING:
    from sqlmesh.core.config import CategorizerConfig
    from sqlmesh.core.context import Context

    from ci_bot.protocol.environment import EnvironmentName

# The plan as SQLMesh executes it, with the audits that an earlier attempt did not pass.


def make_evaluatable_plan(plan: Plan, state_reader: StateReader) -> EvaluatablePlan:
    """Makes the plan that SQLMesh evaluates. Reads the state; writes nothing.

    SQLMesh runs changed audits on existing data only for new snapshots, and an apply records its
    snapshots before it runs them. If such an audit stops an apply, the next try would promote
    without that audit. So a snapshot with a metadata change counts as new until the environment has
    it. (`PlanStagesBuilder._get_audit_only_snapshots`)
    """
    found = plan.to_evaluatable()
    unproven = _list_unaudited_snapshots(plan, found, state_reader)
    if not unproven:
        return found
    return found.copy(update={"new_snapshots": [*found.new_snapshots, *unproven]})


def _list_unaudited_snapshots(
    plan: Plan, found: EvaluatablePlan, state_reader: StateReader
) -> list[Snapshot]:
    new = {snapshot.snapshot_id for snapshot in found.new_snapshots}
    recorded = [
        snapshot
        for snapshot_id in sorted(found.metadata_updated_snapshots)
        if snapshot_id not in new
        and (snapshot := plan.snapshots.get(snapshot_id)) is not None
        and snapshot.is_metadata
    ]
    if not recorded:
        return []
    environment = state_reader.get_environment(found.environment.name)
    promoted = {info.snapshot_id for info in environment.snapshots} if environment else set()
    return [snapshot for snapshot in recorded if snapshot.snapshot_id not in promoted]


Interval = tuple[int, int]
# Missing intervals by snapshot: ranges in milliseconds, oldest first.
Missing = Mapping[SnapshotId, Sequence[Interval]]

_CATEGORIES: Mapping[SnapshotChangeCategory, Category] = {
    SnapshotChangeCategory.BREAKING: "breaking",
    SnapshotChangeCategory.NON_BREAKING: "non_breaking",
    SnapshotChangeCategory.FORWARD_ONLY: "forward_only",
    SnapshotChangeCategory.INDIRECT_BREAKING: "indirect_breaking",
    SnapshotChangeCategory.INDIRECT_NON_BREAKING: "indirect_non_breaking",
    SnapshotChangeCategory.METADATA: "metadata",
}


@dataclass(frozen=True)
class PlanRequest:
    """The options of a plan. `window` pins it to a plan that was reviewed.

    `said` are the options that somebody gave, for messages; for `categorizer` see `PlanOptions`.
    """

    environment: EnvironmentName
    flags: PlanFlags
    start: str | None = None
    end: str | None = None
    execution_time: str | None = None
    window: Window | None = None
    categorizer: CategorizerConfig | None = None
    said: tuple[PlanOption, ...] = ()

    @classmethod
    def from_options(
        cls,
        environment: EnvironmentName,
        options: PlanOptions,
        *,
        execution_time: str | None = None,
        window: Window | None = None,
    ) -> PlanRequest:
        """Makes the request for a plan with these options."""
        return cls(
            environment=environment,
            flags=options.flags,
            start=options.start,
            end=options.end,
            execution_time=execution_time,
            window=window,
            categorizer=options.categorizer,
            said=options.said,
        )


@dataclass(frozen=True)
class BuiltPlan:
    """A plan with the facts that depend on the moment when it was built.

    `versions_in_prod` holds the table versions (model name, version) that prod references, and
    `restatements` the ranges that a first apply computes again, previews included.
    """

    plan: Plan
    window: Window
    flags: PlanFlags
    deployable: DeployabilityIndex
    versions_in_prod: frozenset[tuple[str, str]]
    restatements: Mapping[SnapshotId, Interval]
    notes: tuple[str, ...]
    categorizer: CategorizerConfig | None = None

    @property
    def plan_snapshots(self) -> Mapping[SnapshotId, Snapshot]:
        snapshots: Mapping[SnapshotId, Snapshot] = self.plan.snapshots
        return snapshots

    @property
    def changed_snapshots(self) -> list[Snapshot]:
        """Added and modified snapshots, in the order of their names."""
        diff = self.plan.context_diff
        return sorted(
            (
                snapshot
                for snapshot in self.plan_snapshots.values()
                if snapshot.snapshot_id in diff.added or snapshot.name in diff.modified_snapshots
            ),
            key=lambda snapshot: str(snapshot.name),
        )

    def list_missing(self) -> dict[SnapshotId, list[Interval]]:
        """Lists the intervals that are still to be built. They change when the plan's stages are
        built, and when it is applied.
        """
        return {item.snapshot_id: list(item.intervals) for item in self.plan.missing_intervals}

    def shares_prod_table(self, snapshot: Snapshot) -> bool:
        """Whether evaluating `snapshot` would write into a table that prod references."""
        return bool(
            snapshot.version
            and (snapshot.name, snapshot.version) in self.versions_in_prod
            and self.deployable.is_deployable(snapshot)
        )


def plan_against_prod(context: Context, plan_request: PlanRequest) -> BuiltPlan | None:
    """Builds the plan of a PR environment, compared with prod; None if nothing changed.

    Nothing in state or warehouse is written. `end` never reaches beyond prod's frontier, and every
    model keeps its own frontier, so that no prod table is extended.

    Raises:
        BadInput: a date is invalid, or start comes after end; a model does not exist; models of
            another project would be removed.
        SQLMeshError: SQLMesh refuses the plan.
    """
    plan_options.check_models_of_plan_options(context, plan_request.flags)
    names = MessageNames(context.default_catalog, context.default_dialect)
    frontier = find_prod_frontier_of_plan(context)
    execution = _choose_execution_time_of_plan(plan_request, frontier)
    last = min(frontier, execution) if frontier else execution
    start, end, notes = _resolve_plan_range(plan_request, last, execution)
    flags = plan_request.flags
    try:
        builder = sqlmesh_compat.make_sqlmesh_plan_builder(
            context,
            plan_request.environment,
            start=start,
            end=end,
            execution_time=execution,
            skip_tests=True,
            skip_linter=True,
            restate_models=flags.restate_models or None,
            always_include_local_changes=True if flags.restate_models else None,
            select_models=flags.select_models or None,
            allow_destructive_models=flags.allow_destructive or None,
            categorizer_config=plan_request.categorizer,
            # Without these two the project's own setting would apply again.
            forward_only=flags.forward_only,
            include_unmodified=flags.include_unmodified,
            skip_backfill=flags.skip_backfill or None,
            min_intervals=flags.min_intervals or None,
            preview_start=_resolve_preview_start_of_plan(plan_request, execution),
            preview_min_intervals=flags.preview_min_intervals or None,
        )
        sqlmesh_compat.let_sqlmesh_keep_model_caps(builder)
        given = sqlmesh_compat.let_sqlmesh_give_last_intervals(builder)
        refused = sqlmesh_compat.note_changes_that_sqlmesh_refuses(builder)
        plan = sqlmesh_compat.build_sqlmesh_plan(builder)
    except NoChangesPlanError:
        return None
    except PlanError as error:
        unknown = plan_options.explain_empty_selection_of_plan(error, flags)
        raise unknown or plan_options.describe_refusal_of_plan(error, refused, names) from error
    if sqlmesh_compat.is_sqlmesh_state_shared(context):
        keys = [str(config.project or "") for config in context.configs.values()]
        plan_options.check_plan_removes_no_foreign_model(context, plan, keys, names)
    plan_options.check_restated_models_of_plan(plan, flags.restate_models, names)
    if plan_changes_nothing(plan) and not flags.include_unmodified and not flags.restate_models:
        return None
    if flags.include_unmodified or flags.restate_models:
        plan = sqlmesh_compat.limit_sqlmesh_backfill(plan, list_planned_models_with_upstream(plan))
    notes.extend(_note_intervals_longer_than_plan(plan, given, names))
    pinned_start = plan.provided_start
    return BuiltPlan(
        plan=plan,
        window=Window(
            start=report_times.format_iso_in_message(pinned_start)
            if pinned_start is not None
            else None,
            end=report_times.format_iso_in_message(end),
            execution_time=report_times.format_iso_in_message(execution),
        ),
        flags=flags,
        deployable=plan.deployability_index,
        versions_in_prod=list_prod_versions_for_plan(context.state_reader),
        restatements=sqlmesh_compat.list_first_restatements_of_sqlmesh(builder, plan),
        notes=tuple(notes),
        categorizer=plan_request.categorizer,
    )


def _note_intervals_longer_than_plan(
    plan: Plan, given: Mapping[str, Interval], names: MessageNames
) -> list[str]:
    """Notes the models whose interval is longer than the plan's window, one sentence each."""
    # A metadata change keeps prod's table with all its data.
    own = {
        s.name
        for s in plan.snapshots.values()
        if not s.is_metadata and plan.is_selected_for_backfill(s.name) and not plan.skip_backfill
    }
    found = [
        f"The plan's window holds no whole interval of `{names.short_name(name)}`: it gets its "
        f"last one, {report_times.format_iso_in_message(start)[:10]} to "
        f"{report_times.format_iso_in_message(end)[:10]}."
        for name, (start, end) in sorted(given.items())
        if name in own
    ]
    if plan.provided_start is None or plan.skip_backfill or plan.uncategorized:
        return found
    return found + [
        f"`{names.short_name(name)}` gets no data: the plan's window holds no whole interval of "
        "it. With `min-intervals: 1` or an earlier `start` it gets one; until then neither it nor "
        "what reads it can be compared with prod."
        for name in list_planned_models_without_data(plan)
    ]


def list_planned_models_without_data(plan: Plan) -> list[str]:
    """Lists changed incremental models with their own table for which the plan builds nothing, and
    for which nothing was built before; by name.
    """
    diff, wanted = plan.context_diff, {item.snapshot_id for item in plan.missing_intervals}
    return sorted(
        str(snapshot.name)
        for s_id, snapshot in plan.snapshots.items()
        if (s_id in diff.added or snapshot.name in diff.modified_snapshots)
        and snapshot.is_model
        and snapshot.is_incremental
        and plan.is_selected_for_backfill(snapshot.name)
        and s_id not in wanted
        and not read_intervals_held_before_plan(snapshot, plan.deployability_index)
    )


def read_intervals_held_before_plan(
    snapshot: Snapshot, deployable: DeployabilityIndex
) -> list[Interval]:
    """Returns the intervals that an environment's table of a snapshot holds."""
    own = deployable.is_representative(snapshot)
    return list(snapshot.intervals if own else snapshot.dev_intervals)


def plan_changes_nothing(plan: Plan) -> bool:
    """Whether the plan leaves its environment as it is."""
    diff = plan.context_diff
    return not diff.has_snapshot_changes and not diff.has_environment_statements_changes


def list_planned_models_with_upstream(plan: Plan) -> set[str]:
    """Lists the changed models and all models that they read, by name, as SQLMesh backfills them by
    default.

    With include-unmodified SQLMesh would backfill the whole project, although views need no data of
    their own. With a restatement it would backfill only that, even if other changes are not built.
    """
    diff = plan.context_diff
    by_id = plan.snapshots
    stack = [
        s_id for s_id, s in by_id.items() if s_id in diff.added or s.name in diff.modified_snapshots
    ]
    names: set[str] = set()
    while stack:
        snapshot = by_id.get(stack.pop())
        if snapshot is not None and snapshot.name not in names:
            names.add(snapshot.name)
            stack.extend(snapshot.parents)
    return names


def list_prod_versions_for_plan(state_reader: StateReader) -> frozenset[tuple[str, str]]:
    """Lists the table versions that prod references, as (model name, version)."""
    prod = state_reader.get_environment(c.PROD)
    return frozenset((info.name, info.version) for info in prod.snapshots) if prod else frozenset()


def find_prod_frontier_of_plan(context: Context) -> int | None:
    """Finds how far prod's data reaches, in milliseconds; None if prod holds no data yet."""
    seeds = {name for name, model in context.models.items() if model.kind.is_seed}
    ends = [
        report_times.to_milliseconds(end)
        for name, end in sqlmesh_compat.read_prod_interval_ends_of_sqlmesh(context).items()
        if name not in seeds  # a seed's data ends when it was loaded, which is no limit
    ]
    return max(ends) if ends else None


def _choose_execution_time_of_plan(plan_request: PlanRequest, frontier: int | None) -> int:
    """Chooses the plan's execution time, in milliseconds.

    The default is the end of prod's data: the environment is then built as prod was, the two can be
    compared, and a second review of the same code gives the same plan.
    """
    if plan_request.window:
        return report_times.to_milliseconds(plan_request.window.execution_time)
    if plan_request.execution_time:
        return report_times.to_milliseconds(plan_request.execution_time)
    return (
        frontier
        if frontier is not None
        else report_times.find_start_of_day(report_times.read_milliseconds_now())
    )


def _resolve_plan_range(
    plan_request: PlanRequest, frontier: int, execution: int
) -> tuple[int | None, int, list[str]]:
    """Resolves start and end, with the report's notes on them. `1 week ago` counts from
    `execution`.
    """
    if plan_request.window:
        start = (
            report_times.to_milliseconds(plan_request.window.start)
            if plan_request.window.start
            else None
        )
        return start, report_times.to_milliseconds(plan_request.window.end or frontier), []
    notes: list[str] = []
    option = name_plan_option("start", plan_request.said)
    start, end = None, frontier
    if plan_request.start:
        start = report_times.parse_start(plan_request.start, relative_to=execution, name=option)
    if plan_request.end:
        end = report_times.parse_end(plan_request.end, relative_to=execution)
    if end > frontier:
        notes.append(
            f"`end` was moved from {report_times.format_iso_in_message(end)} to "
            f"{report_times.format_iso_in_message(frontier)}, "
            "the end of prod's data: a PR environment never extends prod's tables."
        )
        end = frontier
    if start is not None and start >= end:
        raise BadInput(
            f"`{option}` ({report_times.format_iso_in_message(start)}) is not before the end "
            f"({report_times.format_iso_in_message(end)}).",
            hint="Swap the dates, or leave `end` out to use the end of prod's data."
            if option == "start"
            else "Correct it in the configuration, or give the input `start`, which wins over it.",
            reason_code="bad_window",
        )
    return start, end, notes


def _resolve_preview_start_of_plan(plan_request: PlanRequest, execution: int) -> int | None:
    """Resolves the previews' start, in milliseconds. SQLMesh would count `yesterday` from its own
    run, and an apply on another day would build another plan.
    """
    text = plan_request.flags.preview_start
    if text is None:
        return None
    option = name_plan_option("preview-start", plan_request.said)
    return report_times.parse_start(text, relative_to=execution, name=option)


def name_plan_category(snapshot: Snapshot) -> Category:
    """Returns the report's name for the category of a changed snapshot."""
    category = snapshot.change_category
    return _CATEGORIES[category] if category is not None else "uncategorized"


def list_target_intervals_of_plan(
    planned: BuiltPlan, snapshots: Iterable[Snapshot]
) -> dict[SnapshotId, list[Interval]]:
    """Lists the intervals of each snapshot inside the plan's window, for the plan's identity.

    They depend on the window alone, not on intervals that are built already or on prod's frontier,
    which moves with each run of prod.
    """
    return list_missing_intervals_of_plan(
        planned, [copy_planned_snapshot_without_intervals(snapshot) for snapshot in snapshots], None
    )


def copy_planned_snapshot_without_intervals(snapshot: Snapshot) -> Snapshot:
    """Copies a snapshot without any interval."""
    copy: Snapshot = snapshot.copy()
    copy.intervals = []
    copy.dev_intervals = []
    return copy


def list_missing_intervals_of_plan(
    planned: BuiltPlan, wanted: Iterable[Snapshot], ends: Mapping[str, datetime] | None
) -> dict[SnapshotId, list[Interval]]:
    """Lists the intervals that the plan would build for `wanted`: copies of its snapshots whose
    intervals may differ.

    Args:
        ends: How far each model may be built, by name.
    """
    plan = planned.plan
    replaced = {snapshot.snapshot_id: snapshot for snapshot in wanted}
    if not replaced:
        return {}
    found = missing_intervals(
        _WantedSnapshotsOfPlan(planned.plan_snapshots, replaced),
        start=plan.provided_start or plan._earliest_interval_start,
        end=plan.provided_end,
        execution_time=plan.execution_time,
        restatements=dict(planned.restatements),
        deployability_index=planned.deployable,
        start_override_per_model=plan.start_override_per_model,
        end_override_per_model=dict(ends) if ends else None,
        end_bounded=plan.end_bounded,
        ignore_cron=plan.ignore_cron,
    )
    return {
        snapshot.snapshot_id: list(intervals)
        for snapshot, intervals in found.items()
        if snapshot.snapshot_id in replaced
    }


class _WantedSnapshotsOfPlan(dict[SnapshotId, Snapshot]):
    """A plan's snapshots; a loop of SQLMesh over them goes through the wanted ones only.

    SQLMesh still looks up the others, because a model without a start begins when its parents
    begin. (`missing_intervals`)
    """

    def __init__(
        self, every: Mapping[SnapshotId, Snapshot], wanted: Mapping[SnapshotId, Snapshot]
    ) -> None:
        super().__init__({**every, **wanted})
        self._wanted = wanted

    def values(self) -> ValuesView[Snapshot]:  # type: ignore[override]  # a dictionary's own type cannot be made
        return self._wanted.values()


def build_stages_of_plan(context: Context, planned: BuiltPlan) -> list[PlanStage]:
    """Builds the stages of an apply, in order. Reads the state; writes nothing.

    Building them refreshes and clears intervals on the plan's snapshots, so first compute
    everything that reads those intervals.
    """
    stages: list[PlanStage] = build_plan_stages(
        make_evaluatable_plan(planned.plan, context.state_reader),
        context.state_reader,
        context.default_catalog,
    )
    return stages
