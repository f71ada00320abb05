"""The effects of a statement: what it reads, writes, moves, drops and sets beside its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.sql_effects.judgement import JudgedEffect, do_statements_change_rows
    from ci_bot.worker.sql_effects.plan_statements import (
        check_statement_effects_of_plan,
        judge_statement_effects_of_models,
        judge_statement_effects_of_plan,
    )
    from ci_bot.worker.sql_effects.read_statement import list_statement_effects
    from ci_bot.worker.sql_effects.spark_settings import (
        find_effect_of_setting,
        find_setting_spelling,
    )
    from ci_bot.worker.sql_effects.unrendered_sql import read_effects_of_raw_file

__getattr__ = open_on_demand(
    __name__,
    {
        "judgement": ["JudgedEffect", "do_statements_change_rows"],
        "plan_statements": [
            "check_statement_effects_of_plan",
            "judge_statement_effects_of_models",
            "judge_statement_effects_of_plan",
        ],
        "unrendered_sql": ["read_effects_of_raw_file"],
        "read_statement": ["list_statement_effects"],
        "spark_settings": ["find_effect_of_setting", "find_setting_spelling"],
    },
)
