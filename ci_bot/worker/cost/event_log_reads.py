"""Who has read prod's views, according to Spark's event logs. No model is loaded for it.

A log is somebody else's text: lines have a maximum length, lines that are no event are skipped and
counted, and only names of applications, users, models and columns are passed on.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlmesh.core import constants as c

from ci_bot.protocol.cost import ExposuresDocument, LoggedReader
from ci_bot.protocol.messages import ExposuresRequest
from ci_bot.worker.cost.event_log_application import (
    SQL_EVENTS,
    UNREADABLE_LINE,
    ReadEvent,
    find_table_written_in_event_log,
    iterate_event_log_nodes,
    select_lines_of_event_log,
)
from ci_bot.worker.cost.event_logs import (
    EventLog,
    EventLogFiles,
    EventLogPorts,
    is_readable_event_log_version,
    list_event_logs,
    read_directory_of_event_logs,
    read_hadoop_settings,
)
from ci_bot.worker.messages import extract_sentence_of_error, report_times
from ci_bot.worker.project import collect_versions_of_project, make_project_place, opening

_NOBODY = "so nobody can have read it"
DAYS = 90
_DAY = 86_400
# A person reads each as an exposure, and the file that lists them has a limit, too.
MOST_READERS = 500
_MOST_COLUMNS = 500
_LONGEST_NAME = 200

# A physical table with its version, and the columns behind it: `db.t__123[id#1, amount#2L]`.
_SCANNED = re.compile(r"([\w$-]+)(?:\.db/|\.)([\w$-]+)__\d{3,10}(?![\w$-]) ?\[([^\]]*)\]")
_COLUMN = re.compile(r"(.+)#\d+L?")
_VERSION = re.compile(r"__\d{3,10}$")
# A column that the source itself has filtered is no longer a column of the scan.
_FILTERED = re.compile(r"\bfilters=([^\]]*?)(?:, groupedBy=|\])")
_IN_FILTER = re.compile(r"\b([A-Za-z_]\w*) (?:[<>=!]|IS |IN |LIKE |NOT )")
# A run's number, a date or an identifier in the name of an application.
_RUN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")

Who = tuple[str, str]


@dataclass
class ModelReadInEventLog:
    """What was read from a model: its columns; None if all of them were read or it is not known."""

    columns: set[str] | None = field(default_factory=set)

    def add_columns(self, columns: Iterable[str] | None) -> None:
        """Notes more columns."""
        if columns is None or self.columns is None:
            self.columns = None
            return
        self.columns.update(columns)
        if len(self.columns) > _MOST_COLUMNS:
            self.columns = None


@dataclass
class ReaderInEventLog:
    """What one reader has read, when it last read, and in how many statements."""

    last: float = 0.0
    statements: int = 0
    reads: dict[str, ModelReadInEventLog] = field(default_factory=dict)

    def add_reads(self, reads: Mapping[str, Iterable[str] | None]) -> None:
        """Notes what a statement reads."""
        for model, columns in reads.items():
            self.reads.setdefault(model, ModelReadInEventLog()).add_columns(columns)

    def add_activity(self, other: ReaderInEventLog) -> None:
        """Adds what another run of the same application has read."""
        self.last = max(self.last, other.last)
        self.statements += other.statements
        self.add_reads({model: read.columns for model, read in other.reads.items()})


@dataclass
class EventLogReads:
    """One application's log, as far as it was read.

    Attributes:
        models: by physical table without its version, as `schema.table` in lower case.
        oldest: statements before it do not count; seconds since the epoch.
        malformed: the number of lines that begin like an event and are not one.
        writes: whether it builds tables of SQLMesh, so it is no reader from outside.
    """

    models: Mapping[str, str]
    oldest: float
    spark: str | None = None
    name: str = ""
    user: str = ""
    malformed: int = 0
    writes: bool = False
    activity: ReaderInEventLog = field(default_factory=ReaderInEventLog)

    def read_lines(self, lines: Iterable[bytes]) -> None:
        """Reads the lines of a log, or of the next part of a rolling one."""
        readers: dict[str, ReadEvent] = {
            "SparkListenerLogStart": self._on_log_start,
            "SparkListenerApplicationStart": self._on_application,
            f"{SQL_EVENTS}ExecutionStart": self._on_statement,
        }
        for reader, line in select_lines_of_event_log(lines, readers):
            try:
                reader(json.loads(line))
            except UNREADABLE_LINE:
                self.malformed += 1

    def _on_log_start(self, event: Mapping[str, Any]) -> None:
        self.spark = str(event["Spark Version"])

    def _on_application(self, event: Mapping[str, Any]) -> None:
        self.name = shorten_name_of_event_log_reader(event["App Name"])
        self.user = shorten_name_of_event_log_reader(event["User"])

    def _on_statement(self, event: Mapping[str, Any]) -> None:
        plan, at = event["sparkPlanInfo"], float(event["time"]) / 1_000
        if find_table_written_in_event_log(plan) is not None:
            self.writes = True
        reads: dict[str, ModelReadInEventLog] = {}
        for table, columns in list_scans_in_event_log(plan):
            model = self.models.get(table)
            if model is not None:
                reads.setdefault(model, ModelReadInEventLog()).add_columns(columns)
        if reads and at >= self.oldest:
            self.activity.last = max(self.activity.last, at)
            self.activity.statements += 1
            self.activity.add_reads({model: read.columns for model, read in reads.items()})


def list_scans_in_event_log(plan: Mapping[str, Any]) -> Iterator[tuple[str, list[str] | None]]:
    """Yields the physical tables that a plan scans, without their versions, with their columns.

    Columns are None if they are not known. Previews (`__dev`) are left out: no view of prod shows
    them.

    Args:
        plan: `sparkPlanInfo` of the event that starts a statement.
    """
    for node in iterate_event_log_nodes(plan):
        if "Scan" not in str(node.get("nodeName", "")):
            continue
        text = str(node.get("simpleString", "")).replace("`", "")
        match = _SCANNED.search(text)
        if match is not None:
            yield (
                f"{match[1]}.{match[2]}".lower(),
                _list_scanned_columns(match[3], text[match.end() :]),
            )


def _list_scanned_columns(listed: str, rest: str) -> list[str] | None:
    """Lists the columns of a scan; None if Spark has cut the list, or a name is not readable."""
    found: list[str] = []
    for item in filter(None, (part.strip() for part in listed.split(","))):
        match = _COLUMN.fullmatch(item)
        if match is None or not item.isprintable():
            return None
        found.append(match[1].lower())
    for filters in _FILTERED.findall(rest):
        found += [name.lower() for name in _IN_FILTER.findall(filters)]
    return found


def shorten_name_of_event_log_reader(value: object) -> str:
    """Shortens the name of an application or user to one line, and a path to its last part."""
    text = " ".join(str(value).split())
    plain = "".join(letter for letter in text if letter.isprintable())
    last = re.split(r"[/\\]", plain.rstrip("/\\"))[-1]
    return last[:_LONGEST_NAME].strip()


def join_runs_of_event_log_readers(
    found: Mapping[Who, ReaderInEventLog],
) -> dict[Who, ReaderInEventLog]:
    """Joins applications of one user whose names differ only in numbers: `export-*`."""
    groups: dict[Who, list[Who]] = {}
    for name, user in found:
        groups.setdefault((_RUN.sub("*", name), user), []).append((name, user))
    joined: dict[Who, ReaderInEventLog] = {}
    for pattern, members in groups.items():
        activity = ReaderInEventLog()
        for member in members:
            activity.add_activity(found[member])
        joined[pattern if len(members) > 1 else members[0]] = activity
    return joined


def map_physical_tables(infos: Iterable[Any]) -> dict[str, str]:
    """Maps each physical table of prod, as `schema.table` without the version, to its model.

    The models' names have no catalog if all of them are in the same one.

    Args:
        infos: The snapshots as prod's environment lists them.
    """
    models = [info for info in infos if info.is_model and not info.is_symbolic]
    names = {info.name: _drop_quotes_from_name(info.name) for info in models}
    prefixes = {name.removesuffix(_drop_catalog(name)) for name in names.values()}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    return {
        _VERSION.sub("", _drop_catalog(_drop_quotes_from_name(info.table_name()).lower())): (
            names[info.name].removeprefix(prefix)
        )
        for info in models
    }


def _drop_catalog(name: str) -> str:
    """Returns schema and table, without the catalog."""
    return ".".join(name.split(".")[-2:])


def _drop_quotes_from_name(name: str) -> str:
    return name.replace('"', "").replace("`", "")


@dataclass
class ReadersInEventLogs:
    """The number of logs by result, and what each reader has read."""

    counts: Counter[str] = field(default_factory=Counter)
    readers: dict[Who, ReaderInEventLog] = field(default_factory=dict)
    remark: str | None = None


def find_readers_in_event_logs(
    files: EventLogFiles,
    directory: str,
    models: Mapping[str, str],
    *,
    now: float,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda _message: None,
) -> ReadersInEventLogs:
    """Reads the logs of the last 90 days, the newest first.

    Args:
        models: See `EventLogReads`.
        now: Seconds since the epoch.

    Raises:
        OSError: the directory cannot be listed.
    """
    found, oldest = ReadersInEventLogs(), now - DAYS * _DAY
    for log in list_event_logs(files, directory):
        if stop():
            break
        found.counts["logs"] += 1
        if log.changed < oldest:
            found.counts["old"] += 1
            continue
        progress(f"reading {log.name}")
        reads = EventLogReads(models, oldest)
        try:
            _read_event_log_parts(files, log, reads)
        except OSError as error:
            found.counts["unreadable"] += 1
            found.remark = found.remark or extract_sentence_of_error(error)[:4_000]
            continue
        found.counts["malformed"] += reads.malformed
        found.counts[_add_application(reads, found)] += 1
    found.readers = join_runs_of_event_log_readers(found.readers)
    return found


def _read_event_log_parts(files: EventLogFiles, log: EventLog, reads: EventLogReads) -> None:
    for part in log.parts:
        reads.read_lines(files.read_lines(part))
        if not is_readable_event_log_version(reads.spark):
            break


def _add_application(reads: EventLogReads, found: ReadersInEventLogs) -> str:
    """Notes what an application has read; returns the name of the count for its log."""
    if reads.spark is None:
        return "unreadable"
    if not is_readable_event_log_version(reads.spark):
        return "other_version"
    if reads.writes:
        return "own"
    if not reads.activity.statements:
        return "foreign"
    who = (reads.name or "an application without a name", reads.user)
    found.readers.setdefault(who, ReaderInEventLog()).add_activity(reads.activity)
    return "read"


def list_readers_in_event_logs(
    request: ExposuresRequest, ports: EventLogPorts
) -> ExposuresDocument:
    """Lists who has read prod's tables in the last 90 days, from a directory of logs. Read-only.

    Raises:
        BadInput: there is no state or no prod yet, or the directory cannot be read.
    """
    started = ports.clock.now()
    place = make_project_place(request, request.projects)
    now = time.time()
    opened = opening.open_project_state_to_read(
        place, ports.before_java, ports.clock, without=_NOBODY
    )
    with opened as (context, state):
        prod = state.get_environment(c.PROD)
        if prod is None:
            raise opening.make_project_without_prod_error(_NOBODY)
        models = map_physical_tables(prod.snapshots)
        found = read_directory_of_event_logs(
            request.event_logs,
            read_hadoop_settings(context),
            ports,
            lambda files, directory: find_readers_in_event_logs(
                files,
                directory,
                models,
                now=now,
                stop=ports.stop,
                progress=lambda message: ports.progress("exposures", message),
            ),
        )
    newest = sorted(found.readers.items(), key=lambda item: -item[1].last)
    return ExposuresDocument(
        since=report_times.format_iso_in_message(int((now - DAYS * _DAY) * 1_000)),
        logs=found.counts["logs"],
        read=found.counts["read"],
        own=found.counts["own"],
        foreign=found.counts["foreign"],
        other_version=found.counts["other_version"],
        unreadable=found.counts["unreadable"],
        old=found.counts["old"],
        malformed=found.counts["malformed"],
        readers=[
            LoggedReader(
                application=who[0],
                user=who[1],
                last_read=report_times.format_iso_in_message(int(activity.last * 1_000)),
                statements=activity.statements,
                reads={
                    model: None if read.columns is None else sorted(read.columns)
                    for model, read in sorted(activity.reads.items())
                },
            )
            for who, activity in sorted(newest[:MOST_READERS])
        ],
        more_readers=max(len(newest) - MOST_READERS, 0),
        remark=found.remark,
        seconds=round(ports.clock.now() - started, 3),
        versions=collect_versions_of_project(None),
    )
