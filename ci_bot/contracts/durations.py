"""How a length of time is written for people: seconds, minutes, hours; never decimals of hours."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TENTHS_BELOW = 10


def duration(seconds: float) -> str:
    """ "0.4 s", "41 s", "2 min 14 s", "1 h 42 min", "3 d 2 h"."""
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _pair(whole, _MINUTE, "min", 1, "s")
    if whole < _DAY:
        return _pair(whole, _HOUR, "h", _MINUTE, "min")
    return _pair(whole, _DAY, "d", _HOUR, "h")


def executor_time(hours: float) -> str:
    """Executor-hours: as `duration`, but from a day on in hours, which is what they are bought in.

    "20 s", "1 h 42 min", "1,204 h".
    """
    seconds = hours * _HOUR
    return duration(seconds) if seconds < _DAY else f"{round(hours):,} h"


def _pair(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_name}" + (f" {rest} {small_name}" if rest else "")
