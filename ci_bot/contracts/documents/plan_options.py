"""The options of a plan: as a run was given them, and those that hold, each with who said so."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import Contract, Count, Line, Name

# The longest that one may be where it is told.
SHOWN = 4_000
Switch = Literal["skip-backfill", "include-unmodified", "forward-only"]
OptionName = (
    Switch
    | Literal[
        "select-model",
        "restate-model",
        "start",
        "end",
        "min-intervals",
        "preview-start",
        "preview-min-intervals",
        "allow-destructive",
        "auto-categorize-changes",
    ]
)
# `review`: a date that an earlier review of the same plan has fixed.
Source = Literal["input", "project", "review"]
_GIT = re.compile(r"\bgit\s*:", re.IGNORECASE)


class GivenFlags(Contract):
    """A plan's options among the inputs. Null, or an empty list, is "not said": then the project's
    configuration says it, and where that does not either, the default holds.
    """

    forward_only: bool | None = None
    include_unmodified: bool | None = None
    skip_backfill: bool | None = None
    min_intervals: Count | None = None
    preview_start: str | None = None
    preview_min_intervals: Count | None = None
    select_models: list[str] = Field(default_factory=list)
    restate_models: list[str] = Field(default_factory=list)
    allow_destructive: list[str] = Field(default_factory=list)


class PlanOption(Contract):
    """An option that somebody has said, and its value as it was said."""

    name: OptionName = Field(description="As the input is called, where there is one.")
    value: Line
    source: Source
    key: Name | None = Field(
        default=None, description="Where in the project's configuration; null for all others."
    )


def selects_by_git(flags: GivenFlags) -> bool:
    """Whether a selection asks which files have changed (`git:main`)."""
    named = [*flags.select_models, *flags.restate_models, *flags.allow_destructive]
    return any(_GIT.search(text) for text in named)
