"""What an apply has cost, as its document and the ledger tell it."""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.contracts.cost.figures import ActualCost, Price
from ci_bot.contracts.durations import duration
from ci_bot.worker.cost.counters.meter import Meter, Metered

# Spark's own idea of a large partition (spark.sql.adaptive.skewJoin.skewedPartitionThreshold).
# Less on disk costs no time that anybody sees.
SPILLED_BYTES = 256 * 1024 * 1024
_HOUR, _GIGABYTE = 3_600, 1e9


def counted_cost(meter: Meter, *, hour_price: Price | None = None) -> ActualCost:
    """What Spark has counted, from the begin of building to its end."""
    total, counters = meter.total(), meter.counters()
    hours = total.executors / _HOUR
    return ActualCost(
        source="counters",
        allocated_hours=round(hours, 5),
        core_hours=round(total.cores / _HOUR, 5),
        used_share=round(min(1.0, counters.used_seconds / total.cores), 4) if total.cores else None,
        price=hour_price.of(hours) if hour_price else None,
        currency=hour_price.currency if hour_price else None,
        counters=counters,
        remarks=remarks(meter.models()),
    )


def clock_cost(
    wall_seconds: float, executors: int, *, hour_price: Price | None = None
) -> ActualCost:
    """The wall time times the executors that are there: all there is without Spark's counters."""
    hours = wall_seconds * executors / _HOUR
    return ActualCost(
        source="clock",
        allocated_hours=round(hours, 5),
        price=hour_price.of(hours) if hour_price else None,
        currency=hour_price.currency if hour_price else None,
    )


def remarks(models: Mapping[str, Metered]) -> list[str]:
    """Models that spilled much, or had one task that the others waited for; a sentence each."""
    found = []
    for name, model in sorted(models.items()):
        spilled = model.counters.disk_spilled_bytes
        if spilled >= SPILLED_BYTES:
            found.append(
                f"{name} spilled {spilled / _GIGABYTE:.1f} GB to disk: its tasks need more memory, "
                "or more and smaller partitions."
            )
        if model.skews:
            worst = max(model.skews, key=lambda skew: skew.longest_seconds)
            found.append(
                f"One task of {name} took {duration(worst.longest_seconds)}, and half of its "
                f"{worst.tasks:,} took at most {duration(worst.median_seconds)}: its data is "
                "skewed."
            )
    return found
