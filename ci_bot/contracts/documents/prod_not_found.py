"""A state that answered, and in which no prod of the project was found."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import Contract, Line

FirstDeployment = Literal["base-without-models", "chosen"]


class ProdNotFound(Contract):
    """Where prod was looked for in vain, and why its absence may be believed."""

    state: Line = Field(description="Server, database, schema and gateway, or file; no secret.")
    why: Line = Field(description="What the state holds instead, to follow a colon.")
    hint: Line
    first_deployment: FirstDeployment | None = Field(
        default=None,
        description="Why nobody has deployed it yet: the base branch has no models either, or "
        "`baseline: state` was chosen by name. Null: prod may be elsewhere, so nothing is known.",
    )

    def sentence(self) -> str:
        """Where no prod was found, and what is there instead."""
        return f"No prod was found in the state ({self.state}): {self.why}."
