"""One application's event log, line by line: its executors, and its writes by table.

Most lines are about single tasks and are not parsed: the event that ends a stage has their sums.
The environment event, which holds passwords, is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from ci_bot.protocol.cost import Counters
from ci_bot.worker.cost.spark_counters import (
    BusySpan,
    ExecutorSpan,
    add_cost_counters,
    share_executor_allocation,
)

# A physical plan in an event log: the table that it writes, the tables that it reads, the range.
#
# Node names and predicate texts are Spark's own, and the same in the supported versions. SQLMesh's
# physical tables have names such as `<schema>.<model>__<version>`.


_WRITES = (
    "InsertInto",  # InsertIntoHadoopFsRelationCommand, InsertIntoHiveTable, InsertIntoDataSource
    "AsSelect",  # CreateDataSourceTableAsSelectCommand, ReplaceTableAsSelect and the others
    "SaveIntoDataSource",
    "AppendData",
    "OverwriteBy",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "WriteDelta",
    "WriteToDataSourceV2",
    "MergeInto",
    "MergeRows",
    "DeleteFromTable",
)
# SQLMesh's version is a checksum in decimal digits. A path has `.db/` between the two.
_TABLE = re.compile(r"([\w$-]+)(?:\.db/|\.)([\w$-]+__\d{3,10}(?:__dev)?)(?![\w$-])")
_MOMENT = r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?"

_LOWER = re.compile(rf"(>=|>) (?:cast\()?'?({_MOMENT})")

_UPPER = re.compile(rf"(<=|<) (?:cast\()?'?({_MOMENT})")

Range = tuple[datetime, datetime]


def find_table_written_in_event_log(plan: Mapping[str, Any]) -> str | None:
    """Finds the physical table that a plan writes, as `schema.table`; None if it writes none.

    Args:
        plan: `sparkPlanInfo` of the event that starts a statement.
    """
    for node in iterate_event_log_nodes(plan):
        if any(sign in str(node.get("nodeName", "")) for sign in _WRITES):
            found = _find_first_table_of_spark_plan(str(node.get("simpleString", "")))
            if found is not None:
                return found
    return None


def find_tables_read_in_event_log(plan: Mapping[str, Any]) -> set[str]:
    """Finds the physical tables that a plan scans, as `schema.table`."""
    return {
        found
        for node in iterate_event_log_nodes(plan)
        if "Scan" in str(node.get("nodeName", ""))
        and (
            found := _find_first_table_of_spark_plan(
                f"{node.get('nodeName')} {node.get('simpleString')}"
            )
        )
    }


def find_range_written_in_event_log(text: str) -> Range | None:
    """Finds the time range of a statement; the end is exclusive. None if it has none.

    SQLMesh puts the bounds of a batch around the query of a model that is incremental by time, and
    Spark pushes them down. A query may read more than that, never less, so the narrowest range in
    the plan is the batch's.

    Args:
        text: `physicalPlanDescription`.
    """
    found = [span for line in text.splitlines() if (span := _parse_range(line)) is not None]
    return min(found, key=lambda span: span[1] - span[0], default=None)


def _parse_range(line: str) -> Range | None:
    if line.lstrip().startswith("PushedFilters"):
        return None  # cut after a hundred characters, and the conditions say the same
    lower = [_read_lower_bound(*match) for match in _LOWER.findall(line)]
    upper = [_read_upper_bound(*match) for match in _UPPER.findall(line)]
    if not lower or not upper or max(lower) >= min(upper):
        return None
    return max(lower), min(upper)


def _read_lower_bound(operator: str, text: str) -> datetime:
    moment, step = _parse_event_log_moment(text)
    return moment if operator == ">=" else moment + step


def _read_upper_bound(operator: str, text: str) -> datetime:
    moment, step = _parse_event_log_moment(text)
    return moment + step if operator == "<=" else moment


def _parse_event_log_moment(text: str) -> tuple[datetime, timedelta]:
    """Parses a time; returns it in UTC, and the smallest step of its format."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        # The text only looks like a date; return a moment before every real range.
        return datetime(1, 1, 2, tzinfo=timezone.utc), timedelta(0)
    return moment, timedelta(days=1) if len(text) == len("2024-01-31") else timedelta(
        microseconds=1
    )


def _find_first_table_of_spark_plan(text: str) -> str | None:
    match = _TABLE.search(text.replace("`", ""))
    return f"{match[1]}.{match[2]}".lower() if match else None


def iterate_event_log_nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields every node of a physical plan."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in node.get("children") or () if isinstance(child, Mapping))


# The longest pause between two statements of one SQLMesh run. A longer pause has another cause.
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

SQL_EVENTS = "org.apache.spark.sql.execution.ui.SparkListenerSQL"

# What the reading of a line raises that is no JSON, or not of the expected form.
UNREADABLE_LINE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

ReadEvent = Callable[[Mapping[str, Any]], None]


def select_lines_of_event_log(
    lines: Iterable[bytes], readers: Mapping[str, ReadEvent]
) -> Iterator[tuple[ReadEvent, bytes]]:
    """Selects the lines with the events that `readers` names, each with its reader."""
    wanted = {f'{{"Event":"{name}"'.encode(): reader for name, reader in readers.items()}
    for line in lines:
        reader = wanted.get(line[: line.find(b'"', 10) + 1])
        if reader is not None:
            yield reader, line


@dataclass
class SqlExecution:
    """One SQL statement; it writes `table` and scans `reads`."""

    table: str | None
    reads: set[str]
    span: Range | None
    start: float
    end: float | None = None
    stages: list[Counters] = field(default_factory=list)


@dataclass(frozen=True)
class TableWrite:
    """One write into a physical table, with the audits that ran right after it."""

    table: str
    start: float
    end: float
    executor_seconds: float
    span: Range | None
    counters: Counters


@dataclass
class EventLogApplication:
    """The log so far. `cut`: a line is incomplete; `ended`: the application has ended."""

    id: str | None = None
    attempt: str | None = None
    spark: str | None = None
    ended: bool = False
    cut: bool = False
    executors: dict[str, ExecutorSpan] = field(default_factory=dict)
    statements: dict[int, SqlExecution] = field(default_factory=dict)
    _of_stage: dict[int, int] = field(default_factory=dict)

    def read_lines(self, lines: Iterable[bytes]) -> None:
        """Reads the lines of a log, or of the next part of a rolling one.

        A line that is not JSON ends the reading: lines after a cut are not reliable.
        """
        readers = {
            "SparkListenerLogStart": self._log_start,
            "SparkListenerApplicationStart": self._on_application,
            "SparkListenerApplicationEnd": self._on_application_end,
            "SparkListenerExecutorAdded": self._on_executor_added,
            "SparkListenerExecutorRemoved": self._on_executor_removed,
            "SparkListenerJobStart": self._on_job,
            "SparkListenerStageCompleted": self._on_stage,
            f"{SQL_EVENTS}ExecutionStart": self._on_statement,
            f"{SQL_EVENTS}ExecutionEnd": self._note_statement_end,
        }
        for reader, line in select_lines_of_event_log(lines, readers):
            try:
                reader(json.loads(line))
            except UNREADABLE_LINE:
                self.cut = True
                return

    def list_writes(self) -> list[TableWrite]:
        """Lists the completed statements that wrote physical tables of SQLMesh."""
        done = {number: item for number, item in self.statements.items() if item.end is not None}
        spans = _list_statement_spans(done)
        parts = share_executor_allocation(list(self.executors.values()), spans)
        found: list[tuple[SqlExecution, list[Counters], list[float]]] = []
        last: dict[str, int] = {}
        for number, item in sorted(done.items()):
            seconds = parts[str(number)].executors
            if item.table is not None:
                if _is_table_creation(item.stages):
                    continue
                last[item.table] = len(found)
                found.append((item, [*item.stages], [seconds]))
            elif len(item.reads) == 1 and (where := last.get(next(iter(item.reads)))) is not None:
                # It reads only the table that was just written, so it is an audit of that table.
                found[where][1].extend(item.stages)
                found[where][2].append(seconds)
        return [
            TableWrite(
                table=item.table or "",
                start=item.start,
                end=item.end or item.start,
                executor_seconds=sum(seconds),
                span=item.span,
                counters=add_cost_counters(stages),
            )
            for item, stages, seconds in found
        ]

    def _log_start(self, event: Mapping[str, Any]) -> None:
        self.spark = str(event["Spark Version"])

    def _on_application(self, event: Mapping[str, Any]) -> None:
        self.id = event.get("App ID")
        self.attempt = event.get("App Attempt ID")

    def _on_application_end(self, event: Mapping[str, Any]) -> None:
        self.ended = True

    def _on_executor_added(self, event: Mapping[str, Any]) -> None:
        name, cores = str(event["Executor ID"]), int(event["Executor Info"]["Total Cores"])
        if name != _DRIVER:
            # A cluster's driver runs no tasks; in local mode it is the only executor.
            self.executors.pop(_DRIVER, None)
        self.executors[name] = ExecutorSpan(event["Timestamp"] / _MS, None, cores)

    def _on_executor_removed(self, event: Mapping[str, Any]) -> None:
        known = self.executors.get(str(event["Executor ID"]))
        if known is not None:
            gone = ExecutorSpan(known.added, event["Timestamp"] / _MS, known.cores)
            self.executors[str(event["Executor ID"])] = gone

    def _on_job(self, event: Mapping[str, Any]) -> None:
        number = (event.get("Properties") or {}).get("spark.sql.execution.id")
        if number is not None:
            # A stage belongs to the first job that needs it.
            for stage in event["Stage IDs"]:
                self._of_stage.setdefault(int(stage), int(number))

    def _on_stage(self, event: Mapping[str, Any]) -> None:
        info = event["Stage Info"]
        statement = self.statements.get(self._of_stage.get(int(info["Stage ID"]), -1))
        if statement is not None:
            statement.stages.append(_read_counters(info))

    def _on_statement(self, event: Mapping[str, Any]) -> None:
        plan = event["sparkPlanInfo"]
        table = find_table_written_in_event_log(plan)
        self.statements[int(event["executionId"])] = SqlExecution(
            table=table,
            reads=find_tables_read_in_event_log(plan) if table is None else set(),
            span=find_range_written_in_event_log(event["physicalPlanDescription"])
            if table
            else None,
            start=event["time"] / _MS,
        )

    def _note_statement_end(self, event: Mapping[str, Any]) -> None:
        known = self.statements.get(int(event["executionId"]))
        if known is not None:
            known.end = event["time"] / _MS


def _list_statement_spans(done: Mapping[int, SqlExecution]) -> list[BusySpan]:
    """Lists the time span of each statement, with the pause before it if no other one ran.

    An apply's batches also include the time in which SQLMesh renders the query and writes its
    state, and Spark analyses and plans it. A log does not show that time: a statement begins there
    after its planning.
    """
    spans, busy_until = [], float("-inf")
    for number, item in sorted(done.items(), key=lambda pair: pair[1].start):
        end = item.end or item.start
        pause = item.start - busy_until
        start = busy_until if 0 < pause <= LONGEST_PAUSE_SECONDS else item.start
        spans.append(BusySpan(str(number), start, end, add_cost_counters(item.stages).used_seconds))
        busy_until = max(busy_until, end)
    return spans


def _is_table_creation(stages: Iterable[Counters]) -> bool:
    """Whether a statement only made an empty table, as SQLMesh does before it fills one."""
    return not any(
        stage.input_rows or stage.output_rows or stage.shuffle_write_bytes for stage in stages
    )


def _read_counters(info: Mapping[str, Any]) -> Counters:
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
