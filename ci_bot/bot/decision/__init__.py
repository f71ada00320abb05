"""From facts to a decision: Go, Review, No-Go or no changes.

Pure: everything here is a function of the worker's facts, of what the bot knows itself, and of
the limits that a team sets. Each rule is one small unit with an id, a severity, evidence, and a
sentence that says when it clears. The rules judge the change, and not what was there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.decision.code_on_load import (
        ChangedFile,
        is_possible_code_on_load,
        list_code_on_load,
    )
    from ci_bot.bot.decision.data_evidence import judge_applied, judge_data_diffs
    from ci_bot.bot.decision.judgement import (
        Judgement,
        decide_by_risks,
        exit_code,
        is_misleading,
        judge_again,
        judge_review,
        review_exit_code,
    )
    from ci_bot.bot.decision.load_failure_cause import (
        SortedFailures,
        combine_failures,
        sort_failures_by_cause,
    )
    from ci_bot.bot.decision.plan_rules import FAILURE_RISKS
    from ci_bot.bot.decision.reader_rules import EXPOSURE_AFFECTED
    from ci_bot.bot.decision.risks import BotFacts, TeamLimits, make_risk
    from ci_bot.bot.decision.work_rules import OVER_BUDGET

__all__ = [
    "EXPOSURE_AFFECTED",
    "FAILURE_RISKS",
    "OVER_BUDGET",
    "BotFacts",
    "ChangedFile",
    "Judgement",
    "SortedFailures",
    "TeamLimits",
    "combine_failures",
    "decide_by_risks",
    "exit_code",
    "is_misleading",
    "is_possible_code_on_load",
    "judge_again",
    "judge_applied",
    "judge_data_diffs",
    "judge_review",
    "list_code_on_load",
    "make_risk",
    "review_exit_code",
    "sort_failures_by_cause",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "code_on_load": ["ChangedFile", "list_code_on_load", "is_possible_code_on_load"],
        "data_evidence": ["judge_data_diffs", "judge_applied"],
        "reader_rules": ["EXPOSURE_AFFECTED"],
        "judgement": [
            "Judgement",
            "decide_by_risks",
            "exit_code",
            "is_misleading",
            "judge_review",
            "judge_again",
            "review_exit_code",
        ],
        "load_failure_cause": ["SortedFailures", "sort_failures_by_cause", "combine_failures"],
        "plan_rules": ["FAILURE_RISKS"],
        "risks": ["BotFacts", "TeamLimits", "make_risk"],
        "work_rules": ["OVER_BUDGET"],
    },
)
