"""Restatements that belong to a pull request: what an owner asks for, what of it the ledger keeps,
and what it makes prod build after the merge.
"""

from __future__ import annotations

from datetime import date, timedelta

from pydantic import Field

from ci_bot.protocol.base import Contract, Count, FilePath, Line, Name, PlanId, Timestamp
from ci_bot.protocol.plan import Backfill, Cost, ProdPlan, Window

_MIDNIGHT = "T00:00:00Z"


class RestatementWish(Contract):
    """What an owner's comment asks for; the dates are in the words that SQLMesh reads."""

    model: Name
    start: Line | None = None
    end: Line | None = None
    by: Name
    at: Timestamp
    reason: Line
    comment_id: Count


class RecordedRestatement(Contract):
    """A restatement of the ledger, bound to what was reviewed when it was asked for."""

    model: Name
    start: Timestamp | None = Field(description="Inclusive; null: from the beginning.")
    end: Timestamp | None = Field(
        description="Exclusive; null: up to the end of prod's data when it is carried out."
    )
    fingerprint: Name = Field(description="Of the model when it was asked for.")
    rebuilds: list[Name] = Field(
        description="The models that it builds again; if there are more, it does not hold."
    )
    by: Name
    at: Timestamp
    reason: Line
    comment_id: Count
    head_sha: Name | None = Field(description="The commit that was reviewed.")
    prod_plan_id: PlanId | None = Field(
        description="The plan for prod that the review showed; null if nothing changed."
    )


class ProdRestatement(Contract):
    """What a recorded restatement makes prod build, once the merge is deployed."""

    recorded: RecordedRestatement
    path: FilePath | None = Field(default=None, description="File of the model.")
    window: Window | None = Field(
        default=None, description="What SQLMesh is asked for; null where it does not hold."
    )
    work: list[Backfill] = Field(
        default_factory=list, description="The model and what reads it, each with its range."
    )
    cost: Cost | None = None
    kept: list[Name] = Field(
        default_factory=list,
        description="Readers that keep their rows, because `disable_restatement` is set.",
    )
    environments: list[Name] = Field(
        default_factory=list, description="Other environments whose data of these is cleared."
    )
    problem: Line | None = Field(
        default=None, description="Why it does not hold any more, and a deployment refuses it."
    )


class DeploymentPlan(ProdPlan):
    """The plan of prod, and the restatements that follow it."""

    restatements: list[ProdRestatement] = Field(default_factory=list)


def describe_range(item: RecordedRestatement) -> str:
    """The dates of a restatement, as the end of a sentence."""
    if item.start is None and item.end is None:
        return "with all of its history"
    start = "from its beginning" if item.start is None else f"from {_describe_start(item.start)}"
    end = "up to the end of prod's data" if item.end is None else f"to {_describe_end(item.end)}"
    return f"{start} {end}"


def _describe_start(text: str) -> str:
    """A midnight as its day."""
    return text[:10] if text.endswith(_MIDNIGHT) else text


def _describe_end(text: str) -> str:
    """The last day, as people write it: a range ends before its end."""
    if not text.endswith(_MIDNIGHT):
        return text
    return (date.fromisoformat(text[:10]) - timedelta(days=1)).isoformat()
