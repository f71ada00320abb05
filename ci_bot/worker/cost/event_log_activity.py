"""`ci-bot learn`: reads the event logs of prod's Spark into the ledger. Loads no model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlmesh.core.config.connection import SparkConnectionConfig

from ci_bot.protocol.cost import LearnDocument
from ci_bot.protocol.messages import LearnRequest
from ci_bot.protocol.supported_versions import parse_release
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost.event_log_application import LoggedApplication, TableWrite
from ci_bot.worker.cost.event_log_files import (
    IN_PROGRESS,
    EventLog,
    FileSystem,
    HadoopFiles,
    LocalFiles,
    list_logs,
    local_path,
    make_unreadable_logs_error,
)
from ci_bot.worker.messages import extract_sentence, names_and_times
from ci_bot.worker.project import collect_versions, make_project_place, opening
from ci_bot.worker.runtime import PhaseClock
from ci_bot.worker.state_store import KEEP_DAYS, CostLedger, ProdRunRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

# Reads event logs into the ledger: each application once, whatever the state of its log.


# The Spark versions whose logs are tested. Another one may use the same names differently.
OLDEST_SPARK, NEWEST_SPARK = (3, 4), (4, 1)

_DAY = 86_400


@dataclass
class LearnedLogs:
    """The outcomes of the logs, by count, and why one could not be opened."""

    counts: Counter[str] = field(default_factory=Counter)
    tables: set[str] = field(default_factory=set)
    remark: str | None = None


def learn_from_logs(
    files: FileSystem,
    directory: str,
    ledger: CostLedger,
    *,
    now: float,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda _message: None,
) -> LearnedLogs:
    """Reads new logs, newest first, and writes their table writes into the ledger.

    Args:
        now: Seconds since the epoch; logs older than the ledger's history are skipped.
        stop: Whether to stop; checked between two logs.

    Raises:
        OSError: the directory cannot be listed.
    """
    found = LearnedLogs()
    known = ledger.list_sources()
    oldest = names_and_times.format_iso(int((now - KEEP_DAYS * _DAY) * 1_000))
    for log in list_logs(files, directory):
        if stop():
            break
        found.counts["logs"] += 1
        if log.changed < now - KEEP_DAYS * _DAY:
            found.counts["old"] += 1
            continue
        if log.name in known and not log.in_progress:
            found.counts["known"] += 1
            continue
        progress(f"reading {log.name}")
        try:
            application = read_log(files, log)
        except OSError as error:
            found.counts["unreadable"] += 1
            found.remark = found.remark or f"{log.name}: {extract_sentence(error)}"[:4_000]
            continue
        writes = _list_judged_writes(application, log, found)
        if not writes and not log.in_progress:
            ledger.remember_source(log.name, names_and_times.format_iso(int(log.changed * 1_000)))
        if writes:
            name = log.name.removesuffix(IN_PROGRESS)
            running = f"{name}{IN_PROGRESS}"
            rows = [
                make_prod_run_row(write, running if log.in_progress else name) for write in writes
            ]
            # Remove the rows that were read while the application ran, in both cases.
            ledger.replace_prod_runs(running, [], forget_before=oldest)
            ledger.replace_prod_runs(rows[0].source, rows, forget_before=oldest)
            found.counts["writes"] += len(rows)
            found.tables |= {row.table for row in rows}
    return found


def read_log(files: FileSystem, log: EventLog) -> LoggedApplication:
    """Reads one log, to its end or to its cut.

    Raises:
        OSError: a part of it cannot be opened.
    """
    application = LoggedApplication()
    for part in log.parts:
        lines: Iterator[bytes] = files.read_lines(part)
        application.read_lines(lines)
        if application.cut or not is_readable_version(application.spark):
            break
    return application


def make_prod_run_row(write: TableWrite, source: str) -> ProdRunRow:
    """Makes the ledger's row of a write."""
    start, end = write.span or (None, None)
    return ProdRunRow(
        source=source,
        table=write.table,
        at=names_and_times.format_iso(int(write.start * 1_000)),
        seconds=round(write.end - write.start, 3),
        executor_seconds=round(write.executor_seconds, 3),
        start=names_and_times.format_iso(start) if start else None,
        end=names_and_times.format_iso(end) if end else None,
        counters=write.counters,
    )


def _list_judged_writes(
    application: LoggedApplication, log: EventLog, found: LearnedLogs
) -> list[TableWrite]:
    if application.spark is None:
        found.counts["unreadable"] += 1
        found.remark = found.remark or f"{log.name} does not begin as an event log of Spark does."
        return []
    if not is_readable_version(application.spark):
        found.counts["other_version"] += 1
        return []
    writes = application.list_writes()
    if not application.ended and not log.in_progress:
        found.counts["cut"] += 1
    found.counts["read" if writes else "foreign"] += 1
    return writes


def is_readable_version(version: str | None) -> bool:
    """Whether logs of this version of Spark were tried."""
    # A vendor adds a suffix of its own: 3.5.1-amzn-0.
    release = parse_release((version or "").partition("-")[0])
    return OLDEST_SPARK <= release[:2] <= NEWEST_SPARK


@dataclass(frozen=True)
class LearnPorts:
    """The clock and callbacks that learning gets. `before_java` is called before a JVM starts."""

    clock: PhaseClock
    progress: Callable[[str, str], None]
    before_java: Callable[[], None]
    stop: Callable[[], bool]


def learn_logs(request: LearnRequest, ports: LearnPorts) -> LearnDocument:
    """Reads the logs, and records the writes to SQLMesh's tables in the ledger.

    Raises:
        BadInput: there is no state yet, or the directory cannot be read.
    """
    started = ports.clock.now()
    place = make_project_place(request, request.projects)
    with opening.open_state_to_write(place, ports.before_java, ports.clock) as context:
        ledger = CostLedger(sqlmesh_compat.get_state_adapter(context))
        ledger.prepare_tables()
        found = learn_into_ledger(ledger, request.event_logs, read_hadoop_settings(context), ports)
    return LearnDocument(
        directory=request.event_logs,
        logs=found.counts["logs"],
        read=found.counts["read"],
        known=found.counts["known"],
        foreign=found.counts["foreign"],
        other_version=found.counts["other_version"],
        cut=found.counts["cut"],
        unreadable=found.counts["unreadable"],
        old=found.counts["old"],
        writes=found.counts["writes"],
        tables=len(found.tables),
        remark=found.remark,
        seconds=round(ports.clock.now() - started, 3),
        versions=collect_versions(None),
    )


def learn_into_ledger(
    ledger: CostLedger, directory: str, settings: dict[str, str], ports: LearnPorts
) -> LearnedLogs:
    """Runs `learn_from_logs` with the file system of the directory.

    Raises:
        BadInput: the directory cannot be read.
    """
    return read_directory(
        directory,
        settings,
        ports,
        lambda files, here: learn_from_logs(
            files,
            here,
            ledger,
            now=time.time(),
            stop=ports.stop,
            progress=lambda message: ports.progress("learn", message),
        ),
    )


ReadLogs = TypeVar("ReadLogs")


def read_directory(
    directory: str,
    settings: dict[str, str],
    ports: LearnPorts,
    read: Callable[[FileSystem, str], ReadLogs],
) -> ReadLogs:
    """What somebody makes of a directory's logs, on the file system that it is on.

    Args:
        settings: Spark's configuration, for file systems that ask who is there.
        read: Is given the files and the directory's path on them.

    Raises:
        BadInput: the directory cannot be read.
    """

    @cache
    def open_hadoop_files() -> HadoopFiles:
        ports.before_java()
        return HadoopFiles(_start_spark_jvm(), settings)

    def decompress_log(path: str) -> AbstractContextManager[str]:
        return open_hadoop_files().decompress_log(f"file://{path}")

    here = local_path(directory)
    try:
        files: FileSystem = LocalFiles(decompress_log) if here is not None else open_hadoop_files()
        return read(files, here or directory)
    except OSError as error:
        raise make_unreadable_logs_error(directory, error) from error


def read_hadoop_settings(context: Context) -> dict[str, str]:
    """Spark's configuration as the project's gateway has it; empty without Spark."""
    connection = context.config.get_connection(context.selected_gateway)
    if not isinstance(connection, SparkConnectionConfig):
        return {}
    return {key: str(value) for key, value in connection.config.items()}


def _start_spark_jvm() -> Any:
    """Returns Spark's JVM without a session: that of a running session, or a new one."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    launch: Any = launch_gateway  # PySpark has no types for it
    return (SparkContext._gateway or launch()).jvm
