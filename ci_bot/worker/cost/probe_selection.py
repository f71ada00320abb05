"""The part of a plan that a probe builds: the newest batch of each model whose batches are alike.

A batch predicts the others only if it does not depend on them and all its inputs exist already. For
every other model the report says why there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlmesh.core.snapshot import Snapshot, SnapshotId, merge_intervals
from sqlmesh.core.snapshot.definition import expand_range

from ci_bot.protocol.apply_report import NotProbed
from ci_bot.protocol.plan import Backfill
from ci_bot.worker.cost.prediction import cut_batches
from ci_bot.worker.messages import ModelNames
from ci_bot.worker.planning import BuiltPlan, Interval, Missing, describe_plan

# One batch is the whole model: to build it would be the apply.
_FEWEST_BATCHES = 2
_NAMED = 3


@dataclass(frozen=True)
class PlanProbe:
    """A part of a plan.

    Attributes:
        batches: The range of the newest batch, in milliseconds, by snapshot; empty: there is
            nothing that can be probed.
        views: Views that the plan makes and that these batches read.
        work: The batches and views as items of the plan.
        left_out: The models that the plan builds and the probe does not, with the reason.
    """

    batches: Mapping[SnapshotId, Interval]
    views: frozenset[SnapshotId]
    work: Sequence[Backfill]
    left_out: Sequence[NotProbed]

    @property
    def made_snapshots(self) -> frozenset[SnapshotId]:
        """The snapshots for which the probe creates an object."""
        return self.views | self.batches.keys()

    @property
    def missing_ranges(self) -> Missing:
        """The ranges of tables that the probe builds."""
        return {s_id: [span] for s_id, span in self.batches.items()}


def choose_probe(planned: BuiltPlan, missing: Missing, names: ModelNames) -> PlanProbe:
    """Chooses the probe of a plan.

    Args:
        missing: The intervals that the plan still has to build.
    """
    building = {
        s_id: ranges
        for s_id, ranges in missing.items()
        if ranges and (snapshot := planned.plan_snapshots[s_id]).is_model and not snapshot.is_view
    }
    upstream = _PlanUpstream(planned, building, missing)
    batches: dict[SnapshotId, Interval] = {}
    views: set[SnapshotId] = set()
    left_out: list[NotProbed] = []
    for s_id, ranges in building.items():
        snapshot = planned.plan_snapshots[s_id]
        tables, on_the_way = upstream.list_tables_and_views(snapshot)
        why = _explain_no_probe(planned, snapshot, ranges) or _render_table_condition(
            sorted(map(names.short_name, tables))
        )
        if why is not None:
            left_out.append(NotProbed(model=names.short_name(snapshot.name), why=why))
            continue
        batches[s_id] = choose_newest_batch(snapshot, ranges)
        views |= on_the_way
    spans = {s_id: [span] for s_id, span in batches.items()}
    spans |= {s_id: list(missing[s_id]) for s_id in views}
    return PlanProbe(
        batches=batches,
        views=frozenset(views),
        work=describe_plan.list_backfill(planned, spans, names, reused=lambda _snapshot: True),
        left_out=sorted(left_out, key=lambda item: item.model),
    )


def choose_newest_batch(snapshot: Snapshot, ranges: Sequence[Interval]) -> Interval:
    """Chooses the newest `batch_size` missing intervals that are adjacent.

    Counted from the end: SQLMesh's own last batch may be one interval of thirty, which costs little
    more than its start. The rest is one batch less than without the probe.
    """
    start, end = merge_intervals(list(ranges))[-1]
    size = snapshot.node.batch_size
    if size:
        begins = expand_range(start, end, snapshot.node.interval_unit)[:-1]
        start = begins[-size] if size < len(begins) else start
    return start, end


def _explain_no_probe(
    planned: BuiltPlan, snapshot: Snapshot, ranges: Sequence[Interval]
) -> str | None:
    """Explains why a model's newest batch cannot predict the others, or could not be kept; None if
    it can.
    """
    kind = describe_plan.name_model_kind(snapshot)
    if not snapshot.is_incremental:
        return f"its kind ({kind}) is built as a whole"
    if not snapshot.is_incremental_by_time_range:
        return f"batches of its kind ({kind}) rest on those before them"
    if snapshot.depends_on_past:
        return "it reads itself, so a batch rests on those before it"
    if planned.flags.restate_models and snapshot.snapshot_id in planned.plan.restatements:
        return "it is restated, and an apply builds all of a restatement, whatever is there"
    if len(cut_batches(snapshot, ranges)) < _FEWEST_BATCHES:
        hint = "" if snapshot.node.batch_size else "; with a `batch_size` it would be several"
        return f"all that it lacks is one batch{hint}"
    return None


def _render_table_condition(tables: Sequence[str]) -> str | None:
    if not tables:
        return None
    more = len(tables) - _NAMED
    named = ", ".join(tables[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"it reads what this plan builds, too: {named}"


@dataclass(frozen=True)
class _PlanUpstream:
    """The upstream tables of a plan's models, through views."""

    planned: BuiltPlan
    building: Collection[SnapshotId]
    missing: Collection[SnapshotId]

    def list_tables_and_views(self, snapshot: Snapshot) -> tuple[set[str], set[SnapshotId]]:
        """Lists the tables, by name, that a snapshot reads and the plan builds, and the views in
        between that the plan makes.
        """
        tables: set[str] = set()
        views: set[SnapshotId] = set()
        seen: set[SnapshotId] = set()
        waiting = list(snapshot.parents)
        while waiting:
            s_id = waiting.pop()
            parent = self.planned.plan_snapshots.get(s_id)
            if parent is None or s_id in seen or s_id == snapshot.snapshot_id:
                continue
            seen.add(s_id)
            if s_id in self.building or self._makes_preview(parent):
                tables.add(s_id.name)
            elif parent.is_model and (parent.is_view or parent.is_embedded):
                if parent.is_view and s_id in self.missing:
                    views.add(s_id)
                waiting += parent.parents
        return tables, views

    def _makes_preview(self, parent: Snapshot) -> bool:
        """Whether an apply must first make a preview table of a parent, although no interval is
        missing.
        """
        readable = parent.is_model and not (parent.is_view or parent.is_symbolic)
        return readable and not self.planned.deployable.is_representative(parent)
