"""apply.json: what an apply built, and the evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import (
    SCHEMA_VERSION,
    Compared,
    Contract,
    Count,
    Failure,
    Line,
    Name,
    PlanId,
    Seconds,
    Timings,
    Versions,
)
from ci_bot.contracts.documents.plan import BackfillAction, Cost
from ci_bot.contracts.documents.plan_identity import PlanDifference

ApplyResult = Literal["applied", "nothing_to_apply", "failed", "refused", "cancelled"]
Rate = float


class ModelAudit(Contract):
    audit: Name
    blocking: bool
    status: Literal["passed", "failed", "skipped"]
    failed_rows: Count | None = None


class AppliedModel(Contract):
    model: Name
    table: Name
    action: BackfillAction | None = Field(
        default=None, description="What building it meant; null for a model that was only audited."
    )
    intervals: Count
    batches: Count
    seconds: Seconds
    rows: Count | None = None
    audits: list[ModelAudit] = Field(default_factory=list)


class View(Contract):
    view: Name
    resolves: bool
    error: Line | None = None


class AuditTotals(Contract):
    passed: Count = 0
    failed: Count = 0
    blocking_failed: Count = 0
    not_run: Count = 0


class ColumnMatch(Contract):
    name: Name
    match_rate: Rate | None = Field(ge=0, le=1)


class SchemaDifference(Contract):
    added: list[Name] = Field(default_factory=list)
    removed: list[Name] = Field(default_factory=list)
    changed: list[Name] = Field(default_factory=list)


class DiffWindow(Contract):
    """The range of the time column that both sides have; `end` is exclusive."""

    column: Name
    start: Name
    end: Name


class TableDiff(Contract):
    """Aggregates only: no row of either side ever leaves the warehouse."""

    model: Name
    compared: bool
    window: DiffWindow | None = None
    window_of: DiffWindow | None = Field(default=None, description="The range of prod's table.")
    keys: list[Name] = Field(default_factory=list)
    rows_prod: Count | None = None
    rows_pr: Count | None = None
    only_prod: Count | None = None
    only_pr: Count | None = None
    matched: Count | None = Field(default=None, description="Rows whose key is on both sides.")
    full_match: Count | None = Field(
        default=None, description="Matched rows that agree in every common column."
    )
    null_keys: Count | None = None
    duplicate_keys: Count | None = None
    columns: list[ColumnMatch] = Field(default_factory=list)
    schema_: SchemaDifference = Field(
        default_factory=SchemaDifference, alias="schema", serialization_alias="schema"
    )
    seconds: Seconds | None = None
    skipped_because: Line | None = None


class Attempt(Contract):
    number: Count
    result: Literal["succeeded", "failed"]
    error: Line | None = None
    retried_because: Line | None = None
    seconds: Seconds


class ApplyDocument(Contract):
    """apply.json, which the worker answers and the bot checks."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["apply"] = "apply"
    environment: Compared
    plan_id: PlanId | None
    result: ApplyResult
    reason_code: Name | None = None
    models: list[AppliedModel] = Field(default_factory=list)
    views: list[View] = Field(default_factory=list)
    audits: AuditTotals = Field(default_factory=AuditTotals)
    table_diff: list[TableDiff] = Field(default_factory=list)
    evidence_missing: Line | None = Field(
        default=None,
        description="Why the environment's data was not looked at, or not to the end; null: it "
        "was, or the apply never came to that.",
    )
    attempts: list[Attempt] = Field(default_factory=list)
    estimate: Cost | None = None
    executor_hours: Seconds | None = Field(
        default=None, description="What building took: wall time times Spark's executors."
    )
    difference: PlanDifference | None = Field(
        default=None, description="Reviewed plan against the plan of now, where they differ."
    )
    partial: list[Line] = Field(
        default_factory=list, description="What may be half built after a failure or a cancel."
    )
    seconds: Seconds
    timings: Timings
    versions: Versions
    failure: Failure | None = None


class Step(Contract):
    """Where an apply was when it ended: the last thing that it said."""

    phase: Name
    message: Line
    done: Count | None = None
    total: Count | None = None

    def left(self, environment: str, then: str | None = None) -> str:
        """What there is after an end at this step, in a sentence for `partial`.

        Args:
            then: What becomes of it, where that is not an apply's or a cleanup's business.
        """
        if self.phase in AFTER_PROMOTION:
            then = (
                then or "Applying again builds nothing anew and looks at it; a cleanup removes it."
            )
            return (
                f"{environment} is built and its views are made, but they and their data were not "
                f"looked at to the end. The last step was: {self.message}. {then}"
            )
        done = f" ({self.done or 0} of {self.total} batches were done)" if self.total else ""
        then = then or "Applying again completes it; a cleanup removes it."
        return (
            f"{environment} may be half built{done}: tables may hold a part of their data, and "
            f"some of its views may be missing. The last step was: {self.message}. {then}"
        )


# What a worker says it does from its first write on, and what of that comes after the promotion.
AFTER_PROMOTION = ("verify", "evidence")
BUILDING = ("apply", *AFTER_PROMOTION)
