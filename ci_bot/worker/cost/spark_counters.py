"""Spark's counters of stages and executors, with the names of its REST API.

The fields are those of https://spark.apache.org/docs/latest/monitoring.html#rest-api. Spark
promises not to remove any of them; a missing field counts as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

from ci_bot.protocol.cost import Counters

# Which work occupied the executors, and for how long: exact even if executors come and go.
#
# Times are seconds since the epoch, by the driver's clock.


# Spark's clock counts milliseconds; shorter work has no rate of its own.
_TICK_SECONDS = 0.001


@dataclass(frozen=True)
class ExecutorSpan:
    """One executor: when it was added, and when it was removed (None: it still runs)."""

    added: float
    removed: float | None
    cores: int


@dataclass(frozen=True)
class BusySpan:
    """A piece of work: its time span, and the task time that it used.

    Attributes:
        key: identifies the work.
        used: seconds of tasks.
    """

    key: str
    start: float
    end: float
    used: float


@dataclass(frozen=True)
class AllocatedExecutorTime:
    """Seconds of executors, and of their cores."""

    executors: float = 0.0
    cores: float = 0.0

    def __add__(self, other: AllocatedExecutorTime) -> AllocatedExecutorTime:
        return AllocatedExecutorTime(self.executors + other.executors, self.cores + other.cores)

    def scale_by(self, factor: float) -> AllocatedExecutorTime:
        return AllocatedExecutorTime(self.executors * factor, self.cores * factor)


def sum_executor_allocation(
    executors: Iterable[ExecutorSpan], start: float, end: float
) -> AllocatedExecutorTime:
    """Sums the executor time between two moments, idle or not."""
    total = AllocatedExecutorTime()
    for executor in executors:
        gone = end if executor.removed is None else min(end, executor.removed)
        seconds = max(0.0, gone - max(start, executor.added))
        total += AllocatedExecutorTime(seconds, seconds * executor.cores)
    return total


def share_executor_allocation(
    executors: Sequence[ExecutorSpan], spans: Sequence[BusySpan]
) -> Mapping[str, AllocatedExecutorTime]:
    """Shares the executor time among pieces of work, by their keys.

    If several pieces run at once, each gets executors in proportion to its task time per second, or
    equal parts if none uses any. The sum over all keys is the time occupied while any of them ran.
    """
    found = {span.key: AllocatedExecutorTime() for span in spans}
    running = [span for span in spans if span.end > span.start]
    moments = sorted({moment for span in running for moment in (span.start, span.end)})
    begins: dict[float, list[int]] = {}
    ends: dict[float, list[int]] = {}
    for number, span in enumerate(running):
        begins.setdefault(span.start, []).append(number)
        ends.setdefault(span.end, []).append(number)
    active: set[int] = set()
    for start, end in pairwise(moments):
        active.difference_update(ends.get(start, ()))
        active.update(begins.get(start, ()))
        if not active:
            continue
        here = sum_executor_allocation(executors, start, end)
        rates = {number: _compute_task_rate_of_executor(running[number]) for number in active}
        total = sum(rates.values())
        for number, rate in rates.items():
            part = rate / total if total > 0 else 1 / len(rates)
            found[running[number].key] += here.scale_by(part)
    return found


def _compute_task_rate_of_executor(span: BusySpan) -> float:
    return span.used / max(span.end - span.start, _TICK_SECONDS)


_MILLIS, _NANOS = 1e-3, 1e-9

_DRIVER = "driver"


def sum_cost_counters_of_stages(stages: Iterable[Mapping[str, Any]], *, lost: int = 0) -> Counters:
    """Sums the counters of stage attempts; for the memory of one task it takes the maximum.

    Args:
        lost: The number of stages that are missing, because Spark has forgotten them.
    """
    every = list(stages)

    def sum_field(field: str) -> int:
        return sum(int(stage.get(field) or 0) for stage in every)

    return Counters(
        used_seconds=round(sum_field("executorRunTime") * _MILLIS, 3),
        cpu_seconds=round(sum_field("executorCpuTime") * _NANOS, 3),
        input_bytes=sum_field("inputBytes"),
        input_rows=sum_field("inputRecords"),
        output_bytes=sum_field("outputBytes"),
        output_rows=sum_field("outputRecords"),
        shuffle_read_bytes=sum_field("shuffleReadBytes"),
        shuffle_write_bytes=sum_field("shuffleWriteBytes"),
        memory_spilled_bytes=sum_field("memoryBytesSpilled"),
        disk_spilled_bytes=sum_field("diskBytesSpilled"),
        peak_memory_bytes=max((int(s.get("peakExecutionMemory") or 0) for s in every), default=0),
        tasks=sum_field("numCompleteTasks"),
        failed_tasks=sum_field("numFailedTasks"),
        stages=len(every),
        stages_lost=lost,
    )


def add_cost_counters(items: Sequence[Counters]) -> Counters:
    """Sums the counters of several pieces of work."""
    if not items:
        return Counters()
    sums: dict[str, float] = {
        name: sum(getattr(item, name) for item in items) for name in Counters.model_fields
    }
    sums["peak_memory_bytes"] = max(item.peak_memory_bytes for item in items)
    for name in ("used_seconds", "cpu_seconds"):
        sums[name] = round(sums[name], 3)
    return Counters.model_validate(sums)


def read_executors(items: Iterable[Mapping[str, Any]]) -> dict[str, ExecutorSpan]:
    """Reads the executors by id. The driver counts only if there is no other, in local mode.

    Args:
        items: Executors as in Spark's REST API; their times are milliseconds since the epoch.
    """
    known = {
        str(item["id"]): ExecutorSpan(
            added=int(item["addTime"]) * _MILLIS,
            removed=int(item["removeTime"]) * _MILLIS if item.get("removeTime") else None,
            cores=int(item.get("totalCores") or 0),
        )
        for item in items
    }
    others = {name: executor for name, executor in known.items() if name != _DRIVER}
    # A cluster's driver has no cores for tasks, even if its executors are gone.
    return others or {name: executor for name, executor in known.items() if executor.cores}


# Spark's own status store, with the terms of its REST API. No jar, no UI, no port.
#
# The store is what Spark's UI and REST API read, and a classic session has it even with the UI off.
# Each counter is one getter call: Spark's serializer of that API would send a whole stage in one
# call, but a JVM needs more than a second to start it.


_HALF, _ALL = 0.5, 1.0

_COMMA = ","

_OF_A_STAGE = (
    "stageId", "attemptId", "numCompleteTasks", "numFailedTasks",
    "executorRunTime", "executorCpuTime", "peakExecutionMemory",
    "inputBytes", "inputRecords", "outputBytes", "outputRecords",
    "shuffleReadBytes", "shuffleWriteBytes", "memoryBytesSpilled", "diskBytesSpilled",
)  # fmt: skip


class ExecutorRow(TypedDict):
    """An executor with the field names of Spark's REST API; times in milliseconds."""

    id: str
    addTime: int
    removeTime: int | None
    totalCores: int


class SparkCostCounterStore:
    """The status store of a session.

    Args:
        session: A classic `SparkSession`; with another one the constructor raises.
    """

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._jvm = self._context._jvm
        self._scala = self._context._jsc.sc()
        self._store = self._scala.statusStore()
        # Arguments of each stage query: no details of its tasks.
        self._nothing = self._jvm.java.util.ArrayList()
        self._no_quantiles = self._context._gateway.new_array(self._jvm.double, 0)

    def begin_group(self, group: str, description: str) -> None:
        """Puts the later jobs of this thread into the group."""
        self._context.setJobGroup(group, description)

    def end_group(self) -> None:
        """Takes the later jobs of this thread out of the group."""
        self._context._jsc.clearJobGroup()

    def settle_store(self, milliseconds: int) -> None:
        """Waits until all events are in the store, at most `milliseconds`."""
        self._scala.listenerBus().waitUntilEmpty(milliseconds)

    def list_stages(self, group: str) -> tuple[list[dict[str, int]], int]:
        """Lists every attempt of every stage of a group's jobs, and counts the forgotten stages."""
        found: list[dict[str, int]] = []
        seen: set[int] = set()
        lost = 0
        for number in self._context.statusTracker().getJobIdsForGroup(group):
            job = self._store.job(int(number))
            missing = 0
            for stage in _list_numbers_of_scala_sequence(job.stageIds()):
                if stage in seen:
                    continue
                seen.add(stage)
                attempts = self._store.stageData(
                    stage, False, self._nothing, False, self._no_quantiles
                )
                missing += not attempts.size()
                found += [
                    {name: getattr(item, name)() for name in _OF_A_STAGE}
                    for item in list_items_of_scala_sequence(attempts)
                    if str(item.status().toString()) != "SKIPPED"
                ]
            lost += max(0, missing - int(job.numSkippedStages()))
        return found, lost

    def list_executors(self) -> list[ExecutorRow]:
        """Lists the current executors, and the newest of the lost ones. Times are milliseconds
        since the epoch.
        """
        return [
            _read_executor(item)
            for item in list_items_of_scala_sequence(self._store.executorList(False))
        ]

    def task_seconds(self, stage: int, attempt: int) -> tuple[float, float] | None:
        """Returns the seconds of the median and of the longest task of a stage; None if not
        known.
        """
        quantiles = self._context._gateway.new_array(self._jvm.double, 2)
        quantiles[0], quantiles[1] = _HALF, _ALL
        found = self._store.taskSummary(stage, attempt, quantiles)
        if found.isEmpty():
            return None
        half, longest = list_items_of_scala_sequence(found.get().executorRunTime())
        return float(half) / 1_000, float(longest) / 1_000


def _read_executor(item: Any) -> ExecutorRow:
    removed = item.removeTime()
    return {
        "id": item.id(),
        "addTime": item.addTime().getTime(),
        "removeTime": removed.get().getTime() if removed.isDefined() else None,
        "totalCores": item.totalCores(),
    }


def _list_numbers_of_scala_sequence(sequence: Any) -> list[int]:
    return [int(text) for text in str(sequence.mkString(_COMMA)).split(_COMMA) if text]


def list_items_of_scala_sequence(sequence: Any) -> list[Any]:
    """Lists the items of a sequence of Scala in Spark's Java process."""
    return [sequence.apply(number) for number in range(sequence.size())]
