"""cleanup.json, a sweep's report and a drift's.

What existed, what was removed, and what is left; and how prod and its state differ from the default
branch and its pull requests.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import (
    SCHEMA_VERSION,
    Bytes,
    Compared,
    Contract,
    Count,
    Failure,
    Line,
    Name,
    PlanId,
    Seconds,
    Sha,
    Timestamp,
    Timings,
    Versions,
)
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.plan import ChangeType, ModelRange

# At most this many of each kind are listed; the counts beside them are of all.
MOST_LISTED = 200


class UnusedTables(Contract):
    """Versions of one model whose tables no environment reads, past the time that SQLMesh keeps."""

    model: Name
    versions: Count


class LastingEnvironment(Contract):
    """A person's environment that never expires, or that has expired and still exists."""

    environment: Compared
    expires_at: Timestamp | None = Field(description="Null: it never expires.")


class MissedEstimate(Contract):
    """An apply that cost at least twice as much as expected, or half of it, in executor-hours."""

    environment: Name
    at: Timestamp
    expected_hours: Seconds
    used_hours: Seconds


class StateSurvey(Contract):
    """What a state says about prod and its other tables, read without loading a model's file."""

    behind: list[ModelRange] = Field(
        description="What prod lacks of each of its models, if it should have been built a day ago."
    )
    behind_models: Count
    lasting: list[LastingEnvironment]
    unused: list[UnusedTables]
    unused_versions: Count
    estimates: list[MissedEstimate]
    applies: Count = Field(description="Applies of the last 30 days that had an estimate.")


class DriftedModel(Contract):
    """A model in which the default branch and prod differ."""

    model: Name
    change: ChangeType


class UnownedEnvironment(Contract):
    """An environment that no open pull request owns, and how that is known."""

    environment: Compared
    pr_number: Count | None
    why: Line


class DriftReport(Contract):
    """What a drift run found. It changed nothing, neither in the state nor in the warehouse."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["drift"] = "drift"
    commit: Sha | None = Field(description="Of the default branch, which prod is compared with.")
    planned_at: Timestamp
    plan_id: PlanId | None = Field(
        description="Of the plan that would make prod equal; null: nothing differs, or no plan."
    )
    models: list[DriftedModel]
    changed_models: Count
    other_changes: Count = Field(description="Statements around plans that differ.")
    prod_missing: Line | None = Field(description="Where prod was not found; null: it was.")
    failure: Failure | None = Field(description="Why the default branch has no plan.")
    environments: list[UnownedEnvironment]
    survey: StateSurvey

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing that a person should check."""
        return not self.findings

    @property
    def findings(self) -> list[str]:
        """The names of the kinds of drift that there are."""
        survey = self.survey
        kinds = {
            "no_plan": self.failure is not None or self.prod_missing is not None,
            "undeployed": bool(self.changed_models or self.other_changes or self.plan_id),
            "behind": bool(survey.behind_models),
            "environments": bool(self.environments or survey.lasting),
            "unused_tables": bool(survey.unused_versions),
            "estimates": bool(survey.estimates),
        }
        return [name for name, there in kinds.items() if there]


class ReclaimedTable(Contract):
    table: Name
    bytes: Bytes | None = Field(description="What its files freed; null: could not be asked.")


class KeptTable(Contract):
    table: Name
    why: Line
    until: Timestamp | None = Field(
        description="When the sweep reclaims it, or else SQLMesh's janitor may take it; null: not "
        "known, or not while somebody uses it."
    )


class Leftover(Contract):
    object: Name
    why: Line


class CleanupDocument(Contract):
    """cleanup.json."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["cleanup"] = "cleanup"
    environment: Compared
    existed: bool
    result: Literal["removed", "nothing_to_do", "incomplete", "refused"]
    views_dropped: list[Name] = Field(default_factory=list)
    schemas_dropped: list[Name] = Field(default_factory=list)
    tables_reclaimed: list[ReclaimedTable] = Field(default_factory=list)
    tables_kept: list[KeptTable] = Field(default_factory=list)
    leftovers: list[Leftover] = Field(default_factory=list)
    foreign: list[Name] = Field(
        default_factory=list,
        description="Objects in our schemas that the environment did not make.",
    )
    state_record_removed: bool
    state_record_left: bool | None = Field(
        default=None,
        description="Whether SQLMesh's state still has a record of the environment; null: nobody "
        "looked.",
    )
    seconds: Seconds
    timings: Timings = Field(default_factory=dict)
    versions: Versions
    failure: Failure | None = None

    @property
    def bytes_reclaimed(self) -> int | None:
        """The bytes that the reclaimed tables freed; None if there are none or one is unknown."""
        sizes = [table.bytes for table in self.tables_reclaimed]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None


# A sweep: which environments there are, and what happened to those that had to go.


Standing = Literal[
    "remove",  # recorded for this repository, and its pull request is closed: a rescue
    "tables",  # removed before, and its physical tables are due to be reclaimed
    "grace",  # removed before, and its physical tables stay for a while
    "open",
    "unknown",  # GitHub does not say, so it stays
    "pinned",
    "not_recorded",  # a name like ours, without a record of ours
    "odd_record",  # a record of ours that contradicts its own name
    "other_prefix",  # recorded for this repository, its pull request closed, by another prefix
]


class FoundEnvironment(Contract):
    """An environment with the name of a pull request's, as ledger and state know it."""

    environment: Compared
    owner: Compared | None = Field(description="As the ledger records it; null: no record of ours.")
    pr_number: Count | None = None
    phase: Compared | None = Field(
        default=None, description="What the ledger says it went through."
    )
    pinned: bool = Field(default=False, description="The project's configuration pins it.")
    updated_at: Timestamp | None = Field(default=None, description="Of the ledger's record.")
    expires_at: Timestamp | None = Field(
        default=None, description="SQLMesh's own TTL, the last net; null: it never expires."
    )
    tables_due_at: Timestamp | None = Field(
        default=None,
        description="When its physical tables may be reclaimed; null: it is not removed yet.",
    )
    tables_due: bool = Field(default=False, description="That moment has passed.")


class EnvironmentList(Contract):
    """The worker's answer to the first half of a sweep. It changed nothing."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["list"] = "list"
    environments: list[FoundEnvironment]
    survey: StateSurvey | None = Field(
        default=None, description="What else the state holds; null: nobody has asked."
    )
    seconds: Seconds
    timings: Timings = Field(default_factory=dict)
    versions: Versions


class SweepTarget(Contract):
    """One environment to remove, and how its pull request ended (null: nobody knows)."""

    environment: EnvironmentName
    pr_number: Count
    merged: bool | None = None


class SweepDocument(Contract):
    """The worker's answer to the second half: one document for each environment that it reached.

    An environment of the request that has no document here was not reached.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["sweep"] = "sweep"
    cleanups: list[CleanupDocument]
    seconds: Seconds
    versions: Versions


class SweepRow(Contract):
    """One environment in a sweep's report: how it was found, and what the sweep did."""

    environment: Name
    pr_number: Count | None
    standing: Standing
    merged: bool | None = None
    cause: Line | None = Field(
        default=None, description="The likely reason why it was still there; null: it may stay."
    )
    result: Literal["removed", "nothing_to_do", "incomplete", "refused"] | None = Field(
        default=None, description="Of its cleanup; null: none was made."
    )
    waits: Line | None = Field(default=None, description="Why it should be gone and is not.")
    views_dropped: Count = 0
    tables_reclaimed: Count = 0
    bytes_reclaimed: Bytes | None = Field(
        default=None, description="What those tables freed; null: one of them is not known."
    )
    tables_kept: Count = Field(default=0, description="Physical tables that stay.")
    tables_until: Timestamp | None = Field(
        default=None, description="How long they stay at the longest; null: not known."
    )
    expires_at: Timestamp | None = None


class SweepReport(Contract):
    """What a sweep found and did, for people and for the step's output."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["sweep"] = "sweep"
    dry_run: bool
    rows: list[SweepRow]
    others: Count = Field(description="Environments of other repositories; not checked.")
    failure: Failure | None = None
