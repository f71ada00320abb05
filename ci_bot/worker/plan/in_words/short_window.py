"""Why a PR environment gets less history than prod: what set the beginning of its plan.

Without a start SQLMesh builds each new version from the model's own beginning. It sets one itself,
the newest interval only, where an environment would otherwise compute history that prod never
takes over. (`PlanBuilder.__init__`, `Context._calculate_start_override_per_model`)
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh.core.snapshot import Snapshot, SnapshotId

from ci_bot.contracts.documents.plan import ShortWindow, WindowCause
from ci_bot.worker.plan import first_build
from ci_bot.worker.plan.planning import Interval, Planned, PlanRequest
from ci_bot.worker.words import times
from ci_bot.worker.words.names import Names


def short_window(
    planned: Planned,
    plan_request: PlanRequest,
    built: Mapping[SnapshotId, list[Interval]],
    names: Names,
    *,
    previews: bool,
) -> ShortWindow | None:
    """What shortens the environment's history; None where every model gets all of its own.

    Args:
        plan_request: What a person asked for; SQLMesh set the rest.
        built: What the environment gets.
        previews: Whether the project has previews of forward-only models.
    """
    late = first_build.begins_late(planned, dict(built))
    if not late and not (plan_request.end and built):
        return None
    cause, models = _cause(planned, plan_request, previews=previews) if late else ("end", [])
    if cause is None:
        return None
    intervals = [
        interval
        for s_id, found in built.items()
        if planned.snapshots[s_id].is_incremental
        for interval in found
    ]
    return ShortWindow(
        cause=cause,
        models=sorted(names.of(snapshot.name) for snapshot in models),
        start=times.iso(min(start for start, _ in intervals)) if intervals and late else None,
        end=times.iso(max(end for _, end in intervals)) if intervals else None,
    )


def _cause(
    planned: Planned, plan_request: PlanRequest, *, previews: bool
) -> tuple[WindowCause | None, list[Snapshot]]:
    """In the order in which SQLMesh asks."""
    plan = planned.plan
    changed = [snapshot for snapshot in planned.changed if snapshot.is_model]
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
