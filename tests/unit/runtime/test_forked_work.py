"""Work in a forked process: what it gives, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_bot.worker.runtime.process import ForkedBackgroundWork
from tests.worker import alive


def test_result__is_the_value_and_nothing_else_comes_back(tmp_path: Path) -> None:
    def work() -> dict[str, int]:
        sys.modules["left_behind_9"] = os
        os.environ["LEFT_BEHIND_9"] = "1"
        os.chdir("/")
        return {"one": 1}

    here = Path.cwd()
    with ForkedBackgroundWork(work, tmp_path / "answer") as aside:
        assert aside.wait_for_result() == {"one": 1}
    assert "left_behind_9" not in sys.modules
    assert "LEFT_BEHIND_9" not in os.environ
    assert Path.cwd() == here


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os._exit(3), "ended with exit code 3"),
        (lambda: sys.exit(4), "ended with exit code 1"),
        (lambda: os.kill(os.getpid(), 9), "was killed by signal 9"),
        (lambda: 1 / 0, "ended with exit code 1"),
    ],
)
def test_result__of_a_process_that_ends_without_one__says_how(
    tmp_path: Path, end: Callable[[], object], words: str
) -> None:
    with (
        ForkedBackgroundWork(end, tmp_path / "answer") as aside,
        pytest.raises(ChildProcessError, match=words),
    ):
        aside.wait_for_result()


def test_exit__before_the_result__ends_the_work(tmp_path: Path) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(600)

    with ForkedBackgroundWork(work, tmp_path / "answer"):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            os.sched_yield()
        pid = int((tmp_path / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_exit__after_an_error_here__ends_the_work_too(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="here"),
        ForkedBackgroundWork(lambda: time.sleep(600), tmp_path / "answer"),
    ):
        raise RuntimeError("here")


def test_work__of_a_process_that_is_killed__ends_with_it(tmp_path: Path) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(f"{os.getpid()}\n")
        time.sleep(600)

    first = os.fork()
    if first == 0:
        ForkedBackgroundWork(work, tmp_path / "answer")
        time.sleep(600)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        os.sched_yield()
    pid = int((tmp_path / "pid").read_text())
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)

    deadline = time.monotonic() + 10
    while alive([pid]) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = alive([pid])
    for one in left:
        os.kill(one, signal.SIGKILL)
    assert left == []
