"""Notices the end of Spark's JVM, and ends the processes that it left behind.

PySpark learns that its JVM is gone when the connection to it is closed. A JVM that is killed while
it starts another process (as Hadoop does for every permission that it sets) leaves that one with
copies of its open sockets, so no connection is closed and PySpark waits forever. So this process
watches its JVM, and ends the processes of a dead one. It finds them by their environment: each JVM
starts with a unique path in it, and its children inherit it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ci_bot.worker.runtime.channel import write_log_line

if TYPE_CHECKING:
    from pyspark import SparkContext

# (`pyspark.java_gateway.launch_gateway`)
MARK = b"_PYSPARK_DRIVER_CONN_INFO_PATH="
# A process that is just starting appears a little later.
_LOOKS = 20
_PAUSE = 0.25
_PROCESSES = Path("/proc")


class JavaProcess(Protocol):
    """A process that this one has started."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...


def find_active_java() -> JavaProcess | None:
    """Finds the JVM that PySpark has started in this process; None if there is none."""
    context: type[SparkContext] | None = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    found: JavaProcess | None = getattr(getattr(context, "_gateway", None), "proc", None)
    return found


class JavaWatch:
    """Watches one JVM after the other on a separate thread, from `start_watching` on.

    Args:
        java: Returns the current JVM.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        java: Callable[[], JavaProcess | None] = find_active_java,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._java, self._sleep = java, sleep
        self._lock = threading.Lock()
        self._started = False

    def start_watching(self) -> None:
        """Starts the watch; does nothing if it has started."""
        with self._lock:
            if self._started:
                return
            self._started = True
        threading.Thread(target=self._run_watch, name="java-watch", daemon=True).start()

    def _run_watch(self) -> None:
        ended: JavaProcess | None = None
        while True:
            java = self._java()
            if java is not None and java is not ended:
                self._watch_java(java)
                ended = java
            self._sleep(_PAUSE)

    def _watch_java(self, java: JavaProcess) -> None:
        mark = _read_java_mark(java.pid)
        while java.poll() is None:
            self._sleep(_PAUSE)
        for _ in range(_LOOKS if mark else 0):
            left = find_processes_with(mark)
            for pid in left:
                write_log_line(f"Java has ended and left process {pid}, which is ended, too.")
                _kill_process(pid)
            self._sleep(_PAUSE)


WATCH = JavaWatch()


def find_processes_with(mark: bytes) -> list[int]:
    """Finds this user's processes whose environment has this entry."""
    pids = [int(entry.name) for entry in _PROCESSES.iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and mark in _read_environment(pid)]


def _read_java_mark(pid: int) -> bytes:
    """Reads the entry of a JVM's environment that no other JVM has; empty if it cannot be read."""
    return next((item for item in _read_environment(pid) if item.startswith(MARK)), b"")


def _read_environment(pid: int) -> list[bytes]:
    try:
        return (_PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _kill_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        write_log_line(f"Process {pid} could not be ended: {error}")
