"""The files through which a step hands over outputs and its summary.

The runner reads `GITHUB_OUTPUT` as `name=value` or `name<<delimiter`, whichever mark comes first in
a line (`FileCommandManager.cs` in actions/runner). A value can therefore add outputs of its own
unless it stands between delimiters that it cannot know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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


class Outputs:
    """Sets the outputs of the step.

    Args:
        path: The file named by `GITHUB_OUTPUT`; None outside a workflow, where nothing is written.
        delimiter: Gives a new unguessable word of letters and digits at every call.
    """

    def __init__(self, path: Path | None, *, delimiter: Callable[[], str]) -> None:
        self._path = path
        self._delimiter = delimiter

    def set(self, name: str, value: str) -> None:
        """Set output `name` to exactly `value`; raises as `format_output` does."""
        text = format_output(name, value, self._delimiter())
        if self._path is not None:
            _append(self._path, text)

    def holds(self, name: str) -> bool:
        """Whether output `name` was set before by this action, in whichever of its instances."""
        if self._path is None or not self._path.is_file():
            return False
        end: str | None = None
        for line in self._path.read_text(encoding="utf-8", errors="replace").split("\n"):
            if end is not None:
                end = None if line == end else end
            elif "<<" in line:
                found, _, end = line.partition("<<")
                if found == name:
                    return True
        return False

    def set_json(self, name: str, value: Any) -> None:
        """Set output `name` to a JSON document in one line of ASCII."""
        self.set(name, json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False))


class StepSummary:
    """Writes Markdown to the step's summary.

    Args:
        path: The file named by `GITHUB_STEP_SUMMARY`; None outside a workflow.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, markdown: str) -> None:
        """Append `markdown`, already redacted.

        Raises:
            TooLargeError: The summary would be larger than the runner takes; nothing is written.
        """
        if self._path is None:
            return
        text = markdown if markdown.endswith("\n") else markdown + "\n"
        there = self._path.stat().st_size if self._path.exists() else 0
        if there + len(text.encode("utf-8", "replace")) > SUMMARY_LIMIT:
            raise TooLargeError(f"the step summary would be larger than {SUMMARY_LIMIT} bytes")
        _append(self._path, text)


def _append(path: Path, text: str) -> None:
    """Append whole lines; a line that somebody left unfinished is finished first."""
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(text.encode("utf-8", "replace"))
