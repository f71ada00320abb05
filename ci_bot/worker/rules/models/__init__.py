"""Rules on what one model of the head declares, as classes of SQLMesh's linter.

A module must be imported here to take part. `ci_bot.linter` gives them to a project's own linter.
"""

from __future__ import annotations

from ci_bot.worker.rules.models import (
    current_time,
    declarations,
    dimensions,
    intervals,
    keys,
    storage,
)
