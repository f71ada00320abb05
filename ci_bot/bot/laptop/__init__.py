"""The same work on a laptop, without GitHub, and the demo of it on embedded Spark with real data"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.laptop.compared_queries import (
        compare_queries_on_laptop,
        make_witness_test_on_laptop,
    )
    from ci_bot.bot.laptop.demo_story import run_demo
    from ci_bot.bot.laptop.environments import (
        apply_on_laptop,
        clean_up_on_laptop,
        estimate_on_laptop,
        sweep_on_laptop,
    )
    from ci_bot.bot.laptop.local_review import LaptopReview, review_on_laptop
    from ci_bot.bot.laptop.policy import check_policy_on_laptop, explain_policy_on_laptop
    from ci_bot.bot.laptop.prod_plan import plan_prod_on_laptop
    from ci_bot.bot.laptop.surveys import (
        learn_on_laptop,
        run_doctor_on_laptop,
        write_exposures_on_laptop,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "demo_story": ["run_demo"],
        "surveys": ["write_exposures_on_laptop", "learn_on_laptop", "run_doctor_on_laptop"],
        "environments": [
            "estimate_on_laptop",
            "apply_on_laptop",
            "clean_up_on_laptop",
            "sweep_on_laptop",
        ],
        "local_review": ["LaptopReview", "review_on_laptop"],
        "policy": ["check_policy_on_laptop", "explain_policy_on_laptop"],
        "prod_plan": ["plan_prod_on_laptop"],
        "compared_queries": ["compare_queries_on_laptop", "make_witness_test_on_laptop"],
    },
)
