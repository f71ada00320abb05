"""The rules on a plan, by what they read; a module that is imported here takes part."""

from __future__ import annotations

from ci_bot.bot.decision import (
    evidence_rules,
    exposure_rules,
    plan_rules,
    removal_rules,
    restatement_rules,
    work_rules,
)
from ci_bot.bot.decision.risks import judges

PLAN_RULES = judges

__all__ = [
    "PLAN_RULES",
    "evidence_rules",
    "exposure_rules",
    "plan_rules",
    "removal_rules",
    "restatement_rules",
    "work_rules",
]
