"""Work in a forked process that has all imports, but nothing of the project loaded.

The effects of a project's code on a process (modules, classes, variables, the working directory)
cannot all be undone. So two versions of a project load in two processes: this one, and one that is
forked from it before either has begun.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any


class KilledProcess(ChildProcessError):
    """A signal ended the process, which proves nothing about its work."""


class BackgroundWork:
    """Work that goes on beside this process, and ends with it.

    Args:
        work: Returns a JSON value.
        answer: A new file for that value.
    """

    def __init__(self, work: Callable[[], Any], answer: Path) -> None:
        self._answer = answer
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid: int | None = os.fork()
        if self._pid == 0:
            _run_forked(work, answer)

    def wait_for_result(self) -> Any:
        """Waits for the work and returns its result; call it once.

        Raises:
            KilledProcess: a signal ended it, which any process of this user may have sent.
            ChildProcessError: the process ended without an answer; the text says how.
        """
        if self._pid is None:
            raise RuntimeError("a result is asked for once")
        _, status = os.waitpid(self._pid, 0)
        self._pid = None
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            if code < 0:
                raise KilledProcess(f"was killed by signal {-code}")
            raise ChildProcessError(f"ended with exit code {code}")
        return json.loads(self._answer.read_bytes())

    def __enter__(self) -> BackgroundWork:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = None


def _run_forked(work: Callable[[], Any], answer: Path) -> None:
    """Runs the work in the forked process. Never returns."""
    code = 1
    try:
        # A worker's signal handlers wake a thread, which a fork does not have.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        answer.write_text(json.dumps(work()), encoding="utf-8")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# The time of each phase of a run.


@dataclass
class PhaseClock:
    """Seconds by phase, in the order in which the phases first ran."""

    now: Callable[[], float] = time.perf_counter
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time_phase(self, name: str) -> Iterator[None]:
        start = self.now()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + self.now() - start, 3)
