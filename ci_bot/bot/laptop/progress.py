"""What a laptop shows while it works: which step, how far, and how long it has taken.

A terminal gets one line that counts and whose clock runs; a file or a pipe gets a line for each
step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ci_bot.host import Machine
from ci_bot.protocol.durations import format_duration
from ci_bot.protocol.messages import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

# A shorter step is over before anybody asks how long it takes.
TOLD_SECONDS = 2.0
# Of a project with long names one line is enough.
_WIDEST = 60


class StepDisplay(Protocol):
    """Where steps and lines of a log go."""

    def show_step(self, step: Progress) -> None: ...

    def print_line(self, line: str) -> None: ...


class PlainSteps:
    """A line for each step, and of each that took longer than two seconds how long it took."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._begun: tuple[str, float] | None = None

    def show_step(self, step: Progress) -> None:
        self.end_step(step.phase)
        if self._begun is None:
            self._begun = (step.phase, self._machine.monotonic())
        count = f" {step.done}/{step.total}" if step.total else ""
        self.print_line(f"{step.phase}{count}: {step.message}")

    def print_line(self, line: str) -> None:
        print(line, file=self._machine.log, flush=True)

    def end_step(self, following: str | None = None) -> None:
        """Says how long the phase took that is over now; `following` may be more of the same."""
        if self._begun is None or self._begun[0] == following:
            return
        phase, since = self._begun
        self._begun = None
        seconds = self._machine.monotonic() - since
        if seconds >= TOLD_SECONDS:
            self.print_line(f"{phase}: took {format_duration(seconds)}")


class LiveSteps:
    """One line at the foot of a terminal, above which the log goes on."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, count="")

    def show_step(self, step: Progress) -> None:
        task = self._bar.tasks[0]
        if task.fields.get("phase") != step.phase:
            self._bar.reset(self._task, phase=step.phase, count="")
        self._bar.update(
            self._task,
            description=f"{step.phase}: {step.message}"[:_WIDEST],
            total=step.total or None,
            completed=step.done or 0,
            count=f"{step.done or 0:,} of {step.total:,}" if step.total else "",
            refresh=True,
        )

    def print_line(self, line: str) -> None:
        # As it is: what a project prints is no markup, and no colour of ours.
        self._bar.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


@contextmanager
def show_steps(machine: Machine) -> Iterator[StepDisplay]:
    """Where the steps of one piece of work are shown, on the machine's log."""
    if not machine.log.isatty() or machine.environ.get("TERM") == "dumb":
        plain = PlainSteps(machine)
        try:
            yield plain
        finally:
            plain.end_step()
        return
    # Takes 0.1 s, which an event of GitHub need not wait for.
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    refused = machine.color == "never" or bool(machine.environ.get("NO_COLOR"))
    console = Console(file=machine.log, no_color=refused, highlight=False)
    with Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        yield LiveSteps(bar)
