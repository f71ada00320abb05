"""What a team's own policy has made of a review, as a report tells it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ci_bot.contracts.base import (
    Contract,
    Count,
    FilePath,
    Line,
    Name,
    Seconds,
    Sha,
    Text,
    Timestamp,
)
from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.documents.plan import Severity

CalendarDay = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="A day in UTC.")]


class Weighed(Contract):
    """Why a finding does not weigh what its rule gave it."""

    by: Literal["severity", "off", "ignore", "statement", "comment", "acceptance", "data_diff"] = (
        Field(
            description="A section of the policy, a comment in the model, its owner's acceptance, "
            "or what an apply has compared."
        )
    )
    weight: Severity = Field(description="What it weighs by itself.")
    reason: Line
    place: Line | None = Field(default=None, description="File and line that say so.")
    until: CalendarDay | None = Field(default=None, description="The last day of an ignore.")
    who: Name | None = Field(default=None, description="Who accepted it.")
    at: Timestamp | None = Field(default=None, description="When it was accepted.")


class Acceptance(Contract):
    """A model's owner accepts the findings of a rule on it, as it is now.

    It is kept in the ledger, which only the accounts of apply and cleanup can write.
    """

    rule: Name
    model: Name
    fingerprint: Name = Field(description="Of the model; with another one it does not hold.")
    severity: Severity = Field(description="What was accepted; a heavier finding is not.")
    subjects: list[Text] = Field(
        description='What the accepted findings are about; "" where that is the model as a whole.'
    )
    by: Name
    at: Timestamp
    reason: Line
    comment_id: Count


class ModelOwners(Contract):
    """Who may accept the findings on a model."""

    model: Name
    logins: list[Name]
    teams: list[Name]
    place: Line = Field(description="File and line of the base commit that say so.")


class PolicyUsed(Contract):
    """Which policy counted, and what of it is no weight of a finding."""

    source: Literal["base", "working_tree"] = Field(
        description="Files of the base commit, or on a laptop without one those that lie there."
    )
    commit: Sha | None = None
    files: list[FilePath] = Field(default_factory=list, description="Those that are there.")
    entries: Count = 0
    loosens: bool = Field(
        default=True, description="False: entries that make findings lighter did not count."
    )
    not_loosened_because: Line | None = None
    fail_on: Literal["blocker", "high", "never"] | None = None
    diff_tolerance: float | None = Field(default=None, ge=0, le=1)
    tolerances: dict[Name, float] = Field(
        default_factory=dict, description="Of changed models that have one of their own."
    )
    max_executor_hours: Seconds | None = Field(
        default=None, description="Above it, building is refused; an input of that name wins."
    )
    budget_blocks: bool = Field(
        default=True, description="Whether a plan above the limit is No-Go by this policy."
    )
    executor_hour_price: Price | None = Field(
        default=None, description="What an executor-hour costs; an input of that name wins."
    )
