"""report.json: what a review found and decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ci_bot.protocol.base import (
    SCHEMA_VERSION,
    Compared,
    Contract,
    Count,
    Failure,
    FilePath,
    Line,
    Name,
    PlanId,
    Seconds,
    Sha,
    Text,
    Timestamp,
    Timings,
    VerbatimContract,
    Versions,
)
from ci_bot.protocol.cost import Price
from ci_bot.protocol.plan import (
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
from ci_bot.protocol.plan_identity import PlanIdentity, PlanOption
from ci_bot.protocol.review_inputs import (
    ExposedModel,
    ModelExecution,
    ProdRestatement,
    ScopedModels,
)

# What a team's own policy has changed in a review, as a report shows it.
CalendarDay = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="A day in UTC.")]


class Weighed(Contract):
    """Why a finding has another weight than its rule gave it."""

    by: Literal["severity", "off", "ignore", "statement", "comment", "acceptance", "data_diff"] = (
        Field(
            description="A section of the policy, a comment in the model, its owner's acceptance, "
            "or what an apply has compared."
        )
    )
    weight: Severity = Field(description="What it weighs by itself.")
    reason: Line
    place: Line | None = Field(default=None, description="File and line that say so.")
    until: CalendarDay | None = Field(default=None, description="The last day of an ignore.")
    who: Name | None = Field(default=None, description="Who accepted it.")
    at: Timestamp | None = Field(default=None, description="When it was accepted.")


class Acceptance(Contract):
    """A model's owner accepts the findings of a rule on it, as it is now.

    It is kept in the ledger, which only the accounts of apply and cleanup can write.
    """

    rule: Name
    model: Name
    fingerprint: Name = Field(description="Of the model; with another one it does not hold.")
    severity: Severity = Field(description="What was accepted; a heavier finding is not.")
    subjects: list[Text] = Field(
        description='What the accepted findings are about; "" if that is the model as a whole.'
    )
    by: Name
    at: Timestamp
    reason: Line
    comment_id: Count


class ModelOwners(Contract):
    """Who may accept the findings on a model, or one finding that concerns somebody else."""

    model: Name
    rule: Name | None = Field(
        default=None, description="Null: of every rule; else of this one and this subject alone."
    )
    subject: Line | None = None
    logins: list[Name]
    teams: list[Name]
    place: Line = Field(description="File and line of the base commit that say so.")


class PolicyUsed(Contract):
    """Which policy counted, and its settings other than weights of findings."""

    source: Literal["base", "working_tree"] = Field(
        description="Files of the base commit, or on a laptop without one those that lie there."
    )
    commit: Sha | None = None
    files: list[FilePath] = Field(default_factory=list, description="Those that are there.")
    entries: Count = 0
    loosens: bool = Field(
        default=True, description="False: entries that make findings lighter did not count."
    )
    not_loosened_because: Line | None = None
    fail_on: Literal["blocker", "high", "never"] | None = None
    diff_tolerance: float | None = Field(default=None, ge=0, le=1)
    tolerances: dict[Name, float] = Field(
        default_factory=dict, description="Of changed models that have one of their own."
    )
    max_executor_hours: Seconds | None = Field(
        default=None, description="Above it, building is refused; an input of that name wins."
    )
    budget_blocks: bool = Field(
        default=True, description="Whether a plan above the limit is No-Go by this policy."
    )
    executor_hour_price: Price | None = Field(
        default=None, description="What an executor-hour costs; an input of that name wins."
    )
    header: Text | None = Field(
        default=None, description="The team's own words above a review: Markdown."
    )
    footer: Text | None = Field(default=None, description="The team's own words below it.")


# What depends on a changed column, and which rebuilt models read nothing that changed.


HowChanged = Literal["dropped", "retyped", "computed", "added", "reordered", "rows", "unknown"]

Reached = Literal["yes", "no", "unknown"]


class ReachedModel(Contract):
    """The parts of one model that depend on a change."""

    model: Name
    columns: list[Name] = Field(default_factory=list, description="Whose values depend on it.")
    more_columns: Count = Field(default=0, description="Further ones, not listed.")
    rows: bool = Field(description="Which rows the model has depends on it: then all of it does.")


class ChangedPart(Contract):
    """A column of a changed model, or its rows, and everything that depends on it, to the leaves.

    `unknown` is a model that cannot be read, such as a Python model: what is listed may or may not
    depend on a change above it.
    """

    model: Name
    column: Name | None = Field(description="Null where it is the rows, or is not known.")
    how: HowChanged
    why: Line | None = None
    reached: list[ReachedModel] = Field(default_factory=list)
    more_models: Count = Field(default=0, description="Further models that it reaches, not listed.")


class IndirectModel(Contract):
    """Whether a model that changes only because of other models reads anything that changed."""

    model: Name
    reached: Reached
    why: Line


class Impact(Contract):
    """The column impact of a plan. What was cut is counted, so nothing is left out silently."""

    changed: list[ChangedPart] = Field(default_factory=list)
    more_changed: Count = Field(default=0, description="Further changed parts, not listed.")
    indirect: list[IndirectModel] = Field(default_factory=list)
    more_indirect: Count = Field(default=0, description="Further indirect models, not listed.")


# What a change does to rows that exist today: one claim for all code that makes or shows it.


class ChangedRows(Contract):
    """A model whose existing rows get other values, or may get them.

    If `certain` is false, the model is computed again, and nobody knows whether its rows differ.
    """

    model: Name
    columns: list[Name] = Field(
        default_factory=list, description="Columns that are computed differently."
    )
    rows: bool = Field(default=False, description="Whether which rows it has changes.")
    certain: bool = Field(default=True, description="Whether its definition is known to differ.")
    why: Line | None = Field(default=None, description="What changes its rows, as a sentence.")


class PastNumbers(Contract):
    """What the pull request's own changes do to existing rows, and which models read those.

    A model that reads a change and a model that is rebuilt are two things: SQLMesh rebuilds every
    model below a breaking change, whichever columns it reads.
    """

    changed: list[ChangedRows] = Field(default_factory=list)
    readers: Count = Field(default=0, description="Other models that read what changes.")
    maybe_readers: Count = Field(default=0, description="Other models that may read it.")
    readers_known: bool = Field(
        default=True, description="False where not every model below was followed by columns."
    )
    rebuilt: Count = Field(
        default=0, description="Other models that the plan rebuilds and nobody edited."
    )
    keeps_history: list[Name] = Field(
        default_factory=list, description="Models of which only new intervals change."
    )

    @property
    def models(self) -> list[str]:
        """The models whose rows get other values, or may get them."""
        return [item.model for item in self.changed]

    @property
    def certain(self) -> bool:
        """Whether all of them are known to differ."""
        return all(item.certain for item in self.changed)


# A state that answered, and in which no prod of the project was found.


FirstDeployment = Literal["base-without-models", "chosen"]


class ProdNotFound(Contract):
    """Where prod was searched for and not found, and why its absence may be trusted."""

    state: Line = Field(description="Server, database, schema and gateway, or file; no secret.")
    why: Line = Field(description="What the state holds instead, to follow a colon.")
    hint: Line
    first_deployment: FirstDeployment | None = Field(
        default=None,
        description="Why nobody has deployed it yet: the base branch has no models either, or "
        "`baseline: state` was chosen by name. Null: prod may be elsewhere, so nothing is known.",
    )

    def describe_absence(self) -> str:
        """Describes the state in which no prod was found, and what it holds instead."""
        return f"No prod was found in the state ({self.state}): {self.why}."


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
    message: Line | None = Field(
        default=None, description="What the team's policy says of it: a line of Markdown."
    )


def find_owners(owners: Sequence[ModelOwners], risk: Risk) -> ModelOwners | None:
    """Finds who may accept a finding: its own owners first, or else the owners of its model."""
    about = (risk.model, risk.rule, risk.subject)
    own = [item for item in owners if (item.model, item.rule, item.subject) == about]
    of_model = [item for item in owners if item.model == risk.model and item.rule is None]
    return next(iter([*own, *of_model]), None)


class FoundAt(Contract):
    """One place of a finding, and what is found there."""

    model: Name | None = None
    path: FilePath | None = None
    line: Count | None = None
    subject: Line | None = None
    evidence: Line


class FindingGroup(Contract):
    """What one rule found with one weight: one question, and all its places."""

    rule: Name
    severity: Severity
    clears_when: Line = Field(description="Of the first place.")
    weighed: Weighed | None = None
    places: list[FoundAt]


# Fields that facts and report both have, with the description that both schemas show.
_Executions = Annotated[
    list[ModelExecution],
    Field(
        description="Directly changed models, run on generated rows in both versions; no value in "
        "it comes from a table."
    ),
]

_ImpactOfChange = Annotated[Impact, Field(description="What depends on each column that changes.")]
_HoldsPlan = Annotated[
    bool, Field(description="Whether the environment's views are those of this plan.")
]
_RefusedWish = Annotated[
    Failure | None, Field(description="Why the restatement that was asked for cannot be.")
]
_ProdRestatements = Annotated[
    list[ProdRestatement],
    Field(description="What owners have asked prod to build again, once this is deployed."),
]
_BaseFailures = Annotated[
    list[Failure],
    Field(description="Why the base branch does not load; empty if it does, or was not loaded."),
]
_ProdLookedFor = Annotated[
    ProdNotFound | None,
    Field(description="Where prod was looked for in vain; null if it was found."),
]


class ReviewFacts(Contract):
    """The worker's answer to a review: facts, without any judgement.

    The head's commit, the pull request and the environment's owner are not here: the bot knows them
    better than a process that runs the pull request's code.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["review"] = "review"
    project: Project
    environment: Compared
    baseline: Baseline
    identity: Annotated[PlanIdentity | None, VerbatimContract()]
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
    impact: _ImpactOfChange = Field(default_factory=Impact)
    executions: _Executions = Field(default_factory=list)
    short_window: ShortWindow | None = Field(
        default=None, description="Why the environment gets less history; null where it does not."
    )
    options: list[PlanOption] = Field(
        default_factory=list, description="The plan's options that somebody has said."
    )
    environment_now: Line | None = Field(
        default=None, description="How the plan differs from the environment as it is now."
    )
    environment_holds_plan: _HoldsPlan = False
    notes: list[Line] = Field(default_factory=list)
    versions: Versions
    timings: Timings
    failure: Failure | None = None
    base_failures: _BaseFailures = Field(default_factory=list)
    scoped: list[ScopedModels] = Field(
        default_factory=list, description="The models of each scope that was asked for, in order."
    )
    exposed: list[ExposedModel] = Field(
        default_factory=list, description="The models of the names that were asked for, in order."
    )
    acceptances: list[Acceptance] = Field(
        default_factory=list, description="What the ledger holds for this pull request."
    )
    prod_restatements: _ProdRestatements = Field(default_factory=list)
    refused_wish: _RefusedWish = None
    prod_not_found: _ProdLookedFor = None
    base_models: Count | None = Field(
        default=None, description="Models of the base branch; null where it was not loaded."
    )


def make_planless_facts(
    project: Project,
    environment: Compared,
    baseline: Baseline,
    *,
    checks: Checks,
    cost: Cost,
    versions: Versions,
    timings: Timings,
) -> ReviewFacts:
    """Makes the facts of a review without a plan: its parts are empty, and nothing was checked."""
    return ReviewFacts(
        project=project,
        environment=environment,
        baseline=baseline,
        identity=None,
        changes=[],
        backfill=[],
        work=[],
        restatements=[],
        statements=[],
        prod_plan=None,
        findings=[],
        checks=checks,
        cost=cost,
        stages=[],
        lineage=Lineage(),
        versions=versions,
        timings=timings,
    )


class Report(Contract):
    """report.json. If planning failed, `failure` is set and the plan's parts are empty."""

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
    prod_restatements: _ProdRestatements = Field(default_factory=list)
    refused_wish: _RefusedWish = None
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
        default=None, description="The team's policy; null if there is none."
    )
    owners: list[ModelOwners] = Field(
        default_factory=list, description="Of models with findings, where somebody owns them."
    )
    checks: Checks
    cost: Cost
    stages: list[Stage]
    lineage: Lineage
    impact: _ImpactOfChange = Field(default_factory=Impact)
    past_numbers: PastNumbers | None = Field(
        default=None,
        description="What this change does to rows that exist today; null in older reports.",
    )
    executions: _Executions = Field(default_factory=list)
    short_window: ShortWindow | None = None
    options: list[PlanOption] = Field(
        default_factory=list,
        description="The plan's options that an input or the project says; all others are default.",
    )
    environment_now: Line | None
    environment_holds_plan: _HoldsPlan = False
    state_failure: Failure | None = Field(
        default=None,
        description="Why baseline `auto` took the base branch: the state could not be read.",
    )
    prod_not_found: _ProdLookedFor = None
    notes: list[Line]
    versions: Versions
    timings: Timings
    failure: Failure | None
    base_failures: _BaseFailures = Field(default_factory=list)
    cut: list[Name] = Field(description="Sections that a budgeted rendering left out or shortened.")
