"""One application's event log, line by line: its executors, and what it wrote into which table.

Most lines are about single tasks and are not parsed: the event that ends a stage has their sums.
Of the environment, which holds passwords, nothing is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci_bot.contracts.cost.figures import Counters
from ci_bot.worker.cost.counters.allocation import Busy, Executor, shares
from ci_bot.worker.cost.counters.stages import added
from ci_bot.worker.cost.event_log.plans import Range, read_tables, written_range, written_table

# Between two statements of one run of SQLMesh. A longer one waits for something else.
LONGEST_PAUSE_SECONDS = 10.0
_MS = 1_000
_DRIVER = "driver"
_PREFIX = "internal.metrics."
_SUMS = {
    "input_bytes": ("input.bytesRead",),
    "input_rows": ("input.recordsRead",),
    "output_bytes": ("output.bytesWritten",),
    "output_rows": ("output.recordsWritten",),
    "shuffle_read_bytes": ("shuffle.read.remoteBytesRead", "shuffle.read.localBytesRead"),
    "shuffle_write_bytes": ("shuffle.write.bytesWritten",),
    "memory_spilled_bytes": ("memoryBytesSpilled",),
    "disk_spilled_bytes": ("diskBytesSpilled",),
}
_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"


@dataclass
class Execution:
    """One SQL statement; `table` is what it writes, `reads` what it scans."""

    table: str | None
    reads: set[str]
    span: Range | None
    start: float
    end: float | None = None
    stages: list[Counters] = field(default_factory=list)


@dataclass(frozen=True)
class TableWrite:
    """One write into a physical table, with what checked it right after."""

    table: str
    start: float
    end: float
    executor_seconds: float
    span: Range | None
    counters: Counters


@dataclass
class Application:
    """What was read so far. `cut`: a line was not whole; `ended`: the log says that it is."""

    id: str | None = None
    attempt: str | None = None
    spark: str | None = None
    ended: bool = False
    cut: bool = False
    executors: dict[str, Executor] = field(default_factory=dict)
    statements: dict[int, Execution] = field(default_factory=dict)
    _of_stage: dict[int, int] = field(default_factory=dict)

    def read(self, lines: Iterable[bytes]) -> None:
        """Takes the lines of a log, or of the next part of a rolling one.

        A line that is no JSON ends it: what comes after a cut nobody can trust.
        """
        readers = {
            "SparkListenerLogStart": self._log_start,
            "SparkListenerApplicationStart": self._application,
            "SparkListenerApplicationEnd": self._end,
            "SparkListenerExecutorAdded": self._executor,
            "SparkListenerExecutorRemoved": self._removed,
            "SparkListenerJobStart": self._job,
            "SparkListenerStageCompleted": self._stage,
            f"{_SQL}ExecutionStart": self._statement,
            f"{_SQL}ExecutionEnd": self._statement_end,
        }
        wanted = {f'{{"Event":"{name}"'.encode(): reader for name, reader in readers.items()}
        for line in lines:
            reader = wanted.get(line[: line.find(b'"', 10) + 1])
            if reader is None:
                continue
            try:
                reader(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                self.cut = True
                return

    def writes(self) -> list[TableWrite]:
        """The statements that wrote physical tables of SQLMesh and came to their end."""
        done = {number: item for number, item in self.statements.items() if item.end is not None}
        spans = _spans(done)
        parts = shares(list(self.executors.values()), spans)
        found: list[tuple[Execution, list[Counters], list[float]]] = []
        last: dict[str, int] = {}
        for number, item in sorted(done.items()):
            seconds = parts[str(number)].executors
            if item.table is not None:
                if _moved_nothing(item.stages):
                    continue
                last[item.table] = len(found)
                found.append((item, [*item.stages], [seconds]))
            elif len(item.reads) == 1 and (where := last.get(next(iter(item.reads)))) is not None:
                # Nothing but the table that was just written: an audit of it.
                found[where][1].extend(item.stages)
                found[where][2].append(seconds)
        return [
            TableWrite(
                table=item.table or "",
                start=item.start,
                end=item.end or item.start,
                executor_seconds=sum(seconds),
                span=item.span,
                counters=added(stages),
            )
            for item, stages, seconds in found
        ]

    def _log_start(self, event: Mapping[str, Any]) -> None:
        self.spark = str(event["Spark Version"])

    def _application(self, event: Mapping[str, Any]) -> None:
        self.id = event.get("App ID")
        self.attempt = event.get("App Attempt ID")

    def _end(self, event: Mapping[str, Any]) -> None:
        self.ended = True

    def _executor(self, event: Mapping[str, Any]) -> None:
        name, cores = str(event["Executor ID"]), int(event["Executor Info"]["Total Cores"])
        if name != _DRIVER:
            # A cluster's driver runs no tasks; in local mode there is nobody else.
            self.executors.pop(_DRIVER, None)
        self.executors[name] = Executor(event["Timestamp"] / _MS, None, cores)

    def _removed(self, event: Mapping[str, Any]) -> None:
        known = self.executors.get(str(event["Executor ID"]))
        if known is not None:
            gone = Executor(known.added, event["Timestamp"] / _MS, known.cores)
            self.executors[str(event["Executor ID"])] = gone

    def _job(self, event: Mapping[str, Any]) -> None:
        number = (event.get("Properties") or {}).get("spark.sql.execution.id")
        if number is not None:
            # A stage that a later job needs again was computed for the first one.
            for stage in event["Stage IDs"]:
                self._of_stage.setdefault(int(stage), int(number))

    def _stage(self, event: Mapping[str, Any]) -> None:
        info = event["Stage Info"]
        statement = self.statements.get(self._of_stage.get(int(info["Stage ID"]), -1))
        if statement is not None:
            statement.stages.append(_counters(info))

    def _statement(self, event: Mapping[str, Any]) -> None:
        plan = event["sparkPlanInfo"]
        table = written_table(plan)
        self.statements[int(event["executionId"])] = Execution(
            table=table,
            reads=read_tables(plan) if table is None else set(),
            span=written_range(event["physicalPlanDescription"]) if table else None,
            start=event["time"] / _MS,
        )

    def _statement_end(self, event: Mapping[str, Any]) -> None:
        known = self.statements.get(int(event["executionId"]))
        if known is not None:
            known.end = event["time"] / _MS


def _spans(done: Mapping[int, Execution]) -> list[Busy]:
    """Each statement, with the pause before it in which no other one ran.

    An apply is charged for its batches from their begin to their end, in which Spark also analyses
    and plans the query, and SQLMesh renders it and writes its state. A log tells of none of that:
    a statement begins in it when it is planned.
    """
    spans, busy_until = [], float("-inf")
    for number, item in sorted(done.items(), key=lambda pair: pair[1].start):
        end = item.end or item.start
        pause = item.start - busy_until
        start = busy_until if 0 < pause <= LONGEST_PAUSE_SECONDS else item.start
        spans.append(Busy(str(number), start, end, added(item.stages).used_seconds))
        busy_until = max(busy_until, end)
    return spans


def _moved_nothing(stages: Iterable[Counters]) -> bool:
    """Whether a statement only made an empty table, as SQLMesh does before it fills one."""
    return not any(
        stage.input_rows or stage.output_rows or stage.shuffle_write_bytes for stage in stages
    )


def _counters(info: Mapping[str, Any]) -> Counters:
    values = {
        str(item.get("Name", ""))[len(_PREFIX) :]: int(item.get("Value") or 0)
        for item in info.get("Accumulables") or ()
        if str(item.get("Name", "")).startswith(_PREFIX)
        and str(item.get("Value") or 0).lstrip("-").isdigit()
    }
    sums = {name: sum(values.get(part, 0) for part in parts) for name, parts in _SUMS.items()}
    return Counters(
        used_seconds=values.get("executorRunTime", 0) / _MS,
        cpu_seconds=round(values.get("executorCpuTime", 0) / 1e9, 3),
        tasks=int(info.get("Number of Tasks") or 0),
        stages=1,
        **{name: max(0, value) for name, value in sums.items()},
    )
