"""One application's event log, line by line: its executors, and what it wrote into which table.

Most lines are about single tasks and are not parsed: the event that ends a stage has their sums.
Of the environment, which holds passwords, nothing is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from ci_bot.protocol.cost import Counters
from ci_bot.worker.cost.spark_counters import BusySpan, ExecutorSpan, add_counters, share_allocation

# What a physical plan in an event log says: which table it writes, which it reads, which range.
#
# The names of nodes and the texts of predicates are Spark's own, and the same in the versions that
# are read. A physical table of SQLMesh is known by its name: `<schema>.<model>__<version>`.


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
# A version of SQLMesh's is a checksum in decimal digits. A path has `.db/` between the two.
_TABLE = re.compile(r"([\w$-]+)(?:\.db/|\.)([\w$-]+__\d{3,10}(?:__dev)?)(?![\w$-])")

_MOMENT = r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?"

_LOWER = re.compile(rf"(>=|>) (?:cast\()?'?({_MOMENT})")

_UPPER = re.compile(rf"(<=|<) (?:cast\()?'?({_MOMENT})")

Range = tuple[datetime, datetime]


def written_table(plan: Mapping[str, Any]) -> str | None:
    """The physical table that a plan writes, as `schema.table`; None where it writes none.

    Args:
        plan: `sparkPlanInfo` of the event that a statement has begun.
    """
    for node in _iterate_nodes(plan):
        if any(sign in str(node.get("nodeName", "")) for sign in _WRITES):
            found = _first_table(str(node.get("simpleString", "")))
            if found is not None:
                return found
    return None


def read_tables(plan: Mapping[str, Any]) -> set[str]:
    """The physical tables that a plan scans, as `schema.table`."""
    return {
        found
        for node in _iterate_nodes(plan)
        if "Scan" in str(node.get("nodeName", ""))
        and (found := _first_table(f"{node.get('nodeName')} {node.get('simpleString')}"))
    }


def written_range(text: str) -> Range | None:
    """The range of time that a statement is about; the end is exclusive. None where it says none.

    SQLMesh puts the bounds of a batch around the query of a model that is incremental by time, and
    Spark pushes them down. A query may read more than that for itself, never less, so of all ranges
    in the plan the narrowest is the batch's.

    Args:
        text: `physicalPlanDescription`.
    """
    found = [span for line in text.splitlines() if (span := _parse_range(line)) is not None]
    return min(found, key=lambda span: span[1] - span[0], default=None)


def _parse_range(line: str) -> Range | None:
    if line.lstrip().startswith("PushedFilters"):
        return None  # cut at a hundred characters, and the conditions say the same
    lower = [_lower_bound(*match) for match in _LOWER.findall(line)]
    upper = [_upper_bound(*match) for match in _UPPER.findall(line)]
    if not lower or not upper or max(lower) >= min(upper):
        return None
    return max(lower), min(upper)


def _lower_bound(operator: str, text: str) -> datetime:
    moment, step = _parse_moment(text)
    return moment if operator == ">=" else moment + step


def _upper_bound(operator: str, text: str) -> datetime:
    moment, step = _parse_moment(text)
    return moment + step if operator == "<=" else moment


def _parse_moment(text: str) -> tuple[datetime, timedelta]:
    """A moment, and the smallest step of how it is written."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        # Some other text that looks like a date; before every range that is one.
        return datetime(1, 1, 2, tzinfo=timezone.utc), timedelta(0)
    return moment, timedelta(days=1) if len(text) == len("2024-01-31") else timedelta(
        microseconds=1
    )


def _first_table(text: str) -> str | None:
    match = _TABLE.search(text.replace("`", ""))
    return f"{match[1]}.{match[2]}".lower() if match else None


def _iterate_nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in node.get("children") or () if isinstance(child, Mapping))


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
class SqlExecution:
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
class LoggedApplication:
    """What was read so far. `cut`: a line was not whole; `ended`: the log says that it is."""

    id: str | None = None
    attempt: str | None = None
    spark: str | None = None
    ended: bool = False
    cut: bool = False
    executors: dict[str, ExecutorSpan] = field(default_factory=dict)
    statements: dict[int, SqlExecution] = field(default_factory=dict)
    _of_stage: dict[int, int] = field(default_factory=dict)

    def read_lines(self, lines: Iterable[bytes]) -> None:
        """Takes the lines of a log, or of the next part of a rolling one.

        A line that is no JSON ends it: what comes after a cut nobody can trust.
        """
        readers = {
            "SparkListenerLogStart": self._log_start,
            "SparkListenerApplicationStart": self._on_application,
            "SparkListenerApplicationEnd": self._on_application_end,
            "SparkListenerExecutorAdded": self._on_executor_added,
            "SparkListenerExecutorRemoved": self._on_executor_removed,
            "SparkListenerJobStart": self._on_job,
            "SparkListenerStageCompleted": self._on_stage,
            f"{_SQL}ExecutionStart": self._on_statement,
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

    def list_writes(self) -> list[TableWrite]:
        """The statements that wrote physical tables of SQLMesh and came to their end."""
        done = {number: item for number, item in self.statements.items() if item.end is not None}
        spans = _list_spans(done)
        parts = share_allocation(list(self.executors.values()), spans)
        found: list[tuple[SqlExecution, list[Counters], list[float]]] = []
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
                counters=add_counters(stages),
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
            # A cluster's driver runs no tasks; in local mode there is nobody else.
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
            # A stage that a later job needs again was computed for the first one.
            for stage in event["Stage IDs"]:
                self._of_stage.setdefault(int(stage), int(number))

    def _on_stage(self, event: Mapping[str, Any]) -> None:
        info = event["Stage Info"]
        statement = self.statements.get(self._of_stage.get(int(info["Stage ID"]), -1))
        if statement is not None:
            statement.stages.append(_read_counters(info))

    def _on_statement(self, event: Mapping[str, Any]) -> None:
        plan = event["sparkPlanInfo"]
        table = written_table(plan)
        self.statements[int(event["executionId"])] = SqlExecution(
            table=table,
            reads=read_tables(plan) if table is None else set(),
            span=written_range(event["physicalPlanDescription"]) if table else None,
            start=event["time"] / _MS,
        )

    def _statement_end(self, event: Mapping[str, Any]) -> None:
        known = self.statements.get(int(event["executionId"]))
        if known is not None:
            known.end = event["time"] / _MS


def _list_spans(done: Mapping[int, SqlExecution]) -> list[BusySpan]:
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
        spans.append(BusySpan(str(number), start, end, add_counters(item.stages).used_seconds))
        busy_until = max(busy_until, end)
    return spans


def _moved_nothing(stages: Iterable[Counters]) -> bool:
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
