"""Asks the worker for a review's facts: against prod's state, or against the base branch."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import ci_bot
from ci_bot.bot.decision import combine_load_failures_for_decision, sort_load_failures_for_decision
from ci_bot.bot.policy import list_names_exposed_by_policy
from ci_bot.bot.worker_client import base_branch
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.bot.worker_client.failures import WORKER_ENDS, make_activity_failure_of_worker
from ci_bot.bot.worker_client.review_subject import RequestedFileChanges, WorkerReviewOptions
from ci_bot.bot.worker_client.team_policy import RequestedTeamPolicy
from ci_bot.protocol.base import Failure, Versions, name_what_does_not_load
from ci_bot.protocol.messages import BaselineChoice, FailedAnswer, ReviewRequest, ScanRequest
from ci_bot.protocol.plan import Cost, Finding, make_unrun_checks
from ci_bot.protocol.review_inputs import KnownFile, ScanFacts
from ci_bot.protocol.review_report import (
    Baseline,
    FirstDeployment,
    ProdNotFound,
    Project,
    ReviewFacts,
    make_planless_facts,
)

# What a scan of the changed files adds to a review.


def make_scan_request(
    client: WorkerClient, request: ReviewRequest, copied_from: Iterable[str] = ()
) -> ScanRequest | None:
    """Makes the request for the scan beside a review; None if the review knows no changed files."""
    if request.changed_files is None:
        return None
    return client.make_request(
        ScanRequest,
        owner=request.owner,
        changed_files=request.changed_files,
        unread_files=request.unread_files,
        before_dir=request.before_dir,
        copied_from=list(copied_from),
    )


def add_scan_findings_to_worker_facts(
    facts: ReviewFacts, scanned: ScanFacts | None, *, trusted: bool, loaded: Container[str] | None
) -> ReviewFacts:
    """Adds the scan's findings to the facts, and more of them if there is no plan.

    Args:
        trusted: The plan was made without code of the pull request beside it, so its statements
            count. Else the statements in the files count, too.
        loaded: The changed files that were opened on load; None if that is unknown.
    """
    if scanned is None:
        return facts
    found = [*facts.findings, *scanned.findings]
    unplanned = facts.failure is not None or (
        bool(facts.base_failures) and not facts.project.models
    )
    if unplanned:
        found += scanned.without_plan
    if unplanned or not trusted:
        # Only a blocker of the plan replaces it: a less severe finding may be a lie.
        known = {(item.rule, item.path) for item in facts.findings if item.severity == "blocker"}
        found += [
            item
            for item in scanned.statements
            if (item.rule, item.path) not in known
            and (unplanned or loaded is None or item.path in loaded)
        ]
    timings = {**facts.timings, "scan": scanned.seconds}
    planned: dict[str, list[str]] = {}
    for change in facts.changes:
        planned.setdefault(change.path or "", []).append(change.model)
    called = [_name_finding(item, planned.get(item.path or "", ())) for item in found]
    return facts.model_copy(update={"findings": called, "timings": timings})


def _name_finding(finding: Finding, models: Iterable[str]) -> Finding:
    """Returns the finding with its model named as in the plan.

    A scan only has the name in the file: with the default catalog, or without a schema.

    Args:
        models: the changed models of that file.
    """
    written = finding.model
    for name in models if written else ():
        if f".{written}".endswith(f".{name}") or f".{name}".endswith(f".{written}"):
            return finding.model_copy(update={"model": name})
    return finding


# The facts of a review without a plan: nothing is known, and nothing counts as passed.


# A report holds at most this many failures of the base branch.
BASE_FAILURES = 20


def make_facts_of_failed_request(
    failure: Failure, options: WorkerReviewOptions, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
    """Makes the facts of a plan that failed: nothing is known, and nothing counts as passed."""
    reason = "The plan failed before this could be checked."
    facts = _make_empty_review_facts(options, reason, projects=projects, gateway=gateway)
    return facts.model_copy(update={"failure": failure})


def make_facts_of_unplanned_request(
    base_failures: Sequence[Failure],
    options: WorkerReviewOptions,
    *,
    projects: Sequence[str],
    gateway: str | None,
    baseline: Baseline,
) -> ReviewFacts:
    """Makes the facts if there is no plan, but the pull request is not the reason.

    The base branch does not load, or another project in the state does not.
    """
    reason = f"{name_what_does_not_load(base_failures)}."
    facts = _make_empty_review_facts(options, reason, projects=projects, gateway=gateway)
    known = list(base_failures)[:BASE_FAILURES]
    return facts.model_copy(update={"base_failures": known, "baseline": baseline})


def _make_empty_review_facts(
    options: WorkerReviewOptions, reason: str, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
    return make_planless_facts(
        Project(paths=list(projects), gateway=gateway, dialect=None, models=0),
        options.environment,
        "state",
        checks=make_unrun_checks(reason),
        cost=Cost(intervals=0, batches=0, tables_rebuilt=0, basis="There is no plan to count."),
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        timings={},
    )


# Failures of `state` that do not matter to a review against the base branch.
_STATE_FAILURES = ("state_unreachable", "bad_config")
# A failure that says nothing about the base branch: dbt is not installed, or is not comparable.
_NEVER_COMPARED = "dbt_project"
# Failures that the base branch may have, too.
_LOADING = ("configuration", "load")


@dataclass(frozen=True)
class ReviewFactsQuestion:
    """What the worker needs to give a review's facts, against the state or the base branch."""

    client: WorkerClient
    options: WorkerReviewOptions
    changed: RequestedFileChanges | None
    team: RequestedTeamPolicy

    def request_facts(self) -> tuple[ReviewFacts, Baseline, Failure | None]:
        """Requests the facts; returns them, their baseline, and why `auto` could not use the state.

        A state without prod says nothing about prod. It is trusted if the base branch has no models
        either, or if somebody chose the state by name; else the base branch counts as prod.
        """
        chosen = self.options.baseline
        if chosen == "base-branch":
            return *self._request_facts_against_base(), None
        has_substitute = chosen != "state" and self._has_base()
        answer = self._request_facts_against_state(plan_without_prod=not has_substitute)
        missing = answer.prod_not_found if isinstance(answer, ReviewFacts) else None
        if missing is not None and has_substitute:
            answer = self._replace_missing_prod(missing)
        elif missing is not None and chosen == "state":
            answer = _accept_facts_without_prod(answer, "chosen")
        if isinstance(answer, ReviewFacts):
            return answer, answer.baseline, None
        if answer.base_failures:
            # Other projects in the state do not load; no file of this project causes that.
            return self._make_unplanned_facts(answer.base_failures, "state"), "state", None
        return self._request_facts_of_base_too(answer.failure)

    def make_failed_facts(self, failure: Failure) -> ReviewFacts:
        """Makes the facts if the worker could not plan."""
        return make_facts_of_failed_request(
            failure, self.options, projects=self.client.projects, gateway=self.client.gateway
        )

    def _make_unplanned_facts(self, failures: Sequence[Failure], baseline: Baseline) -> ReviewFacts:
        """Makes the facts if nothing can be planned, but the pull request is not the reason."""
        return make_facts_of_unplanned_request(
            failures,
            self.options,
            projects=self.client.projects,
            gateway=self.client.gateway,
            baseline=baseline,
        )

    def _has_base(self) -> bool:
        base = self.options.commits.base
        return base is not None and self.client.git.has_commit(base)

    def _request_facts_of_base_too(
        self, failure: Failure
    ) -> tuple[ReviewFacts, Baseline, Failure | None]:
        """Requests the facts of the base branch if the failure against prod's state needs them."""
        if self._has_base():
            if self.options.baseline == "auto" and failure.reason_code in _STATE_FAILURES:
                try:
                    facts, baseline = self._request_facts_against_base()
                except WORKER_ENDS as error:
                    ended = make_activity_failure_of_worker(error, "plan", self.client.redactor)
                    return self.make_failed_facts(ended), "base-branch", failure
                if facts.failure is None:
                    return facts, baseline, failure
            elif failure.stage in _LOADING:
                # Only now it matters whether the base branch fails, too: it takes a second load.
                try:
                    facts, baseline = self._request_facts_against_base()
                except WORKER_ENDS:
                    # Why the pull request does not load is already known, and stays the answer.
                    return self.make_failed_facts(failure), "state", None
                compared = facts.failure is None or facts.failure.reason_code != _NEVER_COMPARED
                if compared and (facts.failure is not None or not facts.project.models):
                    return facts, baseline, None
        return self.make_failed_facts(failure), "state", None

    def _replace_missing_prod(self, missing: ProdNotFound) -> ReviewFacts | FailedAnswer:
        """Requests the facts again if the state holds no prod: the base branch counts as prod.

        The state's first answer has said only that. The state is planned against if the base branch
        cannot count as prod, because it has no models or does not load.
        """
        facts, _ = self._request_facts_against_base()
        if facts.failure is None and facts.project.models and facts.base_models != 0:
            return facts.model_copy(update={"prod_not_found": missing})
        answer = self._request_facts_against_state(plan_without_prod=True)
        if facts.failure is None and facts.base_models == 0:
            return _accept_facts_without_prod(answer, "base-without-models")
        # The other facts of the state's answer still count; about prod nothing is known.
        return answer

    def _request_facts_against_base(self) -> tuple[ReviewFacts, Baseline]:
        commit = self.options.commits.base
        base = self.client.export_base(commit) if commit else None
        before = None if base is None else self.client.base_directory
        answer = self._request_facts_once("base-branch", base=base, before=before)
        if isinstance(answer, ReviewFacts):
            return answer, answer.baseline
        found = sort_load_failures_for_decision(
            answer.failures or [answer.failure],
            answer.base_failures,
            None if self.changed is None else self.changed.paths,
        )
        if found.new:
            failure = combine_load_failures_for_decision(
                found, base_is_broken=bool(answer.base_failures)
            )
            return self.make_failed_facts(failure), "base-branch"
        return self._make_unplanned_facts(found.old, "base-branch"), "base-branch"

    def _request_facts_against_state(
        self, *, plan_without_prod: bool
    ) -> ReviewFacts | FailedAnswer:
        changed = self.changed
        before = None if changed is None else self.client.export_before(changed.list_old_sides())
        return self._request_facts_once(
            "state", base=None, before=before, plan_without_prod=plan_without_prod
        )

    def _request_facts_once(
        self,
        baseline: BaselineChoice,
        *,
        base: list[str] | None,
        before: str | None,
        plan_without_prod: bool = True,
    ) -> ReviewFacts | FailedAnswer:
        client, options, changed = self.client, self.options, self.changed
        request = client.make_request(
            ReviewRequest,
            owner=options.owner,
            environment=options.environment,
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
            before_apply=options.before_apply,
            plan_without_prod=plan_without_prod,
            execution_time=options.execution_time,
            executor_hour_price=options.executor_hour_price,
            scopes=self.team.scopes,
            exposed=list_names_exposed_by_policy(self.team.policy.exposures),
            known_files=self._read_known_files() if baseline == "state" else [],
            personal_schemas=self.team.personal_schemas,
            restated_by=_list_restating(options),
            wish=options.wish,
        )
        copied_from = changed.copied_from if changed is not None else ()
        return client.request_review(request, make_scan_request(client, request, copied_from))

    def _read_known_files(self) -> list[KnownFile]:
        """Returns what the base cache holds; empty before an apply.

        An apply plans from the files alone. So it refuses a plan for which a cache led to another
        identity.
        """
        options = self.options
        if options.cache_dir is None or options.before_apply:
            return []
        return base_branch.read_base_cache_for_worker(
            self.client, options.cache_dir, options.commits.reviewed_commit
        )


def _accept_facts_without_prod(
    answer: ReviewFacts | FailedAnswer, why: FirstDeployment
) -> ReviewFacts | FailedAnswer:
    """Marks a plan against a state without prod as a first deployment."""
    if isinstance(answer, FailedAnswer) or answer.prod_not_found is None:
        return answer
    first = answer.prod_not_found.model_copy(update={"first_deployment": why})
    return answer.model_copy(update={"prod_not_found": first})


def _list_restating(options: WorkerReviewOptions) -> list[int]:
    own = options.owner.pr_number
    if options.restated_by is not None:
        return list(options.restated_by)
    return [] if own is None else [own]
