"""Workflow commands on the one stream that the runner reads.

Everything that the bot prints in a workflow goes through `Commands`, and only to one stream: the
runner reads stdout and stderr apart from each other, so a pause that is asked for on one of them
says nothing about what stands on the other.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from ci_bot.redaction import Redactor, list_encodings, strip_terminal_codes

# How text is written so that the Actions runner takes it for text.
#
# The runner reads every line of stdout and of stderr. It takes `::name prop=value::data` at the
# start of a line for a command, and the older `##[name prop=value;]data` anywhere in a line.
# Sources: `ActionCommand.cs` in actions/runner (what is read) and `command.ts` in actions/toolkit
# (what is written). `%` comes first, or the escapes themselves would be escaped.


_DROPPED_ENDS = re.compile(r"\A[\s=]+|\s+\Z")

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def escape_data(text: str) -> str:
    """The part of a command after the second `::`."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """The value of a property, without what the runner drops: `=` in front, spaces at the ends."""
    kept = _DROPPED_ENDS.sub("", text)
    return escape_data(kept).replace(":", "%3A").replace(",", "%2C")


def make_plain_line(text: str) -> str:
    """One line of foreign text for the log, in which the runner finds no command.

    Colours go. Line breaks, control characters and invisible or direction-changing ones are shown
    as `\\u{..}`: a carriage return starts a new line for the runner, and its comparisons skip
    zero-width characters. `##[` gets a space, and a line that begins with `::` a bar before it.
    """
    text = make_visible(strip_terminal_codes(text)).replace("##[", "## [")
    return f"| {text}" if text.lstrip().startswith("::") else text


def make_visible(text: str) -> str:
    """`text` with every character shown that a reader could not see."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(char):x}}}" if char != "\t" and unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


@dataclass(frozen=True, kw_only=True)
class CommandEscapes:
    """The three escapes together, so that a test can take one of them away."""

    data: Callable[[str], str] = escape_data
    property: Callable[[str], str] = escape_property
    line: Callable[[str], str] = make_plain_line


TOOLKIT = CommandEscapes()


def format_command(
    name: str, data: str, properties: dict[str, str | int | None], escapes: CommandEscapes = TOOLKIT
) -> str:
    """One command as one line, without its line break. Properties that are empty are left out."""
    pairs = [
        f"{key}={value}"
        for key, given in properties.items()
        if given is not None and (value := escapes.property(str(given)))
    ]
    return f"::{name}{' ' if pairs else ''}{','.join(pairs)}::{escapes.data(data)}"


# The runner masks whatever it is given; shorter values would blank out half of the log.
SHORTEST_MASK = 4

_SHORTEST_TOKEN = 32


class WorkflowCommands:
    """Writes commands, the bot's own lines and the worker's lines.

    Args:
        stream: Where the runner reads; use it only inside a workflow, because masks are written
            to it in plain text.
        secrets: Registered as masks before anything else can be written.
        token: Gives a new unguessable word of at least 32 letters and digits at every call; what
            the worker prints stands between two of them, where the runner obeys nothing.
        redactor: Takes secrets out of all text, because masks come too late for a line that is
            read together with them, and because a log may be copied from the runner's disk.
        escapes: How text is written; only tests pass another one.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        token: Callable[[], str],
        secrets: Iterable[str] = (),
        redactor: Redactor | None = None,
        escapes: CommandEscapes = TOOLKIT,
    ) -> None:
        self._stream = stream
        self._new_token = token
        self._redactor = redactor or Redactor()
        self._escapes = escapes
        self._paused_with: str | None = None
        for secret in secrets:
            self.mask_secret(secret)

    def mask_secret(self, secret: str) -> None:
        """Have the runner replace `secret`, its lines and their encodings in every log."""
        self._resume_commands()
        for line in dict.fromkeys(
            [secret.strip(), *(part.strip() for part in secret.splitlines())]
        ):
            if len(line) >= SHORTEST_MASK:
                for form in list_encodings(line):
                    if len(form) >= SHORTEST_MASK:
                        self._write_raw_line(format_command("add-mask", form, {}, self._escapes))

    def annotate_notice(self, message: str, **place: str | int | None) -> None:
        """An annotation; `place` may hold title, file, line, endLine, col and endColumn."""
        self._write_annotation("notice", message, place)

    def annotate_warning(self, message: str, **place: str | int | None) -> None:
        """An annotation that warns; see `notice`."""
        self._write_annotation("warning", message, place)

    def annotate_error(self, message: str, **place: str | int | None) -> None:
        """An annotation for a failure; see `notice`."""
        self._write_annotation("error", message, place)

    def write_debug(self, message: str) -> None:
        """A line that is shown only if step debug logging is on."""
        self._write_command("debug", message, {})

    @contextmanager
    def fold_lines(self, title: str) -> Iterator[None]:
        """Fold the lines written inside under `title`."""
        self._write_command("group", title, {})
        try:
            yield
        finally:
            self._write_command("endgroup", "", {})

    def write_line(self, text: str) -> None:
        """A line of the bot's own, in which names from the project may stand."""
        self._resume_commands()
        self._write_lines(text)

    def write_worker_line(self, text: str) -> None:
        """A line of the worker's output, in which the runner obeys nothing."""
        if self._paused_with is None:
            token = self._new_token()
            if len(token) < _SHORTEST_TOKEN or not token.isalnum():
                raise ValueError("the token of stop-commands is too short or not a word")
            self._write_raw_line(f"::stop-commands::{token}")
            self._paused_with = token
        self._write_lines(text)

    def end_worker_part(self) -> None:
        """End the worker's part of the log, if it is open."""
        self._resume_commands()

    def _write_annotation(
        self, name: str, message: str, place: dict[str, str | int | None]
    ) -> None:
        cleaned = {
            key: self._redactor.redact(value) if isinstance(value, str) else value
            for key, value in place.items()
        }
        self._write_command(name, message, cleaned)

    def _write_command(self, name: str, data: str, properties: dict[str, str | int | None]) -> None:
        self._resume_commands()
        text = self._redactor.redact(data)
        self._write_raw_line(format_command(name, text, properties, self._escapes))

    def _resume_commands(self) -> None:
        if self._paused_with is not None:
            self._write_raw_line(f"::{self._paused_with}::")
            self._paused_with = None

    def _write_lines(self, text: str) -> None:
        for line in self._redactor.redact(text).split("\n"):
            self._write_raw_line(self._escapes.line(line))

    def _write_raw_line(self, line: str) -> None:
        try:
            # A lone surrogate cannot be written as UTF-8.
            self._stream.write(line.encode("utf-8", "replace").decode("utf-8") + "\n")
            self._stream.flush()
        except OSError:
            # A full disk below the log, or nobody reads it any more. The work goes on: its result
            # is for the comment and the outputs, too.
            self._discard_rest()

    def _discard_rest(self) -> None:
        """Lead the stream nowhere, with what is still in its buffer."""
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
