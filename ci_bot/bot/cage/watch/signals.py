"""How a run is asked to stop.

The runner sends SIGINT, SIGTERM after 7.5 s, and kills at 10 s. The first signal sets a token.
While a worker runs, that is all: the token wakes its watcher, and the worker gets its last seconds.
At any other time `Cancelled` is raised in the main thread as well, so that a request to GitHub that
nobody answers does not hold the run. The second signal ends the process at once: a person who
presses Ctrl-C twice, or a runner whose patience is over, gets no more politeness.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from ci_bot.errors import EXIT_INTERRUPTED, EXIT_TERMINATED, Cancelled

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class CancelToken:
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
    def cancelled(self) -> bool:
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """130 after an interrupt, 143 after anything else."""
        return EXIT_INTERRUPTED if self.signal_number == signal.SIGINT else EXIT_TERMINATED

    def cancel(self, signal_number: int = signal.SIGTERM) -> None:
        """Ask to stop; may be called from a signal handler, and more than once."""
        if self.cancelled:
            return
        self.since = self._clock()
        self.signal_number = signal_number
        with suppress(OSError):
            os.write(self._writer, b"!")

    def fileno(self) -> int:
        """Readable from the moment at which the token is set."""
        return self._reader

    def check(self) -> None:
        """Raise `Cancelled` if the token is set; to be called between two steps of the bot."""
        if self.cancelled:
            raise self.error()

    def error(self) -> Cancelled:
        """The failure that stands for this cancellation, with the right exit code."""
        return with_exit_code(
            Cancelled(
                f"The run was {self.word}.", hint="Run it again; it starts from where it is."
            ),
            self.exit_code,
        )

    @property
    def word(self) -> str:
        return _WORDS.get(signal.Signals(self.signal_number or signal.SIGTERM), "stopped")

    @property
    def is_deferred(self) -> bool:
        return self._deferred > 0 and not self._interruptible

    def interrupt(self, act: Callable[[], object]) -> None:
        """Runs `act`, which the first signal ends, also where it is deferred; raises nothing then.

        For a request to GitHub in between, which may wait longer than the run has seconds.
        """
        already = self.cancelled
        try:
            self._interruptible = True
            act()
        except Cancelled:
            if already or not self.cancelled:
                raise
        finally:
            self._interruptible = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """While inside, the first signal sets the token and raises nothing."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    @contextmanager
    def last_act(self, act: Callable[[], object]) -> Iterator[None]:
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


def with_exit_code(error: Cancelled, exit_code: int) -> Cancelled:
    """`error` with the exit code of the signal that caused it."""
    error.exit_code = exit_code
    return error


@contextmanager
def handle_signals(
    token: CancelToken, *, exit_now: Callable[[int], object] = os._exit
) -> Iterator[CancelToken]:
    """Let SIGINT and SIGTERM set `token`, and end the process at the second of them.

    Inside, the first signal raises `Cancelled` in the main thread, except where it is deferred.

    Python as PID 1 of a container ignores SIGTERM unless a handler is installed, so this goes
    around everything. To be used in the main thread; the old handlers come back at the end.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if token.cancelled:
            token.run_last_acts()
            exit_now(128 + number)
            return
        token.cancel(number)
        if not token.is_deferred:
            raise token.error()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield token
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
