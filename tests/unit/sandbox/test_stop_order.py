"""A stop first says its last words; what may take longer than there is time for comes at the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from ci_bot.worker.runtime.process import WorkerStopRequest


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_stop__does_the_rest_after_its_last_words(handlers: None) -> None:
    done: list[str] = []
    ended = threading.Event()

    def fails() -> None:
        raise RuntimeError("no state any more")

    stop = WorkerStopRequest(monotonic=time.monotonic, exit_now=lambda _code: ended.set())
    stop.at_the_end(lambda: done.append("costs"))
    stop.on_last_words(lambda: done.append("answer"))
    stop.on_last_words(fails)
    stop.install_and_watch()
    os.kill(os.getpid(), signal.SIGTERM)
    assert ended.wait(10)
    assert done == ["answer", "costs"]


def test_stop__ends_in_time_whatever_the_rest_does(handlers: None) -> None:
    ended = threading.Event()
    free = threading.Event()
    stop = WorkerStopRequest(monotonic=_impatient(), exit_now=lambda _code: ended.set())
    stop.at_the_end(lambda: free.wait(30))
    stop.install_and_watch()
    os.kill(os.getpid(), signal.SIGTERM)
    assert ended.wait(10)
    free.set()


def _impatient() -> object:
    """A clock on which four seconds pass between two looks."""
    moments = iter(range(0, 1_000, 4))
    return lambda: float(next(moments))
