"""What a change does to rows that exist today, as one claim for all who make or show it."""

from __future__ import annotations

from pydantic import Field

from ci_bot.contracts.base import Contract, Count, Line, Name


class ChangedRows(Contract):
    """A model whose existing rows come out differently, or may.

    With `certain` false the model is computed anew, and whether its rows differ is not known.
    """

    model: Name
    columns: list[Name] = Field(
        default_factory=list, description="Columns that are computed differently."
    )
    rows: bool = Field(default=False, description="Whether which rows it has changes.")
    certain: bool = Field(default=True, description="Whether its definition is known to differ.")
    why: Line | None = Field(default=None, description="What changes its rows, as a sentence.")


class PastNumbers(Contract):
    """What the pull request's own changes do to existing rows, and whom that reaches.

    A model that reads what changes, and a model that is rebuilt, are two things: SQLMesh rebuilds
    every model below a breaking change, whichever columns it reads.
    """

    changed: list[ChangedRows] = Field(default_factory=list)
    readers: Count = Field(default=0, description="Other models that read what changes.")
    maybe_readers: Count = Field(default=0, description="Other models that may read it.")
    readers_known: bool = Field(
        default=True, description="False where not every model below was followed by columns."
    )
    rebuilt: Count = Field(
        default=0, description="Other models that the plan rebuilds and nobody edited."
    )
    keeps_history: list[Name] = Field(
        default_factory=list, description="Models of which only new intervals change."
    )

    @property
    def models(self) -> list[str]:
        """Those whose rows come out differently, or may."""
        return [item.model for item in self.changed]

    @property
    def certain(self) -> bool:
        """Whether every one of them is known to differ."""
        return all(item.certain for item in self.changed)
