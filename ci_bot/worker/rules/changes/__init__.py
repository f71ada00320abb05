"""Rules on a model before and after the change; a module that is imported here takes part."""

from __future__ import annotations

from ci_bot.worker.rules.changes import access as exposure
from ci_bot.worker.rules.changes import audits, joins, results, rows, schedule, storage
from ci_bot.worker.rules.changes import forward_only as forward
from ci_bot.worker.rules.changes import model_block as definition
from ci_bot.worker.rules.changes import rows as windows
from ci_bot.worker.rules.registry import on_change, on_new_model

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
