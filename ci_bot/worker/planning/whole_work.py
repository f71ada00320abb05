"""The work of a whole plan, as if nothing of its new versions had been built before.

The report shows the whole plan, even after an apply that built a part of it, so that the decision
on a plan is the same before, during and after. SQLMesh's `missing_intervals` has only the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlmesh.core.snapshot import Snapshot, SnapshotId, start_date

from ci_bot.protocol.plan import ShortWindow, WindowCause
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning import make_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, Interval, PlanRequest


def list_planned_environment_build(planned: BuiltPlan) -> dict[SnapshotId, list[Interval]]:
    """Lists the intervals of the PR environment's tables and views, each up to prod's frontier."""
    plan = planned.plan
    if plan.skip_backfill or plan.uncategorized:
        return {}
    snapshots = [
        snapshot
        for snapshot in planned.changed_snapshots
        if snapshot.is_model
        and not snapshot.is_symbolic
        # Metadata changes share prod's table, which an environment never writes.
        and not planned.shares_prod_table(snapshot)
        and plan.is_selected_for_backfill(snapshot.name)
    ]
    return _list_planned_intervals_to_build(planned, snapshots)


def list_planned_prod_build(
    as_prod: BuiltPlan, missing: Mapping[SnapshotId, list[Interval]]
) -> dict[SnapshotId, list[Interval]]:
    """Lists the intervals that the same head, planned against prod, builds in prod.

    Args:
        missing: The intervals that the plan would build now. For unchanged models, whose gaps it
            fills, these are the whole work.
    """
    whole = _list_planned_intervals_to_build(
        as_prod, [s for s in as_prod.changed_snapshots if s.is_model and not s.is_symbolic]
    )
    changed = {snapshot.snapshot_id for snapshot in as_prod.changed_snapshots}
    return whole | {s_id: found for s_id, found in missing.items() if s_id not in changed}


def plan_begins_late(planned: BuiltPlan, built: dict[SnapshotId, list[Interval]]) -> bool:
    """Whether an incremental model gets less than its history, because the plan begins after it."""
    snapshots, starts = dict(planned.plan_snapshots), dict[str, datetime]()
    for s_id, intervals in built.items():
        snapshot = planned.plan_snapshots[s_id]
        if not snapshot.is_incremental or not intervals:
            continue
        own = start_date(snapshot, snapshots, starts, relative_to=planned.plan.execution_time)
        unit = snapshot.node.interval_unit
        if intervals[0][0] > report_times.to_milliseconds(unit.cron_floor(own)):
            return True
    return False


def _list_planned_intervals_to_build(
    planned: BuiltPlan, snapshots: Iterable[Snapshot]
) -> dict[SnapshotId, list[Interval]]:
    return make_plan.list_missing_intervals_of_plan(
        planned,
        [_copy_planned_snapshot_unbuilt(planned, snapshot) for snapshot in snapshots],
        planned.plan.end_override_per_model,
    )


def _copy_planned_snapshot_unbuilt(planned: BuiltPlan, snapshot: Snapshot) -> Snapshot:
    """Copies a changed snapshot with the intervals that the planner first gives a version.

    A new version has none; one that shares prod's table has prod's. SQLMesh does the same in
    `PlanBuilder._adjust_snapshot_intervals`, but only until the snapshot is recorded.
    """
    copy = make_plan.copy_planned_snapshot_without_intervals(snapshot)
    _, old = planned.plan.context_diff.modified_snapshots.get(snapshot.name, (None, None))
    if old is not None and sqlmesh_compat.sqlmesh_snapshot_inherits_intervals(old, snapshot):
        copy.merge_intervals(old)
        if snapshot.is_forward_only:
            copy.dev_intervals = copy.intervals.copy()
    return copy


# Why a PR environment gets less history than prod: the setting behind its plan's start.
#
# Without a start SQLMesh builds each new version from the model's own beginning. It sets the start
# itself, to the newest interval, if an environment would otherwise compute history that prod never
# uses. (`PlanBuilder.__init__`, `Context._calculate_start_override_per_model`)


def find_short_window_of_plan(
    planned: BuiltPlan,
    plan_request: PlanRequest,
    built: Mapping[SnapshotId, list[Interval]],
    names: MessageNames,
    *,
    previews: bool,
) -> ShortWindow | None:
    """Finds the setting that shortens the environment's history; None if every model gets all of
    it.

    Args:
        plan_request: The options that a person gave; SQLMesh chose the rest.
        built: The intervals that the environment gets.
        previews: Whether the project has previews of forward-only models.
    """
    late = plan_begins_late(planned, dict(built))
    if not late and not (plan_request.end and built):
        return None
    cause, models = (
        _find_cause_of_short_plan_window(planned, plan_request, previews=previews)
        if late
        else ("end", [])
    )
    if cause is None:
        return None
    intervals = [
        interval
        for s_id, found in built.items()
        if planned.plan_snapshots[s_id].is_incremental
        for interval in found
    ]
    return ShortWindow(
        cause=cause,
        models=sorted(names.short_name(snapshot.name) for snapshot in models),
        start=report_times.format_iso_in_message(min(start for start, _ in intervals))
        if intervals and late
        else None,
        end=report_times.format_iso_in_message(max(end for _, end in intervals))
        if intervals
        else None,
    )


def _find_cause_of_short_plan_window(
    planned: BuiltPlan, plan_request: PlanRequest, *, previews: bool
) -> tuple[WindowCause | None, list[Snapshot]]:
    """Returns the cause and the snapshots that it shortens, in the order of SQLMesh's own
    checks.
    """
    plan = planned.plan
    changed = [snapshot for snapshot in planned.changed_snapshots if snapshot.is_model]
    if plan_request.start:
        return "start", []
    if plan.provided_start is None:
        return ("min_intervals", []) if plan.start_override_per_model else (None, [])
    if any(not snapshot.virtual_environment_mode.is_full for snapshot in changed):
        return "virtual_environment_mode", []
    if plan.forward_only:
        return "forward_only_plan", []
    forward_only = [snapshot for snapshot in changed if snapshot.model.forward_only]
    if forward_only and previews:
        return "forward_only_model", forward_only
    return "auto_restatement", [s for s in changed if s.model.auto_restatement_cron is not None]
