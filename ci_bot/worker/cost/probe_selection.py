"""What a probe builds of a plan: the newest batch of each model whose batches stand for each other.

A batch says what the others will cost, and stays true once they are built, only if it does not
rest on them, and where all that it reads is there already. Of every other model it is reported why
there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlmesh.core.snapshot import Snapshot, SnapshotId, merge_intervals
from sqlmesh.core.snapshot.definition import expand_range

from ci_bot.protocol.apply_report import NotProbed
from ci_bot.protocol.plan import Backfill
from ci_bot.worker.cost.input_size_rates import batches_of
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
        views: Views that the plan makes, and that these read.
        work: What the batches and the views are, in the words of the plan.
        left_out: The models that the plan builds and the probe does not, with the reason.
    """

    batches: Mapping[SnapshotId, Interval]
    views: frozenset[SnapshotId]
    work: Sequence[Backfill]
    left_out: Sequence[NotProbed]

    @property
    def made_snapshots(self) -> frozenset[SnapshotId]:
        """The snapshots of which there is something after it that was not there before."""
        return self.views | self.batches.keys()

    @property
    def missing_ranges(self) -> Missing:
        """The ranges that are built of tables."""
        return {s_id: [span] for s_id, span in self.batches.items()}


def choose_probe(planned: BuiltPlan, missing: Missing, names: ModelNames) -> PlanProbe:
    """The probe of a plan.

    Args:
        missing: What the plan has still to build.
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
        tables, on_the_way = upstream.tables_and_views(snapshot)
        why = _why_not(planned, snapshot, ranges) or _table_condition(
            sorted(map(names.short_name, tables))
        )
        if why is not None:
            left_out.append(NotProbed(model=names.short_name(snapshot.name), why=why))
            continue
        batches[s_id] = newest_batch(snapshot, ranges)
        views |= on_the_way
    spans = {s_id: [span] for s_id, span in batches.items()}
    spans |= {s_id: list(missing[s_id]) for s_id in views}
    return PlanProbe(
        batches=batches,
        views=frozenset(views),
        work=describe_plan.list_backfill(planned, spans, names, reused=lambda _snapshot: True),
        left_out=sorted(left_out, key=lambda item: item.model),
    )


def newest_batch(snapshot: Snapshot, ranges: Sequence[Interval]) -> Interval:
    """The newest `batch_size` intervals that are missing side by side.

    Counted from the end: SQLMesh's own last batch may be one interval of thirty, whose cost is that
    of starting. What is left is as many batches as without it, less one.
    """
    start, end = merge_intervals(list(ranges))[-1]
    size = snapshot.node.batch_size
    if size:
        begins = expand_range(start, end, snapshot.node.interval_unit)[:-1]
        start = begins[-size] if size < len(begins) else start
    return start, end


def _why_not(planned: BuiltPlan, snapshot: Snapshot, ranges: Sequence[Interval]) -> str | None:
    """Why a model's newest batch tells nothing of the others, or could not be kept."""
    kind = describe_plan.kind_name(snapshot)
    if not snapshot.is_incremental:
        return f"its kind ({kind}) is built as a whole"
    if not snapshot.is_incremental_by_time_range:
        return f"batches of its kind ({kind}) rest on those before them"
    if snapshot.depends_on_past:
        return "it reads itself, so a batch rests on those before it"
    if planned.flags.restate_models and snapshot.snapshot_id in planned.plan.restatements:
        return "it is restated, and an apply builds all of a restatement, whatever is there"
    if len(batches_of(snapshot, ranges)) < _FEWEST_BATCHES:
        hint = "" if snapshot.node.batch_size else "; with a `batch_size` it would be several"
        return f"all that it lacks is one batch{hint}"
    return None


def _table_condition(tables: Sequence[str]) -> str | None:
    if not tables:
        return None
    more = len(tables) - _NAMED
    named = ", ".join(tables[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"it reads what this plan builds, too: {named}"


@dataclass(frozen=True)
class _PlanUpstream:
    """What models of a plan read, looking through views."""

    planned: BuiltPlan
    building: Collection[SnapshotId]
    missing: Collection[SnapshotId]

    def tables_and_views(self, snapshot: Snapshot) -> tuple[set[str], set[SnapshotId]]:
        """The tables that it reads and that the plan builds, by name, and the views on the way that
        the plan makes."""
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
        """Whether an apply has first to copy a table of prod's, although no interval is missing."""
        readable = parent.is_model and not (parent.is_view or parent.is_symbolic)
        return readable and not self.planned.deployable.is_representative(parent)
