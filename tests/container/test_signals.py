"""Cancelling a job: process 1 of the container is Python, and it ends in the runner's 7.5 s."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .runner import Action

RUNNER_PATIENCE_SECONDS = 7.5  # between SIGINT and SIGTERM; ProcessInvoker.cs in actions/runner
DISPATCH = {
    "repository": {"full_name": "acme/warehouse"},
    "ref": "refs/heads/main",
    "sender": {"login": "octocat", "type": "User"},
    "inputs": {"pr-number": "7"},
}


@contextmanager
def a_github_that_never_answers() -> Iterator[socket.socket]:
    """A listener on loopback that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        yield listener


@pytest.mark.parametrize(
    ("signals", "exit_code"), [(["TERM"], 143), (["INT"], 130), (["INT", "INT"], 130)]
)
def test_signal__ends_a_run_that_waits_for_github(
    action: Action, signals: list[str], exit_code: int
) -> None:
    with a_github_that_never_answers() as listener:
        api = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with action.started(
            "workflow_dispatch", DISPATCH, {"pr-number": "7"}, {"GITHUB_API_URL": api}
        ) as running:
            try:
                connection, _ = listener.accept()  # the bot is at work now, and waits
            except TimeoutError:
                pytest.fail(f"the bot asked GitHub nothing; it said:\n{running.log()}")
            with connection:
                sent = time.monotonic()
                first, *more = signals
                assert running.signal(first)
                for signal in more:
                    running.signal(signal)  # the first may have been enough
                assert running.wait(timeout=30) == exit_code
                assert time.monotonic() - sent < RUNNER_PATIENCE_SECONDS
                assert "Traceback" not in running.log()
