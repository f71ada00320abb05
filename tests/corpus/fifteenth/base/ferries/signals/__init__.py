from datetime import datetime, timedelta, timezone

from sqlmesh import signal
from sqlmesh.utils.date import to_datetime


@signal()
def gate_delivered(batch, minutes: int = 20):
    """The gates send their scans some minutes after the hour."""
    limit = datetime.now(timezone.utc) - timedelta(minutes=minutes)
    return [(start, end) for start, end in batch if to_datetime(end) <= limit]
