"""report.json: what a review found and decided."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import (
    SCHEMA_VERSION,
    Contract,
    Count,
    Failure,
    Line,
    Name,
    PlanId,
    Sha,
    Timestamp,
    Timings,
    Versions,
)
from ci_bot.contracts.identity import PlanIdentity
from ci_bot.contracts.plan import (
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
    Stage,
)

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


class ReviewFacts(Contract):
    """The worker's answer to a review: what is, without any judgement.

    Head sha, PR and environment ownership are not here: the bot knows them better than a process
    that runs the pull request's code.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["review"] = "review"
    project: Project
    environment: Name
    baseline: Baseline
    identity: PlanIdentity | None
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
    environment_now: Line | None = Field(
        default=None, description="How the plan differs from what the environment holds now."
    )
    notes: list[Line] = Field(default_factory=list)
    versions: Versions
    timings: Timings
    failure: Failure | None = None
    base_failures: list[Failure] = Field(
        default_factory=list,
        description="Why the base branch does not load; empty where it does, or was not loaded.",
    )


class Report(Contract):
    """report.json. `failure` is set, and the plan's parts are empty, where planning failed."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["review"] = "review"
    project: Project
    environment: Name
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
    risks: list[Risk]
    checks: Checks
    cost: Cost
    stages: list[Stage]
    lineage: Lineage
    environment_now: Line | None
    notes: list[Line]
    versions: Versions
    timings: Timings
    failure: Failure | None
    base_failures: list[Failure] = Field(
        default_factory=list,
        description="Why the base branch does not load; empty where it does, or was not loaded.",
    )
    cut: list[Name] = Field(description="Sections that a budgeted rendering left out or shortened.")
