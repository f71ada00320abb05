from datetime import datetime, timedelta, timezone

from sqlmesh import signal
from sqlmesh.utils.date import to_datetime


@signal()
def lab_closed(batch, hours: int = 4):
    """The laboratory closes a day some hours after midnight."""
    limit = datetime.now(timezone.utc) - timedelta(hours=hours)
    return [(start, end) for start, end in batch if to_datetime(end) <= limit]
