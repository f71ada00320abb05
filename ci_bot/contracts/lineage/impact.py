"""What depends on a changed column, and which rebuilds read nothing that changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import Contract, Count, Line, Name

HowChanged = Literal["dropped", "retyped", "computed", "added", "reordered", "rows", "unknown"]
Reached = Literal["yes", "no", "unknown"]


class ReachedModel(Contract):
    """What of one model depends on a change."""

    model: Name
    columns: list[Name] = Field(default_factory=list, description="Whose values depend on it.")
    more_columns: Count = Field(default=0, description="Further ones, not listed.")
    rows: bool = Field(description="Which rows the model has depends on it: then all of it does.")


class ChangedPart(Contract):
    """A column of a changed model, or its rows, and all that depends on it, to the leaves.

    `unknown` is a model that cannot be read, as a Python model is: what is listed may or may not
    depend on a change above it.
    """

    model: Name
    column: Name | None = Field(description="Null where it is the rows, or cannot be told.")
    how: HowChanged
    why: Line | None = None
    reached: list[ReachedModel] = Field(default_factory=list)
    more_models: Count = Field(default=0, description="Further models that it reaches, not listed.")


class IndirectModel(Contract):
    """Whether a model that changes only because of others reads anything of what changed."""

    model: Name
    reached: Reached
    why: Line


class Impact(Contract):
    """The column impact of a plan. What was cut is counted; nothing is left out in silence."""

    changed: list[ChangedPart] = Field(default_factory=list)
    more_changed: Count = Field(default=0, description="Further changed parts, not listed.")
    indirect: list[IndirectModel] = Field(default_factory=list)
    more_indirect: Count = Field(default=0, description="Further indirect models, not listed.")
