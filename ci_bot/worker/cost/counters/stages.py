"""Spark's counters of stages and executors, in the words of its REST API.

The fields are those of https://spark.apache.org/docs/latest/monitoring.html#rest-api, of which
Spark promises that none is removed; one that is not there counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ci_bot.contracts.cost.figures import Counters
from ci_bot.worker.cost.counters.allocation import Executor

_MILLIS, _NANOS = 1e-3, 1e-9
_DRIVER = "driver"


def counters_of(stages: Iterable[Mapping[str, Any]], *, lost: int = 0) -> Counters:
    """The sum over attempts of stages; of the memory of one task the maximum.

    Args:
        lost: Stages that are not among them, because Spark has forgotten them.
    """
    every = list(stages)

    def total(field: str) -> int:
        return sum(int(stage.get(field) or 0) for stage in every)

    return Counters(
        used_seconds=round(total("executorRunTime") * _MILLIS, 3),
        cpu_seconds=round(total("executorCpuTime") * _NANOS, 3),
        input_bytes=total("inputBytes"),
        input_rows=total("inputRecords"),
        output_bytes=total("outputBytes"),
        output_rows=total("outputRecords"),
        shuffle_read_bytes=total("shuffleReadBytes"),
        shuffle_write_bytes=total("shuffleWriteBytes"),
        memory_spilled_bytes=total("memoryBytesSpilled"),
        disk_spilled_bytes=total("diskBytesSpilled"),
        peak_memory_bytes=max((int(s.get("peakExecutionMemory") or 0) for s in every), default=0),
        tasks=total("numCompleteTasks"),
        failed_tasks=total("numFailedTasks"),
        stages=len(every),
        stages_lost=lost,
    )


def added(items: Sequence[Counters]) -> Counters:
    """The counters of several pieces of work together."""
    if not items:
        return Counters()
    sums: dict[str, Any] = {
        name: sum(getattr(item, name) for item in items) for name in Counters.model_fields
    }
    sums["peak_memory_bytes"] = max(item.peak_memory_bytes for item in items)
    for name in ("used_seconds", "cpu_seconds"):
        sums[name] = round(sums[name], 3)
    return Counters(**sums)


def executors_of(items: Iterable[Mapping[str, Any]]) -> dict[str, Executor]:
    """The executors by id. The driver is one where there is no other: in local mode.

    Their times are milliseconds since the epoch.
    """
    known = {
        str(item["id"]): Executor(
            added=int(item["addTime"]) * _MILLIS,
            removed=int(item["removeTime"]) * _MILLIS if item.get("removeTime") else None,
            cores=int(item.get("totalCores") or 0),
        )
        for item in items
    }
    others = {name: executor for name, executor in known.items() if name != _DRIVER}
    # A driver of a cluster has no cores for tasks, and stays one when its executors are gone.
    return others or {name: executor for name, executor in known.items() if executor.cores}
