"""SQLMesh's plan of a pull request: made, guarded, identified, and described for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.planning import (
        describe_plan,
        make_plan,
        plan_options,
        prod_guard,
        prod_plan,
        prod_restatements,
        whole_work,
    )
    from ci_bot.worker.planning.describe_plan import (
        find_planned_change_type,
        list_environment_statements_of_plan,
        list_models_removed_by_others,
    )
    from ci_bot.worker.planning.identity import identify_plan
    from ci_bot.worker.planning.make_plan import (
        BuiltPlan,
        Interval,
        Missing,
        PlanRequest,
        make_evaluatable_plan,
        name_plan_category,
    )
    from ci_bot.worker.planning.plan_options import PlanRefusedError
    from ci_bot.worker.planning.plan_stages import describe_plan_stages
    from ci_bot.worker.planning.prod_guard import PlannedBaseDrift
    from ci_bot.worker.planning.prod_plan import (
        list_gaps_between_intervals,
        list_work_of_merge_plan,
        plan_merge,
    )
    from ci_bot.worker.planning.reworded_code import (
        describe_reworded_code,
        is_reworded_code,
        list_models_with_reworded_code,
    )
    from ci_bot.worker.planning.whole_work import find_short_window_of_plan

__getattr__ = open_on_demand(
    __name__,
    {
        "describe_plan": [
            "find_planned_change_type",
            "list_environment_statements_of_plan",
            "list_models_removed_by_others",
        ],
        "plan_stages": ["describe_plan_stages"],
        "reworded_code": [
            "describe_reworded_code",
            "is_reworded_code",
            "list_models_with_reworded_code",
        ],
        "whole_work": ["find_short_window_of_plan"],
        "identity": ["identify_plan"],
        "make_plan": [
            "Interval",
            "Missing",
            "PlanRequest",
            "BuiltPlan",
            "name_plan_category",
            "make_evaluatable_plan",
        ],
        "plan_options": ["PlanRefusedError"],
        "prod_guard": ["PlannedBaseDrift"],
        "prod_plan": ["list_gaps_between_intervals", "plan_merge", "list_work_of_merge_plan"],
        "prod_restatements": [],
    },
)
