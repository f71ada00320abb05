"""The same head planned read-only against prod: the effect of a merge, or why it would fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.plan import Plan
from sqlmesh.core.snapshot import Snapshot, SnapshotId, merge_intervals
from sqlmesh.utils.errors import NoChangesPlanError, SQLMeshError

from ci_bot.protocol.plan import Backfill, Cost, ModelRange, ProdPlan
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, extract_sentence_of_error, report_times
from ci_bot.worker.planning import describe_plan, make_plan, whole_work
from ci_bot.worker.planning.identity import identify_prod_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, Interval

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model

Built = Mapping[SnapshotId, Sequence[Interval]]


def plan_prod(
    context: Context,
    planned: BuiltPlan,
    names: MessageNames,
    *,
    built: Built,
    estimate: Callable[[list[Backfill]], Cost],
    restated: Sequence[Backfill] = (),
    repository: Path | None = None,
) -> ProdPlan:
    """Plans prod without applying it.

    Args:
        repository: Root of the checkout, to identify the plan; None if prod is only assumed, so
            that no later plan can be the same.
        built: The intervals that the PR environment gets. Tables that prod will reuse reduce prod's
            work after an apply.
        estimate: Predicts the cost of work.
        restated: The work of restatements after the merge, which is a part of its cost.
    """
    try:
        as_prod = plan_merge(context, planned)
    except SQLMeshError as error:
        failure = shorten_redacted(extract_sentence_of_error(error), 4_000)
        return ProdPlan(changes=0, backfill=[], would_fail=True, failure=failure)
    if as_prod is None:
        return plan_restatements_alone(restated, estimate)
    plan = as_prod.plan
    diff = plan.context_diff
    count = len(diff.added) + len(diff.modified_snapshots) + len(diff.removed_snapshots)
    if plan.uncategorized:
        waiting = ", ".join(
            sorted(names.short_name(snapshot.name) for snapshot in plan.uncategorized)
        )
        return ProdPlan(
            changes=count,
            backfill=[],
            would_fail=True,
            failure=f"These changes have no category: {waiting}.",
        )

    def list_work(intervals: Built) -> list[Backfill]:
        return describe_plan.list_planned_backfill(
            as_prod, intervals, names, reused=lambda snapshot: False
        )

    missing = as_prod.list_missing()
    whole = whole_work.list_planned_prod_build(as_prod, missing)
    now = _select_changed_in_prod_plan(as_prod, missing)
    full = list_work(whole)
    next_run = list_work(_list_models_recomputed_after_merge_plan(as_prod, whole))
    return ProdPlan(
        changes=count,
        backfill=list_work(
            _list_remaining_intervals_of_prod_plan(
                missing, _list_reused_intervals_of_prod_plan(planned, built)
            )
        ),
        full_backfill=full,
        next_run=next_run,
        # `list_work` takes time, and at a first review `now` is `whole`: nothing is built yet.
        cost=estimate([*(full if now == whole else list_work(now)), *next_run, *restated]),
        held=_list_ranges_held_in_prod_plan(plan, names),
        lost=_list_ranges_lost_in_prod_plan(plan, whole, names),
        forward_only_schema_changes=sorted(
            names.short_name(snapshot.name)
            for snapshot in plan.snapshots.values()
            if _merge_plan_alters_prod_table(plan, snapshot)
        ),
        gaps=_list_gaps_in_prod_plan(plan, names),
        would_fail=False,
        plan_id=_identify_merge_plan(plan, repository),
    )


def plan_restatements_alone(
    restated: Sequence[Backfill], estimate: Callable[[list[Backfill]], Cost]
) -> ProdPlan:
    """Makes the plan of a merge that changes nothing in prod; for the arguments see `plan_prod`."""
    cost = estimate(list(restated)) if restated else None
    return ProdPlan(changes=0, backfill=[], would_fail=False, cost=cost)


def _list_models_recomputed_after_merge_plan(as_prod: BuiltPlan, whole: Built) -> Built:
    """Lists forward-only versions that share prod's table and cannot keep its data.

    A merge builds nothing for them, because the table's intervals count as built. But SQLMesh
    replaces all rows of a FULL table with each run, and a view has no rows of its own.
    (`FullRefresh`, `ViewStrategy` of `sqlmesh.core.snapshot.evaluator`)

    Returns:
        Each with the ranges that prod's table holds; its query reads at least these.
    """
    replaced = as_prod.plan.context_diff.modified_snapshots

    def list_held_intervals(snapshot: Snapshot) -> list[Interval]:
        _, old = replaced.get(snapshot.name, (None, None))
        return list(old.intervals) if old is not None else []

    return {
        snapshot.snapshot_id: list_held_intervals(snapshot)
        for snapshot in as_prod.changed_snapshots
        if snapshot.is_model
        and (snapshot.is_full or snapshot.is_view)
        and snapshot.is_forward_only
        and not snapshot.is_metadata
        and not whole.get(snapshot.snapshot_id)
    }


def plan_merge(context: Context, planned: BuiltPlan) -> BuiltPlan | None:
    """Plans the same head against prod, without a category if SQLMesh gives none; None if it
    changes nothing.

    Raises:
        SQLMeshError: SQLMesh refuses it.
    """
    try:
        builder = sqlmesh_compat.make_sqlmesh_plan_builder(
            context,
            c.PROD,
            skip_tests=True,
            skip_linter=True,
            forward_only=planned.flags.forward_only,
            allow_destructive_models=planned.flags.allow_destructive or None,
            categorizer_config=planned.categorizer,
        )
        plan: Plan = sqlmesh_compat.build_sqlmesh_plan(builder)
    except NoChangesPlanError:
        return None
    return BuiltPlan(
        plan=plan,
        window=planned.window,
        flags=planned.flags,
        deployable=plan.deployability_index,
        versions_in_prod=planned.versions_in_prod,
        restatements=plan.restatements,
        notes=(),
    )


def list_work_of_merge_plan(as_prod: BuiltPlan) -> dict[SnapshotId, list[Interval]]:
    """Lists the work that a merge costs: intervals of changed models that prod would build now, and
    tables that its next run computes whole.
    """
    missing = as_prod.list_missing()
    next_run = _list_models_recomputed_after_merge_plan(
        as_prod, whole_work.list_planned_prod_build(as_prod, missing)
    )
    return {s_id: list(ranges) for s_id, ranges in next_run.items()} | _select_changed_in_prod_plan(
        as_prod, missing
    )


def _select_changed_in_prod_plan(
    as_prod: BuiltPlan, missing: Built
) -> dict[SnapshotId, list[Interval]]:
    changed = {snapshot.snapshot_id for snapshot in as_prod.changed_snapshots}
    return {s_id: list(intervals) for s_id, intervals in missing.items() if s_id in changed}


def _identify_merge_plan(plan: Plan, repository: Path | None) -> str | None:
    """Returns the plan's id; None if nobody could ask for the same plan again, or if nothing
    changes.
    """
    if repository is None or make_plan.plan_changes_nothing(plan):
        return None
    return identify_prod_plan(plan, repository=repository).plan_id()


def _merge_plan_alters_prod_table(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether a merge changes the columns of the table that prod has now.

    SQLMesh runs the migration for every version that shares prod's table, metadata changes
    included; most of them alter nothing. Views are replaced, not altered.
    """
    if not snapshot.is_model or snapshot.is_view or not snapshot.requires_schema_migration_in_prod:
        return False
    _, old = plan.context_diff.modified_snapshots.get(snapshot.name, (None, None))
    if old is None or not old.is_model:
        return False
    before = list_built_columns_of_planned_model(old.model)
    after = list_built_columns_of_planned_model(snapshot.model)
    unknown = before is None or after is None
    return not snapshot.is_metadata if unknown else before != after


def list_built_columns_of_planned_model(model: Model) -> dict[str, str] | None:
    """Lists the columns with their types in the model's dialect; None if not known.

    A type read from the state may be a different SQLGlot type for the same engine type: SQLMesh
    makes the validity columns of a history TIMESTAMP, and Spark's dialect reads that back as one
    with a time zone.
    """
    columns = model.columns_to_types
    if columns is None:
        return None
    return {name: kind.sql(dialect=model.dialect) for name, kind in columns.items()}


def _list_reused_intervals_of_prod_plan(
    planned: BuiltPlan, built: Built
) -> dict[str, list[Interval]]:
    """Lists by model name the intervals that the PR environment builds into tables that prod will
    use.
    """
    return {
        s_id.name: list(intervals)
        for s_id, intervals in built.items()
        if planned.deployable.is_deployable(planned.plan_snapshots[s_id])
    }


def _list_remaining_intervals_of_prod_plan(
    missing: Built, reused: Mapping[str, list[Interval]]
) -> dict[SnapshotId, list[Interval]]:
    left = {
        s_id: subtract_intervals(list(intervals), reused.get(s_id.name, []))
        for s_id, intervals in missing.items()
    }
    return {s_id: intervals for s_id, intervals in left.items() if intervals}


def _list_ranges_held_in_prod_plan(plan: Plan, names: MessageNames) -> list[ModelRange]:
    """Lists the ranges that prod's tables of changed models hold; a view holds nothing."""
    return [
        _make_model_range_of_plan(names.short_name(name), interval)
        for name, (_, old) in sorted(plan.context_diff.modified_snapshots.items())
        if old.is_model and not old.is_view
        for interval in merge_intervals(list(old.intervals))
    ]


def _list_ranges_lost_in_prod_plan(
    plan: Plan, whole: Built, names: MessageNames
) -> list[ModelRange]:
    """Lists the ranges that prod's table of a changed model holds and its new table will lack.

    A model without a `start` gets one interval in a new table, whatever the old one holds; a later
    `start` or an earlier `end` shorten it, too.
    """
    lost = []
    for name, (new, old) in sorted(plan.context_diff.modified_snapshots.items()):
        if not new.is_model or not old.is_model or not (new.is_incremental and old.is_incremental):
            continue
        if old.version_get_or_generate() == new.version_get_or_generate():
            continue
        gone = subtract_intervals(list(old.intervals), list(whole.get(new.snapshot_id, ())))
        lost += [
            _make_model_range_of_plan(names.short_name(name), interval)
            for interval in merge_intervals(gone)
        ]
    return lost


def _make_model_range_of_plan(model: str, interval: Interval) -> ModelRange:
    start, end = interval
    return ModelRange(
        model=model,
        start=report_times.format_iso_in_message(start),
        end=report_times.format_iso_in_message(end),
    )


def subtract_intervals(wanted: list[Interval], built: list[Interval]) -> list[Interval]:
    """Returns the parts of `wanted` that no interval of `built` covers; both half-open.

    One pass over both lists: five-minute intervals of some years are hundreds of thousands.
    """
    remaining: list[Interval] = []
    covers = sorted(built)
    next_cover = 0
    for start, end in sorted(wanted):
        # No later interval starts before this one.
        while next_cover < len(covers) and covers[next_cover][1] <= start:
            next_cover += 1
        left, position = start, next_cover
        while left < end and position < len(covers) and covers[position][0] < end:
            covered_from, covered_to = covers[position]
            if left < covered_from:
                remaining.append((left, covered_from))
            left = max(left, covered_to)
            position += 1
        if left < end:
            remaining.append((left, end))
    return remaining


def list_gaps_between_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Lists the ranges that lie between intervals and that none of them covers."""
    return [(end, start) for (_, end), (start, _) in pairwise(sorted(intervals)) if end < start]


def _list_gaps_in_prod_plan(plan: Plan, names: MessageNames) -> list[ModelRange]:
    """Lists the gaps in prod's table of a changed model: ranges that it lacks between its
    intervals.
    """
    gaps = []
    for name, (_, old) in sorted(plan.context_diff.modified_snapshots.items()):
        if not old.is_model or not old.is_incremental:
            continue
        gaps += [
            _make_model_range_of_plan(names.short_name(name), gap)
            for gap in list_gaps_between_intervals(old.intervals)
        ]
    return gaps
