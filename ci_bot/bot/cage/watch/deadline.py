"""When a run has to be over: one deadline, made at its start, that bounds every part of the work.

What bounds the worker alone bounds nothing: reading a checkout, copying it and waiting for a server
grow with the pull request as well, and all of it happens before or after the worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ci_bot.errors import TimedOut

# A run that is out of time still says so: in its comment, which may mean to wait for GitHub.
REPORT_SECONDS = 60.0
# Of these, what a report may still ask of git; the rest is GitHub's.
GIT_REPORT_SECONDS = 20.0
_TWO_MINUTES = 120


class Deadline:
    """The moment at which the work of a run ends, whatever it is at.

    Args:
        seconds: From now on.
        clock: Monotonic seconds.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds
        self._more = 0.0

    def left(self) -> float:
        """Seconds of work that are left, never less than none."""
        return max(0.0, self._end + self._more - self._clock())

    def timeout(self) -> float | None:
        """`left`, in the form in which the standard library takes it: None is no bound."""
        return None if math.isinf(self._end) else self.left()

    def check(self, doing: str) -> None:
        """Ends a run that is out of time.

        Args:
            doing: What was going on, as the end of "and was stopped ...".

        Raises:
            TimedOut: the moment has passed.
        """
        if self._clock() >= self._end + self._more:
            raise self.error(doing)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """What is asked inside belongs to the report of the work, and has some seconds more.

        The work has used its time up, perhaps. What it found is not lost to that.
        """
        self._more = GIT_REPORT_SECONDS
        try:
            yield
        finally:
            self._more = 0.0

    def check_report(self, doing: str, *, wait: float = 0.0) -> None:
        """The same for telling of the work, which may begin when its time is over.

        Args:
            wait: Seconds that the next step takes.

        Raises:
            TimedOut: the moment passed, or would then have passed, `REPORT_SECONDS` ago.
        """
        if self._clock() + wait > self._end + REPORT_SECONDS:
            raise self.error(doing)

    def error(self, doing: str) -> TimedOut:
        """The failure of a run that was out of time; see `check`."""
        return TimedOut(f"{self.sentence('The run')} {doing}.", hint=OUT_OF_TIME_HINT)

    def sentence(self, who: str) -> str:
        """The first half of that failure's sentence."""
        return f"{who} did not finish within {duration(self.seconds)} and was stopped"


OUT_OF_TIME_HINT = (
    "Raise `timeout-minutes`, or make the work smaller: fewer changed files, a smaller range."
)


def no_deadline() -> Deadline:
    """For work that nobody waits for."""
    return Deadline(math.inf, clock=lambda: 0.0)


def duration(seconds: float) -> str:
    """Seconds in words for a sentence."""
    return f"{seconds / 60:.0f} minutes" if seconds >= _TWO_MINUTES else f"{seconds:g} seconds"
