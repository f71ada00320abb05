"""What the processes of a review may take, and what they have opened of the checkout."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from ci_bot.bot.cage.launch import MIB, Launch
from ci_bot.bot.cage.watch.trace import JAVA_READS, TraceReader, opened_among
from ci_bot.bot.cage.workspace import Workspace

_SCAN_VARIABLES = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "NO_COLOR", "TERM"}) | {
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"
}
_SCAN_SECONDS = 120
_SCAN_MEMORY = 4_096 * MIB


def scan_launch(launch: Launch) -> Launch:
    """How a scan is started: it reads files and loads nothing.

    So it needs no credential and no package of the project's, and its limits can be tight.

    Args:
        launch: For the worker, before anything was installed for it.
    """
    variables = {k: v for k, v in launch.variables.items() if k in _SCAN_VARIABLES}
    return replace(
        launch,
        variables=variables,
        bounds={
            "RLIMIT_CPU": _SCAN_SECONDS,
            "RLIMIT_AS": _SCAN_MEMORY,
            "RLIMIT_FSIZE": launch.limits.answer_bytes,
        },
    )


class LoadTrace:
    """Which files were opened, imported or run while the projects of a run were loaded.

    Attributes:
        roots: Directories that stand for the repository.
        required: Requirements files that were installed, relative to the repository.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._checkout = workspace.checkout
        self._traces: list[TraceReader] = []
        self.roots: tuple[Path, ...] = tuple(
            dict.fromkeys((workspace.repository, workspace.checkout))
        )
        self.required: frozenset[str] = frozenset()

    def begin(self) -> TraceReader:
        """Takes what the next process says."""
        self._traces.append(TraceReader())
        return self._traces[-1]

    def never_began(self) -> None:
        """The process of the last `begin` could not be started, so it has opened nothing."""
        self._traces.pop()

    def opened_among(self, changed: Collection[str]) -> frozenset[str] | None:
        """Those of the changed files that were opened.

        None where that is not known: a process told nothing, or too much, or started a program
        whose files nobody sees.
        """
        if not all(trace.is_complete for trace in self._traces):
            return None
        opened = opened_among(changed, self._traces, roots=self.roots, checkout=self._checkout)
        unseen: tuple[str, ...] = ()
        if any(trace.started_java for trace in self._traces):
            unseen += JAVA_READS
        if self.required:
            unseen += (".whl",)  # pip is a program of its own, and looks for files itself
        return opened | {path for path in changed if path in self.required or path.endswith(unseen)}
