"""apply.json: what an apply built, and the evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import (
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
from ci_bot.protocol.cost import ActualCost, Counters
from ci_bot.protocol.plan import BackfillAction, Cost, Decision
from ci_bot.protocol.plan_identity import PlanDifference
from ci_bot.protocol.review_report import Risk

# `probed`: only the newest batch of models was built, and there is no environment yet.
ApplyResult = Literal["applied", "probed", "nothing_to_apply", "failed", "refused", "cancelled"]
Rate = float


class ModelAudit(Contract):
    audit: Name
    blocking: bool
    status: Literal["passed", "failed", "skipped"]
    failed_rows: Count | None = None
    prod_rows: Count | None = Field(
        default=None,
        description="Rows that the same audit finds in prod's view over the same time; null where "
        "it was not asked, because the audit passed, or could not be.",
    )
    prod_unknown_because: Line | None = Field(
        default=None, description="Why prod could not be asked, where the audit failed."
    )
    query: Line | None = Field(
        default=None,
        description="The audit's query over the first batch that it failed on: it shows the rows. "
        "Null where the audit passed, or where the query is longer than this field.",
    )


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
    executor_seconds: Seconds | None = Field(
        default=None, description="Executor time allocated to it; null where it was not counted."
    )
    counters: Counters | None = None
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


class Profile(Contract):
    """Aggregates of one column on one side, over the rows that were compared."""

    nulls: Count
    distinct: Count | None = Field(
        default=None,
        description="About: a sketch's estimate. Of text, whole numbers and dates, in tables that "
        "are not large.",
    )
    mean: float | None = Field(
        default=None, description="Of numbers; of booleans the share that is true."
    )
    min: Name | None = Field(default=None, description="Of numbers and times; of text never.")
    max: Name | None = None


class ColumnMatch(Contract):
    """A column that both sides have, with its profiles if some of its values differ."""

    name: Name
    match_rate: Rate | None = Field(ge=0, le=1)
    prod: Profile | None = None
    pr: Profile | None = None


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
    """A comparison of one model's table with prod's. No row of either side leaves the warehouse."""

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
    same: Count | None = Field(
        default=None,
        description="Those of them that agree exactly too: numbers are not rounded, and floating "
        "ones agree to nine digits.",
    )
    complete: bool = Field(
        default=False,
        description="Whether all that prod has took part: its whole table, or all its intervals.",
    )
    direct: bool | None = Field(
        default=None,
        description="Whether the model itself was changed, and not only what it reads.",
    )
    null_keys: Count | None = None
    duplicate_keys: Count | None = None
    columns: list[ColumnMatch] = Field(default_factory=list)
    schema_: SchemaDifference = Field(
        default_factory=SchemaDifference, alias="schema", serialization_alias="schema"
    )
    seconds: Seconds | None = None
    skipped_because: Line | None = None
    nothing_to_compare: bool = Field(
        default=False,
        description="Not compared because nothing of prod's can differ: the model is new, or both "
        "sides read the same table.",
    )


class Attempt(Contract):
    number: Count
    result: Literal["succeeded", "failed"]
    error: Line | None = None
    retried_because: Line | None = None
    seconds: Seconds


class NotCleared(Contract):
    """A finding that a data diff can clear, but this one did not."""

    rule: Name
    model: Name
    why: Line


class NotProbed(Contract):
    """A model that the plan builds and a probe of it leaves out."""

    model: Name
    why: Line


class ApplyVerdict(Contract):
    """The decision after an apply: the review's decision, corrected by what the data shows."""

    decision: Decision
    reasons: list[Line]
    cleared: list[Risk] = Field(
        default_factory=list, description="Findings of the review that the data diff clears."
    )
    standing: list[NotCleared] = Field(default_factory=list)
    risks: list[Risk] = Field(default_factory=list, description="What the data diff shows itself.")


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
        description="Why the environment's data was not checked, or not to the end; null: it "
        "was, or the apply never came to that.",
    )
    attempts: list[Attempt] = Field(default_factory=list)
    estimate: Cost | None = Field(
        default=None, description="Of the tables that it has built; of a probe: of the whole plan."
    )
    prod_estimate: Cost | None = Field(
        default=None,
        description="What prod builds after the merge, where an apply was refused for its cost, "
        "and where a plan was probed.",
    )
    not_probed: list[NotProbed] = Field(
        default_factory=list, description="Of a probe: the other models, and why not these."
    )
    executor_hours: Seconds | None = Field(
        default=None, description="What building took: executors occupied while it built."
    )
    cost: ActualCost | None = Field(
        default=None, description="What building cost; null if nothing is known of it."
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
    verdict: ApplyVerdict | None = Field(
        default=None,
        description="Said by the bot where a plan was applied that it has reviewed; never by the "
        "process that runs the project's code.",
    )


class EstimateDocument(Contract):
    """The expected cost of what an apply still has to build.

    It is asked after Spark has started, and nothing is written for it.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["estimate"] = "estimate"
    environment: Compared
    plan_id: PlanId | None
    cost: Cost
    after_merge: Cost | None = Field(
        default=None,
        description="Of the tables that prod builds after the merge; null: nothing, or it "
        "cannot be planned.",
    )
    seconds: Seconds
    timings: Timings
    versions: Versions

    @property
    def costs(self) -> list[Cost]:
        """The estimates: of the environment and, if it is known, of prod."""
        return [self.cost, *([self.after_merge] if self.after_merge is not None else [])]


def list_limited_costs(document: ApplyDocument | EstimateDocument) -> list[Cost]:
    """Lists the estimates that a limit is compared with: the environment's, and prod's if known."""
    if isinstance(document, ApplyDocument):
        known = (document.estimate, document.prod_estimate)
        return [cost for cost in known if cost is not None]
    return document.costs


class ApplyStep(Contract):
    """Where an apply was when it ended: its last progress message."""

    phase: Name
    message: Line
    done: Count | None = None
    total: Count | None = None
    probe: bool = Field(default=False, description="Of a probe, which makes no environment.")

    def describe_state_left(
        self, environment: str, then: str | None = None, *, nothing: bool = False
    ) -> str:
        """Describes what exists after an end at this step, in a sentence for `partial`.

        Args:
            then: What happens to it next, if that is not up to an apply or a cleanup.
            nothing: Whether no table was filled and no view was made.
        """
        if self.phase in AFTER_PROMOTION:
            then = then or "Applying again rebuilds nothing and checks it; a cleanup removes it."
            return (
                f"{environment} is built and its views are made, but they and their data were not "
                f"checked to the end. The last step was: {self.message}. {then}"
            )
        if nothing:
            then = then or "Applying again starts over; a cleanup removes what is there."
            return (
                f"No table of {environment} was filled, and no view was made; empty tables may be "
                f"there. The last step was: {self.message}. {then}"
            )
        done = f" ({self.done or 0} of {self.total} batches were done)" if self.total else ""
        if self.probe:
            then = then or "An apply of the plan reuses them; a cleanup removes them."
            return (
                f"Tables for {environment} may be there and hold a part of their data{done}. "
                f"The last step was: {self.message}. {then}"
            )
        then = then or "Applying again completes it; a cleanup removes it."
        return (
            f"{environment} may be half built{done}: tables may hold a part of their data, and "
            f"some of its views may be missing. The last step was: {self.message}. {then}"
        )


# The phases that a worker reports from its first write on, and those of them after the promotion.
AFTER_PROMOTION = ("verify", "evidence")
BUILDING = ("apply", *AFTER_PROMOTION)
