"""The event logs in a directory: single files, and directories of a rolling log.

Plain files on this machine are read directly. Another file system or a compressed log is read with
Spark's own classes, in a JVM without a session, so every file system and codec of the team's Spark
works here, too.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ci_bot.errors import BadInput
from ci_bot.worker.messages import extract_headline, extract_sentence

IN_PROGRESS = ".inprogress"
# A plan of thousands of columns has some megabytes. What is longer is held by nobody.
MOST_LINE_BYTES = 64 * 1024 * 1024
_ROLLING = "eventlog_v2_"
_PART = re.compile(r"^events_(\d+)_")
_COMPACT = ".compact"
_CODECS = (".lz4", ".lzf", ".snappy", ".zstd")


@dataclass(frozen=True)
class ListedFile:
    """A file or a directory: its name without the directories above it, and its last change."""

    path: str
    name: str
    directory: bool
    changed: float


class FileSystem(Protocol):
    """How files are listed and read. Times are seconds since the epoch."""

    def list_entries(self, path: str) -> list[ListedFile]: ...
    def read_lines(self, entry: ListedFile) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class EventLog:
    """One application's log: its files in order."""

    name: str
    changed: float
    parts: tuple[ListedFile, ...]
    in_progress: bool


def list_logs(files: FileSystem, directory: str) -> Iterator[EventLog]:
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


def _list_rolling_parts(entries: list[ListedFile]) -> tuple[ListedFile, ...]:
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


def is_compressed(name: str) -> bool:
    """Whether Spark has compressed a file of this name."""
    return name.removesuffix(IN_PROGRESS).removesuffix(_COMPACT).endswith(_CODECS)


def _iterate_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is too long its beginning, which is no event."""
    while line := file.readline(MOST_LINE_BYTES):
        yield line
        while len(line) == MOST_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MOST_LINE_BYTES)


class LocalFiles:
    """This machine's own files.

    Args:
        decompressed: Makes a context with the path of a compressed file's plain content.
    """

    def __init__(self, decompressed: Callable[[str], Any]) -> None:
        self._decompressed = decompressed

    def list_entries(self, path: str) -> list[ListedFile]:
        found = []
        for item in Path(path).iterdir():
            try:
                status = item.stat()
            except OSError:
                continue  # a running application renames its log when it ends
            found.append(ListedFile(str(item), item.name, item.is_dir(), status.st_mtime))
        return found

    def read_lines(self, entry: ListedFile) -> Iterator[bytes]:
        if is_compressed(entry.name):
            with self._decompressed(entry.path) as plain, Path(plain).open("rb") as file:
                yield from _iterate_lines(file)
        else:
            with Path(entry.path).open("rb") as file:
                yield from _iterate_lines(file)


class HadoopFiles:
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

    def list_entries(self, path: str) -> list[ListedFile]:
        where = self._make_hadoop_path(path)
        try:
            return [
                ListedFile(
                    path=status.getPath().toString(),
                    name=status.getPath().getName(),
                    directory=status.isDirectory(),
                    changed=status.getModificationTime() / 1_000,
                )
                for status in where.getFileSystem(self._conf).listStatus(where)
            ]
        except Exception as error:
            raise OSError(extract_sentence(error)) from error

    def read_lines(self, entry: ListedFile) -> Iterator[bytes]:
        with self.decompress_log(entry.path) as plain, Path(plain).open("rb") as file:
            yield from _iterate_lines(file)

    @contextmanager
    def decompress_log(self, path: str) -> Iterator[str]:
        """Gives a local file with the plain content of a log, until the end of the block."""
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
                raise OSError(extract_sentence(error)) from error
        finally:
            out.close()

    def _make_hadoop_path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def local_path(directory: str) -> str | None:
    """Returns the path of a local directory; None if it is on another file system."""
    if directory.startswith("file:"):
        return "/" + directory.removeprefix("file:").lstrip("/")
    return None if "://" in directory else directory


def make_unreadable_logs_error(directory: str, error: Exception) -> BadInput:
    """Makes the failure of logs that cannot be read."""
    known: dict[type[Exception], str] = {
        FileNotFoundError: "it is not there",
        NotADirectoryError: "it is no directory",
        PermissionError: "reading it is not permitted",
    }
    why = known.get(type(error)) or extract_headline(error)
    return BadInput(
        f"The event logs in {directory} cannot be read: {why}.",
        hint="Name the directory that `spark.eventLog.dir` of prod's Spark names.",
        reason_code="no_event_logs",
    )
