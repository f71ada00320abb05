"""What running a changed query on generated rows showed, before and after the change."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import SCHEMA_VERSION, Contract, Count, FilePath, Line, Name, Text

ExecutionResult = Literal["differs", "alike", "not_tried"]
# Values as people read them; null is SQL's NULL.
ExampleRow = list[Line | None]


class ExampleInput(Contract):
    """The rows of one table that the query reads. All of them are generated; none is a table's."""

    table: Name
    columns: list[Name] = Field(description="Those that the query reads.")
    rows: list[ExampleRow]


class ExampleOutput(Contract):
    """A row of the result before and after; null where one side has no such row."""

    before: ExampleRow | None
    after: ExampleRow | None


class ExecutionExample(Contract):
    """The smallest rows that were found to tell both versions apart, and their results."""

    inputs: list[ExampleInput]
    columns: list[Name] = Field(description="Of both results.")
    outputs: list[ExampleOutput]
    differing: list[Name] = Field(
        description="Columns with other values; none where only which rows there are differs."
    )


class SameAnswer(Contract):
    """Whether two queries give the same: `same` needs a proof, and an execution that agrees."""

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
