"""What a review finds: facts and findings, without changing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.review import (
        compared_queries,
        policy_scopes,
        restatement_facts,
        review_plan,
        scan,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "review_plan": [],
        "policy_scopes": [],
        "restatement_facts": [],
        "compared_queries": [],
        "scan": [],
    },
)
