"""Rules on a model before and after the change; a module must be imported here to take part."""

from __future__ import annotations

from ci_bot.worker.rules.changes import (
    forward_only,
    joins,
    late_data,
    model_block,
    protection,
    results,
    row_numbers,
    rows,
    runs,
    storage,
)
from ci_bot.worker.rules.registry import on_change, on_new_model

CHANGE_RULES, NEW_MODEL_RULES = on_change, on_new_model
