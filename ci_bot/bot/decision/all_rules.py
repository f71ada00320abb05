"""The rules on a plan, by what they read; a module that is imported here takes part."""

from __future__ import annotations

from ci_bot.bot.decision import evidence_rules, plan_rules, removal_rules, work_rules
from ci_bot.bot.decision import evidence_rules as unit_test_rules
from ci_bot.bot.decision import plan_rules as matrix
from ci_bot.bot.decision import plan_rules as policy_rules
from ci_bot.bot.decision import work_rules as limit_rules
from ci_bot.bot.decision.risks import judges

PLAN_RULES = judges

__all__ = [
    "PLAN_RULES",
    "evidence_rules",
    "limit_rules",
    "matrix",
    "plan_rules",
    "policy_rules",
    "removal_rules",
    "unit_test_rules",
    "work_rules",
]
