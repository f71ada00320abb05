"""Stops the worker within seconds, whatever SQLMesh and Spark are doing.

SQLMesh waits for its thread pool before it passes an interrupt on; with a Python model that took 36
s, and the runner gives 7.5 s. So a separate thread writes the answer, cancels Spark's jobs,
releases the leases and ends the process.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from ci_bot.worker.runtime.channel import write_log_line

if TYPE_CHECKING:
    from pyspark import SparkContext

# Stopping Spark in parallel with the remaining work.
#
# An abandoned JVM takes most of a second to end, for no benefit. But a Spark that is killed before
# it has stopped leaves its application without an end, in its event log and at the cluster's
# manager. So Spark is stopped after its last query, and then its idle JVM is killed.


# The limit for a cluster that does not answer. The sandbox waits a moment more, and ends the JVM.
PATIENCE_SECONDS = 2.0


def find_active_context() -> Any | None:
    """Finds the SparkContext of this process; None if there is none, or no PySpark."""
    context: type[SparkContext] | None = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None)


class SparkEnd:
    """Ends the Spark of this process, if it has one. Nothing here raises.

    Args:
        context: Returns the SparkContext; called when Spark is to end.
        patience: Seconds that Spark gets to stop.
    """

    def __init__(
        self,
        context: Callable[[], Any | None] = find_active_context,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._context, self._patience = context, patience
        self._thread: threading.Thread | None = None
        self._jvm: Any = None

    def begin_end(self) -> None:
        """Starts to stop Spark after its last query; returns at once."""
        context = self._context()
        if self._thread is not None or context is None:
            return
        # The process that PySpark has started; None if PySpark was given a JVM.
        self._jvm = getattr(context._gateway, "proc", None)
        self._thread = threading.Thread(
            target=_run_quietly, args=(context.stop,), name="spark-end", daemon=True
        )
        self._thread.start()

    def finish_end(self) -> None:
        """Ends the JVM of a Spark that has stopped. The sandbox ends one that has not."""
        if self._thread is None:
            return
        self._thread.join(self._patience)
        if self._jvm is not None and not self._thread.is_alive():
            _run_quietly(self._jvm.kill)
            _run_quietly(self._jvm.wait)


def _run_quietly(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:
        write_log_line(f"while Spark ends: {error}")


# The bot kills the process group after 5 s.
EXIT_AFTER_SECONDS = 4.0


class StopRequest:
    """A request to stop this process, and the actions that follow.

    Args:
        monotonic: A clock in seconds.
        exit_now: Ends the process without waiting for threads.
    """

    def __init__(self, *, monotonic: Callable[[], float], exit_now: Callable[[int], Any]) -> None:
        self._monotonic = monotonic
        self._exit_now = exit_now
        self._event = threading.Event()
        self._signal = signal.SIGTERM
        self._last_words: list[Callable[[], None]] = []
        self._at_the_end: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def on_last_words(self, action: Callable[[], None]) -> None:
        """Adds an action for before the process ends; the last added runs first."""
        self._last_words.append(action)

    def at_the_end(self, action: Callable[[], None]) -> None:
        """Adds an action for after everything else, if there is time."""
        self._at_the_end.append(action)

    def install_and_watch(self) -> None:
        """Handles SIGINT and SIGTERM, and starts the thread that acts on them.

        SparkContext replaces the SIGINT handler when it starts; call `install_handlers` again then.
        """
        threading.Thread(target=self._act_on_signal, name="stop", daemon=True).start()
        self.install_handlers()

    def install_handlers(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._handle_signal)
            signal.signal(signal.SIGINT, self._handle_signal)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        if self._event.is_set():
            self._exit_now(128 + number)
        self._signal = signal.Signals(number)
        self._event.set()

    def _act_on_signal(self) -> None:
        self._event.wait()
        started = self._monotonic()
        worker = threading.Thread(target=self._wind_down, name="wind-down", daemon=True)
        worker.start()
        worker.join(timeout=max(0.0, EXIT_AFTER_SECONDS - (self._monotonic() - started)))
        self._exit_now(128 + self._signal)

    def _wind_down(self) -> None:
        # The leases after the jobs: a waiting run may begin the moment that one is free.
        first = (*reversed(self._last_words), cancel_spark_jobs, release_leases)
        for action in (*first, *self._at_the_end):
            try:
                action()
            except Exception as error:
                write_log_line(f"while stopping: {error}")


def cancel_spark_jobs() -> None:
    """Cancels every job of this process's Spark, if it has one."""
    active = find_active_context()
    if active is not None:
        active.cancelAllJobs()


def release_leases() -> None:
    """Releases every lease of this process, on this thread's own connection."""
    module: Any = sys.modules.get("ci_bot.worker.state_store.leases")
    if module is not None:
        module.release_all_leases()
