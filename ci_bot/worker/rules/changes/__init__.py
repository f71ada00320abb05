"""Rules on a model before and after the change; a module that is imported here takes part."""

from __future__ import annotations

from ci_bot.worker.rules.changes import (audits, model_block as definition, access as exposure, forward_only as forward, joins, results, rows, schedule, storage, rows as windows)
from ci_bot.worker.rules.registry import (on_change, on_new_model)

CHANGE_RULES, NEW_MODEL_RULES = on_change, on_new_model

__all__ = [
    "CHANGE_RULES",
    "NEW_MODEL_RULES",
    "audits",
    "definition",
    "exposure",
    "forward",
    "joins",
    "results",
    "rows",
    "schedule",
    "storage",
    "windows",
]
