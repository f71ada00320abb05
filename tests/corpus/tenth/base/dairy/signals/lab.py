"""What has to have arrived before models run."""

import typing as t
from datetime import timedelta

from sqlmesh import signal
from sqlmesh.utils.date import now

WAIT_HOURS = 6


@signal()
def lab_has_delivered(batch, lab: str) -> t.Union[bool, list]:
    """Intervals whose day has ended some hours ago."""
    return [interval for interval in batch if interval[1] <= now() - timedelta(hours=WAIT_HOURS)]
