"""From facts to a decision: Go, Review, No-Go or no changes.

Pure: everything here is a function of the worker's facts, of what the bot knows itself, and of the
limits that a team sets. Each rule is one small unit with an id, a severity, evidence, and a
sentence that says when it clears. The rules judge only the change, not what was there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.decision.code_on_load import (
        JudgedFile,
        is_possible_risk_of_code_on_load,
        list_risky_code_on_load,
    )
    from ci_bot.bot.decision.data_evidence import (
        decide_again_after_apply,
        judge_risks_of_data_diffs,
    )
    from ci_bot.bot.decision.judgement import (
        DecisionJudgement,
        choose_exit_code_of_decision,
        choose_exit_code_of_review_decision,
        decide_on_review,
        decide_on_review_again,
        is_decision_misleading,
    )
    from ci_bot.bot.decision.load_failure_cause import (
        combine_load_failures_for_decision,
        sort_load_failures_for_decision,
    )
    from ci_bot.bot.decision.plan_rules import FAILURE_RISKS
    from ci_bot.bot.decision.reader_rules import EXPOSURE_AFFECTED
    from ci_bot.bot.decision.risks import BotFacts, TeamLimits, make_risk
    from ci_bot.bot.decision.work_rules import OVER_BUDGET

__getattr__ = open_on_demand(
    __name__,
    {
        "code_on_load": [
            "JudgedFile",
            "list_risky_code_on_load",
            "is_possible_risk_of_code_on_load",
        ],
        "data_evidence": ["judge_risks_of_data_diffs", "decide_again_after_apply"],
        "reader_rules": ["EXPOSURE_AFFECTED"],
        "judgement": [
            "DecisionJudgement",
            "choose_exit_code_of_decision",
            "is_decision_misleading",
            "decide_on_review",
            "decide_on_review_again",
            "choose_exit_code_of_review_decision",
        ],
        "load_failure_cause": [
            "sort_load_failures_for_decision",
            "combine_load_failures_for_decision",
        ],
        "plan_rules": ["FAILURE_RISKS"],
        "risks": ["BotFacts", "TeamLimits", "make_risk"],
        "work_rules": ["OVER_BUDGET"],
    },
)
