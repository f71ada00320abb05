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
    from ci_bot.worker.planning.describe_plan import change_type, statements
    from ci_bot.worker.planning.first_build import short_window
    from ci_bot.worker.planning.identity import identity_of
    from ci_bot.worker.planning.make_plan import (
        Interval,
        Missing,
        Planned,
        PlanRequest,
        category_of,
        evaluatable,
    )
    from ci_bot.worker.planning.plan_options import PlanRefusedError
    from ci_bot.worker.planning.prod_guard import Drift
    from ci_bot.worker.planning.prod_plan import merge_of, work_of_merge
    from ci_bot.worker.planning.removals import removed_by_others
    from ci_bot.worker.planning.stage_sentences import describe_stages

__all__ = [
    "Drift",
    "Interval",
    "Missing",
    "PlanRefusedError",
    "PlanRequest",
    "Planned",
    "category_of",
    "change_type",
    "describe_plan",
    "describe_stages",
    "evaluatable",
    "first_build",
    "identity_of",
    "make_plan",
    "merge_of",
    "plan_options",
    "prod_guard",
    "prod_plan",
    "removed_by_others",
    "short_window",
    "statements",
    "work_of_merge",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "describe_plan": ["change_type", "statements"],
        "first_build": ["short_window"],
        "identity": ["identity_of"],
        "make_plan": [
            "Interval",
            "Missing",
            "PlanRequest",
            "Planned",
            "category_of",
            "evaluatable",
        ],
        "plan_options": ["PlanRefusedError"],
        "prod_guard": ["Drift"],
        "prod_plan": ["merge_of", "work_of_merge"],
        "removals": ["removed_by_others"],
        "stage_sentences": ["describe_stages"],
    },
)
