"""One deadline for a run: what it bounds, and what it says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ci_bot.bot.github.transport import make_github_client_time
from ci_bot.bot.sandbox.checkout_copy import copy_checkout_into_sandbox
from ci_bot.bot.sandbox.deadline import (
    GIT_REPORT_SECONDS,
    REPORT_SECONDS,
    SandboxDeadline,
    make_endless_sandbox_deadline,
)
from ci_bot.bot.sandbox.run_directories import open_sandbox_workspace
from ci_bot.errors import TimedOut
from tests.in_process import Clock, RunnerMachine


def after(clock: Clock, seconds: float) -> SandboxDeadline:
    return SandboxDeadline(seconds, clock=lambda: clock.passed)


def test_deadline__ends_what_goes_on_and_names_it() -> None:
    clock = Clock()
    deadline = after(clock, 180)
    clock.sleep(179)
    deadline.check_time("while nothing went on")
    assert (deadline.seconds_left(), deadline.get_timeout()) == (1.0, 1.0)
    clock.sleep(1)
    with pytest.raises(TimedOut) as late:
        deadline.check_time("while the checkout was copied")
    assert late.value.message == (
        "The run did not finish within 3 minutes and was stopped while the checkout was copied."
    )
    assert "timeout-minutes" in (late.value.hint or "")
    assert (late.value.reason_code, late.value.exit_code) == ("timeout", 1)
    clock.sleep(1)
    assert deadline.seconds_left() == 0.0


def test_deadline__the_report_of_the_work_has_some_seconds_more() -> None:
    clock = Clock()
    deadline = after(clock, 60)
    clock.sleep(65)
    with deadline.extend_for_report():
        deadline.check_time("while git read the checkout")
        assert deadline.seconds_left() == GIT_REPORT_SECONDS - 5
        clock.sleep(GIT_REPORT_SECONDS)
        with pytest.raises(TimedOut, match="within 60 seconds"):
            deadline.check_time("while git read the checkout")
    assert deadline.seconds_left() == 0.0
    assert GIT_REPORT_SECONDS < REPORT_SECONDS, "the rest is for GitHub"


def test_deadline__that_is_none__never_comes() -> None:
    deadline = make_endless_sandbox_deadline()
    deadline.check_time("never")
    assert deadline.get_timeout() is None


def test_github__is_asked_for_as_long_as_the_report_may_take(tmp_path: Path) -> None:
    clock = Clock()
    machine = RunnerMachine(api_url="", repository="", token="", home=tmp_path, clock=clock)
    around, _ = machine.surroundings({})
    patience = make_github_client_time(around, after(clock, 60))
    patience.sleep(50)
    patience.sleep(60)
    patience.before_request()
    assert clock.passed == 110.0, "past the deadline there is a minute for the report"
    with pytest.raises(TimedOut, match="while GitHub was asked"):
        patience.sleep(REPORT_SECONDS)
    assert clock.passed == 110.0, "a wait that would be too long is not begun"
    clock.sleep(11)
    with pytest.raises(TimedOut, match="while GitHub was asked"):
        patience.before_request()


def test_copy_of_the_checkout__is_a_part_of_the_time(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / "checkout" / f"d{number}").mkdir(parents=True)
        (tmp_path / "checkout" / f"d{number}" / "model.sql").write_text("SELECT 1")
    ticks = iter(range(1_000))
    deadline = SandboxDeadline(60, clock=lambda: float(next(ticks)))
    with pytest.raises(TimedOut, match="while the checkout was copied"):
        copy_checkout_into_sandbox(
            tmp_path / "checkout", tmp_path / "copy", identity=None, deadline=deadline
        )


def test_copy_of_one_large_file__too(tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "model.sql").write_bytes(b"x" * 20 * 1024 * 1024)
    ticks = iter(range(1_000))
    deadline = SandboxDeadline(10, clock=lambda: float(next(ticks)))
    with pytest.raises(TimedOut, match="while the checkout was copied"):
        copy_checkout_into_sandbox(
            tmp_path / "checkout", tmp_path / "copy", identity=None, deadline=deadline
        )


def test_workspace__out_of_time__leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "temporary").mkdir()
    late = SandboxDeadline(0.0, clock=time.monotonic)
    with (
        pytest.raises(TimedOut),
        open_sandbox_workspace(
            tmp_path / "checkout",
            parent=tmp_path / "temporary",
            identity=None,
            copy=True,
            deadline=late,
        ),
    ):
        pass
    assert list((tmp_path / "temporary").iterdir()) == []
