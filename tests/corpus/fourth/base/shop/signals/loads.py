"""When the loads of the shop are done."""

from __future__ import annotations

from datetime import timedelta

from sqlmesh import signal
from sqlmesh.utils.date import now


@signal()
def orders_are_loaded(batch, hours: int = 6):
    """Intervals whose orders have had time to arrive."""
    limit = now() - timedelta(hours=hours)
    return [interval for interval in batch if interval[1] <= limit]
