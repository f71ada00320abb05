"""When the loads of the hotels are done."""

from __future__ import annotations

from datetime import timedelta

from sqlmesh import signal
from sqlmesh.utils.date import now


@signal()
def bookings_are_in(batch, hours: int = 6):
    """Intervals whose bookings have had time to arrive."""
    limit = now() - timedelta(hours=hours)
    return [interval for interval in batch if interval[1] <= limit]
