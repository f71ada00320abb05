"""The clocks and the patience of a GitHub client that belongs to a run with a deadline."""

from __future__ import annotations

from ci_bot.bot.cage.watch.deadline import Deadline
from ci_bot.bot.github.http.transport import Time
from ci_bot.machine import Machine

_DOING = "while GitHub was asked"


def time_for_github(machine: Machine, deadline: Deadline) -> Time:
    """What a client needs to know of time: it begins no request and no wait that the run has no
    time for. Out of time, a run can still tell of it; see `Deadline.check_report`.
    """

    def sleep(seconds: float) -> None:
        deadline.check_report(_DOING, wait=seconds)
        machine.sleep(seconds)

    return Time(
        now=lambda: machine.utc_now().timestamp(),
        monotonic=machine.monotonic,
        sleep=sleep,
        jitter=machine.jitter,
        before_request=lambda: deadline.check_report(_DOING),
    )
