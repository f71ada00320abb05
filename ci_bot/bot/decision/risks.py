"""Risks: how they are made and sorted, and the work that they judge.

The work is the larger of what the environment gets and what prod builds. An environment often gets
only a part of the history (see `ShortWindow`), while a merge makes prod build all of it. Every rule
about an amount of work reads it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ci_bot.bot.policy import PolicyChange, PolicyWeighing
from ci_bot.bot.report import describe_old_rows
from ci_bot.protocol.apply_report import TableDiff
from ci_bot.protocol.plan import (
    SEVERITIES,
    Backfill,
    Cost,
    Finding,
    Severity,
    Work,
    pick_larger_work,
    sum_planned_work,
)
from ci_bot.protocol.review_report import Report, ReviewFacts, Risk
from ci_bot.protocol.rules import RuleRegistry, RuleSpec

Where = Literal["environment", "prod"]


@dataclass(frozen=True)
class ModelWorkAtRisk:
    """The work on one model.

    Attributes:
        item: the entry of the larger plan.
        where: which plan it comes from.
        here: the number of intervals that the environment gets.
        next_run: whether a merge builds nothing, and prod's next run computes all of it.
        old_rows: what prod's next runs do with old rows of a forward-only model; None if these
            stay.
    """

    item: Backfill
    where: Where
    here: int
    next_run: bool = False
    old_rows: str | None = None

    @property
    def is_preview_only(self) -> bool:
        """Whether only a preview is built, which prod does not take over.

        Only for kinds whose table holds rows of its own.
        """
        preview = self.where == "environment" and self.item.preview
        return preview and (self.item.action == "incremental" or self.old_rows is not None)


@dataclass(frozen=True)
class JudgedWork:
    """The work on the changed models.

    Attributes:
        models: by model name; models that neither plan builds are missing.
        total: of the larger plan; `where` says which one that is.
        prod_known: False if planning prod failed or was not possible.
    """

    models: Mapping[str, ModelWorkAtRisk]
    total: Work
    where: Where
    prod_known: bool


def choose_work_to_judge(facts: ReviewFacts) -> JudgedWork:
    """Returns what a change builds, by the larger of both plans."""
    plan = facts.prod_plan
    known = plan is not None and not plan.would_fail
    changed = {change.model for change in facts.changes}
    # Prod also fills gaps of models that this change does not touch.
    prod = [item for item in plan.full_backfill if item.model in changed] if plan else []
    # It is prod's cost, too, although not with the merge.
    prod += plan.next_run if plan else []
    later = {item.model for item in plan.next_run} if plan else set()
    old_rows = describe_old_rows(facts)
    here = {item.model: item for item in facts.backfill}
    there = {item.model: item for item in prod}
    models = {}
    for name in sorted({*here, *there}):
        found = _join_work(here.get(name), there.get(name))
        if found is not None:
            models[name] = replace(found, next_run=name in later, old_rows=old_rows.get(name))
    # A restatement after the merge costs work with it, but changes no model.
    prod += [
        item
        for restatement in facts.prod_restatements
        if restatement.problem is None
        for item in restatement.work
    ]
    bigger = pick_larger_work(facts.backfill, prod)
    return JudgedWork(
        models=models,
        total=sum_planned_work(bigger),
        where="prod" if bigger is prod else "environment",
        prod_known=known,
    )


def _join_work(here: Backfill | None, there: Backfill | None) -> ModelWorkAtRisk | None:
    if here is None:
        return ModelWorkAtRisk(there, "prod", 0) if there else None
    if there is not None and (here.preview or there.intervals > here.intervals):
        return ModelWorkAtRisk(there, "prod", here.intervals)
    return ModelWorkAtRisk(here, "environment", here.intervals)


def list_model_costs(facts: ReviewFacts) -> list[tuple[Cost, Where]]:
    """Lists the estimates of both plans, the dearer one first."""
    costs: list[tuple[Cost, Where]] = [(facts.cost, "environment")]
    if facts.prod_plan is not None and facts.prod_plan.cost is not None:
        costs.append((facts.prod_plan.cost, "prod"))
    return sorted(costs, key=lambda pair: -(pair[0].executor_hours_mid or 0.0))


# Which changed models follow a changed model: they read it directly or through others.


def map_models_below(facts: ReviewFacts | Report) -> dict[str, set[str]]:
    """Maps each directly changed model to the models below it that SQLMesh lists as modified."""
    follows: dict[str, set[str]] = {}
    for above, below in facts.lineage.edges:
        follows.setdefault(above, set()).add(below)
    modified = {c.model for c in facts.changes if c.change in {"direct", "indirect"}}
    found: dict[str, set[str]] = {}
    for change in facts.changes:
        if change.change != "direct":
            continue
        seen: set[str] = set()
        queue = [change.model]
        while queue:
            for reader in follows.get(queue.pop(), ()):
                if reader in modified and reader not in seen:
                    seen.add(reader)
                    queue.append(reader)
        found[change.model] = seen
    return found


# What the judge gets besides the worker's facts: the bot's own knowledge, and the limits.


@dataclass(frozen=True)
class TeamLimits:
    """The limits that a team sets; None means that it sets none.

    `max_intervals` counts the intervals of one plan; without it `DEFAULT_MAX_INTERVALS` applies.
    `max_executor_hours` limits the estimate. `diff_tolerance` is the share of rows (0 to 1) that
    may differ from prod without a finding, and `tolerances` has it for models with their own.
    """

    max_intervals: int | None = None
    max_executor_hours: float | None = None
    diff_tolerance: float = 0.0
    tolerances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BotFacts:
    """What the bot knows without asking a process that runs the pull request's code.

    Attributes:
        changed_files: paths of the PR's diff, relative to the repository; None if unknown.
        too_large: those of them that some rule would read, but nobody has read.
        pull_request: whether this is about a pull request, whose changed files should be known.
        conflict: whether GitHub could not merge the PR with its base.
        code_on_load: changed files whose code runs while the project is loaded.
        removed_code: those of them that the head no longer has.
        load_known: whether it is known which files the load opened; else `code_on_load` holds every
            changed file of code.
        unread_because: why the rules on changed files have not run; None if they have.
        missing_files: files of the commit that SQLMesh would load and the checkout does not have.
        empty_submodules: submodules below a project that are not checked out.
        fork: the head branch is in another repository.
        policy_changes: how the pull request changes the team's policy.
        weighing: the policy that counts, and what it needs to weigh findings.
    """

    changed_files: tuple[str, ...] | None = None
    too_large: tuple[str, ...] = ()
    pull_request: bool = False
    conflict: bool = False
    code_on_load: tuple[str, ...] = ()
    removed_code: tuple[str, ...] = ()
    load_known: bool = True
    unread_because: str | None = None
    missing_files: tuple[str, ...] = ()
    empty_submodules: tuple[str, ...] = ()
    fork: bool = False
    policy_changes: tuple[PolicyChange, ...] = ()
    weighing: PolicyWeighing = field(default_factory=PolicyWeighing)


EVIDENCE_LENGTH = 4_000


def rank_severity(severity: Severity) -> int:
    """Ranks a severity: 0 for a blocker, higher numbers for lighter ones."""
    return SEVERITIES.index(severity)


def make_risk(
    spec: RuleSpec,
    evidence: str,
    clears_when: str,
    *,
    severity: Severity | None = None,
    subject: str | None = None,
    model: str | None = None,
    path: str | None = None,
    line: int | None = None,
) -> Risk:
    """Makes a risk of a rule; its sentences are cut to what the contract holds.

    Args:
        severity: one that the rule's page names; by default the rule's own.
        subject: which part of the model, the file or the plan it is about; None: the whole.
    """
    return Risk(
        rule=spec.id,
        severity=severity or spec.severity,
        model=model,
        path=path,
        line=line,
        subject=subject[:EVIDENCE_LENGTH] if subject else None,
        evidence=evidence[:EVIDENCE_LENGTH],
        clears_when=clears_when[:EVIDENCE_LENGTH],
    )


def make_risk_of_finding(finding: Finding) -> Risk:
    """Makes a risk of a finding; a rule without a condition clears when its finding is gone."""
    return Risk(
        **finding.model_dump(exclude={"clears_when"}),
        clears_when=finding.clears_when or "the finding no longer appears",
    )


def sort_risks(risks: Iterable[Risk]) -> list[Risk]:
    """Sorts the heaviest first; then by rule and model, so that equal facts give equal reports."""
    return sorted(
        risks,
        key=lambda item: (
            rank_severity(item.severity),
            item.rule,
            item.model or "",
            item.path or "",
            item.line or 0,
            item.subject or "",
        ),
    )


def count_noun(number: int, noun: str) -> str:
    """Counts something in words: 1 model, 2 models, 1,204 intervals."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def choose_is_or_are(number: int) -> str:
    """Chooses the verb after so many subjects."""
    return "is" if number == 1 else "are"


# The bot's rules: each is registered where it is defined. `decide_on_review` runs those on a plan,
# and `judge_risks_of_data_diffs` those on what an apply compared.


PlanRule = Callable[[ReviewFacts, TeamLimits, BotFacts], Iterator[Risk]]

DiffRule = Callable[[TableDiff, TeamLimits], Iterator[Risk]]

# `@judges(SPEC, ...)` decorates a function that reads a review's facts and yields these risks.
judges: RuleRegistry[PlanRule] = RuleRegistry()
# The same for the data diff of one table, which was made.
compares: RuleRegistry[DiffRule] = RuleRegistry()
