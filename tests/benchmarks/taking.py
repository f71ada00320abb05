"""What a command takes: seconds by the clock, and of the processors, its JVM's included."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ci_bot.worker.runtime.java import find_java_environment
from tests.benchmarks.bench_life import ROOT

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Taken:
    """Seconds, and what was printed."""

    wall: float
    processor: float
    out: str = ""

    def __add__(self, other: Taken) -> Taken:
        return Taken(self.wall + other.wall, self.processor + other.processor)


def taken(command: list[str], cwd: Path) -> Taken:
    """Runs a command. A JVM that outlives it counts for the processors, and is waited for, so that
    it is gone when the next one starts (Linux only).

    Raises:
        RuntimeError: the command failed.
    """
    # What the command leaves becomes a child of this process.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment |= find_java_environment(environment, python=sys.executable)
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - started
    _wait_for_the_rest()
    after = os.times()
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    used = after.children_user + after.children_system
    return Taken(wall, used - before.children_user - before.children_system, done.stdout)


def _wait_for_the_rest() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def say(line: str) -> None:
    """Prints a line at once: a benchmark takes long, and its log is watched."""
    print(line, flush=True)
