"""A request to GitHub that outlasts a cancelled run's seconds is left."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from ci_bot.bot.sandbox.deadline import SandboxCancelToken, handle_signals_of_sandbox
from ci_bot.errors import RunCancelled


@pytest.fixture
def token() -> Iterator[SandboxCancelToken]:
    made = SandboxCancelToken(clock=time.monotonic)
    with handle_signals_of_sandbox(made, exit_now=lambda _code: None):
        yield made
    made.close()


def interrupt_soon() -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_interrupt__the_first_signal_ends_what_waits(token: SandboxCancelToken) -> None:
    began = time.monotonic()
    with token.defer_signal():
        interrupt_soon()
        token.run_interruptible(lambda: time.sleep(30))
        assert token.is_cancelled
        assert token.is_deferred
    assert time.monotonic() - began < 10


def test_interrupt__elsewhere_a_signal_is_deferred_as_before(token: SandboxCancelToken) -> None:
    ended: list[str] = []
    with token.defer_signal():
        token.run_interruptible(lambda: ended.append("told"))
        interrupt_soon()
        deadline = time.monotonic() + 30
        while not token.is_cancelled and time.monotonic() < deadline:
            time.sleep(0.05)
        ended.append("waited")
    assert ended == ["told", "waited"]


def test_interrupt__another_cancellation_is_not_swallowed(token: SandboxCancelToken) -> None:
    def stop() -> None:
        raise RunCancelled("by somebody else")

    with token.defer_signal(), pytest.raises(RunCancelled, match="somebody else"):
        token.run_interruptible(stop)
