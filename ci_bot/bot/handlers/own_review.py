"""The review that an apply makes itself: what it will build, and whether it may.

The comment names the reviewed plan and the decision about it. But everybody who can write to the
repository can edit that comment, and every workflow of the repository can write one under the same
name. The report in the artifact of the review's run is no better proof: on `pull_request` GitHub
takes the workflow file from the merge of both branches. So anyone who can push a branch can upload
any report, from a changed head or from a base that the pull request had for a minute, and GitHub
does not say for which base a run was started.

So the comment only says which plan is meant; it can refuse an apply, but never allow one. What
allows it is computed here, from the checkout and from prod's state.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import replace

from ci_bot.bot.actions import ActionSettings
from ci_bot.bot.decision import TeamLimits
from ci_bot.bot.github import GitHub, PullRequest, read_file_of_github_artifact
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import (
    find_checked_out_commit,
    make_change_author_finder,
)
from ci_bot.bot.handlers.review import explain_why_policy_lowers_no_severity, read_plan_flags
from ci_bot.bot.worker_client import (
    RequestedReviewCommits,
    WorkerClient,
    WorkerReviewOptions,
    apply,
    review,
)
from ci_bot.errors import EXIT_REFUSED, BotError
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import Owner
from ci_bot.protocol.plan_identity import PlanIdentity, compare_identities
from ci_bot.protocol.reasons import (
    REVIEW_AGAIN,
    UNCATEGORIZED_HINT,
    describe_other_plan,
    describe_uncategorized,
)
from ci_bot.protocol.review_inputs import RestatementWish
from ci_bot.protocol.review_report import Report

ARTIFACT = "ci-bot-report"
MAX_ARTIFACT_BYTES = 32 * 1024 * 1024


def review_again_in_apply_run(
    settings: ActionSettings,
    publisher: HandlerPublisher,
    client: WorkerClient,
    *,
    pull: PullRequest,
    marker: Marker | None,
    github: GitHub,
    wish: RestatementWish | None = None,
) -> Report:
    """Reviews what is checked out against prod's state; only the dates come from the comment.

    Args:
        wish: A restatement that an owner asks for; None for only the recorded ones.

    Raises:
        RunCancelled: the run was stopped meanwhile. Nothing was built.
    """
    inputs, window = settings.inputs, marker.window if marker else None
    options = WorkerReviewOptions(
        before_apply=True,
        environment=publisher.environment,
        owner=Owner(name=settings.runner.repository, pr_number=pull.number, head_sha=pull.head_sha),
        commits=find_merge_commits(pull, client),
        baseline="state",
        flags=read_plan_flags(inputs),
        # With the dates that the review chose, the plan is the same again; with others it differs.
        start=window.start if window else inputs.start,
        end=window.end if window else inputs.end,
        pinned=window is not None,
        execution_time=window.execution_time if window else None,
        limits=TeamLimits(
            max_intervals=inputs.max_intervals, max_executor_hours=inputs.max_executor_hours
        ),
        executor_hour_price=inputs.executor_hour_price,
        python_path=inputs.python_path,
        no_lighter=explain_why_policy_lowers_no_severity(
            pull, None, checked_out=client.git.read_head()
        ),
        find_authors=make_change_author_finder(github, pull.number, pull.head_sha),
        wish=wish,
    )
    now = publisher.machine.format_timestamp()
    return review.request_review_or_report_failure(client, options, planned_at=now)


def find_merge_commits(pull: PullRequest, client: WorkerClient) -> RequestedReviewCommits:
    """Returns the checked out commits; the gate has found that they are those of the merge."""
    parents = find_checked_out_commit(client)
    return RequestedReviewCommits(
        head=pull.head_sha,
        base=parents[0] if parents else None,
        merge=client.git.read_head(),
        head_branch=pull.head_ref,
        base_branch=pull.base_ref,
    )


def confirm_comment_marker_by_own_review(marker: Marker, own: Report) -> Marker:
    """Returns the comment's record with this run's own facts instead of its claims."""
    return marker.model_copy(
        update={
            "head": own.head_sha,
            "base": own.base_sha,
            "merge": own.merge_sha,
            "plan": own.plan_id,
            "window": own.identity.window if own.identity else None,
            "decision": own.decision,
        }
    )


def find_why_own_review_has_other_plan(
    own: Report, marker: Marker, publisher: HandlerPublisher, github: GitHub
) -> ApplyDocument | None:
    """Explains why the plan in the comment is not built; None if it is this run's own plan.

    Only that plan was requested, so no other is built, not even one that is better meanwhile.
    """
    environment = publisher.environment
    if own.failure is not None:
        return apply.make_failed_apply_document(own.failure, environment=environment)
    if own.plan_id == marker.plan:
        return None
    if own.identity is None:
        return _make_document_without_own_plan(own, marker, environment)
    failure = Failure(
        stage="compare",
        reason_code="plan_changed",
        exit_code=EXIT_REFUSED,
        message=describe_other_plan(marker.plan, own.plan_id),
        hint=REVIEW_AGAIN,
    )
    if marker.base and own.base_sha:
        publisher.template = replace(publisher.template, base_moves=(marker.base, own.base_sha))
    reviewed = _read_reviewed_sets(marker, publisher, github)
    return apply.make_failed_apply_document(failure, environment=environment).model_copy(
        update={
            "plan_id": own.plan_id,
            "difference": compare_identities(reviewed, own.identity) if reviewed else None,
        }
    )


def _make_document_without_own_plan(
    own: Report, marker: Marker, environment: EnvironmentName
) -> ApplyDocument:
    """Makes the document if nothing differs from prod any more, or a change is not categorized."""
    waiting = ", ".join(
        change.model for change in own.changes if change.category in (None, "uncategorized")
    )
    failure = Failure(
        stage="plan",
        reason_code="uncategorized",
        exit_code=EXIT_REFUSED,
        message=describe_uncategorized(waiting),
        hint=UNCATEGORIZED_HINT,
    )
    document = apply.make_failed_apply_document(failure, environment=environment)
    if own.changes:
        return document
    return document.model_copy(
        update={
            "result": "nothing_to_apply",
            "reason_code": "no_changes",
            "plan_id": marker.plan,
            "failure": None,
        }
    )


def _read_reviewed_sets(
    marker: Marker, publisher: HandlerPublisher, github: GitHub
) -> PlanIdentity | None:
    """Reads the identity of the comment's plan from its review's artifact; None if it is gone.

    It only serves to show a difference. It is certainly that plan's, because the plan's id is its
    hash.
    """
    if marker.report_run is None or marker.report_sha256 is None:
        return None
    try:
        archive = github.download_artifact(
            marker.report_run, ARTIFACT, max_bytes=MAX_ARTIFACT_BYTES
        )
        content = read_file_of_github_artifact(
            archive, "report.json", max_bytes=MAX_ARTIFACT_BYTES, alone=False
        )
        if hashlib.sha256(content).hexdigest() != marker.report_sha256:
            raise ValueError("it is another report than the one that the comment names")
        identity = Report.model_validate_json(content).identity
    except (BotError, ValueError, io.UnsupportedOperation, zipfile.BadZipFile) as error:
        publisher.commands.write_debug(
            f"The review's artifact could not be read: {type(error).__name__}"
        )
        return None
    return identity if identity and identity.plan_id() == marker.plan else None
