"""When an hour of plays is complete."""

import typing as t
from datetime import timedelta

from sqlmesh import DatetimeRanges, signal
from sqlmesh.utils.date import now


@signal()
def plays_have_arrived(batch: DatetimeRanges, wait_minutes: int = 90) -> t.Union[bool, DatetimeRanges]:
    ready = now() - timedelta(minutes=wait_minutes)
    return [(start, end) for start, end in batch if end <= ready]
