"""What a command takes: seconds by the clock and of the processors, its JVM's included, and memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from ci_bot.worker.runtime.java import find_java_environment

ROOT = Path(__file__).parent.parent.parent
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Taken:
    """What a command took.

    Attributes:
        wall: Seconds by the clock, without what the command left running.
        processor: Seconds of the processors, of all that it started.
        out: What it printed.
        first_mb: The most memory of its first process.
        most_mb: The most memory of any process that it waited for.
    """

    wall: float
    processor: float
    out: str = ""
    first_mb: float = 0.0
    most_mb: float = 0.0

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.wall + other.wall,
            self.processor + other.processor,
            self.out + other.out,
            max(self.first_mb, other.first_mb),
            max(self.most_mb, other.most_mb),
        )


def run_ci_bot(*arguments: str) -> list[str]:
    """The command line of our side."""
    return [sys.executable, "-m", "ci_bot", *arguments]


def run_sqlmesh(*arguments: str) -> list[str]:
    """The command line of SQLMesh's own side."""
    return [str(Path(sys.executable).with_name("sqlmesh")), *arguments]


def time_command(
    command: Sequence[str],
    cwd: Path,
    *,
    codes: Sequence[int] = (0,),
    variables: Mapping[str, str] | None = None,
) -> Taken:
    """Runs a command that may end with one of `codes`.

    A JVM that outlives it counts for the processors, and is waited for, so that it is gone when the
    next one starts (Linux only).

    Raises:
        RuntimeError: the command failed.
    """
    # What the command leaves becomes a child of this process.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(variables or {})}
    environment |= find_java_environment(environment, python=sys.executable)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        before, started = os.times(), time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=error
        )
        peaks = [0.0]
        watcher = Thread(target=_watch_memory, args=(process.pid, peaks), daemon=True)
        watcher.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        watcher.join()
        _wait_for_the_rest()
        after = os.times()
        out.seek(0), error.seek(0)
        printed = out.read().decode("utf-8", "replace")
        if process.returncode not in codes:
            complaint = error.read().decode("utf-8", "replace")
            raise RuntimeError(f"{command} failed:\n{printed[-2_000:]}\n{complaint[-2_000:]}")
    processor = after.children_user + after.children_system
    processor -= before.children_user + before.children_system
    return Taken(wall, processor, printed, peaks[0], used.ru_maxrss / 1024)


def read_peak_mb(pid: int) -> float:
    """The most memory that a process has held, 0 if it has ended.

    Raises:
        OSError: the process is gone.
    """
    text = Path("/proc", str(pid), "status").read_text("utf-8")
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return float(lines["VmHWM"].split()[0]) / 1024 if "VmHWM" in lines else 0.0


def _watch_memory(pid: int, peaks: list[float]) -> None:
    with suppress(OSError):
        # The record of a process that has ended has no memory any more.
        while peak := read_peak_mb(pid):
            peaks[0] = max(peaks[0], peak)
            time.sleep(_POLL_SECONDS)


def _wait_for_the_rest() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def say(line: str) -> None:
    """Prints a line at once: a benchmark takes long, and its log is watched."""
    print(line, flush=True)
