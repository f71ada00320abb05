"""A review: asks the worker for facts, judges them, and makes the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from ci_bot.bot import report as reports
from ci_bot.bot.decision import (
    BotFacts,
    JudgedFile,
    decide_on_review,
    is_possible_risk_of_code_on_load,
    list_risky_code_on_load,
)
from ci_bot.bot.policy import ChangeAuthors, PolicyWeighing, describe_stale_policy_exposures
from ci_bot.bot.report import group_findings
from ci_bot.bot.sandbox import FilesMissingInGit, GitFile
from ci_bot.bot.worker_client.base_branch import compare_failed_tests_with_base_branch
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.bot.worker_client.failures import WORKER_ENDS, make_activity_failure_of_worker
from ci_bot.bot.worker_client.review_facts import (
    BASE_FAILURES,
    ReviewFactsQuestion,
    add_scan_findings_to_worker_facts,
    make_facts_of_failed_request,
)
from ci_bot.bot.worker_client.review_subject import (
    RequestedFileChanges,
    RequestedReviewCommits,
    WorkerReviewOptions,
    list_changes_of_pull_for_request,
)
from ci_bot.bot.worker_client.team_policy import (
    RequestedTeamPolicy,
    describe_fallen_acceptances,
    find_owners_of_requested_models,
    list_added_ignore_comments,
    make_used_policy,
    read_effective_policy,
    resolve_limits,
)
from ci_bot.errors import BotError, TimedOut
from ci_bot.protocol.base import Failure, Line, name_what_does_not_load
from ci_bot.protocol.review_report import Baseline, ModelOwners, Report, ReviewFacts, Risk

# For each of them all files of the head are searched.
MOST_WORDS = 20
# Checks of the project without which nothing can be applied.
_NEEDED = ("connection", "suffix target")
# What SQLMesh loads from a project's directories.
_LOADED = (".sql", ".py", ".yaml", ".yml", ".csv", ".tsv")
# A word in these files is no use of the thing that it names.
_PROSE = (".md", ".rst", ".csv", ".tsv")


def request_review_and_judge(
    client: WorkerClient, options: WorkerReviewOptions, *, planned_at: str
) -> Report:
    """Plans and judges. A plan that fails is a report too: No-Go, with the failure in it.

    If the worker fails, the report still shows what the changed files say and which of them ran. If
    git has no time left for an answer, the report is shorter, but there is one.
    """
    changed = list_changes_of_pull_for_request(client.git, options.commits)
    team = read_effective_policy(
        client,
        options.commits,
        new=options.commits.reviewed_commit if changed is not None else None,
        no_lighter=options.no_lighter,
        today=date.fromisoformat(planned_at[:10]),
    )
    price = options.executor_hour_price
    options = replace(
        options,
        limits=resolve_limits(options.limits, team.policy),
        executor_hour_price=team.policy.executor_hour_price if price is None else price,
    )
    question = ReviewFactsQuestion(client, options, changed, team)
    state_failure: Failure | None = None
    try:
        facts, baseline, state_failure = question.request_facts()
    except BotError as error:
        if client.scanned is None and (changed is None or not isinstance(error, WORKER_ENDS)):
            raise
        failure = make_activity_failure_of_worker(error, "plan", client.redactor)
        facts, baseline = question.make_failed_facts(failure), "state"
    team.check_selections(facts)
    facts = compare_failed_tests_with_base_branch(
        client, facts, options.commits.base, options.owner
    )
    found = _KnownFacts(facts, baseline, state_failure, changed, team)
    with client.deadline.extend_for_report():
        return _make_report(client, options, found, planned_at=planned_at)


@dataclass(frozen=True)
class _KnownFacts:
    """What is known after the worker has ended in any way."""

    facts: ReviewFacts
    baseline: Baseline
    state_failure: Failure | None
    changed: RequestedFileChanges | None
    team: RequestedTeamPolicy


def _make_report(
    client: WorkerClient, options: WorkerReviewOptions, found: _KnownFacts, *, planned_at: str
) -> Report:
    facts, changed, team = found.facts, found.changed, found.team
    bot = BotFacts(
        changed_files=tuple(changed.paths) if changed is not None else None,
        too_large=changed.too_large if changed is not None else (),
        pull_request=options.commits.merge is not None,
        conflict=options.conflict,
        fork=options.fork,
    )
    if changed is not None:
        loaded = client.list_loaded_among(changed.paths)
        on_load = _list_loaded_code(client, changed, loaded, options.commits)
        facts = add_scan_findings_to_worker_facts(
            facts, client.scanned, trusted=not on_load, loaded=loaded
        )
        bot = replace(
            bot,
            code_on_load=tuple(on_load),
            removed_code=tuple(
                file.path for file in changed.files if file.after is None and file.path in on_load
            ),
            load_known=loaded is not None,
            unread_because=None if client.scanned else client.not_scanned_because,
        )
    missing = (
        FilesMissingInGit() if changed is None else _list_missing_files(client, options.commits)
    )
    bot = replace(bot, missing_files=missing.files, empty_submodules=missing.submodules)
    weighing = team.make_weighing(facts, client.git, changed)
    if bot.code_on_load and weighing.loosens and weighing.policy.trusts_writers:
        weighing = replace(weighing, authors=_find_authors(options))
    bot = replace(
        bot,
        weighing=weighing,
        policy_changes=(*team.changes, *list_added_ignore_comments(weighing.comments)),
    )
    report = _build_report(
        facts,
        found.baseline,
        options,
        bot,
        planned_at=planned_at,
        state_failure=found.state_failure,
    )
    report = report.model_copy(
        update={
            "policy": make_used_policy(team, weighing, facts),
            "owners": _list_model_owners(team, weighing, client, facts, report.risks),
            "notes": [
                *report.notes,
                *(client.git.exports.notes if found.baseline == "base-branch" else ()),
                *describe_fallen_acceptances(weighing, report.risks),
                *describe_stale_policy_exposures(team.policy.exposures, facts.exposed),
            ],
        }
    )
    # For texts that the bot has added, and the identity: the plan id was computed before this.
    return client.redactor.redact_document(report)


def _find_authors(options: WorkerReviewOptions) -> ChangeAuthors:
    """Finds who wrote the change; refused if GitHub gives it no secrets, or cannot be asked."""
    if options.fork:
        return ChangeAuthors(refused_because="it comes from a fork or from Dependabot")
    return ChangeAuthors() if options.find_authors is None else options.find_authors()


def _list_missing_files(client: WorkerClient, commits: RequestedReviewCommits) -> FilesMissingInGit:
    """Lists what SQLMesh would load from the commit that is checked out, but that is not there."""
    new = commits.reviewed_commit
    try:
        if new is None or (commits.working is None and client.git.read_head() != new):
            return FilesMissingInGit()  # another commit is checked out
        found = client.git.list_missing(new, client.projects)
    except TimedOut:
        return FilesMissingInGit()
    return replace(found, files=tuple(path for path in found.files if path.endswith(_LOADED)))


def _list_model_owners(
    team: RequestedTeamPolicy,
    weighing: PolicyWeighing,
    client: WorkerClient,
    facts: ReviewFacts,
    risks: Sequence[Risk],
) -> list[ModelOwners]:
    """Lists the owners; none if the base is not one whose policy counts."""
    if team.commit is None or team.no_lighter is not None:
        return []
    try:
        return find_owners_of_requested_models(weighing, client.git, team.commit, facts, risks)
    except TimedOut:
        return []


def request_review_or_report_failure(
    client: WorkerClient, options: WorkerReviewOptions, *, planned_at: str
) -> Report:
    """Requests and judges a review; if the worker failed, the report holds the failure."""
    try:
        return request_review_and_judge(client, options, planned_at=planned_at)
    except BotError as error:
        return make_report_of_failed_worker(
            make_activity_failure_of_worker(error, "plan", client.redactor),
            options,
            projects=client.projects,
            gateway=client.gateway,
            planned_at=planned_at,
        )


def _list_loaded_code(
    client: WorkerClient,
    changed: RequestedFileChanges,
    loaded: frozenset[str] | None,
    commits: RequestedReviewCommits,
) -> list[str]:
    def may_run(file: GitFile) -> bool:
        return is_possible_risk_of_code_on_load(
            file.path, deleted=file.after is None, loaded=loaded, projects=client.projects
        )

    try:
        files = list(changed.read_contents(client.git, may_run))
    except TimedOut:
        # The worker's answer came in time and must not be lost: a file that nobody has read is
        # code.
        files = [
            JudgedFile(file.path, None, None, read=False) for file in changed.files if may_run(file)
        ]
    head = commits.reviewed_commit

    looked_for: list[str] = []

    def is_mentioned(word: str, path: str) -> bool:
        if head is None or len(looked_for) == MOST_WORDS:
            return True  # a word that nobody has searched for counts as used
        looked_for.append(word)
        try:
            found = set(client.git.list_files_mentioning(head, word)) - {path}
        except TimedOut:
            return True
        return any(not name.lower().endswith(_PROSE) for name in found)

    return list_risky_code_on_load(files, loaded, client.projects, is_mentioned)


def make_report_of_failed_worker(
    failure: Failure,
    options: WorkerReviewOptions,
    *,
    projects: Sequence[str],
    gateway: str | None,
    planned_at: str,
) -> Report:
    """Makes the report of a review without a worker's answer, or that never asked a worker."""
    facts = make_facts_of_failed_request(failure, options, projects=projects, gateway=gateway)
    bot = BotFacts(conflict=options.conflict, fork=options.fork)
    return _build_report(facts, "state", options, bot, planned_at=planned_at)


def _build_report(
    facts: ReviewFacts,
    baseline: Baseline,
    options: WorkerReviewOptions,
    bot: BotFacts,
    *,
    planned_at: str,
    state_failure: Failure | None = None,
) -> Report:
    judgement = decide_on_review(facts, limits=options.limits, bot=bot)
    reason = _explain_why_not_appliable(facts, baseline, fork=options.fork)
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
        findings=group_findings(judgement.risks),
        set_aside=list(judgement.set_aside),
        cut=[],
        changes=facts.changes,
        backfill=facts.backfill,
        # Nearly always the same, so in a large project one long list is kept instead of two.
        work=facts.backfill if facts.work == facts.backfill else facts.work,
        restatements=facts.restatements,
        prod_restatements=facts.prod_restatements,
        refused_wish=facts.refused_wish,
        statements=facts.statements,
        prod_plan=facts.prod_plan,
        checks=facts.checks,
        cost=facts.cost,
        stages=facts.stages,
        lineage=facts.lineage,
        impact=facts.impact,
        executions=facts.executions,
        past_numbers=judgement.past_numbers,
        short_window=facts.short_window,
        options=facts.options,
        environment_now=facts.environment_now,
        environment_holds_plan=facts.environment_holds_plan,
        state_failure=state_failure,
        prod_not_found=facts.prod_not_found,
        notes=facts.notes,
        versions=facts.versions,
        timings=facts.timings,
        failure=facts.failure,
        base_failures=facts.base_failures[:BASE_FAILURES],
    )


def _explain_why_not_appliable(
    facts: ReviewFacts, baseline: Baseline, *, fork: bool
) -> Line | None:
    missing = facts.prod_not_found
    no_prod = baseline == "empty" or (missing is not None and missing.first_deployment is None)
    unfit = [c for c in facts.checks.project if c.name in _NEEDED and c.status == "fail"]
    no_plan = "There is nothing to apply." if not facts.changes else "A change has no category."
    conditions = (
        (facts.failure is not None, "The plan failed."),
        (bool(facts.base_failures), f"{name_what_does_not_load(facts.base_failures)}."),
        (fork, reports.SENTENCES.fork_never_applied),
        (bool(unfit), unfit[0].message if unfit else ""),
        (no_prod, "No prod was found in the state; build it, or let this run find it."),
        (
            baseline == "base-branch",
            reports.SENTENCES.needs_prods_state,
        ),
        (facts.identity is None, no_plan),
    )
    return next((why for applies, why in conditions if applies), None)
