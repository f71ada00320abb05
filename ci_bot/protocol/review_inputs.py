"""What a review is made of beside the plan.

The scan, the base branch's tests and models, scopes, restatements, and what changed queries gave on
generated rows.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field

from ci_bot.protocol.base import (
    SCHEMA_VERSION,
    Contract,
    Count,
    FilePath,
    Line,
    Name,
    PlanId,
    Seconds,
    Text,
    Timestamp,
)
from ci_bot.protocol.plan import Backfill, Cost, Finding, ProdPlan, Window

# What the changed files alone say: the process that reads them loads nothing of them.


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


# Unit tests on the base branch: whether a test that fails in a pull request failed before it.


class TestName(Contract):
    """A unit test by its file, relative to the repository, and its name."""

    __test__ = False  # the name is the field's, not a test case for pytest

    path: Name | None
    name: Name


class TestOutcome(TestName):
    result: Literal["passed", "failed", "absent"]


class BaseTests(Contract):
    """The results of the requested tests on the base branch."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["base_tests"] = "base_tests"
    outcomes: list[TestOutcome] = Field(default_factory=list)


# What a run on the default branch found out about files of models, for later reviews.
#
# It is data, not code: digests, names and a flag. It does not hold what a file defines. A review
# takes that from prod's state, if file and prod's record are those that are meant here.


# A project with more models than this has the others loaded as without a cache.
MOST_FILES = 20_000
_MOST_READ = 10_000

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="A SHA-256.")]


class KnownFile(Contract):
    """A file that defines one model, which is equal to prod's record of it."""

    path: FilePath
    content: Digest = Field(description="Of the bytes of the file.")
    model: Name = Field(description="The fully qualified name.")
    record: Digest = Field(
        description="Of all else that loading takes part of, and prod's record of the model."
    )
    depends_on: list[Name] = Field(max_length=_MOST_READ)
    lists_columns: bool = Field(description="The query shows all its columns by their names.")


class BaseCache(Contract):
    """The files that need not be read as SQL again while they and all around them stay the same."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["remember"] = "remember"
    files: list[KnownFile] = Field(max_length=MOST_FILES)
    models: Count = Field(description="How many models the project has.")


# Which models a policy's patterns mean: the bot asks, and SQLMesh answers in the worker.


class ModelScope(Contract):
    """Models that one of the selections means and that one of the owners has.

    An empty list restricts nothing.
    """

    models: list[Line] = Field(
        default_factory=list, description="Selections in SQLMesh's selector syntax."
    )
    owners: list[Line] = Field(default_factory=list, description="SQLMesh owners.")


class ScopedModels(Contract):
    """The changed models, and those with a finding, that a scope means.

    `before` uses names, tags, owners and lineage of prod. A new model has no tag and no owner
    there, and it has the place in the lineage that the change gives it. `after` uses those of the
    pull request; a removed model is as prod has it.
    """

    before: list[Name]
    after: list[Name]
    problem: Line | None = Field(
        default=None, description="Why SQLMesh cannot read a selection; then there are no models."
    )


class ExposedModel(Contract):
    """The model that the policy means by a name that a reader outside of the project reads."""

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
    """The properties of one model that selections and owners refer to."""

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


_MIDNIGHT = "T00:00:00Z"


class RestatementWish(Contract):
    """What an owner's comment asks for; the dates are written as SQLMesh reads them."""

    model: Name
    start: Line | None = None
    end: Line | None = None
    by: Name
    at: Timestamp
    reason: Line
    comment_id: Count


class RecordedRestatement(Contract):
    """A restatement in the ledger, bound to what was reviewed when somebody asked for it."""

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
    """What a recorded restatement makes prod build after the merge is deployed."""

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


def describe_range_of_restatement_document(item: RecordedRestatement) -> str:
    """Describes the dates of a restatement, as the end of a sentence."""
    if item.start is None and item.end is None:
        return "with all of its history"
    start = "from its beginning" if item.start is None else f"from {_describe_start(item.start)}"
    end = "up to the end of prod's data" if item.end is None else f"to {_describe_end(item.end)}"
    return f"{start} {end}"


def _describe_start(text: str) -> str:
    """Writes a midnight as its day, and any other time as it is."""
    return text[:10] if text.endswith(_MIDNIGHT) else text


def _describe_end(text: str) -> str:
    """Writes the last day as people do: a range that ends at midnight ends the day before."""
    if not text.endswith(_MIDNIGHT):
        return text
    return (date.fromisoformat(text[:10]) - timedelta(days=1)).isoformat()


ExecutionResult = Literal["differs", "alike", "not_tried"]
# Values as people read them; null is SQL's NULL.
ExampleRow = list[Line | None]


class ExampleInput(Contract):
    """The rows of one table that the query reads. All are generated; none comes from a table."""

    table: Name
    columns: list[Name] = Field(description="Those that the query reads.")
    rows: list[ExampleRow]


class ExampleOutput(Contract):
    """A row of the result before and after; null if one side has no such row."""

    before: ExampleRow | None
    after: ExampleRow | None


class ExecutionExample(Contract):
    """The smallest rows that were found to give different results, and these results."""

    inputs: list[ExampleInput]
    columns: list[Name] = Field(description="Of both results.")
    outputs: list[ExampleOutput]
    differing: list[Name] = Field(
        description="Columns with other values; none where only which rows there are differs."
    )


class SameAnswer(Contract):
    """Whether two queries give the same: `same` needs a proof and an execution that agrees."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["same"] = "same"
    verdict: Literal["same", "differs", "not_known"]
    data_sets: Count = Field(description="How many let rows through at least one query.")
    told: Line = Field(description="The reasons for the verdict, as sentences.")
    example: ExecutionExample | None = None


class WitnessTest(Contract):
    """A SQLMesh unit test that passes on the head and fails on the base: SQLMesh has run it."""

    path: FilePath = Field(description="Where it belongs, relative to the project's directory.")
    text: Text


class ModelExecution(Contract):
    """A directly changed model, run on generated rows in both versions."""

    model: Name
    result: ExecutionResult
    data_sets: Count = Field(description="How many let rows through at least one version.")
    reason: Line | None = Field(default=None, description="What kept it from being tried.")
    example: ExecutionExample | None = None
    witness: WitnessTest | None = None
    no_witness: Line | None = Field(
        default=None, description="Why no unit test is made of the example."
    )
