"""The token that a first signal sets, and the end that a second one makes."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from ci_bot.bot.sandbox.deadline import SandboxCancelToken, handle_signals_of_sandbox
from ci_bot.errors import RunCancelled


@pytest.fixture
def token() -> Iterator[SandboxCancelToken]:
    made = SandboxCancelToken(clock=lambda: 12.5)
    yield made
    made.close()


def test_token__before_and_after(token: SandboxCancelToken) -> None:
    token.check_cancelled()
    assert select.select([token], [], [], 0) == ([], [], [])
    token.cancel(signal.SIGINT)
    token.cancel(signal.SIGTERM)
    assert token.is_cancelled
    assert token.since == 12.5
    assert select.select([token], [], [], 0) == ([token], [], [])


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_token__exit_code_of_the_signal(
    token: SandboxCancelToken, number: int, code: int, word: str
) -> None:
    token.cancel(number)
    with pytest.raises(RunCancelled, match=word) as failure:
        token.check_cancelled()
    assert failure.value.exit_code == token.exit_code == code


@pytest.mark.parametrize(
    ("first", "second"), [(signal.SIGINT, signal.SIGTERM), (signal.SIGTERM,) * 2]
)
def test_handle_signals__the_second_one_ends(
    token: SandboxCancelToken, first: int, second: int
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    happened: list[object] = []

    def failing() -> None:
        raise OSError

    with (
        handle_signals_of_sandbox(token, exit_now=happened.append),
        token.defer_signal(),
        token.set_last_act(lambda: happened.append("older")),
        token.set_last_act(failing),
        token.set_last_act(lambda: happened.append("newer")),
    ):
        os.kill(os.getpid(), first)
        assert token.signal_number == first
        assert happened == []
        os.kill(os.getpid(), second)
    assert happened == ["newer", "older", 128 + second]
    assert signal.getsignal(signal.SIGTERM) is before


def test_handle_signals__the_first_one_ends_what_waits(token: SandboxCancelToken) -> None:
    reader, writer = os.pipe()
    with (
        handle_signals_of_sandbox(token, exit_now=lambda _code: None),
        pytest.raises(RunCancelled) as failure,
    ):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        os.read(reader, 1)  # nothing will ever come
    assert failure.value.exit_code == 130
    os.close(reader)
    os.close(writer)


def test_deferred__nests(token: SandboxCancelToken) -> None:
    with token.defer_signal():
        with token.defer_signal():
            assert token.is_deferred
        assert token.is_deferred
    assert not token.is_deferred


def test_last_act__only_while_inside(token: SandboxCancelToken) -> None:
    happened: list[str] = []
    with token.set_last_act(lambda: happened.append("inside")):
        pass
    token.run_last_acts()
    assert happened == []
