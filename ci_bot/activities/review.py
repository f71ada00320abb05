"""A review: ask the worker what is, judge it, and make the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import ci_bot
from ci_bot.activities.names import bad_input
from ci_bot.bench import Bench
from ci_bot.contracts.base import Failure, Line, Versions
from ci_bot.contracts.environment import UnfitName, for_review
from ci_bot.contracts.identity import PlanFlags
from ci_bot.contracts.messages import BaselineChoice, Owner, ReviewAsk
from ci_bot.contracts.plan import (
    AuditsCheck,
    Checks,
    Cost,
    Lineage,
    LintCheck,
    TableDiffCheck,
    TestsCheck,
)
from ci_bot.contracts.report import Baseline, Project, Report, ReviewFacts
from ci_bot.decision import BotFacts, ChangedFile, Limits, code_that_runs_on_load, judge
from ci_bot.process.git import ChangedFile as GitFile
from ci_bot.process.git import Git

# Failures of `state` that a base-branch review can do without.
_STATE_FAILURES = ("state_unreachable", "bad_config")


@dataclass(frozen=True, kw_only=True)
class Commits:
    """The commits of a review; null where they are unknown (a laptop without a base)."""

    head: str | None = None
    base: str | None = None
    merge: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    environment: str
    owner: Owner
    commits: Commits
    baseline: BaselineChoice = "auto"
    flags: PlanFlags = field(default_factory=PlanFlags)
    start: str | None = None
    end: str | None = None
    limits: Limits = field(default_factory=Limits)
    executor_hour_price: float | None = None
    conflict: bool = False
    fork: bool = False


def review(bench: Bench, options: ReviewOptions, *, planned_at: str) -> Report:
    """Plans and judges. A plan that fails is a report too: No-Go, with the failure in it."""
    changed = _changed_files(bench.git, options.commits)
    facts, baseline = _facts(bench, options, changed)
    on_load = (
        code_that_runs_on_load(_with_content(bench.git, options.commits, changed), bench.projects)
        if changed is not None
        else []
    )
    bot = BotFacts(
        changed_files=tuple(file.path for file in changed) if changed is not None else None,
        conflict=options.conflict,
        code_on_load=tuple(on_load),
        fork=options.fork,
    )
    return _report(facts, baseline, options, bot, planned_at=planned_at)


def failed_report(
    failure: Failure,
    options: ReviewOptions,
    *,
    projects: Sequence[str],
    gateway: str | None,
    planned_at: str,
) -> Report:
    """The report of a review that has no answer of a worker: it gave none, or was never asked."""
    facts = failed_facts(failure, options, projects=projects, gateway=gateway)
    bot = BotFacts(conflict=options.conflict, fork=options.fork)
    return _report(facts, "state", options, bot, planned_at=planned_at)


def _report(
    facts: ReviewFacts,
    baseline: Baseline,
    options: ReviewOptions,
    bot: BotFacts,
    *,
    planned_at: str,
) -> Report:
    judgement = judge(facts, limits=options.limits, bot=bot)
    reason = _not_appliable(facts, baseline, fork=options.fork)
    return Report(
        project=facts.project,
        environment=options.environment,
        head_sha=options.commits.head,
        base_sha=options.commits.base,
        merge_sha=options.commits.merge,
        plan_id=facts.identity.plan_id() if facts.identity else None,
        identity=facts.identity,
        appliable=reason is None,
        not_appliable_because=reason,
        baseline=baseline,
        planned_at=planned_at,
        decision=judgement.decision,
        reasons=list(judgement.reasons),
        risks=list(judgement.risks),
        cut=[],
        changes=facts.changes,
        backfill=facts.backfill,
        work=facts.work,
        restatements=facts.restatements,
        statements=facts.statements,
        prod_plan=facts.prod_plan,
        checks=facts.checks,
        cost=facts.cost,
        stages=facts.stages,
        lineage=facts.lineage,
        environment_now=facts.environment_now,
        notes=facts.notes,
        versions=facts.versions,
        timings=facts.timings,
        failure=facts.failure,
    )


def _changed_files(git: Git, commits: Commits) -> list[GitFile] | None:
    """The pull request's own changes: the base branch against the merge commit."""
    new = commits.merge or commits.head
    if commits.base is None or new is None or not git.has(commits.base) or not git.has(new):
        return None
    return git.changed_files(commits.base, new)


def _with_content(git: Git, commits: Commits, changed: list[GitFile] | None) -> list[ChangedFile]:
    new = commits.merge or commits.head
    found = []
    for file in changed or ():
        before = git.content(commits.base, file.path) if commits.base else None
        after = git.content(new, file.path) if new else None
        found.append(ChangedFile(path=file.path, before=before, after=after))
    return found


def _facts(
    bench: Bench, options: ReviewOptions, changed: list[GitFile] | None
) -> tuple[ReviewFacts, Baseline]:
    if options.baseline == "base-branch":
        return _ask_base(bench, options, changed)
    before = None
    if options.commits.base is not None and changed:
        before = bench.export_before(options.commits.base, [file.path for file in changed])
    answer = _ask(bench, options, changed, baseline="state", base=[], before=before)
    if isinstance(answer, ReviewFacts):
        return answer, answer.baseline
    possible = options.commits.base is not None and bench.git.has(options.commits.base)
    if options.baseline == "auto" and answer.reason_code in _STATE_FAILURES and possible:
        facts, baseline = _ask_base(bench, options, changed)
        if facts.failure is None:
            note = f"Prod's state was not used: {answer.message}"
            return facts.model_copy(update={"notes": [*facts.notes, note]}), baseline
    return _failed(answer, bench, options), "state"


def _ask_base(
    bench: Bench, options: ReviewOptions, changed: list[GitFile] | None
) -> tuple[ReviewFacts, Baseline]:
    base = bench.export_base(options.commits.base) if options.commits.base else []
    before = bench.base_directory if base else None
    answer = _ask(bench, options, changed, baseline="base-branch", base=base, before=before)
    if isinstance(answer, ReviewFacts):
        return answer, answer.baseline
    return _failed(answer, bench, options), "base-branch"


def _ask(
    bench: Bench,
    options: ReviewOptions,
    changed: list[GitFile] | None,
    *,
    baseline: BaselineChoice,
    base: list[str],
    before: str | None,
) -> ReviewFacts | Failure:
    try:
        ask = ReviewAsk(
            projects=bench.project_directories,
            gateway=bench.gateway,
            workplace=bench.workplace,
            owner=options.owner,
            environment=for_review(options.environment),
            baseline=baseline,
            base_projects=base,
            before_dir=before,
            changed_files=[file.path for file in changed] if changed is not None else None,
            flags=options.flags,
            start=options.start,
            end=options.end,
            executor_hour_price=options.executor_hour_price,
        )
    except UnfitName as error:
        raise bad_input(error) from error
    return bench.review(ask)


def _not_appliable(facts: ReviewFacts, baseline: Baseline, *, fork: bool) -> Line | None:
    if facts.failure is not None:
        return "The plan failed."
    if fork:
        return "Plans of a fork are reviewed, never applied."
    if baseline == "base-branch":
        return "It was compared with the base branch; review it with prod's state first."
    if baseline == "empty":
        return "There is no prod yet; build it first."
    if facts.identity is None:
        return "There is nothing to apply." if not facts.changes else "A change has no category."
    return None


def _failed(failure: Failure, bench: Bench, options: ReviewOptions) -> ReviewFacts:
    return failed_facts(failure, options, projects=bench.projects, gateway=bench.gateway)


def failed_facts(
    failure: Failure, options: ReviewOptions, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
    """The facts of a plan that failed: nothing is known, and nothing counts as passed."""
    reason = "The plan failed before this could be checked."
    return ReviewFacts(
        project=Project(paths=list(projects), gateway=gateway, dialect=None, models=0),
        environment=options.environment,
        baseline="state",
        identity=None,
        changes=[],
        backfill=[],
        work=[],
        restatements=[],
        statements=[],
        prod_plan=None,
        findings=[],
        checks=Checks(
            lint=LintCheck(status="not_run"),
            tests=TestsCheck(status="not_run", not_run_because=reason),
            audits=AuditsCheck(status="not_run", not_run_because=reason),
            table_diff=TableDiffCheck(status="not_run", not_run_because=reason),
        ),
        cost=Cost(intervals=0, batches=0, tables_rebuilt=0, basis="There is no plan to count."),
        stages=[],
        lineage=Lineage(),
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        timings={},
        failure=failure,
    )
