"""What is known of models' costs: the ledger's rows, layer by layer, for the models of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlmesh.core import constants as c
from sqlmesh.core.snapshot import Snapshot

from ci_bot.contracts.documents.plan import Backfill
from ci_bot.contracts.documents.work import tables_of
from ci_bot.worker.cost.accuracy import known_accuracy
from ci_bot.worker.cost.estimate import Known, past_of
from ci_bot.worker.cost.prediction import Past, line_of
from ci_bot.worker.cost.upstream import Upstream
from ci_bot.worker.plan.in_words import describe
from ci_bot.worker.records.cost_ledger import CostLedger, ProdRunRow
from ci_bot.worker.words import times
from ci_bot.worker.words.names import Names

# A line says no more for having more points, and each costs time.
_OF_A_MODEL, _MOST_RUNS = 3, 200


def known_of(work: Sequence[Backfill], ledger: CostLedger, context: Any, names: Names) -> Known:
    """What the ledger knows of the models that are worked on.

    Args:
        context: SQLMesh's; of models without an apply it tells which table they have in prod.
    """
    models = {item.model for item in work}
    rows = ledger.runs(models)
    above = _tables_above(work, context, names) if rows else {}
    upstream = Upstream(_new(work, context) if above else {}, rows, above)
    applied = past_of(rows, upstream.growth)
    rest = {item.model: item.action == "full_refresh" for item in work if item.model not in applied}
    return Known(
        layers={"ledger": applied, "event_logs": _of_prod(rest, ledger, context, names)},
        accuracy=known_accuracy(ledger),
        line=_line(applied),
    )


def _line(applied: Mapping[str, Sequence[Past]]) -> tuple[float, float] | None:
    counted = [run for runs in applied.values() for run in runs[:_OF_A_MODEL] if run.input_bytes]
    return line_of(counted[:_MOST_RUNS])


def _new(work: Sequence[Backfill], context: Any) -> dict[str, Backfill]:
    """The tables that nobody but applies has filled."""
    prod = context.state_reader.get_environment(c.PROD)
    of_prod = {table_key(info.table_name()) for info in prod.snapshots} if prod else set()
    return {
        item.model: item
        for item in tables_of(work)
        if not item.preview and table_key(item.table) not in of_prod
    }


def _tables_above(
    work: Sequence[Backfill], context: Any, names: Names
) -> dict[str, frozenset[str]]:
    """The models whose tables are read by those that the work computes whole, also behind views."""
    whole = {item.model for item in work if item.action == "full_refresh"}

    def above(fqn: str) -> set[str]:
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
                    found.add(names.of(parent))
        return found

    return {
        name: frozenset(above(fqn)) for fqn in context.models if (name := names.of(fqn)) in whole
    }


def _of_prod(
    models: Mapping[str, bool], ledger: CostLedger, context: Any, names: Names
) -> dict[str, list[Past]]:
    prod = context.state_reader.get_environment(c.PROD) if models else None
    if prod is None or not ledger.knows_prod:
        return {}
    wanted = [item for item in prod.snapshots if names.of(item.name) in models]
    snapshots = context.state_reader.get_snapshots(wanted).values()
    found: dict[str, list[Past]] = {}
    tables = {table_key(s.table_name()): s for s in snapshots if s.is_model and s.version}
    for row in ledger.prod_runs(tables):
        snapshot = tables[row.table]
        model = names.of(snapshot.name)
        found.setdefault(model, []).append(past_of_prod(row, _intervals(snapshot), models[model]))
    return {model: [run for run in runs if run.intervals] for model, runs in found.items()}


def table_key(name: str) -> str:
    """How a physical table is known, whatever its catalog is called: `schema.table`."""
    return ".".join(part.strip('`"') for part in name.split(".")[-2:]).lower()


def past_of_prod(row: ProdRunRow, count: Callable[[int, int], int], whole: bool) -> Past:
    """A write of prod's as a run; without intervals where the log does not say which range.

    Args:
        count: How many intervals lie between two moments, in milliseconds.
        whole: The table is computed whole each time, which is one interval.
    """
    intervals = 1 if whole else 0
    if not whole and row.start is not None and row.end is not None:
        intervals = count(times.milliseconds(row.start), times.milliseconds(row.end))
    return Past(
        intervals=intervals,
        batches=1,
        seconds=row.executor_seconds,
        input_bytes=row.counters.input_bytes,
    )


def _intervals(snapshot: Snapshot) -> Callable[[int, int], int]:
    return lambda start, end: describe.count_intervals(snapshot, [(start, end)])
