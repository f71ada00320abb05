"""Which models a policy's patterns mean: asked by the bot, answered by SQLMesh in the worker."""

from __future__ import annotations

from pydantic import Field

from ci_bot.contracts.base import Contract, Line, Name


class ModelScope(Contract):
    """Models that one of the selections means, and of these the ones that one of the owners has.

    An empty list restricts nothing.
    """

    models: list[Line] = Field(
        default_factory=list, description="Selections in SQLMesh's selector syntax."
    )
    owners: list[Line] = Field(default_factory=list, description="SQLMesh owners.")


class ScopedModels(Contract):
    """The changed models, and those with a finding, that a scope means.

    `before` goes by names, tags, owners and lineage of prod: a new model has no tag and no owner
    there, and the place in the lineage that the change gives it. `after` goes by those of the pull
    request, and a removed model is as prod has it.
    """

    before: list[Name]
    after: list[Name]
    problem: Line | None = Field(
        default=None, description="Why SQLMesh cannot read a selection; then there are no models."
    )
