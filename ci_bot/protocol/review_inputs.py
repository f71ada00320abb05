"""What a review needs beside the plan: the scan, the base branch's tests and models, scopes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ci_bot.protocol.base import SCHEMA_VERSION, Contract, Count, FilePath, Line, Name, Seconds
from ci_bot.protocol.plan import Finding

# What the changed files say by themselves, read by a process that has loaded nothing of them.


class ScanFacts(Contract):
    """The worker's answer to a scan."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["scan"] = "scan"
    findings: list[Finding]
    without_plan: list[Finding] = Field(
        description="Of rules that see more where models are loaded: for a review without a plan."
    )
    statements: list[Finding] = Field(
        description="What SQL in the files does, as it stands: for a review whose plan was made "
        "beside code of the pull request."
    )
    seconds: Seconds


# Unit tests on the base branch: whether what fails in a pull request failed before it.


class TestName(Contract):
    """A unit test by its file, relative to the repository, and its name."""

    __test__ = False  # the name is the field's, not a test case for pytest

    path: Name | None
    name: Name


class TestOutcome(TestName):
    result: Literal["passed", "failed", "absent"]


class BaseTests(Contract):
    """How the tests that were asked for end on the base branch."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["base_tests"] = "base_tests"
    outcomes: list[TestOutcome] = Field(default_factory=list)


# What a run on the default branch found out about files of models, for reviews that come later.
#
# It is data and no code: digests, names and a flag. What a file defines is not in it. A review
# takes that from prod's state, where the file and prod's record are those that are meant here.


# A project with more models than this has the others loaded as ever.
MOST_FILES = 20_000

_MOST_READ = 10_000

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="A SHA-256.")]


class KnownFile(Contract):
    """A file that defines one model, and that model is the one of prod's record."""

    path: FilePath
    content: Digest = Field(description="Of the bytes of the file.")
    model: Name = Field(description="The fully qualified name.")
    record: Digest = Field(
        description="Of all else that loading takes part of, and prod's record of the model."
    )
    depends_on: list[Name] = Field(max_length=_MOST_READ)
    lists_columns: bool = Field(description="The query shows all its columns by their names.")


class BaseCache(Contract):
    """The files that need not be read as SQL again while they and all around them are the same."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["remember"] = "remember"
    files: list[KnownFile] = Field(max_length=MOST_FILES)
    models: Count = Field(description="How many models the project has.")


# Which models a policy's patterns mean: asked by the bot, answered by SQLMesh in the worker.


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


class ExposedModel(Contract):
    """Which model the policy means by a name that a reader outside of the project reads."""

    name: Line = Field(description="As it was asked.")
    model: Name | None = Field(description="As reports call it; null: no model, or several.")
    several: bool = False
    near: list[Name] = Field(
        default_factory=list, description="The models that it may be, or names like it."
    )
    columns: list[Name] | None = Field(
        default=None,
        description="Of both sides, in lower case; null: not known, or the model does not change.",
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
