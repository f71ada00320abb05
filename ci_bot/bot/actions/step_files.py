"""The files through which a step hands over outputs and its summary.

The runner reads `GITHUB_OUTPUT` as `name=value` or `name<<delimiter`, whichever mark comes first in
a line (`FileCommandManager.cs` in actions/runner). A value can therefore add outputs of its own
unless it stands between delimiters that it cannot know.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

# More makes the runner drop the whole summary (CreateStepSummaryCommand, AttachmentSizeLimit).
SUMMARY_LIMIT = 1024 * 1024
# The documented limit for the outputs of a job; one value must stay well below it.
OUTPUT_LIMIT = 900_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_SHORTEST_DELIMITER = 16


class TooLargeError(ValueError):
    """A text does not fit where it should go; the caller has to shorten it first."""


def format_output(name: str, value: str, delimiter: str) -> str:
    """The lines that set one output.

    Raises:
        ValueError: The name is not one, or the delimiter is too short or part of the value.
        TooLargeError: The value does not fit into a job's outputs.
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


class _StepFile:
    """A file of the step. It may be full or gone, and the work is done anyway: that is reported
    once, and nothing is raised.
    """

    def __init__(self, path: Path | None, what: str, warn: Callable[[str], object]) -> None:
        self._path = path
        self._what = what
        self._warn = warn
        self._warned = False

    def append_lines(self, text: str) -> None:
        """Append whole lines; a line that somebody left unfinished is finished first."""
        if self._path is None:
            return
        try:
            _append_text(self._path, text)
        except OSError as error:
            self.warn_once(error.strerror or type(error).__name__)

    def get_size(self) -> int:
        """Its size in bytes; 0 if that cannot be known."""
        with suppress(OSError):
            return self._path.stat().st_size if self._path is not None else 0
        return 0

    def read_text(self) -> str:
        """What it holds; empty if it cannot be read."""
        with suppress(OSError):
            if self._path is not None and self._path.is_file():
                return self._path.read_text(encoding="utf-8", errors="replace")
        return ""

    def warn_once(self, why: str) -> None:
        """Say, once, that something could not be written, and why in a few words."""
        if not self._warned:
            self._warned = True
            self._warn(f"{self._what} could not be written: {why}. What was done stays done.")


class StepOutputs:
    """Sets the outputs of the step.

    Args:
        path: The file named by `GITHUB_OUTPUT`; None outside a workflow, if nothing is written.
        delimiter: Gives a new unguessable word of letters and digits at every call.
        warn: Called with a sentence, once, where the file cannot be written.
    """

    def __init__(
        self, path: Path | None, *, delimiter: Callable[[], str], warn: Callable[[str], object]
    ) -> None:
        self._file = _StepFile(path, "The outputs of this step, which later steps read,", warn)
        self._delimiter = delimiter

    def set_output(self, name: str, value: str) -> None:
        """Set output `name` to exactly `value`; raises as `format_output` does."""
        self._file.append_lines(format_output(name, value, self._delimiter()))

    def has_output(self, name: str) -> bool:
        """Whether output `name` was set before by this action, in whichever of its instances."""
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
        """Set output `name` to a JSON document in one line of ASCII."""
        self.set_output(
            name, json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        )


class StepSummary:
    """Writes Markdown to the step's summary.

    Args:
        path: The file named by `GITHUB_STEP_SUMMARY`; None outside a workflow.
        warn: Called with a sentence, once, where the file cannot be written.
    """

    def __init__(self, path: Path | None, *, warn: Callable[[str], object]) -> None:
        self._file = _StepFile(path, "The summary of this step", warn)

    def append_markdown(self, markdown: str) -> None:
        """Append `markdown`, already redacted; nothing of it where the runner takes no more."""
        text = markdown if markdown.endswith("\n") else markdown + "\n"
        if self._file.get_size() + len(text.encode("utf-8", "replace")) > SUMMARY_LIMIT:
            self._file.warn_once(f"it would be larger than {SUMMARY_LIMIT:,} bytes")
        else:
            self._file.append_lines(text)


def _append_text(path: Path, text: str) -> None:
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
            # Half of an output would make the runner refuse the whole file.
            with suppress(OSError):
                os.truncate(file.fileno(), there)
            raise
