"""The expected cost of planned work, from the ledger's runs of the same models; and the part of a
plan that a probe builds to learn more: the newest batch of each model whose batches are similar.

An executor-hour is one executor occupied for an hour. A model's own applies are the best source;
next are prod's own runs of it, from Spark's event logs; last is its input size, if Spark has
started. A model without a source is unknown, and no sum includes it.

A batch predicts the others only if it does not depend on them and all its inputs exist already. For
every other model the report gives the reason why it was not probed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlmesh.core.snapshot import Snapshot, SnapshotId, merge_intervals
from sqlmesh.core.snapshot.definition import expand_range

from ci_bot.errors import EXIT_REFUSED
from ci_bot.protocol.apply_report import NotProbed
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import (
    COST_SOURCES,
    Accuracy,
    CostLayer,
    ModelEstimate,
    Price,
    format_executor_time,
)
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.plan import Backfill, Confidence, Cost, select_tables, sum_planned_work
from ci_bot.protocol.review_report import Impact
from ci_bot.worker.cost.prediction import BySize, ExpectedCost, PastRun, cut_batches, predict_cost
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import BuiltPlan, Interval, Missing, describe_plan
from ci_bot.worker.state_store import CostLedger, RunRow

# The newest runs of each model; the cost of a year ago is out of date.
_NEWEST = 10
_CERTAIN_RUNS = 3
# A range is wide if its ends differ by this factor.
_WIDE = 5.0
# Java's optimizing compiler takes 8 s of an apply of a few small tables on two cores (26 s instead
# of 18 s), and saves a seventh of one that works through 6 million rows (55 s instead of 63 s), so
# it is worth its time from about a minute of building on. (tests/benchmarks: life, volume)
_LONG_SECONDS = 60.0
_RECENT_ROWS = 200

_SAYS: dict[CostLayer, str] = {
    "probe": "their newest batch, built just now",
    "ledger": "their own applies",
    "event_logs": "prod's runs in Spark's event logs",
}


@dataclass(frozen=True)
class KnownCosts:
    """The known runs of models by name, newest first, source by source, the best source first.

    Attributes:
        by_size: estimates from input size, for models without a run.
        line: seconds for a batch and for a byte, from runs of all of these models.
    """

    layers: Mapping[CostLayer, Mapping[str, Sequence[PastRun]]] = field(default_factory=dict)
    by_size: Mapping[str, BySize] = field(default_factory=dict)
    accuracy: Accuracy | None = None
    line: tuple[float, float] | None = None

    def find_runs(self, model: str) -> tuple[CostLayer, Sequence[PastRun]] | None:
        """Finds the best source that has runs of the model, with these runs."""
        for layer, models in self.layers.items():
            runs = [run for run in models.get(model, ()) if run.intervals > 0]
            if runs:
                return layer, runs[:_NEWEST]
        return None


def is_cost_from_long_build(ledger: CostLedger) -> bool:
    """Whether a recent apply was so long that Java's optimizing compiler pays for itself."""
    totals: dict[tuple[str, str], float] = {}
    for run in ledger.list_runs(newest=_RECENT_ROWS):
        apply = (run.environment, run.at)
        totals[apply] = totals.get(apply, 0.0) + run.executor_seconds
    return max(totals.values(), default=0.0) > _LONG_SECONDS


def read_row_counts_for_cost(ledger: CostLedger, models: Collection[str]) -> dict[str, int]:
    """Reads how many rows the newest apply counted in each of these models, if any did."""
    found: dict[str, int] = {}
    for run in ledger.list_runs(models):
        if run.rows is not None:
            found.setdefault(run.model, run.rows)
    return found


def list_past_runs_for_cost(
    rows: Iterable[RunRow], growth: Callable[[RunRow], float] = lambda _run: 1.0
) -> dict[str, list[PastRun]]:
    """Lists the runs of each model that completed anything, newest first.

    Spark's counters are exact; if a model has a counted run, runs timed by the clock are left out.

    Args:
        growth: The factor by which a run's model will read more now.
    """
    found: dict[str, list[RunRow]] = {}
    for row in sorted(rows, key=lambda row: row.at, reverse=True):
        if row.intervals:
            found.setdefault(row.model, []).append(row)
    return {
        model: [_make_past_run(row, growth(row)) for row in _choose_best_layer(each)[:_NEWEST]]
        for model, each in found.items()
    }


def _choose_best_layer(rows: list[RunRow]) -> list[RunRow]:
    counted = [row for row in rows if row.source == "counters"]
    return counted or rows


def _make_past_run(row: RunRow, growth: float) -> PastRun:
    return PastRun(
        intervals=row.intervals,
        batches=row.batches,
        seconds=row.executor_seconds,
        input_bytes=row.counters.input_bytes if row.counters else None,
        growth=growth,
    )


def predict_plan_cost(
    work: Sequence[Backfill], known: KnownCosts | None = None, *, hour_price: Price | None = None
) -> Cost:
    """Predicts the cost of `work`.

    A table without a source is listed as unknown; then hours and price are a lower bound, because
    they are those of the other tables. If all are unknown, so are hours and price.

    Args:
        hour_price: The price of an executor-hour.
    """
    known = known or KnownCosts()
    total = sum_planned_work(work)
    built = select_tables(work)
    models = sorted(
        (found for item in built if (found := _estimate_cost_of_model(item, known)) is not None),
        key=lambda found: (-found.executor_hours_mid, found.model),
    )
    unknown = sorted({item.model for item in built} - {found.model for found in models})
    make_cost = partial(
        Cost,
        intervals=total.intervals,
        batches=total.batches,
        tables_rebuilt=total.rebuilt,
        tables=total.tables,
        unknown=unknown,
        accuracy=known.accuracy,
    )
    if not models:
        return make_cost(
            confidence="unknown",
            basis="Counted from the plan. No recorded runs of these models, so time is unknown."
            if built
            else "There is no table to build.",
        )
    middle = sum(found.executor_hours_mid for found in models)
    return make_cost(
        executor_hours_low=_round_hours(sum(found.executor_hours_low for found in models)),
        executor_hours_mid=_round_hours(middle),
        executor_hours_high=_round_hours(sum(found.executor_hours_high for found in models)),
        price=hour_price.compute_price(middle) if hour_price else None,
        currency=hour_price.currency if hour_price else None,
        confidence=_judge_confidence(models, unknown),
        basis=_describe_basis(models, len(built), len(unknown)),
        models=models,
    )


def _estimate_cost_of_model(item: Backfill, known: KnownCosts) -> ModelEstimate | None:
    found = known.find_runs(item.model)
    if found is not None:
        layer, runs = found
        expected = predict_cost(
            runs,
            intervals=item.intervals,
            batches=item.batches,
            grows=item.action == "full_refresh",
            others=known.line,
        )
        if expected is not None:
            return _make_estimate_of_model(item.model, layer, expected, len(runs))
    size = known.by_size.get(item.model)
    if size is None:
        return None
    estimate = _make_estimate_of_model(item.model, "input_size", size.expected, size.runs)
    return estimate.model_copy(update={"input_bytes": size.input_bytes})


def _make_estimate_of_model(
    model: str, layer: CostLayer, expected: ExpectedCost, runs: int
) -> ModelEstimate:
    return ModelEstimate(
        model=model,
        layer=layer,
        runs=runs,
        executor_hours_low=expected.low / 3_600,
        executor_hours_mid=expected.middle / 3_600,
        executor_hours_high=expected.high / 3_600,
    )


def _describe_basis(models: Sequence[ModelEstimate], built: int, unknown: int) -> str:
    own = [found for found in models if found.layer != "input_size"]
    sized = [found for found in models if found.layer == "input_size"]
    parts = []
    if own:
        runs = sum(found.runs for found in own)
        sources = [text for layer, text in _SAYS.items() if any(m.layer == layer for m in own)]
        parts.append(
            f"From {runs} earlier {'run' if runs == 1 else 'runs'} of {len(own)} of {built} models "
            f"({', '.join(sources)})."
        )
    if sized:
        runs = max(found.runs for found in sized)
        parts.append(
            f"{len(sized)} of {built} models by the size of the data that they will read, as up to "
            f"{runs} runs of this project's models took."
        )
    if unknown:
        parts.append(f"{unknown} without a run are not in the figure.")
    return " ".join(parts)


def _judge_confidence(models: Sequence[ModelEstimate], unknown: Sequence[str]) -> Confidence:
    low, high = (
        sum(hours)
        for hours in zip(
            *((found.executor_hours_low, found.executor_hours_high) for found in models),
            strict=True,
        )
    )
    sized = any(found.layer == "input_size" for found in models)
    if unknown or sized or high > _WIDE * low:
        return "low"
    certain = all(found.runs >= _CERTAIN_RUNS and found.layer == "ledger" for found in models)
    return "high" if certain else "medium"


def _round_hours(value: float) -> float:
    """Rounds to a tenth of a second: small projects cost thousandths of an hour."""
    return round(value, 5)


# Unneeded rebuilds: models that change only because of a parent, and read no changed column.


def add_unneeded_rebuilds_to_cost(cost: Cost, work: Sequence[Backfill], impact: Impact) -> Cost:
    """Adds the rebuilds that the column impact proves unnecessary to the cost, with their price.

    Only a proof counts: if it is not known whether a model reads a changed column, it is needed.
    """
    untouched = {item.model for item in impact.indirect if item.reached == "no"}
    models = sorted({item.model for item in select_tables(work)} & untouched)
    hours = [item.executor_hours_mid for item in cost.models if item.model in models]
    return cost.model_copy(
        update={"unneeded": models, "unneeded_hours": round(sum(hours), 5) if hours else None}
    )


# Whether an estimate is above a team's limit for one plan. Pure.


_DEAREST = 3


def find_cost_budget_failure(
    cost: Cost,
    hours: float | None,
    environment: EnvironmentName,
    *,
    after_merge: Cost | None = None,
    what: str = "Building",
) -> Failure | None:
    """Makes the failure if a cost is above the limit; None if none is known to be above.

    Args:
        cost: The cost of building the environment.
        hours: The most executor-hours that building either may take; None: no limit.
        after_merge: The cost of prod's work after the merge; None: not known.
        what: the action on the environment, as the start of a sentence.
    """
    here = cost.find_hours_above(hours)
    there = after_merge.find_hours_above(hours) if after_merge else None
    if hours is None or (here is None and there is None):
        return None
    figures = [f"{what} {environment} would take {_describe_cost(cost)}"]
    if after_merge is not None:
        figures.append(f"what prod builds after the merge {_describe_cost(after_merge)}")
    dearer = after_merge if after_merge is not None and (there or 0.0) > (here or 0.0) else cost
    return Failure(
        stage="estimate",
        reason_code="over_budget",
        exit_code=EXIT_REFUSED,
        message=f"{', and '.join(figures)}; the limit is {format_executor_time(hours)} of executor "
        f"time. {_describe_dearest_cost(dearer)}. Nothing was built.",
        hint="Plan less (`start`, `select-model`), or raise `max-executor-hours`."
        if there is None
        else "Let prod rebuild less (a forward-only change, a later `start` of the model), or "
        "raise `max-executor-hours`.",
    )


def _describe_cost(cost: Cost) -> str:
    middle = cost.executor_hours_mid
    if middle is None:
        return "a time that is not known" if cost.tables else "nothing"
    return f"{'at least' if cost.unknown else 'about'} {format_executor_time(middle)}"


def _describe_dearest_cost(cost: Cost) -> str:
    named = ", ".join(
        f"{item.model} {format_executor_time(item.executor_hours_mid)} ({COST_SOURCES[item.layer]})"
        for item in cost.models[:_DEAREST]
    )
    rest = len(cost.models) - _DEAREST
    more = f" and {rest:,} more" if rest > 0 else ""
    unknown = f"; {len(cost.unknown):,} of {cost.tables:,} tables unknown" if cost.unknown else ""
    return f"The dearest: {named}{more}{unknown}"


# One batch is the whole model: to build it would be the apply.
_FEWEST_BATCHES = 2
_NAMED = 3


@dataclass(frozen=True)
class CostProbe:
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


def choose_cost_probe(planned: BuiltPlan, missing: Missing, names: MessageNames) -> CostProbe:
    """Chooses the probe of a plan.

    Args:
        missing: The intervals that the plan still has to build.
    """
    building = {
        s_id: ranges
        for s_id, ranges in missing.items()
        if ranges and (snapshot := planned.plan_snapshots[s_id]).is_model and not snapshot.is_view
    }
    upstream = _UpstreamOfCostProbe(planned, building, missing)
    batches: dict[SnapshotId, Interval] = {}
    views: set[SnapshotId] = set()
    left_out: list[NotProbed] = []
    for s_id, ranges in building.items():
        snapshot = planned.plan_snapshots[s_id]
        tables, on_the_way = upstream.list_tables_and_views(snapshot)
        why = _explain_no_cost_probe(planned, snapshot, ranges) or _render_table_condition(
            sorted(map(names.short_name, tables))
        )
        if why is not None:
            left_out.append(NotProbed(model=names.short_name(snapshot.name), why=why))
            continue
        batches[s_id] = choose_newest_batch_for_cost_probe(snapshot, ranges)
        views |= on_the_way
    spans = {s_id: [span] for s_id, span in batches.items()}
    spans |= {s_id: list(missing[s_id]) for s_id in views}
    return CostProbe(
        batches=batches,
        views=frozenset(views),
        work=describe_plan.list_planned_backfill(
            planned, spans, names, reused=lambda _snapshot: True
        ),
        left_out=sorted(left_out, key=lambda item: item.model),
    )


def choose_newest_batch_for_cost_probe(snapshot: Snapshot, ranges: Sequence[Interval]) -> Interval:
    """Chooses the newest `batch_size` missing intervals that are adjacent.

    They are counted from the end: SQLMesh's own last batch may be one interval of thirty, which
    costs little more than starting it. After the probe, one batch less is left to build.
    """
    start, end = merge_intervals(list(ranges))[-1]
    size = snapshot.node.batch_size
    if size:
        begins = expand_range(start, end, snapshot.node.interval_unit)[:-1]
        start = begins[-size] if size < len(begins) else start
    return start, end


def _explain_no_cost_probe(
    planned: BuiltPlan, snapshot: Snapshot, ranges: Sequence[Interval]
) -> str | None:
    """Explains why a model's newest batch cannot predict the others, or could not be kept; None if
    it can.
    """
    kind = describe_plan.name_planned_model_kind(snapshot)
    if not snapshot.is_incremental:
        return f"its kind ({kind}) is built as a whole"
    if not snapshot.is_incremental_by_time_range:
        return f"batches of its kind ({kind}) rest on those before them"
    if snapshot.depends_on_past:
        return "it reads itself, so a batch rests on those before it"
    if planned.flags.restate_models and snapshot.snapshot_id in planned.plan.restatements:
        return "it is restated, and an apply builds all of a restatement, even if it is there"
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
class _UpstreamOfCostProbe:
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
