"""What a team's own policy has made of a review, as a report tells it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ci_bot.contracts.base import Contract, Count, FilePath, Line, Name, Sha, Timestamp
from ci_bot.contracts.documents.plan import Severity

CalendarDay = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="A day in UTC.")]


class Weighed(Contract):
    """Why a finding does not weigh what its rule gave it."""

    by: Literal["severity", "off", "ignore", "statement", "comment", "acceptance"] = Field(
        description="The section of the policy, a comment in the model, or its owner's acceptance."
    )
    weight: Severity = Field(description="What it weighs by itself.")
    reason: Line
    place: Line | None = Field(default=None, description="File and line that say so.")
    until: CalendarDay | None = Field(default=None, description="The last day of an ignore.")
    who: Name | None = Field(default=None, description="Who accepted it.")
    at: Timestamp | None = Field(default=None, description="When it was accepted.")


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
