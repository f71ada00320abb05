"""Counts the cost of each batch of an apply while it builds.

Spark's jobs are distinguished by a job group for each batch, and the store keeps only the newest
stages, so a batch is read as soon as the next one ends. No failure here may stop an apply: it is
kept as the reason why the cost is not known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ci_bot.protocol.cost import ActualCost, Counters, Price, Skew, format_duration
from ci_bot.worker.cost.spark_counters import (
    AllocatedExecutorTime,
    BusySpan,
    ExecutorRow,
    ExecutorSpan,
    add_cost_counters,
    read_executors,
    share_executor_allocation,
    sum_cost_counters_of_stages,
    sum_executor_allocation,
)
from ci_bot.worker.messages import extract_sentence_of_error

_SETTLE_MILLISECONDS = 2_000
_LOOK_EVERY_SECONDS = 5.0
# Spark calls a partition skewed from five times the median
# (spark.sql.adaptive.skewJoin.skewedPartitionFactor); below half a minute the wait does not matter.
SKEW_RATIO, SKEW_SECONDS, SKEW_TASKS = 5.0, 30.0, 4


class CostCounterStore(Protocol):
    """The queries to Spark's store; see `SparkCostCounterStore`."""

    def begin_group(self, group: str, description: str) -> None: ...
    def end_group(self) -> None: ...
    def settle_store(self, milliseconds: int) -> None: ...
    def list_stages(self, group: str) -> tuple[list[dict[str, int]], int]: ...
    def list_executors(self) -> list[ExecutorRow]: ...
    def task_seconds(self, stage: int, attempt: int) -> tuple[float, float] | None: ...


@dataclass
class MeteredBatch:
    """One batch; `counters` is None until they are read from Spark."""

    model: str
    group: str
    intervals: int
    start: float
    end: float | None = None
    done: bool = False
    counters: Counters | None = None
    skews: list[Skew] = field(default_factory=list)


@dataclass(frozen=True)
class MeteredModel:
    """The cost of one model: completed batches, and the time lost in the others."""

    intervals: int
    batches: int
    allocated: AllocatedExecutorTime
    lost: AllocatedExecutorTime
    counters: Counters
    skews: Sequence[Skew]


class BatchMeter:
    """The meter of one apply. Methods may be called from any thread.

    Args:
        store: Makes the store, once Spark has started.
        now: Seconds since the epoch, by the clock that the driver has, too.
        name: The prefix of this apply's job groups, which no other apply has.

    `seconds` is the time spent on counting, over all threads.
    """

    def __init__(
        self, store: Callable[[], CostCounterStore], now: Callable[[], float], name: str
    ) -> None:
        self._make, self._now, self._name = store, now, name
        self._store: CostCounterStore | None = None
        self._lock = threading.Lock()
        self._batches: list[MeteredBatch] = []
        self._executors: dict[str, ExecutorSpan] = {}
        self._looked = float("-inf")
        self._from: float | None = None
        self._until: float | None = None
        self.failure: str | None = None
        self.seconds = 0.0

    def start_metering(self) -> None:
        """Marks the start of building. Call it after Spark has started."""
        self._from = self._now()
        self._run_guarded(self._open_store)

    @contextmanager
    def meter_batch(self, model: str, intervals: int) -> Iterator[None]:
        """Wraps the work of one batch, in the thread that does it."""
        with self._lock:
            group = f"{self._name}/{len(self._batches) + 1}"
            batch = MeteredBatch(model, group, intervals, self._now())
            self._batches.append(batch)
        store = self._store
        if store is not None:
            self._run_guarded(lambda: store.begin_group(group, f"{model} {group}"))
        try:
            yield
            batch.done = True
        finally:
            batch.end = self._now()
            if store is not None:
                self._run_guarded(store.end_group)
                self._run_guarded(lambda: self._read_batches(store, besides=batch))

    def finish_metering(self) -> None:
        """Marks the end of building, also after a failure, and reads the rest. A second call does
        nothing.
        """
        with self._lock:
            if self._until is not None:
                return
            self._until = self._now()
        store = self._store
        if store is not None:
            self._run_guarded(lambda: store.settle_store(_SETTLE_MILLISECONDS))
            self._run_guarded(lambda: self._read_batches(store, besides=None))

    @property
    def has_started(self) -> bool:
        """Whether building has begun."""
        return self._from is not None

    @property
    def is_complete(self) -> bool:
        """Whether every query to Spark's store has succeeded."""
        return self._store is not None and self.failure is None and bool(self._executors)

    def total_allocation(self) -> AllocatedExecutorTime:
        """Returns the executor time from the start of building to its end, idle or not."""
        if self._from is None:
            return AllocatedExecutorTime()
        return sum_executor_allocation(
            self._executors.values(), self._from, self._until or self._now()
        )

    def total_counters(self) -> Counters:
        """Sums the counters of all batches, failed ones included."""
        with self._lock:
            return add_cost_counters([b.counters for b in self._batches if b.counters is not None])

    def list_models(self) -> Mapping[str, MeteredModel]:
        """Lists the cost of each model so far."""
        with self._lock:
            batches, now = list(self._batches), self._now()
        parts = share_executor_allocation(
            list(self._executors.values()),
            [_make_span(batch, now) for batch in batches],
        )
        found: dict[str, list[MeteredBatch]] = {}
        for batch in batches:
            found.setdefault(batch.model, []).append(batch)
        return {model: _meter_model_batches(each, parts) for model, each in found.items()}

    def _open_store(self) -> None:
        self._store = self._make()
        self._read_executors(self._store)

    def _read_batches(self, store: CostCounterStore, *, besides: MeteredBatch | None) -> None:
        """Reads the counters of the ended batches, without `besides`, whose end Spark may not have
        noticed yet.
        """
        with self._lock:
            waiting = [
                batch
                for batch in self._batches
                if batch.end is not None and batch.counters is None and batch is not besides
            ]
            for batch in waiting:
                stages, lost = store.list_stages(batch.group)
                batch.counters = sum_cost_counters_of_stages(stages, lost=lost)
                batch.skews = _list_skews(store, stages)
            if besides is None or self._now() - self._looked >= _LOOK_EVERY_SECONDS:
                self._read_executors(store)

    def _read_executors(self, store: CostCounterStore) -> None:
        # Spark forgets executors that are long gone, so keep those seen earlier.
        self._executors |= read_executors(store.list_executors())
        self._looked = self._now()

    def _run_guarded(self, action: Callable[[], None]) -> None:
        before = self._now()
        try:
            action()
        except Exception as error:
            self.failure = self.failure or extract_sentence_of_error(error)
        self.seconds += max(0.0, self._now() - before)


def _make_span(batch: MeteredBatch, now: float) -> BusySpan:
    end = now if batch.end is None else batch.end
    used = batch.counters.used_seconds if batch.counters else 0.0
    return BusySpan(key=batch.group, start=batch.start, end=end, used=used)


def _meter_model_batches(
    batches: Sequence[MeteredBatch], parts: Mapping[str, AllocatedExecutorTime]
) -> MeteredModel:
    done = [batch for batch in batches if batch.done]
    return MeteredModel(
        intervals=sum(batch.intervals for batch in done),
        batches=len(done),
        allocated=sum((parts[b.group] for b in done), start=AllocatedExecutorTime()),
        lost=sum((parts[b.group] for b in batches if not b.done), start=AllocatedExecutorTime()),
        counters=add_cost_counters(
            [batch.counters for batch in done if batch.counters is not None]
        ),
        skews=[skew for batch in batches for skew in batch.skews],
    )


def _list_skews(store: CostCounterStore, stages: Sequence[Mapping[str, Any]]) -> list[Skew]:
    found = []
    for stage in stages:
        tasks = int(stage.get("numCompleteTasks") or 0)
        # With less time in total, no task can be that much longer than the median.
        if tasks < SKEW_TASKS or int(stage.get("executorRunTime") or 0) < SKEW_SECONDS * 1_000:
            continue
        seconds = store.task_seconds(int(stage["stageId"]), int(stage["attemptId"]))
        if seconds is None:
            continue
        skew = Skew(median_seconds=seconds[0], longest_seconds=seconds[1], tasks=tasks)
        if skew.ratio >= SKEW_RATIO and skew.longest_seconds >= SKEW_SECONDS:
            found.append(skew)
    return found


# The cost of an apply, for its document and the ledger.


# Spark's threshold of a large partition (spark.sql.adaptive.skewJoin.skewedPartitionThreshold).
# Spilling less takes no noticeable time.
SPILLED_BYTES = 256 * 1024 * 1024

_HOUR, _GIGABYTE = 3_600, 1e9


def make_counted_cost(meter: BatchMeter, *, hour_price: Price | None = None) -> ActualCost:
    """Makes the cost from Spark's counters, from the start of building to its end."""
    total, counters = meter.total_allocation(), meter.total_counters()
    hours = total.executors / _HOUR
    return ActualCost(
        source="counters",
        allocated_hours=round(hours, 5),
        core_hours=round(total.cores / _HOUR, 5),
        used_share=round(min(1.0, counters.used_seconds / total.cores), 4) if total.cores else None,
        price=hour_price.compute_price(hours) if hour_price else None,
        currency=hour_price.currency if hour_price else None,
        counters=counters,
        remarks=list_remarks_on_cost(meter.list_models()),
    )


def make_clock_cost(
    wall_seconds: float, executors: int, *, hour_price: Price | None = None
) -> ActualCost:
    """Makes the cost from wall time times executors, if there are no Spark counters."""
    hours = wall_seconds * executors / _HOUR
    return ActualCost(
        source="clock",
        allocated_hours=round(hours, 5),
        price=hour_price.compute_price(hours) if hour_price else None,
        currency=hour_price.currency if hour_price else None,
    )


def list_remarks_on_cost(models: Mapping[str, MeteredModel]) -> list[str]:
    """Lists models that spilled much, or whose other tasks waited for one; a sentence each."""
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
                f"One task of {name} took {format_duration(worst.longest_seconds)}, and half of "
                f"its {worst.tasks:,} took at most {format_duration(worst.median_seconds)}: its "
                "data is skewed."
            )
    return found
