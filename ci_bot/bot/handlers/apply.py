"""Somebody asks for the data: the reviewed plan, and no other, is applied to the PR environment.

Or somebody asks for its cost by a probe, which builds a part of that plan. Every condition of an
apply is also a condition of a probe. A probe has an answer of its own, and leaves the comment as it
is.
"""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.actions import ActionSettings, ApplyCommand, activities
from ci_bot.bot.github import GitHub, PullRequest
from ci_bot.bot.handlers import apply_evidence, cleanup, estimate
from ci_bot.bot.handlers.gate import (
    ApplyRequester,
    UnmetApplyCondition,
    list_gate_conditions_of_review,
    list_unmet_conditions_of_apply_gate,
)
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.own_review import (
    confirm_comment_marker_by_own_review,
    find_merge_commits,
    find_why_own_review_has_other_plan,
    review_again_in_apply_run,
)
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import (
    find_checked_out_commit,
    make_owner_of_run,
    read_command_for_handler,
)
from ci_bot.bot.handlers.review import read_plan_flags
from ci_bot.bot.report import (
    CommentMarkerFacts,
    CommentViewContext,
    DecisionOverrideView,
    ProgressView,
    RenderedText,
    render_apply_comment,
    render_review_comment,
)
from ci_bot.bot.worker_client import (
    WorkerClient,
    WorkListener,
    list_changes_of_pull_for_request,
    make_activity_failure_of_worker,
)
from ci_bot.bot.worker_client import apply as applying
from ci_bot.errors import BotError
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.comment import Marker, choose_review_phase
from ci_bot.protocol.cost import Price
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import Progress as WorkerProgress
from ci_bot.protocol.plan_identity import selects_by_git
from ci_bot.protocol.review_report import Report

PROGRESS_SECONDS = 30.0


class ApplyHandler(Handler[activities.Apply]):
    """Builds the environment of a pull request, or a probe of it."""

    def run(self, activity: activities.Apply, context: HandlerContext) -> int:
        """Applies or probes the reviewed plan, shows the result, and returns the exit code.

        Before, it checks the gate, reviews, and checks again.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.github
        pull = github.get_pull(activity.number, settle=True)
        marker = publisher.read_marker()
        by, command = activity.requested_by, activity.command
        if activity.comment_id is not None:
            by, command = read_command_for_handler(
                activity.comment_id, activity.number, ApplyCommand, github
            )
        requester = ApplyRequester(
            by=by,
            permission=github.get_permission(by),
            command=command,
            checked_out=find_checked_out_commit(client),
        )
        against = list_unmet_conditions_of_apply_gate(requester, pull, marker)
        if against or marker is None:
            return _refuse_apply(against, command, publisher, marker)
        own = review_again_in_apply_run(
            settings, publisher, client, pull=pull, marker=marker, github=github
        )
        other = find_why_own_review_has_other_plan(own, marker, publisher, github)
        if other is not None:
            return _publish_outcome(other, command, publisher, marker)
        against = list_gate_conditions_of_review(requester, own, marker)
        if not command.probe:
            show_own_review_in_run(own, marker, publisher)
        marker = confirm_comment_marker_by_own_review(marker, own)
        if against:
            return _refuse_apply(against, command, publisher, marker)
        if command.override:
            reason = publisher.redactor.redact(command.override)
            publisher.template = replace(
                publisher.template, override=DecisionOverrideView(by=by, reason=reason)
            )
        wanted = _build_request(settings, publisher, client, pull=pull, own=own, marker=marker)
        document = (
            _request_apply(client, {**wanted, "probe": True}, publisher)
            if command.probe
            else _apply_and_post_progress(wanted, publisher, client, marker)
        )
        if _is_run_being_killed(document):
            return _publish_outcome(
                document, command, publisher, None, wanted["max_executor_hours"]
            )
        closed = _find_pull_closed_while_applying(activity.number, publisher, github)
        shown = marker if closed is None else None
        code = _publish_outcome(document, command, publisher, shown, wanted["max_executor_hours"])
        return (
            code
            if closed is None
            else _remove_environment_of_closed_pull(closed, settings, publisher, client) or code
        )

    def report_failure(
        self, error: BotError, activity: activities.Apply, context: HandlerContext
    ) -> int:
        if activity.command.probe:
            return estimate.report_estimate_failure(error, "probe", context.publisher)
        return apply_evidence.report_apply_failure(error, context.publisher)


def _publish_outcome(
    document: ApplyDocument,
    command: ApplyCommand,
    publisher: HandlerPublisher,
    marker: Marker | None,
    limit: float | None = None,
) -> int:
    """Publishes the result where it has to be reported; returns the exit code."""
    if command.probe:
        return estimate.publish_estimate(document, publisher, limit)
    if _is_run_being_killed(document):
        return apply_evidence.publish_partial_apply(document, publisher)
    return apply_evidence.publish_apply(document, publisher, marker)


def _is_run_being_killed(document: ApplyDocument) -> bool:
    """Whether the run is being cancelled: only seconds are left, and the outputs need them."""
    return document.result == "cancelled" and document.reason_code != "stop_requested"


def _refuse_apply(
    against: list[UnmetApplyCondition],
    command: ApplyCommand,
    publisher: HandlerPublisher,
    marker: Marker | None,
) -> int:
    if command.probe:
        return estimate.refuse_estimate_in_comment(against, publisher)
    return apply_evidence.publish_refused_apply(against, publisher, marker)


def _remove_environment_of_closed_pull(
    closed: PullRequest, settings: ActionSettings, publisher: HandlerPublisher, client: WorkerClient
) -> int:
    """Removes at once the environment of a pull request that was closed during the apply.

    Returns the exit code of the cleanup.
    """
    publisher.commands.annotate_notice(
        f"Pull request #{closed.number} was closed while the apply ran, so "
        f"{publisher.environment} is removed at once."
    )
    return cleanup.handle_removal_of_environment(
        settings,
        publisher,
        client,
        number=closed.number,
        head_sha=closed.head_sha,
        merged=closed.merged,
    )


def show_own_review_in_run(own: Report, marker: Marker, publisher: HandlerPublisher) -> None:
    """Shows, from here on, this run's own review in files and comment, and says that it counts."""
    publisher.own_review = own
    publisher.template = replace(publisher.template, judged=own.decision, said=marker.decision)

    def render_own_review(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_review_comment(own, context, budget)

    publisher.keep_report_files("report", own, render_own_review, choose_review_phase(own))


def _find_pull_closed_while_applying(
    number: int, publisher: HandlerPublisher, github: GitHub
) -> PullRequest | None:
    """Returns the pull request if it is closed by now, because its cleanup may have run too early.

    None if it is open, or if GitHub does not answer.
    """
    try:
        pull = github.get_pull(number)
    except BotError as error:
        publisher.annotate_problem(
            "Nobody could say whether the pull request is still open. If it was closed while the "
            f"apply ran, the nightly sweep removes {publisher.environment}",
            error,
        )
        return None
    return None if pull.open else pull


def _apply_and_post_progress(
    wanted: applying.WantedWorkerApply,
    publisher: HandlerPublisher,
    client: WorkerClient,
    marker: Marker,
) -> ApplyDocument:
    """Applies, and meanwhile shows the progress in the comment."""
    review = publisher.get_review_below()
    started = publisher.machine.monotonic()

    def render_applying(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_apply_comment(None, context, budget, review=review)

    def show_progress(progress: ProgressView | None) -> None:
        with publisher.leave_out_if_refused("The comment does not say how far the apply is"):
            publisher.post_comment(
                "applying",
                CommentMarkerFacts.from_marker(marker),
                render_applying,
                progress=progress,
            )

    begun = not apply_evidence.does_comment_hold_apply_evidence(marker)
    if begun:
        show_progress(None)
    last = started

    def on_progress(step: WorkerProgress) -> None:
        nonlocal begun, last
        now = publisher.machine.monotonic()
        if step.phase == "apply" and not begun:
            # The worker has compared the plans and holds the lease: from here on the old evidence
            # is invalid.
            begun = True
            last = now
            show_progress(None)
            return
        if step.phase != "apply" or not step.total or now - last < PROGRESS_SECONDS:
            return
        last = now
        done, total = step.done or 0, step.total
        left = (now - started) / done * (total - done) if done else None
        show_progress(ProgressView(done=done, total=total, seconds_left=left, message=step.message))

    def on_cancel() -> None:
        if begun:
            publisher.try_post("cancelled", CommentMarkerFacts.from_marker(marker), render_applying)

    client.add_listener(
        WorkListener(on_progress=on_progress, on_log=lambda _line: None, on_cancel=on_cancel)
    )
    return _request_apply(client, wanted, publisher)


def _build_request(
    settings: ActionSettings,
    publisher: HandlerPublisher,
    client: WorkerClient,
    *,
    pull: PullRequest,
    own: Report,
    marker: Marker,
) -> applying.WantedWorkerApply:
    """Makes the fields of the request: what was reviewed, and for which pull request."""
    flags = read_plan_flags(settings.inputs)
    commits = find_merge_commits(pull, client)
    changed = (
        list_changes_of_pull_for_request(client.git, commits) if selects_by_git(flags) else None
    )
    return {
        "environment": EnvironmentName.for_pull_request(settings.prefix, pull.number),
        "environment_prefix": settings.prefix,
        "owner": make_owner_of_run(settings, pull.number, pull.head_sha),
        "plan_id": marker.plan,
        "reviewed": own.identity,
        "window": marker.window,
        "flags": flags,
        "head_branch": commits.head_branch,
        "base_names": commits.base_names(),
        "changed_files": changed.paths if changed is not None else None,
        "table_diff": settings.inputs.table_diff,
        "executor_hour_price": _get_price(settings, own),
        "max_executor_hours": _get_budget(settings, own, overridden=publisher.template.override),
    }


def _request_apply(
    client: WorkerClient, wanted: applying.WantedWorkerApply, publisher: HandlerPublisher
) -> ApplyDocument:
    try:
        return applying.request_apply_from_worker(client, **wanted)
    except BotError as error:
        failure = make_activity_failure_of_worker(error, "apply", publisher.redactor)
        return applying.make_failed_apply_document(
            failure, environment=wanted["environment"], plan_id=wanted["plan_id"]
        )


def _get_price(settings: ActionSettings, own: Report) -> Price | None:
    """Returns the price of an executor-hour: the input's, else that of the policy in the review."""
    agreed = own.policy.executor_hour_price if own.policy else None
    return settings.inputs.executor_hour_price or agreed


def _get_budget(
    settings: ActionSettings, own: Report, *, overridden: DecisionOverrideView | None
) -> float | None:
    """Returns the most executor-hours that may be built; None if there is no limit.

    More than that makes a plan No-Go, and is built only if a maintainer overrides it.
    """
    policy, given = own.policy, settings.inputs.max_executor_hours
    if overridden is not None or (policy is not None and not policy.budget_blocks):
        return None
    agreed = policy.max_executor_hours if policy else None
    return agreed if given is None else given
