"""When a run has to be over: one deadline, made at its start, that limits every part of the work.

A limit for the worker alone would not be enough. Reading a checkout, copying it and waiting for a
server take longer for a larger pull request, too, and happen before or after the worker.
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

# A run that is out of time still says so in its comment, and may have to wait for GitHub for that.
REPORT_SECONDS = 60.0
# How much of it a report may still spend on git; the rest is for GitHub.
GIT_REPORT_SECONDS = 20.0

_TWO_MINUTES = 120


class SandboxDeadline:
    """The moment at which the work of a run ends, whatever it is doing.

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
        """Returns the seconds of work that are left, at least 0."""
        return max(0.0, self._end + self._more - self._clock())

    def get_timeout(self) -> float | None:
        """Returns `seconds_left` as the standard library takes it: None means no limit."""
        return None if math.isinf(self._end) else self.seconds_left()

    def check_time(self, doing: str) -> None:
        """Ends a run that is out of time.

        Args:
            doing: What the run was doing, as the end of "and was stopped ...".

        Raises:
            TimedOut: the moment has passed.
        """
        if self._clock() >= self._end + self._more:
            raise self.make_timeout_error(doing)

    @contextmanager
    def extend_for_report(self) -> Iterator[None]:
        """Gives the requests inside some more seconds: they belong to the report of the work.

        The work may have used up its time; what it found is not lost.
        """
        self._more = GIT_REPORT_SECONDS
        try:
            yield
        finally:
            self._more = 0.0

    def check_report(self, doing: str, *, wait: float = 0.0) -> None:
        """Ends a run whose report is out of time; it may begin when the work's time is over.

        Args:
            wait: Seconds that the next step takes.

        Raises:
            TimedOut: after `wait`, more than `REPORT_SECONDS` will have passed since the moment.
        """
        if self._clock() + wait > self._end + REPORT_SECONDS:
            raise self.make_timeout_error(doing)

    def make_timeout_error(self, doing: str) -> TimedOut:
        """Makes the failure of a run that was out of time; see `check_time`."""
        return TimedOut(f"{self.describe_timeout('The run')} {doing}.", hint=OUT_OF_TIME_HINT)

    def describe_timeout(self, who: str) -> str:
        """Returns the first half of that failure's sentence."""
        return (
            f"{who} did not finish within {describe_duration_of_deadline(self.seconds)} and "
            f"was stopped"
        )


OUT_OF_TIME_HINT = (
    "Raise `timeout-minutes`, or make the work smaller: fewer changed files, a smaller range."
)


def make_endless_sandbox_deadline() -> SandboxDeadline:
    """Makes a deadline without an end, for work that nobody waits for."""
    return SandboxDeadline(math.inf, clock=lambda: 0.0)


def describe_duration_of_deadline(seconds: float) -> str:
    """Writes seconds in words for a sentence."""
    return f"{seconds / 60:.0f} minutes" if seconds >= _TWO_MINUTES else f"{seconds:g} seconds"


# How a run is asked to stop.
#
# The runner sends SIGINT, SIGTERM after 7.5 s, and kills at 10 s. The first signal sets a token.
# While a worker runs, that is all: the token wakes the thread that watches it, and the worker gets
# its last seconds. At any other time `RunCancelled` is also raised in the main thread, so that a
# request to GitHub without an answer does not hold the run. The second signal ends the process at
# once: a person has pressed Ctrl-C twice, or the runner does not wait any longer.


_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class SandboxCancelToken:
    """A flag that the first signal sets, once; code can wait for it like for a file.

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
        """The exit code of the run: 130 after an interrupt, 143 after anything else."""
        return EXIT_INTERRUPTED if self.signal_number == signal.SIGINT else EXIT_TERMINATED

    def cancel(self, signal_number: int = signal.SIGTERM) -> None:
        """Asks to stop; may be called from a signal handler, and more than once."""
        if self.is_cancelled:
            return
        self.since = self._clock()
        self.signal_number = signal_number
        with suppress(OSError):
            os.write(self._writer, b"!")

    def fileno(self) -> int:
        """Returns a descriptor that is readable from the moment at which the token is set."""
        return self._reader

    def check_cancelled(self) -> None:
        """Raises `RunCancelled` if the token is set; to be called between two steps of the bot."""
        if self.is_cancelled:
            raise self.make_cancelled_error()

    def make_cancelled_error(self) -> RunCancelled:
        """Makes the failure for this cancellation, with the right exit code."""
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
        """Runs `act`; the first signal ends it, even inside `defer_signal`, and raises nothing.

        For a request to GitHub in between, which may take longer than the run has seconds.
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
        """While inside, the first signal only sets the token and raises nothing."""
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
        """Runs what a second signal still does, newest first; one that fails stops no other."""
        for act in reversed(self._last_acts):
            with suppress(Exception):
                act()

    def close(self) -> None:
        """Closes the pipe."""
        os.close(self._reader)
        os.close(self._writer)


def add_exit_code_of_signal(error: RunCancelled, exit_code: int) -> RunCancelled:
    """Returns `error` with the exit code of the signal that caused it."""
    error.exit_code = exit_code
    return error


@contextmanager
def handle_signals_of_sandbox(
    token: SandboxCancelToken, *, exit_now: Callable[[int], object] = os._exit
) -> Iterator[SandboxCancelToken]:
    """Lets SIGINT and SIGTERM set `token`, and the second of them end the process.

    Inside, the first signal raises `RunCancelled` in the main thread, unless it is deferred.

    Python as PID 1 of a container ignores SIGTERM unless a handler is installed, so this encloses
    the whole run. Use it in the main thread; the old handlers come back at the end.
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
