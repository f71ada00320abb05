"""Every rule on one model of the head: on what it declares, and on what its query computes."""

from __future__ import annotations

from ci_bot.worker.rules import models, queries, slips  # noqa: F401 - rules register when imported
from ci_bot.worker.rules.models.linter_rule import MODEL_RULES

__all__ = ["MODEL_RULES"]
