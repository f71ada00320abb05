"""`ci-bot learn`: finds the event logs of prod's Spark, and reads them into the ledger. Loads no
model.

A directory holds single files, and directories of a rolling log. Plain files on this machine are
read directly. Another file system or a compressed log is read with Spark's own classes, in a JVM
without a session, so every file system and codec of the team's Spark works here, too.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

from sqlmesh.core.config.connection import SparkConnectionConfig

from ci_bot.errors import BadInput
from ci_bot.protocol.cost import LearnDocument
from ci_bot.protocol.messages import LearnRequest
from ci_bot.protocol.supported_versions import parse_release
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost.event_log_application import EventLogApplication, TableWrite
from ci_bot.worker.messages import (
    extract_headline_of_error,
    extract_sentence_of_error,
    report_times,
)
from ci_bot.worker.project import collect_versions_of_project, make_project_place, opening
from ci_bot.worker.runtime import WorkerPhaseClock
from ci_bot.worker.state_store import KEEP_DAYS, CostLedger, ProdRunRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

IN_PROGRESS = ".inprogress"
# A plan of thousands of columns has some megabytes. Nothing keeps a longer line in memory.
MOST_LINE_BYTES = 64 * 1024 * 1024
_ROLLING = "eventlog_v2_"
_PART = re.compile(r"^events_(\d+)_")
_COMPACT = ".compact"
_CODECS = (".lz4", ".lzf", ".snappy", ".zstd")


@dataclass(frozen=True)
class ListedEventLogFile:
    """A file or a directory: its name without the directories above it, and its last change."""

    path: str
    name: str
    directory: bool
    changed: float


class EventLogFiles(Protocol):
    """How files are listed and read. Times are seconds since the epoch."""

    def list_entries(self, path: str) -> list[ListedEventLogFile]: ...
    def read_lines(self, entry: ListedEventLogFile) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class EventLog:
    """One application's log: its files in order."""

    name: str
    changed: float
    parts: tuple[ListedEventLogFile, ...]
    in_progress: bool


def list_event_logs(files: EventLogFiles, directory: str) -> Iterator[EventLog]:
    """Yields the logs in a directory, newest first.

    Raises:
        OSError: it cannot be listed.
    """
    for entry in sorted(files.list_entries(directory), key=lambda entry: -entry.changed):
        if entry.directory and entry.name.startswith(_ROLLING):
            inside = files.list_entries(entry.path)
            parts = _list_rolling_parts(inside)
            if parts:
                yield EventLog(
                    name=entry.name,
                    changed=max(part.changed for part in parts),
                    parts=parts,
                    in_progress=any(item.name.endswith(IN_PROGRESS) for item in inside),
                )
        elif not entry.directory and not entry.name.startswith((".", "_")):
            yield EventLog(entry.name, entry.changed, (entry,), entry.name.endswith(IN_PROGRESS))


def _list_rolling_parts(
    entries: list[ListedEventLogFile],
) -> tuple[ListedEventLogFile, ...]:
    """Lists the parts in order, without parts that a compaction has merged."""
    numbered = sorted(
        ((int(match[1]), entry) for entry in entries if (match := _PART.match(entry.name))),
        key=lambda pair: (pair[0], not pair[1].name.endswith(_COMPACT)),
    )
    compact = max((n for n, entry in numbered if entry.name.endswith(_COMPACT)), default=-1)
    return tuple(
        entry
        for number, entry in numbered
        if number > compact or (number == compact and entry.name.endswith(_COMPACT))
    )


def is_compressed_event_log(name: str) -> bool:
    """Whether Spark has compressed a file of this name."""
    return name.removesuffix(IN_PROGRESS).removesuffix(_COMPACT).endswith(_CODECS)


def _iterate_event_log_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of a file; of a line that is too long its beginning, which is no event."""
    while line := file.readline(MOST_LINE_BYTES):
        yield line
        while len(line) == MOST_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MOST_LINE_BYTES)


class LocalEventLogFiles:
    """This machine's own files.

    Args:
        decompressed: Makes a context with the path of a compressed file's plain content.
    """

    def __init__(self, decompressed: Callable[[str], Any]) -> None:
        self._decompressed = decompressed

    def list_entries(self, path: str) -> list[ListedEventLogFile]:
        found = []
        for item in Path(path).iterdir():
            try:
                status = item.stat()
            except OSError:
                continue  # a running application renames its log when it ends
            found.append(ListedEventLogFile(str(item), item.name, item.is_dir(), status.st_mtime))
        return found

    def read_lines(self, entry: ListedEventLogFile) -> Iterator[bytes]:
        if is_compressed_event_log(entry.name):
            with self._decompressed(entry.path) as plain, Path(plain).open("rb") as file:
                yield from _iterate_event_log_lines(file)
        else:
            with Path(entry.path).open("rb") as file:
                yield from _iterate_event_log_lines(file)


class HadoopEventLogFiles:
    """Files on any file system that Hadoop's classes on Spark's class path support.

    Args:
        jvm: py4j's view of Spark's JVM.
        settings: Spark's configuration; `spark.hadoop.*` has the login.
    """

    def __init__(self, jvm: Any, settings: Mapping[str, str]) -> None:
        self._jvm = jvm
        spark = jvm.org.apache.spark.SparkConf(False)
        for key, value in settings.items():
            spark.set(key, value)
        self._conf = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(spark)

    def list_entries(self, path: str) -> list[ListedEventLogFile]:
        where = self._make_hadoop_path(path)
        try:
            return [
                ListedEventLogFile(
                    path=status.getPath().toString(),
                    name=status.getPath().getName(),
                    directory=status.isDirectory(),
                    changed=status.getModificationTime() / 1_000,
                )
                for status in where.getFileSystem(self._conf).listStatus(where)
            ]
        except Exception as error:
            raise OSError(extract_sentence_of_error(error)) from error

    def read_lines(self, entry: ListedEventLogFile) -> Iterator[bytes]:
        with self.decompress_log(entry.path) as plain, Path(plain).open("rb") as file:
            yield from _iterate_event_log_lines(file)

    @contextmanager
    def decompress_log(self, path: str) -> Iterator[str]:
        """Makes a local file with the plain content of a log, which exists until the block ends."""
        with tempfile.TemporaryDirectory(prefix="event-log-") as directory:
            target = str(Path(directory, "plain"))
            self._copy_file(self._make_hadoop_path(path), target)
            yield target

    def _copy_file(self, source: Any, target: str) -> None:
        reader = self._jvm.org.apache.spark.deploy.history.EventLogFileReader
        out = self._jvm.java.io.FileOutputStream(target)
        try:
            stream = reader.openEventLog(source, source.getFileSystem(self._conf))
            # A log that is cut ends in the middle of a compressed block; the part before is usable.
            self._jvm.org.apache.hadoop.io.IOUtils.copyBytes(stream, out, 1 << 16, True)
        except Exception as error:
            if not Path(target).stat().st_size:
                raise OSError(extract_sentence_of_error(error)) from error
        finally:
            out.close()

    def _make_hadoop_path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def get_local_path_of_event_logs(directory: str) -> str | None:
    """Returns the path of a local directory; None if it is on another file system."""
    if directory.startswith("file:"):
        return "/" + directory.removeprefix("file:").lstrip("/")
    return None if "://" in directory else directory


def make_unreadable_event_logs_error(directory: str, error: Exception) -> BadInput:
    """Makes the error for logs that cannot be read."""
    known: dict[type[Exception], str] = {
        FileNotFoundError: "it is not there",
        NotADirectoryError: "it is no directory",
        PermissionError: "reading it is not permitted",
    }
    why = known.get(type(error)) or extract_headline_of_error(error)
    return BadInput(
        f"The event logs in {directory} cannot be read: {why}.",
        hint="Name the directory that `spark.eventLog.dir` of prod's Spark names.",
        reason_code="no_event_logs",
    )


# Reads event logs into the ledger: each application once, in whatever state its log is.


# The Spark versions whose logs are tested. Another one may use the same names differently.
OLDEST_SPARK, NEWEST_SPARK = (3, 4), (4, 1)

_DAY = 86_400


@dataclass
class LearnedLogs:
    """The number of logs by result, and why one could not be opened."""

    counts: Counter[str] = field(default_factory=Counter)
    tables: set[str] = field(default_factory=set)
    remark: str | None = None


def learn_costs_from_event_logs(
    files: EventLogFiles,
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
    oldest = report_times.format_iso_in_message(int((now - KEEP_DAYS * _DAY) * 1_000))
    for log in list_event_logs(files, directory):
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
            application = read_event_log(files, log)
        except OSError as error:
            found.counts["unreadable"] += 1
            found.remark = found.remark or f"{log.name}: {extract_sentence_of_error(error)}"[:4_000]
            continue
        writes = _list_judged_writes(application, log, found)
        if not writes and not log.in_progress:
            ledger.remember_source(
                log.name, report_times.format_iso_in_message(int(log.changed * 1_000))
            )
        if writes:
            name = log.name.removesuffix(IN_PROGRESS)
            running = f"{name}{IN_PROGRESS}"
            rows = [
                make_cost_row_of_prod_run(write, running if log.in_progress else name)
                for write in writes
            ]
            # Remove the rows that were read while the application ran, in both cases.
            ledger.replace_prod_runs(running, [], forget_before=oldest)
            ledger.replace_prod_runs(rows[0].source, rows, forget_before=oldest)
            found.counts["writes"] += len(rows)
            found.tables |= {row.table for row in rows}
    return found


def read_event_log(files: EventLogFiles, log: EventLog) -> EventLogApplication:
    """Reads one log, to its end or to its cut.

    Raises:
        OSError: a part of it cannot be opened.
    """
    application = EventLogApplication()
    for part in log.parts:
        lines: Iterator[bytes] = files.read_lines(part)
        application.read_lines(lines)
        if application.cut or not is_readable_event_log_version(application.spark):
            break
    return application


def make_cost_row_of_prod_run(write: TableWrite, source: str) -> ProdRunRow:
    """Makes the ledger's row of a write."""
    start, end = write.span or (None, None)
    return ProdRunRow(
        source=source,
        table=write.table,
        at=report_times.format_iso_in_message(int(write.start * 1_000)),
        seconds=round(write.end - write.start, 3),
        executor_seconds=round(write.executor_seconds, 3),
        start=report_times.format_iso_in_message(start) if start else None,
        end=report_times.format_iso_in_message(end) if end else None,
        counters=write.counters,
    )


def _list_judged_writes(
    application: EventLogApplication, log: EventLog, found: LearnedLogs
) -> list[TableWrite]:
    if application.spark is None:
        found.counts["unreadable"] += 1
        found.remark = found.remark or f"{log.name} does not begin as an event log of Spark does."
        return []
    if not is_readable_event_log_version(application.spark):
        found.counts["other_version"] += 1
        return []
    writes = application.list_writes()
    if not application.ended and not log.in_progress:
        found.counts["cut"] += 1
    found.counts["read" if writes else "foreign"] += 1
    return writes


def is_readable_event_log_version(version: str | None) -> bool:
    """Whether logs of this version of Spark are tested."""
    # A vendor adds a suffix of its own: 3.5.1-amzn-0.
    release = parse_release((version or "").partition("-")[0])
    return OLDEST_SPARK <= release[:2] <= NEWEST_SPARK


@dataclass(frozen=True)
class EventLogPorts:
    """The clock and callbacks that learning gets. `before_java` is called before a JVM starts."""

    clock: WorkerPhaseClock
    progress: Callable[[str, str], None]
    before_java: Callable[[], None]
    stop: Callable[[], bool]


def learn_from_event_logs(request: LearnRequest, ports: EventLogPorts) -> LearnDocument:
    """Reads the logs, and records the writes to SQLMesh's tables in the ledger.

    Raises:
        BadInput: there is no state yet, or the directory cannot be read.
    """
    started = ports.clock.now()
    place = make_project_place(request, request.projects)
    with opening.open_project_state_to_write(place, ports.before_java, ports.clock) as context:
        ledger = CostLedger(sqlmesh_compat.get_sqlmesh_state_adapter(context))
        ledger.prepare_tables()
        found = learn_event_logs_into_ledger(
            ledger, request.event_logs, read_hadoop_settings(context), ports
        )
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
        versions=collect_versions_of_project(None),
    )


def learn_event_logs_into_ledger(
    ledger: CostLedger, directory: str, settings: dict[str, str], ports: EventLogPorts
) -> LearnedLogs:
    """Runs `learn_costs_from_event_logs` with the file system of the directory.

    Raises:
        BadInput: the directory cannot be read.
    """
    return read_directory_of_event_logs(
        directory,
        settings,
        ports,
        lambda files, here: learn_costs_from_event_logs(
            files,
            here,
            ledger,
            now=time.time(),
            stop=ports.stop,
            progress=lambda message: ports.progress("learn", message),
        ),
    )


ReadLogs = TypeVar("ReadLogs")


def read_directory_of_event_logs(
    directory: str,
    settings: dict[str, str],
    ports: EventLogPorts,
    read: Callable[[EventLogFiles, str], ReadLogs],
) -> ReadLogs:
    """Calls `read` with the logs of a directory, on the file system that it is on.

    Args:
        settings: Spark's configuration, for file systems that need a login.
        read: Gets the files, and the directory's path on them.

    Returns:
        The result of `read`.

    Raises:
        BadInput: the directory cannot be read.
    """

    @cache
    def open_hadoop_files() -> HadoopEventLogFiles:
        ports.before_java()
        return HadoopEventLogFiles(_start_jvm(), settings)

    def decompress_log(path: str) -> AbstractContextManager[str]:
        return open_hadoop_files().decompress_log(f"file://{path}")

    here = get_local_path_of_event_logs(directory)
    try:
        files: EventLogFiles = (
            LocalEventLogFiles(decompress_log) if here is not None else open_hadoop_files()
        )
        return read(files, here or directory)
    except OSError as error:
        raise make_unreadable_event_logs_error(directory, error) from error


def read_hadoop_settings(context: Context) -> dict[str, str]:
    """Reads Spark's configuration from the project's gateway; empty without Spark."""
    connection = context.config.get_connection(context.selected_gateway)
    if not isinstance(connection, SparkConnectionConfig):
        return {}
    return {key: str(value) for key, value in connection.config.items()}


def _start_jvm() -> Any:
    """Returns Spark's JVM without a session: that of a running session, or a new one."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    launch: Any = launch_gateway  # PySpark has no types for it
    return (SparkContext._gateway or launch()).jvm
