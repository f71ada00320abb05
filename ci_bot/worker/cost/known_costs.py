"""The known costs of a plan's models: the ledger's rows, source by source."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.snapshot import Snapshot

from ci_bot.protocol.cost import Accuracy
from ci_bot.protocol.plan import Backfill, Cost, select_tables
from ci_bot.worker.cost.plan_estimate import KnownCosts, list_past_runs_for_cost, predict_plan_cost
from ci_bot.worker.cost.prediction import PastRun, UpstreamGrowthForCost, fit_cost_line
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning import BuiltPlan, describe_plan, make_plan
from ci_bot.worker.state_store import ApplyRow, CostLedger, ProdRunRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

# The accuracy of our own estimates: each apply's estimate, compared with its real cost.


# The newest show how good the estimates are now; fewer than five prove nothing.
NEWEST, FEWEST = 20, 5
# Complete estimates are common, and these rows are small.
_LOOKED_AT = 200


def measure_accuracy_of_costs(rows: Iterable[ApplyRow]) -> Accuracy | None:
    """Measures how far the newest complete estimates were off; None with fewer than five.

    Only completed applies count: half of the work costs half. The error is the difference as a
    share of the real cost.

    Args:
        rows: Newest first.
    """
    errors = sorted(
        [
            abs(row.expected_hours - row.allocated_hours) / row.allocated_hours
            for row in rows
            if row.outcome == "applied" and row.expected_hours and row.allocated_hours > 0
        ][:NEWEST]
    )
    if len(errors) < FEWEST:
        return None
    nine = errors[math.ceil(0.9 * len(errors)) - 1]
    return Accuracy(
        estimates=len(errors), median=round(median(errors), 4), nine_of_ten=round(nine, 4)
    )


def read_accuracy_of_costs(ledger: CostLedger) -> Accuracy | None:
    """Measures the accuracy of the newest applies' estimates; None with fewer than five."""
    return measure_accuracy_of_costs(ledger.list_applies(newest=_LOOKED_AT))


def describe_accuracy_of_costs(found: Accuracy) -> str:
    """Returns "the last 20 estimates: median error 18 %, 90 % within 41 %", for example."""
    return (
        (
            f"the last {found.estimates} estimates: median error {found.median:.0%}, 90 % within "
            f"{found.nine_of_ten:.0%}"
        )
        .replace("%", " %")
        .replace("  %", " %")
    )


# More points do not improve a line, and each takes time.
_OF_A_MODEL, _MOST_RUNS = 3, 200


def collect_known_costs(
    work: Sequence[Backfill], ledger: CostLedger, context: Context, names: MessageNames
) -> KnownCosts:
    """Collects the ledger's runs of the models in `work`.

    Args:
        context: SQLMesh's context; it has the prod table of models without an apply.
    """
    models = {item.model for item in work}
    rows = ledger.list_runs(models)
    above = _map_tables_above(work, context, names) if rows else {}
    upstream = UpstreamGrowthForCost(
        _list_tables_filled_by_applies(work, context) if above else {}, rows, above
    )
    applied = list_past_runs_for_cost(rows, upstream.compute_input_growth)
    rest = {item.model: item.action == "full_refresh" for item in work if item.model not in applied}
    return KnownCosts(
        layers={
            "ledger": applied,
            "event_logs": _list_costs_of_prod_history(rest, ledger, context, names),
        },
        accuracy=read_accuracy_of_costs(ledger),
        line=_fit_line_of_applies(applied),
    )


def _fit_line_of_applies(
    applied: Mapping[str, Sequence[PastRun]],
) -> tuple[float, float] | None:
    counted = [run for runs in applied.values() for run in runs[:_OF_A_MODEL] if run.input_bytes]
    return fit_cost_line(counted[:_MOST_RUNS])


def _list_tables_filled_by_applies(
    work: Sequence[Backfill], context: Context
) -> dict[str, Backfill]:
    """Lists the tables that only applies have filled."""
    prod = context.state_reader.get_environment(c.PROD)
    of_prod = (
        {make_table_key_of_costs(info.table_name()) for info in prod.snapshots} if prod else set()
    )
    return {
        item.model: item
        for item in select_tables(work)
        if not item.preview and make_table_key_of_costs(item.table) not in of_prod
    }


def _map_tables_above(
    work: Sequence[Backfill], context: Context, names: MessageNames
) -> dict[str, frozenset[str]]:
    """Maps models that the work computes whole to the models whose tables they read, also behind
    views.
    """
    whole = {item.model for item in work if item.action == "full_refresh"}

    def list_tables_above(fqn: str) -> set[str]:
        found: set[str] = set()
        waiting, seen = {fqn}, {fqn}
        while waiting:
            model = context.get_model(waiting.pop())
            for parent in model.depends_on - seen if model is not None else ():
                seen.add(parent)
                kind = known.kind if (known := context.get_model(parent)) is not None else None
                if kind is not None and (kind.is_view or kind.is_embedded):
                    waiting.add(parent)
                else:
                    found.add(names.short_name(parent))
        return found

    return {
        name: frozenset(list_tables_above(fqn))
        for fqn in context.models
        if (name := names.short_name(fqn)) in whole
    }


def _list_costs_of_prod_history(
    models: Mapping[str, bool], ledger: CostLedger, context: Context, names: MessageNames
) -> dict[str, list[PastRun]]:
    prod = context.state_reader.get_environment(c.PROD) if models else None
    if prod is None or not ledger.knows_prod:
        return {}
    wanted = [item for item in prod.snapshots if names.short_name(item.name) in models]
    snapshots = context.state_reader.get_snapshots(wanted).values()
    found: dict[str, list[PastRun]] = {}
    tables = {
        make_table_key_of_costs(s.table_name()): s for s in snapshots if s.is_model and s.version
    }
    for row in ledger.list_prod_runs(tables):
        snapshot = tables[row.table]
        model = names.short_name(snapshot.name)
        found.setdefault(model, []).append(
            make_past_run_cost_in_prod(row, _make_interval_counter(snapshot), models[model])
        )
    return {model: [run for run in runs if run.intervals] for model, runs in found.items()}


def make_table_key_of_costs(name: str) -> str:
    """Returns the key of a physical table without its catalog: `schema.table`."""
    return ".".join(part.strip('`"') for part in name.split(".")[-2:]).lower()


def make_past_run_cost_in_prod(
    row: ProdRunRow, count: Callable[[int, int], int], whole: bool
) -> PastRun:
    """Makes a past run from a write of prod; without intervals if the log has no range.

    Args:
        count: Counts the intervals between two times, in milliseconds.
        whole: Whether the table is computed whole each time, which is one interval.
    """
    intervals = 1 if whole else 0
    if not whole and row.start is not None and row.end is not None:
        intervals = count(
            report_times.to_milliseconds(row.start), report_times.to_milliseconds(row.end)
        )
    return PastRun(
        intervals=intervals,
        batches=1,
        seconds=row.executor_seconds,
        input_bytes=row.counters.input_bytes,
    )


def _make_interval_counter(snapshot: Snapshot) -> Callable[[int, int], int]:
    return lambda start, end: describe_plan.count_planned_intervals(snapshot, [(start, end)])


# The saving of a plan that reads prod's tables instead of building its own.


def add_reused_tables_to_cost(
    cost: Cost,
    planned: BuiltPlan,
    built: Collection[str],
    ledger: CostLedger,
    context: Context,
    names: MessageNames,
) -> Cost:
    """Adds prod's tables that the plan needs and does not build to the cost.

    These are tables of the changed models and of all models that they read: a separate environment
    would have to build each. Their cost is known if they have runs.

    Args:
        built: The models that the plan builds, as reports name them.
    """
    needed = make_plan.list_planned_models_with_upstream(planned.plan)
    reused = [
        snapshot
        for snapshot in planned.plan_snapshots.values()
        if snapshot.name in needed
        and (snapshot.name, snapshot.version) in planned.versions_in_prod
        and snapshot.is_model
        and not (snapshot.is_view or snapshot.is_symbolic or snapshot.is_seed)
        and names.short_name(snapshot.name) not in built
    ]
    if not reused:
        return cost
    ran = {run.model for run in ledger.list_runs({names.short_name(s.name) for s in reused})}
    snapshots = (
        reused if ledger.knows_prod else [s for s in reused if names.short_name(s.name) in ran]
    )
    work = describe_plan.list_planned_backfill(
        planned,
        make_plan.list_target_intervals_of_plan(planned, snapshots),
        names,
        reused=lambda _snapshot: True,
    )
    saved = (
        predict_plan_cost(work, collect_known_costs(work, ledger, context, names)) if work else None
    )
    return cost.model_copy(
        update={
            "reused": len(reused),
            "reused_hours": saved.executor_hours_mid if saved is not None else None,
        }
    )
