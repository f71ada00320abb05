"""report.json: what a review found and decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ci_bot.contracts.base import (
    SCHEMA_VERSION,
    Compared,
    Contract,
    Count,
    Failure,
    FilePath,
    Line,
    Name,
    PlanId,
    Sha,
    Timestamp,
    Timings,
    Verbatim,
    Versions,
)
from ci_bot.contracts.documents.plan import (
    Backfill,
    Change,
    Checks,
    Cost,
    Decision,
    EnvironmentStatement,
    Finding,
    Lineage,
    ProdPlan,
    Restatement,
    Severity,
    ShortWindow,
    Stage,
)
from ci_bot.contracts.documents.plan_identity import PlanIdentity
from ci_bot.contracts.documents.plan_options import PlanOption
from ci_bot.contracts.documents.policy import Acceptance, ModelOwners, PolicyUsed, Weighed
from ci_bot.contracts.documents.prod_not_found import ProdNotFound
from ci_bot.contracts.lineage.impact import Impact
from ci_bot.contracts.lineage.past_numbers import PastNumbers
from ci_bot.contracts.policy.scopes import ScopedModels

Baseline = Literal["state", "base-branch", "empty"]


class Project(Contract):
    paths: list[Name]
    gateway: Name | None
    dialect: Name | None
    models: Count
    python_path: list[Name] = Field(
        default_factory=list, description="Where its Python modules were looked for, too."
    )


class Risk(Finding):
    """A finding that took part in the decision."""

    clears_when: Line
    weighed: Weighed | None = Field(
        default=None, description="Why it weighs something else than by itself; null: it does not."
    )


class FoundAt(Contract):
    """One place of a finding, and what is found there."""

    model: Name | None = None
    path: FilePath | None = None
    line: Count | None = None
    subject: Line | None = None
    evidence: Line


class FindingGroup(Contract):
    """What one rule found with one weight: one question, and all the places that it is about."""

    rule: Name
    severity: Severity
    clears_when: Line = Field(description="Of the first place.")
    weighed: Weighed | None = None
    places: list[FoundAt]


def what_does_not_load(failures: Sequence[Failure]) -> str:
    """What keeps a project from being planned that is not the pull request's doing: a beginning of
    a sentence."""
    if any(failure.project is not None for failure in failures):
        return "A model of another project on the same state does not load here"
    return "The base branch does not load here"


class ReviewFacts(Contract):
    """The worker's answer to a review: what is, without any judgement.

    Head sha, PR and environment ownership are not here: the bot knows them better than a process
    that runs the pull request's code.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["review"] = "review"
    project: Project
    environment: Compared
    baseline: Baseline
    identity: Annotated[PlanIdentity | None, Verbatim()]
    changes: list[Change]
    backfill: list[Backfill]
    work: list[Backfill] = Field(description="What of the backfill is still to do.")
    restatements: list[Restatement]
    statements: list[EnvironmentStatement]
    prod_plan: ProdPlan | None
    findings: list[Finding]
    checks: Checks
    cost: Cost
    stages: list[Stage]
    lineage: Lineage
    impact: Impact = Field(
        default_factory=Impact, description="What depends on each column that changes."
    )
    short_window: ShortWindow | None = Field(
        default=None, description="Why the environment gets less history; null where it does not."
    )
    options: list[PlanOption] = Field(
        default_factory=list, description="The plan's options that somebody has said."
    )
    environment_now: Line | None = Field(
        default=None, description="How the plan differs from what the environment holds now."
    )
    environment_holds_plan: bool = Field(
        default=False, description="Whether the environment's views are those of this plan."
    )
    notes: list[Line] = Field(default_factory=list)
    versions: Versions
    timings: Timings
    failure: Failure | None = None
    base_failures: list[Failure] = Field(
        default_factory=list,
        description="Why the base branch does not load; empty where it does, or was not loaded.",
    )
    scoped: list[ScopedModels] = Field(
        default_factory=list, description="The models of each scope that was asked for, in order."
    )
    acceptances: list[Acceptance] = Field(
        default_factory=list, description="What the ledger holds for this pull request."
    )
    prod_not_found: ProdNotFound | None = Field(
        default=None, description="Where prod was looked for in vain; null where it was found."
    )
    base_models: Count | None = Field(
        default=None, description="Models of the base branch; null where it was not loaded."
    )


class Report(Contract):
    """report.json. `failure` is set, and the plan's parts are empty, where planning failed."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["review"] = "review"
    project: Project
    environment: Compared
    head_sha: Sha | None
    base_sha: Sha | None
    merge_sha: Sha | None
    plan_id: PlanId | None
    identity: PlanIdentity | None = Field(description="What the plan id was computed over.")
    appliable: bool
    not_appliable_because: Line | None
    baseline: Baseline
    planned_at: Timestamp
    decision: Decision
    reasons: list[Line]
    changes: list[Change]
    backfill: list[Backfill]
    work: list[Backfill]
    restatements: list[Restatement]
    statements: list[EnvironmentStatement]
    prod_plan: ProdPlan | None
    risks: list[Risk] = Field(description="Each place alone: owners accept one at a time.")
    findings: list[FindingGroup] = Field(
        default_factory=list, description="The same, one for each rule and weight."
    )
    set_aside: list[Risk] = Field(
        default_factory=list,
        description="Findings that took no part in the decision; `weighed` says why.",
    )
    policy: PolicyUsed | None = Field(
        default=None, description="The team's policy; null where there is none."
    )
    owners: list[ModelOwners] = Field(
        default_factory=list, description="Of models with findings, where somebody owns them."
    )
    checks: Checks
    cost: Cost
    stages: list[Stage]
    lineage: Lineage
    impact: Impact = Field(
        default_factory=Impact, description="What depends on each column that changes."
    )
    past_numbers: PastNumbers | None = Field(
        default=None,
        description="What this change does to rows that exist today; null in older reports.",
    )
    short_window: ShortWindow | None = None
    options: list[PlanOption] = Field(
        default_factory=list,
        description="The plan's options that an input or the project says; all others are default.",
    )
    environment_now: Line | None
    environment_holds_plan: bool = Field(
        default=False, description="Whether the environment's views are those of this plan."
    )
    state_failure: Failure | None = Field(
        default=None,
        description="Why baseline `auto` took the base branch: the state could not be read.",
    )
    prod_not_found: ProdNotFound | None = Field(
        default=None, description="Where prod was looked for in vain; null where it was found."
    )
    notes: list[Line]
    versions: Versions
    timings: Timings
    failure: Failure | None
    base_failures: list[Failure] = Field(
        default_factory=list,
        description="Why the base branch does not load; empty where it does, or was not loaded.",
    )
    cut: list[Name] = Field(description="Sections that a budgeted rendering left out or shortened.")
