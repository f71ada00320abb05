"""The clocks and the patience of a GitHub client that belongs to a run with a deadline."""

from __future__ import annotations

from ci_bot.bot.cage.watch.deadline import Deadline
from ci_bot.bot.github.http.transport import Time
from ci_bot.machine import Surroundings

_DOING = "while GitHub was asked"


def time_for_github(around: Surroundings, deadline: Deadline) -> Time:
    """What a client needs to know of time: it begins no request and no wait that the run has no
    time for. Out of time, a run can still tell of it; see `Deadline.check_report`.
    """

    def sleep(seconds: float) -> None:
        deadline.check_report(_DOING, wait=seconds)
        around.sleep(seconds)

    return Time(
        now=lambda: around.utc_now().timestamp(),
        monotonic=around.monotonic,
        sleep=sleep,
        jitter=around.jitter,
        before_request=lambda: deadline.check_report(_DOING),
    )
