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
        whole_plan,
    )
    from ci_bot.worker.planning.describe_plan import (
        find_change_type,
        list_environment_statements,
        list_removed_by_others,
    )
    from ci_bot.worker.planning.identity import identify_plan
    from ci_bot.worker.planning.make_plan import (
        BuiltPlan,
        Interval,
        Missing,
        PlanRequest,
        make_evaluatable,
        name_category,
    )
    from ci_bot.worker.planning.plan_options import PlanRefusedError
    from ci_bot.worker.planning.prod_guard import BaseDrift
    from ci_bot.worker.planning.prod_plan import list_merge_work, plan_merge
    from ci_bot.worker.planning.whole_plan import describe_stages, find_short_window

__all__ = [
    "BaseDrift",
    "BuiltPlan",
    "Interval",
    "Missing",
    "PlanRefusedError",
    "PlanRequest",
    "describe_plan",
    "describe_stages",
    "find_change_type",
    "find_short_window",
    "identify_plan",
    "list_environment_statements",
    "list_merge_work",
    "list_removed_by_others",
    "make_evaluatable",
    "make_plan",
    "name_category",
    "plan_merge",
    "plan_options",
    "prod_guard",
    "prod_plan",
    "prod_restatements",
    "whole_plan",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "describe_plan": [
            "find_change_type",
            "list_environment_statements",
            "list_removed_by_others",
        ],
        "whole_plan": ["find_short_window", "describe_stages"],
        "identity": ["identify_plan"],
        "make_plan": [
            "Interval",
            "Missing",
            "PlanRequest",
            "BuiltPlan",
            "name_category",
            "make_evaluatable",
        ],
        "plan_options": ["PlanRefusedError"],
        "prod_guard": ["BaseDrift"],
        "prod_plan": ["plan_merge", "list_merge_work"],
        "prod_restatements": [],
    },
)
