"""Which models a policy's patterns mean: asked by the bot, answered by SQLMesh in the worker."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import SCHEMA_VERSION, Contract, FilePath, Line, Name


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


class SelectedModel(Contract):
    """What selections and owners go by, of one model."""

    model: Name
    path: FilePath | None
    owner: Name | None
    tags: list[Name]


class ScopesAnswer(Contract):
    """The worker's answer about scopes, without a plan: both versions are the project as it is."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["scopes"] = "scopes"
    scoped: list[ScopedModels]
    model: SelectedModel | None = Field(
        default=None, description="The model that was asked for; null: the project has none such."
    )
    near: list[Name] = Field(default_factory=list, description="Models with names like it.")
