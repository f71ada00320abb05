"""How long something is, and how a length of time is written for people.

Seconds, minutes, hours; never decimals of hours.
"""

from __future__ import annotations

from datetime import datetime, timedelta

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TENTHS_BELOW = 10


def format_duration(seconds: float) -> str:
    """ "0.4 s", "41 s", "2 min 14 s", "1 h 42 min", "3 d 2 h"."""
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _format_pair(whole, _MINUTE, "min", 1, "s")
    if whole < _DAY:
        return _format_pair(whole, _HOUR, "h", _MINUTE, "min")
    return _format_pair(whole, _DAY, "d", _HOUR, "h")


def executor_time(hours: float) -> str:
    """Executor-hours: as `duration`, but from a day on in hours, which is what they are bought in.

    "20 s", "1 h 42 min", "1,204 h".
    """
    seconds = hours * _HOUR
    return format_duration(seconds) if seconds < _DAY else f"{round(hours):,} h"


def _format_pair(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_name}" + (f" {rest} {small_name}" if rest else "")


def read_time(text: str) -> datetime:
    """A time or a date as documents write it. Before 3.11 Python itself reads no `Z`.

    Raises:
        ValueError: it is none.
    """
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def count_days_between(start: str, end: str) -> float | None:
    """How many days lie between two times or dates; None if they are not."""
    try:
        return (read_time(end) - read_time(start)) / timedelta(days=1)
    except (ValueError, TypeError):
        return None
