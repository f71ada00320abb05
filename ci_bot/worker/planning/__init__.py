"""SQLMesh's plan of a pull request: made, guarded, identified, and described for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.planning import (
        describe_plan,
        first_build,
        make_plan,
        plan_options,
        prod_guard,
        prod_plan,
    )
    from ci_bot.worker.planning.describe_plan import change_type, list_environment_statements
    from ci_bot.worker.planning.first_build import short_window
    from ci_bot.worker.planning.identity import identity_of
    from ci_bot.worker.planning.make_plan import (
        BuiltPlan,
        Interval,
        Missing,
        PlanRequest,
        category_of,
        make_evaluatable,
    )
    from ci_bot.worker.planning.plan_options import PlanRefusedError
    from ci_bot.worker.planning.prod_guard import BaseDrift
    from ci_bot.worker.planning.prod_plan import merge_of, work_of_merge
    from ci_bot.worker.planning.removals import removed_by_others
    from ci_bot.worker.planning.stage_sentences import describe_stages

__all__ = [
    "BaseDrift",
    "BuiltPlan",
    "Interval",
    "Missing",
    "PlanRefusedError",
    "PlanRequest",
    "category_of",
    "change_type",
    "describe_plan",
    "describe_stages",
    "first_build",
    "identity_of",
    "list_environment_statements",
    "make_evaluatable",
    "make_plan",
    "merge_of",
    "plan_options",
    "prod_guard",
    "prod_plan",
    "removed_by_others",
    "short_window",
    "work_of_merge",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "describe_plan": ["change_type", "list_environment_statements"],
        "first_build": ["short_window"],
        "identity": ["identity_of"],
        "make_plan": [
            "Interval",
            "Missing",
            "PlanRequest",
            "BuiltPlan",
            "category_of",
            "make_evaluatable",
        ],
        "plan_options": ["PlanRefusedError"],
        "prod_guard": ["BaseDrift"],
        "prod_plan": ["merge_of", "work_of_merge"],
        "removals": ["removed_by_others"],
        "stage_sentences": ["describe_stages"],
    },
)
