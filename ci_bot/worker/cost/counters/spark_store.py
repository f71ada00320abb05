"""What Spark's own status store says, in the words of its REST API. No jar, no UI, no port.

The store is what Spark's UI and REST API read, and a classic session has it even with the UI off.
Only what is counted is asked for, one getter each: Spark's own writer of that API would send a
whole stage in one call, but a JVM needs more than a second to get it ready.
"""

from __future__ import annotations

from typing import Any

_HALF, _ALL = 0.5, 1.0
_COMMA = ","
_OF_A_STAGE = (
    *("stageId", "attemptId", "numCompleteTasks", "numFailedTasks"),
    *("executorRunTime", "executorCpuTime", "peakExecutionMemory"),
    *("inputBytes", "inputRecords", "outputBytes", "outputRecords"),
    *("shuffleReadBytes", "shuffleWriteBytes", "memoryBytesSpilled", "diskBytesSpilled"),
)


class SparkStore:
    """The status store of a session.

    Args:
        session: A classic `SparkSession`; with another one the constructor raises.
    """

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._jvm = self._context._jvm
        self._scala = self._context._jsc.sc()
        self._store = self._scala.statusStore()
        # Arguments for every stage: without details of its tasks.
        self._nothing = self._jvm.java.util.ArrayList()
        self._no_quantiles = self._context._gateway.new_array(self._jvm.double, 0)

    def begin(self, group: str, description: str) -> None:
        """From now on jobs that this thread starts are of the group."""
        self._context.setJobGroup(group, description)

    def end(self) -> None:
        """Jobs of this thread are of no group any more."""
        self._context._jsc.clearJobGroup()

    def settle(self, milliseconds: int) -> None:
        """Waits until what has happened is in the store, at most so long."""
        self._scala.listenerBus().waitUntilEmpty(milliseconds)

    def stages(self, group: str) -> tuple[list[dict[str, Any]], int]:
        """Every attempt at every stage of a group's jobs, and how many stages are forgotten."""
        found: list[dict[str, Any]] = []
        seen: set[int] = set()
        lost = 0
        for number in self._context.statusTracker().getJobIdsForGroup(group):
            job = self._store.job(int(number))
            missing = 0
            for stage in _numbers(job.stageIds()):
                if stage in seen:
                    continue
                seen.add(stage)
                attempts = self._store.stageData(
                    stage, False, self._nothing, False, self._no_quantiles
                )
                missing += not attempts.size()
                found += [
                    {name: getattr(item, name)() for name in _OF_A_STAGE}
                    for item in _items(attempts)
                    if str(item.status().toString()) != "SKIPPED"
                ]
            lost += max(0, missing - int(job.numSkippedStages()))
        return found, lost

    def executors(self) -> list[dict[str, Any]]:
        """Every executor that there is, and the newest of those that are gone. Times are
        milliseconds since the epoch."""
        return [_executor(item) for item in _items(self._store.executorList(False))]

    def task_seconds(self, stage: int, attempt: int) -> tuple[float, float] | None:
        """Of the tasks of a stage: seconds of the median one and of the longest one."""
        quantiles = self._context._gateway.new_array(self._jvm.double, 2)
        quantiles[0], quantiles[1] = _HALF, _ALL
        found = self._store.taskSummary(stage, attempt, quantiles)
        if found.isEmpty():
            return None
        half, longest = _items(found.get().executorRunTime())
        return float(half) / 1_000, float(longest) / 1_000


def _executor(item: Any) -> dict[str, Any]:
    removed = item.removeTime()
    return {
        "id": item.id(),
        "addTime": item.addTime().getTime(),
        "removeTime": removed.get().getTime() if removed.isDefined() else None,
        "totalCores": item.totalCores(),
    }


def _numbers(sequence: Any) -> list[int]:
    return [int(text) for text in str(sequence.mkString(_COMMA)).split(_COMMA) if text]


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]
