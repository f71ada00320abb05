"""When an hour of pings is complete."""

import typing as t
from datetime import timedelta

from sqlmesh import DatetimeRanges, signal
from sqlmesh.utils.date import now


@signal()
def pings_complete(batch: DatetimeRanges, minutes: int = 15) -> t.Union[bool, DatetimeRanges]:
    until = now() - timedelta(minutes=minutes)
    return [(start, end) for start, end in batch if end <= until]
