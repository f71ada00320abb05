"""Rules on one model of the head, as classes of SQLMesh's linter.

A module must be imported here to take part. `ci_bot.linter` gives them to a project's own linter.
"""

from __future__ import annotations

from ci_bot.worker.rules.models import (
    current_time,
    declarations,
    dimensions,
    fan_outs,
    improbable_expressions,
    intervals,
    joins_and_aggregates,
    keys,
    misnamed_columns,
    mixed_currencies,
    mixed_types,
    query_shape,
    refused_queries,
    storage,
)
from ci_bot.worker.rules.models.linter_rule import MODEL_RULES

__all__ = ["MODEL_RULES"]
