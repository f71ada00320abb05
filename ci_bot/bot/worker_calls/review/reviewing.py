"""A review: ask the worker what is, judge it, and make the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import ci_bot
from ci_bot.bot.cage.git.repository import Git, GitFile
from ci_bot.bot.decision import (
    BotFacts,
    ChangedFile,
    Limits,
    blame,
    code_that_runs_on_load,
    could_run_on_load,
    in_one,
    judge,
)
from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.bot.worker_calls.failures import failure_of
from ci_bot.bot.worker_calls.refusals import bad_input
from ci_bot.bot.worker_calls.review.base_tests import compared_with_base
from ci_bot.bot.worker_calls.review.changed_files import Changes, changes
from ci_bot.bot.worker_calls.review.scanning import scan_of, with_scan
from ci_bot.bot.worker_calls.review.team_policy import (
    TeamPolicy,
    added_comments,
    of_base,
    of_working_tree,
    used,
    with_limits,
)
from ci_bot.contracts.base import Failure, Line, Versions
from ci_bot.contracts.documents.plan import (
    AuditsCheck,
    Checks,
    Cost,
    Lineage,
    LintCheck,
    TableDiffCheck,
    TestsCheck,
)
from ci_bot.contracts.documents.plan_options import GivenFlags
from ci_bot.contracts.documents.report import Baseline, Project, Report, ReviewFacts
from ci_bot.contracts.environment import UnfitName, for_review
from ci_bot.contracts.messages import BaselineChoice, FailedAnswer, Owner, ReviewRequest
from ci_bot.errors import BotError, Cancelled, TimedOut

# Failures of `state` that a base-branch review can do without.
_STATE_FAILURES = ("state_unreachable", "bad_config")
# Failures that a base branch may have as well.
_LOADING = ("configuration", "load")
# A report holds so many failures of the base branch.
BASE_FAILURES = 20

# Each is a search through all files of the head.
MOST_WORDS = 20
# A word in these is no use of what it names.
_PROSE = (".md", ".rst", ".csv", ".tsv")


@dataclass(frozen=True, kw_only=True)
class Commits:
    """The commits of a review; null where they are unknown (a laptop without a base).

    The branches are those of the pull request; a laptop has its own git to ask for its base.
    """

    head: str | None = None
    base: str | None = None
    merge: str | None = None
    head_branch: str | None = None
    base_branch: str | None = None

    def base_names(self) -> list[str]:
        """How `git:` in a selection of models may call the base of the pull request."""
        if self.base_branch is None:
            return []
        names = [self.base_branch, f"origin/{self.base_branch}"]
        return [*names, self.base] if self.base else names


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """What a review is asked for.

    Attributes:
        limits: Those that an input sets; the policy's count where it sets none.
        no_lighter: Why the policy makes nothing lighter, as a sentence; None where it may.
    """

    environment: str
    owner: Owner
    commits: Commits
    baseline: BaselineChoice = "auto"
    flags: GivenFlags = field(default_factory=GivenFlags)
    start: str | None = None
    end: str | None = None
    pinned: bool = False
    execution_time: str | None = None
    limits: Limits = field(default_factory=Limits)
    executor_hour_price: float | None = None
    conflict: bool = False
    fork: bool = False
    python_path: tuple[str, ...] = ()
    no_lighter: str | None = None


def review(client: WorkerClient, options: ReviewOptions, *, planned_at: str) -> Report:
    """Plans and judges. A plan that fails is a report too: No-Go, with the failure in it.

    So is a worker that fails once the changed files were read: what they say is reported all the
    same.
    """
    changed = changed_by(client.git, options.commits)
    team = _team_policy(client, options, changed, date.fromisoformat(planned_at[:10]))
    price = options.executor_hour_price
    options = replace(
        options,
        limits=with_limits(options.limits, team.policy),
        executor_hour_price=team.policy.executor_hour_price if price is None else price,
    )
    state_failure: Failure | None = None
    try:
        facts, baseline, state_failure = _facts(client, options, changed, team)
    except Cancelled:
        raise
    except BotError as error:
        if client.scanned is None:
            raise
        failure = failure_of(error, "plan", client.redactor)
        facts, baseline = _failed(failure, client, options), "state"
    team.check(facts)
    facts = compared_with_base(client, facts, options.commits.base, options.owner)
    bot = BotFacts(
        changed_files=tuple(changed.paths) if changed is not None else None,
        too_large=changed.too_large if changed is not None else (),
        pull_request=options.commits.merge is not None,
        conflict=options.conflict,
        fork=options.fork,
    )
    if changed is not None:
        loaded = client.loaded_among(changed.paths)
        on_load = _code_on_load(client, changed, loaded, options.commits)
        facts = with_scan(facts, client.scanned, believed=not on_load, loaded=loaded)
        bot = replace(
            bot,
            code_on_load=tuple(on_load),
            load_known=loaded is not None,
            unread_because=None if client.scanned else client.not_scanned_because,
        )
    weighing = team.weighing(facts, client.git, changed)
    bot = replace(
        bot,
        weighing=weighing,
        policy_changes=(*team.changes, *added_comments(weighing.comments)),
    )
    report = _report(
        facts, baseline, options, bot, planned_at=planned_at, state_failure=state_failure
    ).model_copy(update={"policy": used(team, weighing, facts)})
    # For what the bot has added, and for the identity: the plan id is computed over it as it was.
    return client.redactor.document(report)


def _team_policy(
    client: WorkerClient, options: ReviewOptions, changed: Changes | None, today: date
) -> TeamPolicy:
    """The policy of the base commit; on a laptop that names none, the one that lies there.

    Raises:
        UnfitPolicy: it cannot be used.
    """
    commits = options.commits
    if commits.base is not None and client.git.has(commits.base):
        return of_base(
            client.git,
            client.projects,
            base=commits.base,
            new=(commits.merge or commits.head) if changed is not None else None,
            today=today,
            no_lighter=options.no_lighter,
        )
    if commits.base is None and client.own_machine:
        return of_working_tree(client.checkout, client.projects, today=today)
    return TeamPolicy(today=today)


def _code_on_load(
    client: WorkerClient, changed: Changes, loaded: frozenset[str] | None, commits: Commits
) -> list[str]:
    def asked(file: GitFile) -> bool:
        return could_run_on_load(
            file.path, deleted=file.after is None, loaded=loaded, projects=client.projects
        )

    try:
        files = list(changed.contents(client.git, asked))
    except TimedOut:
        # The worker's answer came in time, and is not lost to this: what nobody has read is code.
        files = [
            ChangedFile(file.path, None, None, read=False) for file in changed.files if asked(file)
        ]
    head = commits.merge or commits.head

    looked_for: list[str] = []

    def mentioned(word: str, path: str) -> bool:
        if head is None or len(looked_for) == MOST_WORDS:
            return True  # what nobody has looked for counts as used
        looked_for.append(word)
        found = set(client.git.mentions(head, word)) - {path}
        return any(not name.lower().endswith(_PROSE) for name in found)

    return code_that_runs_on_load(files, loaded, client.projects, mentioned)


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
    state_failure: Failure | None = None,
) -> Report:
    judgement = judge(facts, limits=options.limits, bot=bot)
    reason = _not_appliable(facts, baseline, fork=options.fork)
    return Report(
        project=facts.project.model_copy(update={"python_path": list(options.python_path)}),
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
        set_aside=list(judgement.set_aside),
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
        impact=facts.impact,
        short_window=facts.short_window,
        options=facts.options,
        environment_now=facts.environment_now,
        state_failure=state_failure,
        notes=facts.notes,
        versions=facts.versions,
        timings=facts.timings,
        failure=facts.failure,
        base_failures=facts.base_failures[:BASE_FAILURES],
    )


def changed_by(git: Git, commits: Commits) -> Changes | None:
    """The pull request's own changes: the base branch against the merge commit."""
    new = commits.merge or commits.head
    if commits.base is None or new is None or not git.has(commits.base) or not git.has(new):
        return None
    return changes(git, commits.base, new)


def _facts(
    client: WorkerClient, options: ReviewOptions, changed: Changes | None, team: TeamPolicy
) -> tuple[ReviewFacts, Baseline, Failure | None]:
    """The worker's answer, what it compared with, and why `auto` could not take the state."""
    if options.baseline == "base-branch":
        return *_ask_base(client, options, changed, team), None
    before = client.export_before(changed.before()) if changed is not None else None
    answer = _ask(client, options, changed, team, baseline="state", base=None, before=before)
    if isinstance(answer, ReviewFacts):
        return answer, answer.baseline, None
    failure = answer.failure
    if options.commits.base is not None and client.git.has(options.commits.base):
        if options.baseline == "auto" and failure.reason_code in _STATE_FAILURES:
            facts, baseline = _ask_base(client, options, changed, team)
            if facts.failure is None:
                return facts, baseline, failure
        elif failure.stage in _LOADING:
            # Whether the base branch fails alike is asked only now: it is a second load.
            facts, baseline = _ask_base(client, options, changed, team)
            if facts.failure is not None or not facts.project.models:
                return facts, baseline, None
    return _failed(failure, client, options), "state", None


def _ask_base(
    client: WorkerClient, options: ReviewOptions, changed: Changes | None, team: TeamPolicy
) -> tuple[ReviewFacts, Baseline]:
    base = client.export_base(options.commits.base) if options.commits.base else None
    before = None if base is None else client.base_directory
    answer = _ask(client, options, changed, team, baseline="base-branch", base=base, before=before)
    if isinstance(answer, ReviewFacts):
        return answer, answer.baseline
    paths = None if changed is None else changed.paths
    found = blame(answer.failures or [answer.failure], answer.base_failures, paths)
    if found.new:
        told = in_one(found, base_is_broken=bool(answer.base_failures))
        return _failed(told, client, options), "base-branch"
    facts = unplanned_facts(found.old, options, projects=client.projects, gateway=client.gateway)
    return facts, facts.baseline


def _ask(
    client: WorkerClient,
    options: ReviewOptions,
    changed: Changes | None,
    team: TeamPolicy,
    *,
    baseline: BaselineChoice,
    base: list[str] | None,
    before: str | None,
) -> ReviewFacts | FailedAnswer:
    try:
        request = client.request(
            ReviewRequest,
            owner=options.owner,
            environment=for_review(options.environment),
            baseline=baseline,
            base_repository=None if base is None else client.base_directory,
            base_projects=base or [],
            before_dir=before,
            changed_files=changed.paths if changed is not None else None,
            unread_files=list(changed.too_large) if changed is not None else [],
            flags=options.flags,
            start=options.start,
            end=options.end,
            pinned=options.pinned,
            head_branch=options.commits.head_branch,
            base_names=options.commits.base_names(),
            execution_time=options.execution_time,
            executor_hour_price=options.executor_hour_price,
            scopes=team.scopes,
            personal_schemas=team.personal_schemas,
        )
    except UnfitName as error:
        raise bad_input(error) from error
    return client.review(request, scan_of(client, request))


def _not_appliable(facts: ReviewFacts, baseline: Baseline, *, fork: bool) -> Line | None:
    if facts.failure is not None or facts.base_failures:
        return "The plan failed." if facts.failure else "The base branch does not load."
    if fork:
        return "Plans of a fork are reviewed, never applied."
    if baseline == "base-branch":
        return "It was compared with the base branch; review it with prod's state first."
    if baseline == "empty":
        return "There is no prod yet; build it first."
    if facts.identity is None:
        return "There is nothing to apply." if not facts.changes else "A change has no category."
    return None


def _failed(failure: Failure, client: WorkerClient, options: ReviewOptions) -> ReviewFacts:
    return failed_facts(failure, options, projects=client.projects, gateway=client.gateway)


def failed_facts(
    failure: Failure, options: ReviewOptions, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
    """The facts of a plan that failed: nothing is known, and nothing counts as passed."""
    reason = "The plan failed before this could be checked."
    facts = _nothing(options, reason, projects=projects, gateway=gateway)
    return facts.model_copy(update={"failure": failure})


def unplanned_facts(
    base_failures: Sequence[Failure],
    options: ReviewOptions,
    *,
    projects: Sequence[str],
    gateway: str | None,
) -> ReviewFacts:
    """The facts where there is no plan, because the base branch does not load."""
    facts = _nothing(options, "The base branch does not load.", projects=projects, gateway=gateway)
    known = list(base_failures)[:BASE_FAILURES]
    return facts.model_copy(update={"base_failures": known, "baseline": "base-branch"})


def _nothing(
    options: ReviewOptions, reason: str, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
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
    )
