"""What a caged process says: its output, as lines that can be shown, and the files that it opened.

It reports at once each file of the checkout that it has opened, imported or run. The other end of
this list is `worker/runtime/load_trace.py`. Code that runs later can add names, but cannot take
back what was reported before it ran; so the first changed file of a pull request is always on the
list. A record that cannot be understood, or too many records, make the list incomplete.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import source_from_cache
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from ci_bot.protocol.messages import Progress
from ci_bot.redaction import Redactor


class SandboxedLogReader:
    """Turns bytes, as they arrive, into whole lines without secrets.

    A secret may be cut by the borders of two reads. So the stream goes through the redactor before
    it becomes lines, and only then are long lines shortened and the amount limited.

    Args:
        redactor: Takes the secrets out.
        line_characters: Longer lines are shortened, and say so.
        limit_bytes: Output after this many bytes is left out, and the last line says so.
    """

    def __init__(self, redactor: Redactor, *, line_characters: int, limit_bytes: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stream = redactor.open_stream()
        self._line_characters = line_characters
        self._left = limit_bytes
        self._line = ""
        self._cut = 0

    def feed_bytes(self, data: bytes) -> list[str]:
        """Returns the lines that `data` completes."""
        if self._left <= 0:
            return []
        taken, self._left = data[: self._left], self._left - len(data)
        lines = self._split_lines(self._stream.feed_text(self._decoder.decode(taken)))
        if self._left <= 0:
            lines += [
                *self.finish_line(),
                "(the worker printed more than is kept; the rest is left out)",
            ]
        return lines

    def finish_line(self) -> list[str]:
        """Returns the last line, if it has no line break, as a list."""
        rest = (
            self._stream.feed_text(self._decoder.decode(b"", final=True))
            + self._stream.flush_rest()
        )
        lines = self._split_lines(rest)
        if self._line:
            lines.append(self._take_line())
        return lines

    def _split_lines(self, text: str) -> list[str]:
        done: list[str] = []
        for piece in _split_sandboxed_log_text(text):
            self._hold_piece(piece.rstrip("\n"))
            if piece.endswith("\n"):
                done.append(self._take_line())
        return done

    def _hold_piece(self, piece: str) -> None:
        room = self._line_characters - len(self._line)
        self._line += piece[:room]
        self._cut += max(0, len(piece) - room)

    def _take_line(self) -> str:
        line = self._line + (f" … ({self._cut} more characters)" if self._cut else "")
        self._line, self._cut = "", 0
        return line


def _split_sandboxed_log_text(text: str) -> list[str]:
    lines = text.split("\n")
    return [*(line + "\n" for line in lines[:-1]), lines[-1]]


# The progress that the worker reports: one JSON document a line, on a pipe of its own.


class SandboxedProgressReader:
    """Turns bytes, as they arrive, into progress messages; other lines are dropped and counted.

    Args:
        line_bytes: Longer lines are dropped.
        lines: Further messages are dropped; the worker may go on writing, but nobody reads it.
    """

    def __init__(self, *, line_bytes: int, lines: int) -> None:
        self._line_bytes = line_bytes
        self._left = lines
        self._rest = b""
        self._skipping = False
        self.dropped = 0

    def feed_bytes(self, data: bytes) -> list[Progress]:
        """Returns the messages that `data` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages: list[Progress] = []
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif (message := self._parse_progress(line)) is not None:
                messages.append(message)
        if len(self._rest) > self._line_bytes:
            self._rest = b""
            self.dropped += not self._skipping
            self._skipping = True
        return messages

    def _parse_progress(self, line: bytes) -> Progress | None:
        if self._left > 0 and len(line) <= self._line_bytes:
            try:
                message = Progress.model_validate_json(line)
            except ValidationError:
                pass
            else:
                self._left -= 1
                return message
        self.dropped += 1
        return None


# Tracebacks and Java's stacks in a log: kept together, so that they can be folded or left out.
#
# They are for people who fix the code; for all others a sentence says what went wrong. The worker
# sends its own traceback beside its answer. Others are in its output: those of SQLMesh, Spark, the
# project, or a Python process that Spark has started.


_START = "Traceback (most recent call last):"

_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)

_JAVA_FRAME = re.compile(r"\s+at [\w.$/<>]+\(.*\)|\s*\.\.\. \d+ (?:more|common frames omitted)")

_JAVA_CAUSE = re.compile(r"\s*Caused by: ")
# A longer one is no traceback, or one that nobody reads; it is passed on in parts.
MOST_LINES = 2_000


class SandboxedTracebackFilter:
    """Takes a log line by line, and passes on lines and whole tracebacks, in their order.

    Args:
        on_line: Gets lines outside of tracebacks, and the last line of each one: the exception.
        on_traceback: Gets the lines of one, with the exceptions.
    """

    def __init__(
        self, *, on_line: Callable[[str], None], on_traceback: Callable[[list[str]], None]
    ) -> None:
        self._on_line = on_line
        self._on_traceback = on_traceback
        self._held: list[str] = []
        self._exception: str | None = None

    def feed_line(self, text: str) -> None:
        """Takes the next line."""
        if self._is_part_of_traceback(text):
            self._held.append(text)
            if len(self._held) >= MOST_LINES:
                self.release_held()
            return
        self.release_held()
        if text.rstrip().endswith(_START):
            self._held.append(text)
        else:
            self._on_line(text)

    def release_held(self) -> None:
        """Passes on what is held, because nothing more comes."""
        if not self._held:
            return
        held, exception = self._held, self._exception
        self._held, self._exception = [], None
        self._on_traceback(held)
        if exception is not None:
            self._on_line(exception)

    def _is_part_of_traceback(self, text: str) -> bool:
        if _JAVA_FRAME.fullmatch(text.rstrip()):
            return True
        if not self._held:
            return False
        if _JAVA_FRAME.fullmatch(self._held[-1].rstrip()):
            return bool(_JAVA_CAUSE.match(text))
        return self._belongs_to_python(text)

    def _belongs_to_python(self, text: str) -> bool:
        if self._exception is None:
            if text[:1] not in (" ", "\t", ""):
                self._exception = text  # the line that ends the frames: type and message
            return True
        if text.rstrip().endswith(_START):
            self._exception = None
            return True
        return text.strip() in ("", *_CHAINED)


_MOST_RECORDS = 500_000
_MOST_BYTES = 64 * 1024 * 1024
_LONGEST = 16_384
_MOST_LINKS = 40  # as the kernel
# Programs that run no file of the checkout: they ask the machine, or git. Nothing shows what any
# other program reads.
_HARMLESS = frozenset(
    {"file", "git", "uname", "hostname", "id", "whoami", "which", "arch", "getconf", "lscpu"}
    # Programs that Python's `ctypes.util.find_library` asks.
    | {"ldconfig", "gcc", "cc", "ld", "objdump"}
    # How Spark is started; the files that Java itself reads are known by their suffix
    # (`JAVA_READS`).
    | {"java", "spark-submit"}
)
JAVA_READS = (".jar", ".conf", ".xml", ".properties")


class SandboxedTraceReader:
    """Collects the records of one process and of the processes that it forked."""

    def __init__(self) -> None:
        self._rest = b""
        self._records = self._bytes = 0
        self._started = self._broken = False
        self.paths: set[bytes] = set()
        self.endings: set[bytes] = set()
        self.programs: set[str] = set()

    def feed_bytes(self, data: bytes) -> None:
        """Takes what has arrived; never raises."""
        self._bytes += len(data)
        if self._broken or self._bytes > _MOST_BYTES:
            self._broken, self._rest = True, b""
            return
        *records, self._rest = (self._rest + data).split(b"\0")
        self._records += len(records)
        self._broken = self._records > _MOST_RECORDS or len(self._rest) > _LONGEST
        for record in records:
            kind, text = record[:1], record[1:]
            if kind == b"f" and text[:1] == b"/":
                self.paths.add(text)
            elif kind == b"e" and text:
                self.endings.add(text)
            elif kind == b"p":
                self.programs.add(os.fsdecode(text))
            elif kind == b"h":
                self._started = True
            else:
                self._broken = True

    @property
    def is_complete(self) -> bool:
        """Whether the list has everything that was opened, as far as Python's own hooks see it."""
        return self._started and not self._broken and self.programs <= _HARMLESS

    @property
    def started_java(self) -> bool:
        """Whether files of `JAVA_READS` may have been opened without a record."""
        return not self.programs.isdisjoint({"java", "spark-submit"})


def list_files_opened_in_sandbox(
    changed: Iterable[str],
    traces: Iterable[SandboxedTraceReader],
    *,
    roots: Sequence[Path],
    checkout: Path,
) -> frozenset[str]:
    """Returns those of the changed files that were opened.

    Args:
        changed: Paths relative to the repository, as git names them. Some are no files: a submodule
            counts as all that is in it, a link as its target.
        traces: What was opened.
        roots: Directories that count as the repository: the checkout, and the worker's copy.
        checkout: The one whose links are as they are in git.
    """
    changed, traces = list(changed), list(traces)
    opened = set(
        _make_relative_names_of_sandboxed_trace(
            {path for trace in traces for path in trace.paths}, roots
        )
    )
    endings = tuple(
        f"/{_decode_name_of_sandboxed_trace(ending)}"
        for trace in traces
        for ending in trace.endings
    )
    if any((checkout / path).is_symlink() for path in changed):
        opened |= {hop for path in list(opened) for hop in _follow_links_in_sandbox(checkout, path)}
    above = {str(parent) for path in opened for parent in PurePosixPath(path).parents}
    return frozenset(
        path for path in changed if path in opened or path in above or f"/{path}".endswith(endings)
    )


def _make_relative_names_of_sandboxed_trace(
    paths: Iterable[bytes], roots: Sequence[Path]
) -> frozenset[str]:
    """Returns names below one of `roots`, spelled as `Git.changed_files` spells them."""
    prefixes = [os.fsencode(str(root)).rstrip(b"/") + b"/" for root in roots]
    found = {
        _decode_name_of_sandboxed_trace(path[len(prefix) :])
        for path in paths
        for prefix in prefixes
        if path.startswith(prefix)
    }
    return frozenset(
        found | {source for path in found if (source := _find_source_of_sandboxed_byte_code(path))}
    )


def _decode_name_of_sandboxed_trace(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _find_source_of_sandboxed_byte_code(path: str) -> str | None:
    """Returns the source of a byte code file, which Python does not open then; None if none."""
    if not path.endswith(".pyc"):
        return None
    try:
        return source_from_cache(path)
    except ValueError:
        return None


def _follow_links_in_sandbox(checkout: Path, path: str) -> Iterator[str]:
    """Yields what a path becomes by each link on its way, as long as it stays in the checkout."""
    for _ in range(_MOST_LINKS):
        parts = PurePosixPath(path).parts
        for end in range(1, len(parts) + 1):
            link = checkout.joinpath(*parts[:end])
            if link.is_symlink():
                target = os.path.join(link.parent, link.readlink(), *parts[end:])  # noqa: PTH118 - `normpath` takes texts
                path = os.path.relpath(os.path.normpath(target), checkout)
                break
        else:
            return
        if path.startswith(".."):
            return
        yield path
