"""The worker's output, as lines that can be shown."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from pydantic import ValidationError

from ci_bot.protocol.messages import Progress
from ci_bot.redaction import Redactor


class LogReader:
    """Turns bytes as they come into whole lines without secrets.

    A secret may be cut by the borders of two reads, so the stream goes through the redactor before
    it becomes lines, and only then are long lines shortened and is the amount bounded.

    Args:
        redactor: Takes the secrets out.
        line_characters: Longer lines are shortened, and say so.
        limit_bytes: What comes after this many bytes is thrown away, and the last line says so.
    """

    def __init__(self, redactor: Redactor, *, line_characters: int, limit_bytes: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stream = redactor.open_stream()
        self._line_characters = line_characters
        self._left = limit_bytes
        self._line = ""
        self._cut = 0

    def feed_bytes(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
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
        """The last line, if it has no line break."""
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
        for piece in text.splitlines(keepends=True) if "\n" not in text else _split_text(text):
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


def _split_text(text: str) -> list[str]:
    lines = text.split("\n")
    return [*(line + "\n" for line in lines[:-1]), lines[-1]]


# What the worker says of its progress: one JSON document a line, on a pipe of its own.


class ProgressReader:
    """Turns bytes as they come into progress messages; what is not one is dropped and counted.

    Args:
        line_bytes: Longer lines are dropped.
        lines: Later lines are dropped; the worker is not asked to be quiet, only not listened to.
    """

    def __init__(self, *, line_bytes: int, lines: int) -> None:
        self._line_bytes = line_bytes
        self._left = lines
        self._rest = b""
        self._skipping = False
        self.dropped = 0

    def feed_bytes(self, data: bytes) -> list[Progress]:
        """The messages that `data` completes."""
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
# They are for whoever mends the code; everybody else has the sentence that says what went wrong.
# The worker gives its own beside its answer. Others stand in its output: SQLMesh's, Spark's, a
# Python process's that Spark has started, the project's.


_START = "Traceback (most recent call last):"

_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)

_JAVA_FRAME = re.compile(r"\s+at [\w.$/<>]+\(.*\)|\s*\.\.\. \d+ (?:more|common frames omitted)")

_JAVA_CAUSE = re.compile(r"\s*Caused by: ")
# What is longer is no traceback, or not one that anybody reads; it is given out in parts.
MOST_LINES = 2_000


class TracebackFilter:
    """Takes a log line by line, and gives lines and whole tracebacks out, in their order.

    Args:
        on_line: Gets what is no part of a traceback, and the last line of one: the exception.
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
        """The next line."""
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
        """Gives out what is held, because nothing more comes."""
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
