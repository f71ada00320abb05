"""Why an apply is refused, where bot and worker may both be the ones who find out."""

from __future__ import annotations

from ci_bot.protocol.base import short_plan_id

REVIEW_AGAIN = "Review again, then apply the new plan id."

UNCATEGORIZED_HINT = (
    "Switch automatic categorization on for them, or apply from a terminal with `sqlmesh plan`, "
    "which asks."
)


def describe_other_plan(asked: str | None, now: str | None) -> str:
    """The sentence on a plan that is not the reviewed one; both are plan ids, if there are any."""
    return (
        f"The plan is no longer the reviewed one: asked for {short_plan_id(asked)}, the current "
        f"plan is {short_plan_id(now)}."
    )


def describe_uncategorized(models: str) -> str:
    """The sentence on changes that SQLMesh gave no category; `models` are their names."""
    return f"These changes have no category, so SQLMesh cannot apply them: {models}."
