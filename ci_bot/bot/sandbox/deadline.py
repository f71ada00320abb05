"""When a run has to be over: one deadline, made at its start, that bounds every part of the work.

What bounds the worker alone bounds nothing: reading a checkout, copying it and waiting for a server
grow with the pull request as well, and all of it happens before or after the worker.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from ci_bot.errors import EXIT_INTERRUPTED, EXIT_TERMINATED, RunCancelled, TimedOut

RUN_IT_AGAIN = "Run it again; it starts from where it is."

# A run that is out of time still says so: in its comment, which may mean to wait for GitHub.
REPORT_SECONDS = 60.0
# Of these, what a report may still ask of git; the rest is GitHub's.
GIT_REPORT_SECONDS = 20.0

_TWO_MINUTES = 120


class SandboxDeadline:
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

    def seconds_left(self) -> float:
        """Seconds of work that are left, never less than none."""
        return max(0.0, self._end + self._more - self._clock())

    def get_timeout(self) -> float | None:
        """`left`, in the form in which the standard library takes it: None is no bound."""
        return None if math.isinf(self._end) else self.seconds_left()

    def check_time(self, doing: str) -> None:
        """Ends a run that is out of time.

        Args:
            doing: What was going on, as the end of "and was stopped ...".

        Raises:
            TimedOut: the moment has passed.
        """
        if self._clock() >= self._end + self._more:
            raise self.make_timeout_error(doing)

    @contextmanager
    def extend_for_report(self) -> Iterator[None]:
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
            raise self.make_timeout_error(doing)

    def make_timeout_error(self, doing: str) -> TimedOut:
        """The failure of a run that was out of time; see `check`."""
        return TimedOut(f"{self.describe_timeout('The run')} {doing}.", hint=OUT_OF_TIME_HINT)

    def describe_timeout(self, who: str) -> str:
        """The first half of that failure's sentence."""
        return (
            f"{who} did not finish within {describe_duration_of_deadline(self.seconds)} and "
            f"was stopped"
        )


OUT_OF_TIME_HINT = (
    "Raise `timeout-minutes`, or make the work smaller: fewer changed files, a smaller range."
)


def make_endless_sandbox_deadline() -> SandboxDeadline:
    """For work that nobody waits for."""
    return SandboxDeadline(math.inf, clock=lambda: 0.0)


def describe_duration_of_deadline(seconds: float) -> str:
    """Seconds in words for a sentence."""
    return f"{seconds / 60:.0f} minutes" if seconds >= _TWO_MINUTES else f"{seconds:g} seconds"


# How a run is asked to stop.
#
# The runner sends SIGINT, SIGTERM after 7.5 s, and kills at 10 s. The first signal sets a token.
# While a worker runs, that is all: the token wakes its watcher, and the worker gets its last
# seconds. At any other time `Cancelled` is raised in the main thread as well, so that a request to
# GitHub that nobody answers does not hold the run. The second signal ends the process at once: a
# person who presses Ctrl-C twice, or a runner whose patience is over, gets no more politeness.


_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class SandboxCancelToken:
    """Set once, by the first signal; can be waited for like a file.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._last_acts: list[Callable[[], object]] = []
        self._deferred = 0
        self._interruptible = False
        self.signal_number: int | None = None
        self.since: float | None = None

    @property
    def is_cancelled(self) -> bool:
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """130 after an interrupt, 143 after anything else."""
        return EXIT_INTERRUPTED if self.signal_number == signal.SIGINT else EXIT_TERMINATED

    def cancel(self, signal_number: int = signal.SIGTERM) -> None:
        """Ask to stop; may be called from a signal handler, and more than once."""
        if self.is_cancelled:
            return
        self.since = self._clock()
        self.signal_number = signal_number
        with suppress(OSError):
            os.write(self._writer, b"!")

    def fileno(self) -> int:
        """Readable from the moment at which the token is set."""
        return self._reader

    def check_cancelled(self) -> None:
        """Raise `Cancelled` if the token is set; to be called between two steps of the bot."""
        if self.is_cancelled:
            raise self.make_cancelled_error()

    def make_cancelled_error(self) -> RunCancelled:
        """The failure that stands for this cancellation, with the right exit code."""
        return add_exit_code_of_signal(
            RunCancelled(f"The run was {self.signal_word}.", hint=RUN_IT_AGAIN),
            self.exit_code,
        )

    @property
    def signal_word(self) -> str:
        return _WORDS.get(signal.Signals(self.signal_number or signal.SIGTERM), "stopped")

    @property
    def is_deferred(self) -> bool:
        return self._deferred > 0 and not self._interruptible

    def run_interruptible(self, act: Callable[[], object]) -> None:
        """Runs `act`, which the first signal ends, also if it is deferred; raises nothing then.

        For a request to GitHub in between, which may wait longer than the run has seconds.
        """
        already = self.is_cancelled
        try:
            self._interruptible = True
            act()
        except RunCancelled:
            if already or not self.is_cancelled:
                raise
        finally:
            self._interruptible = False

    @contextmanager
    def defer_signal(self) -> Iterator[None]:
        """While inside, the first signal sets the token and raises nothing."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    @contextmanager
    def set_last_act(self, act: Callable[[], object]) -> Iterator[None]:
        """While inside, a second signal runs `act` (quick, in the handler) before it exits."""
        self._last_acts.append(act)
        try:
            yield
        finally:
            self._last_acts.remove(act)

    def run_last_acts(self) -> None:
        """What a second signal still does, newest first; a failing act does not stop the others."""
        for act in reversed(self._last_acts):
            with suppress(Exception):
                act()

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._reader)
        os.close(self._writer)


def add_exit_code_of_signal(error: RunCancelled, exit_code: int) -> RunCancelled:
    """`error` with the exit code of the signal that caused it."""
    error.exit_code = exit_code
    return error


@contextmanager
def handle_signals_of_sandbox(
    token: SandboxCancelToken, *, exit_now: Callable[[int], object] = os._exit
) -> Iterator[SandboxCancelToken]:
    """Let SIGINT and SIGTERM set `token`, and end the process at the second of them.

    Inside, the first signal raises `Cancelled` in the main thread, except where it is deferred.

    Python as PID 1 of a container ignores SIGTERM unless a handler is installed, so this goes
    around everything. To be used in the main thread; the old handlers come back at the end.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if token.is_cancelled:
            token.run_last_acts()
            exit_now(128 + number)
            return
        token.cancel(number)
        if not token.is_deferred:
            raise token.make_cancelled_error()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield token
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
