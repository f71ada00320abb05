"""What a statement does beside its query: what it reads, writes, moves, drops and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.sql_effects.effects import display_name
    from ci_bot.worker.sql_effects.judgement import JudgedEffect, statements_change_rows
    from ci_bot.worker.sql_effects.plan_statements import check_statements, judge_models, judge_plan
    from ci_bot.worker.sql_effects.read_statement import list_statement_effects
    from ci_bot.worker.sql_effects.spark_settings import find_setting_meaning, find_setting_spelling
    from ci_bot.worker.sql_effects.unrendered_sql import read_raw_file

__all__ = [
    "JudgedEffect",
    "check_statements",
    "display_name",
    "find_setting_meaning",
    "find_setting_spelling",
    "judge_models",
    "judge_plan",
    "list_statement_effects",
    "read_raw_file",
    "statements_change_rows",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "effects": ["display_name"],
        "judgement": ["JudgedEffect", "statements_change_rows"],
        "plan_statements": ["check_statements", "judge_models", "judge_plan"],
        "unrendered_sql": ["read_raw_file"],
        "read_statement": ["list_statement_effects"],
        "spark_settings": ["find_setting_meaning", "find_setting_spelling"],
    },
)
