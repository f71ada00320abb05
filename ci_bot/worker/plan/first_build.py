"""What a plan builds where nothing of its new versions was built before.

The report shows the whole plan, also after an apply that built a part of it: the same plan is
judged in the same way before, during and after. What is left to do is another question, and
SQLMesh's `missing_intervals` answers that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlmesh.core.snapshot import Snapshot, SnapshotId, start_date

from ci_bot.worker import compat
from ci_bot.worker.plan import planning
from ci_bot.worker.plan.planning import Interval, Planned
from ci_bot.worker.words import times


def of_environment(planned: Planned) -> dict[SnapshotId, list[Interval]]:
    """The tables and views of the PR environment, each up to prod's own frontier."""
    plan = planned.plan
    if plan.skip_backfill or plan.uncategorized:
        return {}
    snapshots = [
        snapshot
        for snapshot in planned.changed
        if snapshot.is_model
        and not snapshot.is_symbolic
        # Metadata changes share prod's table, which an environment never writes.
        and not planned.shares_prod_table(snapshot)
        and plan.is_selected_for_backfill(snapshot.name)
    ]
    return _build(planned, snapshots)


def of_prod(
    as_prod: Planned, missing: Mapping[SnapshotId, list[Interval]]
) -> dict[SnapshotId, list[Interval]]:
    """What the same head, planned against prod, builds in prod.

    Args:
        missing: What the plan would build now; of unchanged models, whose gaps it fills, that is
            all there is.
    """
    whole = _build(as_prod, [s for s in as_prod.changed if s.is_model and not s.is_symbolic])
    changed = {snapshot.snapshot_id for snapshot in as_prod.changed}
    return whole | {s_id: found for s_id, found in missing.items() if s_id not in changed}


def begins_late(planned: Planned, built: dict[SnapshotId, list[Interval]]) -> bool:
    """Whether an incremental model gets less than its history: the plan begins after the model."""
    snapshots, starts = dict(planned.snapshots), dict[str, datetime]()
    for s_id, intervals in built.items():
        snapshot = planned.snapshots[s_id]
        if not snapshot.is_incremental or not intervals:
            continue
        own = start_date(snapshot, snapshots, starts, relative_to=planned.plan.execution_time)
        unit = snapshot.node.interval_unit
        if intervals[0][0] > times.milliseconds(unit.cron_floor(own)):
            return True
    return False


def _build(planned: Planned, snapshots: Iterable[Snapshot]) -> dict[SnapshotId, list[Interval]]:
    return planning.missing_of(
        planned,
        [_unbuilt(planned, snapshot) for snapshot in snapshots],
        planned.plan.end_override_per_model,
    )


def _unbuilt(planned: Planned, snapshot: Snapshot) -> Snapshot:
    """A copy of a changed snapshot with the intervals that the planner gives a version at first.

    A new version has none; one that shares prod's table has prod's. SQLMesh does the same in
    `PlanBuilder._adjust_snapshot_intervals`, but only until the snapshot is recorded.
    """
    copy = planning.emptied(snapshot)
    _, old = planned.plan.context_diff.modified_snapshots.get(snapshot.name, (None, None))
    if old is not None and compat.inherits_intervals(old, snapshot):
        copy.merge_intervals(old)
        if snapshot.is_forward_only:
            copy.dev_intervals = copy.intervals.copy()
    return copy
