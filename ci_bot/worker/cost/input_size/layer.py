"""The last layer of an estimate: models that were never built, by the size of what they will read.

Spark has to be awake for it, so it is asked where an apply has started Spark and has not written
anything yet, and where somebody asks for an estimate.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlmesh.core import constants as c
from sqlmesh.core.model import SeedModel
from sqlmesh.core.snapshot import Snapshot

from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.documents.plan import Backfill, Cost
from ci_bot.contracts.documents.work import tables_of
from ci_bot.worker.cost.estimate import Known, estimate, past_of
from ci_bot.worker.cost.input_size.batches import batches_of
from ci_bot.worker.cost.input_size.leaves import QuerySizes
from ci_bot.worker.cost.input_size.measuring import Asked, measure
from ci_bot.worker.cost.input_size.queries import BatchQueries
from ci_bot.worker.cost.input_size.rates import CountedRun, by_size
from ci_bot.worker.cost.known import past_of_prod, table_key
from ci_bot.worker.cost.prediction import Past
from ci_bot.worker.plan.in_words import describe
from ci_bot.worker.plan.planning import Interval, Planned
from ci_bot.worker.records.cost_ledger import CostLedger
from ci_bot.worker.words.names import Names

# The newest runs tell what a byte costs now; more of one model would outweigh the others.
_NEWEST_OF_A_MODEL, _NEWEST = 3, 2_000


def with_input_sizes(
    cost: Cost,
    work: Sequence[Backfill],
    known: Known,
    planned: Planned,
    *,
    context: Any,
    ledger: CostLedger,
    names: Names,
    hour_price: Price | None = None,
    say: Callable[[str], None],
    stop: Callable[[], bool],
) -> Cost:
    """The estimate with what the sizes of inputs say of the models that it does not know.

    Starts Spark where it sleeps, unless the estimate knows every model already, or no run of the
    project's that could be compared with.
    """
    if not cost.unknown:
        return cost
    seen = _seen(ledger, context, planned, names)
    if not seen:
        return cost
    say("looking at how much the models will read that were never built")
    asked = _asked(cost.unknown, work, planned, context, names)
    sizes = measure(asked, now=time.monotonic, stop=stop, log=_log)
    found = {
        model: expected
        for model, size in sizes.items()
        if (expected := by_size(model, size, seen)) is not None
    }
    return estimate(work, replace(known, by_size=found), hour_price=hour_price)


def _asked(
    models: Collection[str],
    work: Sequence[Backfill],
    planned: Planned,
    context: Any,
    names: Names,
) -> list[Asked]:
    built = {item.model for item in tables_of(work)}
    queries = BatchQueries(
        planned,
        partial(_in_prod, context),
        {s.name for s in planned.snapshots.values() if names.of(s.name) in built},
        context.engine_adapter.dialect,
    )
    reading = QuerySizes(context.engine_adapter.spark)

    def read(snapshot: Snapshot, span: Interval) -> int | None:
        if isinstance(snapshot.model, SeedModel):
            return len(snapshot.model.seed.content.encode())
        text = queries.of(snapshot, span)
        return None if text is None else reading.bytes_of(text)

    return [
        Asked(
            names.of(snapshot.name),
            describe.kind_name(snapshot),
            batches_of(snapshot, item.intervals),
            partial(read, snapshot),
        )
        for item in planned.plan.missing_intervals
        if (snapshot := planned.snapshots[item.snapshot_id]).is_model
        and names.of(snapshot.name) in models
    ]


def _in_prod(context: Any, wanted: Collection[str]) -> Mapping[str, Snapshot]:
    prod = context.state_reader.get_environment(c.PROD) if wanted else None
    infos = [info for info in prod.snapshots if info.name in wanted] if prod is not None else []
    return {s.name: s for s in context.state_reader.get_snapshots(infos).values() if s.is_model}


def _seen(ledger: CostLedger, context: Any, planned: Planned, names: Names) -> list[CountedRun]:
    """The newest counted runs of the project's models: their applies, else prod's own."""
    kinds = {names.of(s.name): describe.kind_name(s) for s in planned.snapshots.values()}
    rows = [row for row in ledger.runs(newest=_NEWEST) if row.model in kinds and row.counters]
    runs: dict[str, list[Past]] = past_of(rows)
    for model, found in _of_prod(ledger, context, names).items():
        if model in kinds and model not in runs:
            runs[model] = found
    return [
        CountedRun(model, kinds[model], run)
        for model, found in runs.items()
        for run in found[:_NEWEST_OF_A_MODEL]
    ]


def _of_prod(ledger: CostLedger, context: Any, names: Names) -> dict[str, list[Past]]:
    prod = context.state_reader.get_environment(c.PROD) if ledger.knows_prod else None
    if prod is None:
        return {}
    tables = {
        table_key(info.table_name()): names.of(info.name)
        for info in prod.snapshots
        if info.is_model
    }
    found: dict[str, list[Past]] = {}
    for row in ledger.prod_runs(tables, newest=_NEWEST):
        # How many intervals a run wrote makes no difference to what a byte costs.
        found.setdefault(tables[row.table], []).append(past_of_prod(row, lambda *_: 1, whole=True))
    return found


def _log(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - the log
