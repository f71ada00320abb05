"""Work in a process of its own, which has everything imported and nothing of the project loaded.

What foreign code leaves behind in a process (modules under their names, classes, variables, the
working directory) cannot all be found and taken back. So what must not meet is loaded in two
processes: this one, and one that is forked from it before either has begun.
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
    """A process that a signal ended: that says nothing of the work that it did."""


class BackgroundWork:
    """Work that goes on beside this process, and ends with it.

    Args:
        work: Gives a JSON value.
        answer: A file that does not exist yet, for that value.
    """

    def __init__(self, work: Callable[[], Any], answer: Path) -> None:
        self._answer = answer
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid: int | None = os.fork()
        if self._pid == 0:
            _run_forked(work, answer)

    def wait_for_result(self) -> Any:
        """What the work gave, once it is done; call it once.

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
    """The whole life of the forked process. It never returns."""
    code = 1
    try:
        # The handlers of a worker wake a thread, which no fork takes along.
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


# How long each phase of a run takes.


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
