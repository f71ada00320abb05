"""The same work on a laptop, without GitHub"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.laptop.compared_queries import compare_locally, make_witness
    from ci_bot.bot.laptop.environments import (
        apply_locally,
        cleanup_locally,
        estimate_locally,
        make_laptop_context,
        sweep_locally,
    )
    from ci_bot.bot.laptop.local_review import LocalReview, review_locally
    from ci_bot.bot.laptop.policy import check_policy, explain_policy
    from ci_bot.bot.laptop.prod_plan import prod_plan_locally
    from ci_bot.bot.laptop.surveys import doctor_locally, learn_locally, write_exposures

__all__ = [
    "LocalReview",
    "apply_locally",
    "check_policy",
    "cleanup_locally",
    "compare_locally",
    "doctor_locally",
    "estimate_locally",
    "explain_policy",
    "learn_locally",
    "make_laptop_context",
    "make_witness",
    "prod_plan_locally",
    "review_locally",
    "sweep_locally",
    "write_exposures",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "surveys": ["write_exposures", "learn_locally", "doctor_locally"],
        "environments": [
            "estimate_locally",
            "apply_locally",
            "cleanup_locally",
            "make_laptop_context",
            "sweep_locally",
        ],
        "local_review": ["LocalReview", "review_locally"],
        "policy": ["check_policy", "explain_policy"],
        "prod_plan": ["prod_plan_locally"],
        "compared_queries": ["compare_locally", "make_witness"],
    },
)
