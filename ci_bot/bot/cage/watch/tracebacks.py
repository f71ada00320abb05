"""Tracebacks and Java's stacks in a log: kept together, so that they can be folded or left out.

They are for whoever mends the code; everybody else has the sentence that says what went wrong. The
worker gives its own beside its answer. Others stand in its output: SQLMesh's, Spark's, a Python
process's that Spark has started, the project's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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

    def line(self, text: str) -> None:
        """The next line."""
        if self._belongs(text):
            self._held.append(text)
            if len(self._held) >= MOST_LINES:
                self.close()
            return
        self.close()
        if text.rstrip().endswith(_START):
            self._held.append(text)
        else:
            self._on_line(text)

    def close(self) -> None:
        """Gives out what is held, because nothing more comes."""
        if not self._held:
            return
        held, exception = self._held, self._exception
        self._held, self._exception = [], None
        self._on_traceback(held)
        if exception is not None:
            self._on_line(exception)

    def _belongs(self, text: str) -> bool:
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
