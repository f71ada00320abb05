"""What backfills cost, recorded after each apply, and the estimate of the next one from that.

An executor-hour is one executor occupied for an hour. What an apply takes is its wall time times
the executors that Spark had; each model is charged its share of that by the seconds of its batches,
because models run side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from ci_bot.contracts.documents.apply import AppliedModel
from ci_bot.contracts.documents.plan import Backfill, Confidence, Cost
from ci_bot.contracts.documents.work import tables_of, totals
from ci_bot.worker.records.ledger import Ledger, RunRow

# Older runs tell of another warehouse and other data.
KEEP_DAYS = 180
# The newest of each model; what it cost a year ago is no longer what it costs.
_NEWEST = 10
# One run says nothing about the spread. Backfills of one model seldom differ by more than this.
_SPREAD_LOW, _SPREAD_HIGH = 0.6, 1.6
_CERTAIN_RUNS = 3
# Java's optimizing compiler takes 8 s of an apply of a few small tables on two cores (26 s instead
# of 18 s), and saves a seventh of one that works through 6 million rows (55 s instead of 63 s), so
# it is worth its time from about a minute of building on. (tests/benchmarks: life, volume)
_LONG_SECONDS = 60.0
_RECENT_ROWS = 200


def runs_of(
    models: Sequence[AppliedModel],
    *,
    versions: Mapping[str, str],
    environment: str,
    wall_seconds: float,
    executors: int,
    at: str,
) -> list[RunRow]:
    """The rows to keep of one apply.

    Args:
        models: What it built, with the seconds of each.
        versions: The snapshot version of each model by name.
        wall_seconds: How long building took from the first batch to the last.
        executors: How many executors Spark had; 1 in local mode.
        at: When it ended, ISO 8601.
    """
    busy = sum(model.seconds for model in models)
    return [
        RunRow(
            environment=environment,
            model=model.model,
            version=versions[model.model],
            intervals=model.intervals,
            batches=model.batches,
            seconds=model.seconds,
            executor_seconds=round(model.seconds / busy * wall_seconds * executors, 3),
            rows=model.rows,
            at=at,
        )
        for model in models
        if model.model in versions and model.intervals and model.seconds > 0
    ]


def builds_long(ledger: Ledger) -> bool:
    """Whether a recent apply was so long that Java's optimizing compiler pays for itself."""
    totals: dict[tuple[str, str], float] = {}
    for run in ledger.runs(newest=_RECENT_ROWS):
        apply = (run.environment, run.at)
        totals[apply] = totals.get(apply, 0.0) + run.executor_seconds
    return max(totals.values(), default=0.0) > _LONG_SECONDS


def row_counts(ledger: Ledger, models: Collection[str]) -> dict[str, int]:
    """How many rows the newest apply has counted of each of these models, where one has."""
    found: dict[str, int] = {}
    for run in ledger.runs(models):
        if run.rows is not None:
            found.setdefault(run.model, run.rows)
    return found


def of_work(work: Sequence[Backfill], ledger: Ledger, *, hour_price: float | None = None) -> Cost:
    """`estimate`, from what the ledger knows of the models that are worked on."""
    runs = ledger.runs({item.model for item in work})
    return estimate(work, runs, hour_price=hour_price)


def estimate(
    work: Sequence[Backfill], history: Iterable[RunRow], *, hour_price: float | None = None
) -> Cost:
    """What `work` will take, from what the same models took before.

    Hours are per interval of each model's newest runs: the median for the middle, their least and
    greatest for the range. A table without a run is named as unknown, and then hours and price are
    those of the others, a lower bound; without any run they are unknown.

    Args:
        hour_price: The price of an executor-hour, in whatever currency the user thinks in.
    """
    total = totals(work)
    rates = _hours_per_interval(history)
    built = tables_of(work)
    known = [item for item in built if item.model in rates]
    unknown = sorted({item.model for item in built} - rates.keys())
    counted: dict[str, Any] = {
        "intervals": total.intervals,
        "batches": total.batches,
        "tables_rebuilt": total.rebuilt,
        "tables": total.tables,
        "unknown": unknown,
    }
    if not known:
        return Cost(
            **counted,
            confidence="unknown",
            basis="Counted from the plan. No recorded runs of these models, so time is unknown."
            if built
            else "There is no table to build.",
        )
    low = sum(min(rates[item.model]) * item.intervals for item in known)
    middle = sum(median(rates[item.model]) * item.intervals for item in known)
    high = sum(max(rates[item.model]) * item.intervals for item in known)
    runs = sum(len(rates[item.model]) for item in known)
    fewest = min(len(rates[item.model]) for item in known)
    if fewest == 1:
        low, high = min(low, middle * _SPREAD_LOW), max(high, middle * _SPREAD_HIGH)
    return Cost(
        **counted,
        executor_hours_low=_hours(low),
        executor_hours_mid=_hours(middle),
        executor_hours_high=_hours(high),
        price=round(middle * hour_price, 2) if hour_price is not None else None,
        confidence=_confidence(len(unknown), fewest),
        basis=f"From {runs} earlier {'run' if runs == 1 else 'runs'} of "
        f"{len(known)} of {len(built)} models, scaled by intervals."
        + (f" {len(unknown)} without a run are not in the figure." if unknown else ""),
    )


def _hours_per_interval(history: Iterable[RunRow]) -> dict[str, list[float]]:
    """The newest runs of each model, in executor-hours for one interval."""
    found: dict[str, list[float]] = {}
    for run in sorted(history, key=lambda row: row.at, reverse=True):
        kept = found.setdefault(run.model, [])
        if run.intervals and len(kept) < _NEWEST:
            kept.append(run.executor_seconds / 3_600 / run.intervals)
    return {model: rates for model, rates in found.items() if rates}


def _confidence(unknown: int, fewest: int) -> Confidence:
    if unknown:
        return "low"
    return "high" if fewest >= _CERTAIN_RUNS else "medium"


def _hours(value: float) -> float:
    """To a tenth of a second: small projects cost thousandths of an hour."""
    return round(value, 5)
