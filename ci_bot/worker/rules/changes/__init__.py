"""Rules on a model before and after the change; a module must be imported here to take part."""

from __future__ import annotations

from ci_bot.worker.rules.changes import (
    access,
    audits,
    dependencies,
    forward_only,
    joins,
    model_block,
    results,
    rows,
    run_renderings,
    storage,
)
from ci_bot.worker.rules.registry import on_change, on_new_model

CHANGE_RULES, NEW_MODEL_RULES = on_change, on_new_model

__all__ = [
    "CHANGE_RULES",
    "NEW_MODEL_RULES",
    "access",
    "audits",
    "dependencies",
    "forward_only",
    "joins",
    "model_block",
    "results",
    "rows",
    "run_renderings",
    "storage",
]
