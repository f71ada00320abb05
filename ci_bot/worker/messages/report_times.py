"""How reports write times: SQLMesh's milliseconds, users' words, and ISO 8601 in UTC."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from sqlmesh.utils.date import is_date, make_exclusive, now_timestamp, to_datetime, to_timestamp

from ci_bot.errors import BadInput
from ci_bot.redaction import quote_value

# Data is from these years; other years are typing errors, or dates that overflow.
_YEARS = range(1900, 2201)


def format_iso_in_message(moment: Any) -> str:
    """Formats a moment (milliseconds since the epoch, or anything SQLMesh takes) as ISO 8601 in
    UTC.
    """
    when = to_datetime(moment).astimezone(timezone.utc)
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{when.microsecond:06d}Z" if when.microsecond else f"{text}Z"


def to_milliseconds(moment: Any) -> int:
    """Returns a moment as milliseconds since the epoch."""
    return int(to_timestamp(moment))


def read_milliseconds_now() -> int:
    """Reads SQLMesh's clock, in milliseconds since the epoch."""
    return int(now_timestamp())


def find_start_of_day(moment: int) -> int:
    """Returns the midnight (UTC) at or before a moment; milliseconds in and out."""
    return moment - moment % 86_400_000


def parse_start(text: str, *, relative_to: int, name: str = "start") -> int:
    """Parses a user's start (`2024-01-01`, `1 week ago`), in milliseconds; inclusive.

    Args:
        relative_to: The moment that `1 week ago` counts from, in milliseconds.
        name: Its name in messages.

    Raises:
        BadInput: it is not a date.
    """
    return int(_parse_time_or_explain(name, text, relative_to).timestamp() * 1000)


def parse_end(text: str, *, relative_to: int) -> int:
    """Parses a user's end, in milliseconds; exclusive.

    A day without a time means that whole day, as everywhere in SQLMesh, so it ends at the next
    midnight.
    """
    parsed = _parse_time_or_explain("end", text, relative_to)
    if is_date(text):
        parsed = make_exclusive(text)  # at most one day more, which the bounds leave room for
    return int(parsed.timestamp() * 1000)


def _parse_time_or_explain(name: str, text: str, relative_to: int) -> datetime:
    try:
        moment: datetime = to_datetime(text, relative_base=to_datetime(relative_to))
    except Exception as error:
        raise _make_message_of_wrong_date(name, text, "which is not a date") from error
    if moment.year not in _YEARS:
        years = f"{_YEARS.start} to {_YEARS.stop - 1}"
        raise _make_message_of_wrong_date(name, text, f"which is none of the years {years}")
    return moment


def _make_message_of_wrong_date(name: str, text: str, why: str) -> BadInput:
    return BadInput(
        f"`{name}` is {quote_value(text)}, {why}.",
        hint="Write a date such as 2024-01-31, a timestamp, or words such as `1 week ago`.",
        reason_code="bad_date",
    )
