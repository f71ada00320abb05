"""What a step tells the runner: workflow commands on one stream, outputs and summary in files.

All that the bot prints in a workflow goes through `WorkflowCommands`, and to one stream only: the
runner reads stdout and stderr separately, so a `stop-commands` on one of them has no effect on the
text of the other.

The runner reads `GITHUB_OUTPUT` as `name=value` or `name<<delimiter`; the mark that comes first in
a line decides (`FileCommandManager.cs` in actions/runner). So a value can add outputs of its own,
unless it is between delimiters that it cannot know.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ci_bot.redaction import Redactor, list_encodings_of_secret, strip_terminal_codes_for_redaction

# How text is written so that the Actions runner takes it only for text.
#
# The runner reads every line of stdout and of stderr. It takes `::name prop=value::data` at the
# start of a line for a command, and the older `##[name prop=value;]data` anywhere in a line.
# Sources: `ActionCommand.cs` in actions/runner (what is read) and `command.ts` in actions/toolkit
# (what is written). `%` is replaced first, because the other escapes contain it.


_DROPPED_ENDS = re.compile(r"\A[\s=]+|\s+\Z")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def escape_data_of_workflow_command(text: str) -> str:
    """Escapes the part of a command after the second `::`."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property_of_workflow_command(text: str) -> str:
    """Escapes a property's value, without what the runner drops: `=` in front, outer blanks."""
    kept = _DROPPED_ENDS.sub("", text)
    return escape_data_of_workflow_command(kept).replace(":", "%3A").replace(",", "%2C")


def make_plain_line_of_workflow_log(text: str) -> str:
    """Returns one line of foreign text for the log, in which the runner finds no command.

    Colours are removed. Line breaks, control characters and invisible or direction-changing
    characters are shown as `\\u{..}`: a carriage return starts a new line for the runner, and its
    comparisons skip zero-width characters. `##[` gets a space, and a line that begins with `::`
    gets a bar in front.
    """
    text = make_visible_in_workflow_log(strip_terminal_codes_for_redaction(text)).replace(
        "##[", "## ["
    )
    return f"| {text}" if text.lstrip().startswith("::") else text


def make_visible_in_workflow_log(text: str) -> str:
    """Returns `text` with every invisible character shown."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(char):x}}}" if char != "\t" and unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


@dataclass(frozen=True, kw_only=True)
class CommandEscapes:
    """The three escapes together, so that a test can replace one of them."""

    data: Callable[[str], str] = escape_data_of_workflow_command
    property: Callable[[str], str] = escape_property_of_workflow_command
    line: Callable[[str], str] = make_plain_line_of_workflow_log


TOOLKIT = CommandEscapes()


def format_workflow_command(
    name: str, data: str, properties: dict[str, str | int | None], escapes: CommandEscapes = TOOLKIT
) -> str:
    """Formats one command as one line, without a line break and without empty properties."""
    pairs = [
        f"{key}={value}"
        for key, given in properties.items()
        if given is not None and (value := escapes.property(str(given)))
    ]
    return f"::{name}{' ' if pairs else ''}{','.join(pairs)}::{escapes.data(data)}"


# The runner masks any value that it is given; a shorter one would hide half of the log.
SHORTEST_MASK = 4
_SHORTEST_TOKEN = 32


class WorkflowCommands:
    """Writes commands, the bot's own lines and the worker's lines.

    Args:
        stream: The stream that the runner reads. Use it only inside a workflow, because masks are
            written to it in plain text.
        secrets: Registered as masks before any other output.
        token: Returns a new unguessable word of at least 32 letters and digits at each call. The
            worker's output is between two of them, where the runner obeys no command.
        redactor: Removes secrets from all text, because a mask is too late for a line that is read
            together with it, and because a log may be copied from the runner's disk.
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
        """Makes the runner replace `secret`, its lines and their encodings in every log."""
        self._resume_commands()
        for line in dict.fromkeys(
            [secret.strip(), *(part.strip() for part in secret.splitlines())]
        ):
            if len(line) >= SHORTEST_MASK:
                for form in list_encodings_of_secret(line):
                    if len(form) >= SHORTEST_MASK:
                        self._write_raw_line(
                            format_workflow_command("add-mask", form, {}, self._escapes)
                        )

    def annotate_notice(self, message: str, **place: str | int | None) -> None:
        """Writes a notice; `place` may have title, file, line, endLine, col and endColumn."""
        self._write_annotation("notice", message, place)

    def annotate_warning(self, message: str, **place: str | int | None) -> None:
        """Writes a warning as an annotation; for `place` see `annotate_notice`."""
        self._write_annotation("warning", message, place)

    def annotate_error(self, message: str, **place: str | int | None) -> None:
        """Writes a failure as an annotation; for `place` see `annotate_notice`."""
        self._write_annotation("error", message, place)

    def write_debug(self, message: str) -> None:
        """Writes a line that is shown only if step debug logging is on."""
        self._write_command("debug", message, {})

    @contextmanager
    def fold_lines(self, title: str) -> Iterator[None]:
        """Folds the lines that are written inside under `title`."""
        self._write_command("group", title, {})
        try:
            yield
        finally:
            self._write_command("endgroup", "", {})

    def write_line(self, text: str) -> None:
        """Writes a line of the bot itself, which may contain names from the project."""
        self._resume_commands()
        self._write_lines(text)

    def write_worker_line(self, text: str) -> None:
        """Writes a line of the worker's output, in which the runner obeys no command.

        Raises:
            ValueError: the token is too short or no word.
        """
        if self._paused_with is None:
            token = self._new_token()
            if len(token) < _SHORTEST_TOKEN or not token.isalnum():
                raise ValueError("the token of stop-commands is too short or not a word")
            self._write_raw_line(f"::stop-commands::{token}")
            self._paused_with = token
        self._write_lines(text)

    def end_worker_part(self) -> None:
        """Ends the worker's part of the log, if it is open."""
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
        self._write_raw_line(format_workflow_command(name, text, properties, self._escapes))

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
            # The disk of the log is full, or nobody reads it any more. The work goes on, because
            # the comment and the outputs still need its result.
            self._discard_rest()

    def _discard_rest(self) -> None:
        """Points the stream to nowhere, together with the rest of its buffer."""
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


# If it is larger, the runner drops the whole summary (CreateStepSummaryCommand,
# AttachmentSizeLimit).
SUMMARY_LIMIT = 1024 * 1024
# The documented limit for all outputs of a job; one value must stay well below it.
OUTPUT_LIMIT = 900_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_SHORTEST_DELIMITER = 16


class TooLargeError(ValueError):
    """The error for a text that is too long for its place; the caller has to shorten it."""


def format_step_output(name: str, value: str, delimiter: str) -> str:
    """Returns the lines that set one output.

    Raises:
        ValueError: the name is not valid, or the delimiter is too short or part of the value.
        TooLargeError: the value does not fit into a job's outputs.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of an output")
    if len(delimiter) < _SHORTEST_DELIMITER or not delimiter.isalnum():
        raise ValueError("the delimiter of an output is too short or not a word")
    if delimiter in value:
        raise ValueError(f"the value of output {name!r} contains its own delimiter")
    if len(value.encode("utf-8", "replace")) > OUTPUT_LIMIT:
        raise TooLargeError(f"output {name!r} is larger than {OUTPUT_LIMIT} bytes")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


class _ActionStepFile:
    """A file of the step; a failed write to it is reported once, and raises nothing.

    It may be full or deleted, and the work is done anyway.
    """

    def __init__(self, path: Path | None, what: str, warn: Callable[[str], object]) -> None:
        self._path = path
        self._what = what
        self._warn = warn
        self._warned = False

    def append_lines(self, text: str) -> None:
        """Appends whole lines; if the last line is not finished, it finishes that first."""
        if self._path is None:
            return
        try:
            _append_to_command_file(self._path, text)
        except OSError as error:
            self.warn_once(error.strerror or type(error).__name__)

    def get_size(self) -> int:
        """Returns its size in bytes; 0 if that is not known."""
        with suppress(OSError):
            return self._path.stat().st_size if self._path is not None else 0
        return 0

    def read_text(self) -> str:
        """Returns its text; "" if it cannot be read."""
        with suppress(OSError):
            if self._path is not None and self._path.is_file():
                return self._path.read_text(encoding="utf-8", errors="replace")
        return ""

    def warn_once(self, why: str) -> None:
        """Warns, once, that something could not be written; `why` says it in a few words."""
        if not self._warned:
            self._warned = True
            self._warn(f"{self._what} could not be written: {why}. What was done stays done.")


class ActionStepOutputs:
    """Sets the outputs of the step.

    Args:
        path: The file named by `GITHUB_OUTPUT`; None outside a workflow, and then nothing is
            written.
        delimiter: Returns a new unguessable word of letters and digits at each call.
        warn: Called once, with a sentence, if the file cannot be written.
    """

    def __init__(
        self, path: Path | None, *, delimiter: Callable[[], str], warn: Callable[[str], object]
    ) -> None:
        self._file = _ActionStepFile(
            path, "The outputs of this step, which later steps read,", warn
        )
        self._delimiter = delimiter

    def set_output(self, name: str, value: str) -> None:
        """Sets output `name` to exactly `value`; raises the errors of `format_step_output`."""
        self._file.append_lines(format_step_output(name, value, self._delimiter()))

    def has_output(self, name: str) -> bool:
        """Whether this action has already set output `name`, in any of its instances."""
        end: str | None = None
        for line in self._file.read_text().split("\n"):
            if end is not None:
                end = None if line == end else end
            elif "<<" in line:
                found, _, end = line.partition("<<")
                if found == name:
                    return True
        return False

    def set_json(self, name: str, value: Any) -> None:
        """Sets output `name` to a JSON document on one line of ASCII."""
        self.set_output(
            name, json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        )


class ActionStepSummary:
    """Writes Markdown to the step's summary.

    Args:
        path: The file named by `GITHUB_STEP_SUMMARY`; None outside a workflow.
        warn: Called once, with a sentence, if the file cannot be written.
    """

    def __init__(self, path: Path | None, *, warn: Callable[[str], object]) -> None:
        self._file = _ActionStepFile(path, "The summary of this step", warn)

    def append_markdown(self, markdown: str) -> None:
        """Appends `markdown`, already redacted; appends nothing if it would exceed the limit."""
        text = markdown if markdown.endswith("\n") else markdown + "\n"
        if self._file.get_size() + len(text.encode("utf-8", "replace")) > SUMMARY_LIMIT:
            self._file.warn_once(f"it would be larger than {SUMMARY_LIMIT:,} bytes")
        else:
            self._file.append_lines(text)


def _append_to_command_file(path: Path, text: str) -> None:
    with path.open("ab+", buffering=0) as file:
        there = file.tell()
        if there > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                text = "\n" + text
        rest = memoryview(text.encode("utf-8", "replace"))
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            # With half of an output, the runner would refuse the whole file.
            with suppress(OSError):
                os.truncate(file.fileno(), there)
            raise
