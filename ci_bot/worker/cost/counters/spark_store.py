"""What Spark's own status store says, in the words of its REST API. No jar, no UI, no port.

The store is what Spark's UI and REST API read, and a classic session has it even with the UI off.
The JSON is made by Spark's own writer of that API, so one call fetches a whole stage.
"""

from __future__ import annotations

import json
from typing import Any

_HALF, _ALL = 0.5, 1.0


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
        self._mapper = self._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()

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
            job = self._json(self._store.job(int(number)))
            missing = 0
            for stage in job["stageIds"]:
                if stage in seen:
                    continue
                seen.add(stage)
                attempts = self._attempts(int(stage))
                missing += not attempts
                found += [item for item in attempts if item["status"] != "SKIPPED"]
            lost += max(0, missing - int(job.get("numSkippedStages") or 0))
        return found, lost

    def executors(self) -> list[dict[str, Any]]:
        """Every executor that there is, and the newest of those that are gone."""
        found: list[dict[str, Any]] = self._json(self._store.executorList(False))
        return found

    def task_seconds(self, stage: int, attempt: int) -> tuple[float, float] | None:
        """Of the tasks of a stage: seconds of the median one and of the longest one."""
        quantiles = self._context._gateway.new_array(self._jvm.double, 2)
        quantiles[0], quantiles[1] = _HALF, _ALL
        found = self._store.taskSummary(stage, attempt, quantiles)
        if found.isEmpty():
            return None
        half, longest = self._json(found.get())["executorRunTime"]
        return half / 1_000, longest / 1_000

    def _attempts(self, stage: int) -> list[dict[str, Any]]:
        none = self._context._gateway.new_array(self._jvm.double, 0)
        states = self._jvm.java.util.ArrayList()
        attempts: list[dict[str, Any]] = self._json(
            self._store.stageData(stage, False, states, False, none)
        )
        return attempts

    def _json(self, value: Any) -> Any:
        return json.loads(self._mapper.writeValueAsString(value))
