"""Somebody asks for the data: the reviewed plan, and no other, is applied to the PR environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ci_bot.bot.comment import notice
from ci_bot.bot.comment.context import CommentContext, DisplayProgress, Override, Refusal, Rendered
from ci_bot.bot.comment.marker_facts import MarkerFacts
from ci_bot.bot.comment.outcome import render_apply
from ci_bot.bot.comment.report import render_review
from ci_bot.bot.github.port import GitHub, PullRequest
from ci_bot.bot.pull_request import cleanup as cleaning
from ci_bot.bot.pull_request.evidence import judging as evidence
from ci_bot.bot.pull_request.gate import Requester, Unmet, unmet, unmet_by_review
from ci_bot.bot.pull_request.own_review import (
    commits_of,
    confirmed,
    other_plan,
    review_again,
)
from ci_bot.bot.pull_request.publisher import Publisher, Render
from ci_bot.bot.pull_request.request import read_command
from ci_bot.bot.pull_request.review import checked_out, flags_of
from ci_bot.bot.trigger import job
from ci_bot.bot.trigger.comment_command import ApplyCommand
from ci_bot.bot.trigger.inputs import Settings
from ci_bot.bot.worker_calls import apply as applying
from ci_bot.bot.worker_calls.client import Listener, WorkerClient, owner
from ci_bot.bot.worker_calls.failures import failure_of
from ci_bot.bot.worker_calls.review.changed_files import changed_by
from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.documents.apply import ApplyDocument, ApplyResult
from ci_bot.contracts.documents.comment import Marker, apply_phase, review_phase
from ci_bot.contracts.documents.plan_options import selects_by_git
from ci_bot.contracts.documents.report import Report
from ci_bot.contracts.environment import EnvironmentName
from ci_bot.contracts.messages import Progress as WorkerProgress
from ci_bot.errors import EXIT_REFUSED, BotError

PROGRESS_SECONDS = 30.0
# What these show is proof that an environment is gone, or a list of what is left of it.
_AFTER_THE_END = ("closed", "cleanup_failed")


def apply(
    activity: job.Apply,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    github: GitHub,
) -> int:
    """Checks the gate, reviews, checks again, applies, and shows the evidence; the exit code."""
    pull = github.get_pull(activity.number, settle=True)
    marker = publisher.before()
    by, command = activity.requested_by, activity.command
    if activity.comment_id is not None:
        by, command = read_command(activity.comment_id, activity.number, ApplyCommand, github)
    requester = Requester(
        by=by,
        permission=github.permission(by),
        command=command,
        checked_out=checked_out(client),
    )
    against = unmet(requester, pull, marker)
    if against or marker is None:
        return refuse(against, publisher, marker)
    own = review_again(settings, publisher, client, pull=pull, marker=marker)
    other = other_plan(own, marker, publisher, github)
    if other is not None:
        return publish(other, publisher, marker)
    against = unmet_by_review(requester, own, marker)
    take_over(own, marker, publisher)
    marker = confirmed(marker, own)
    if against:
        return refuse(against, publisher, marker)
    if command.override:
        reason = publisher.redactor.redact(command.override)
        publisher.template = replace(publisher.template, override=Override(by=by, reason=reason))
    document = _apply(activity, settings, publisher, client, pull=pull, own=own, marker=marker)
    if document.result == "cancelled" and document.reason_code != "stop_requested":
        return _record(document, publisher)
    closed = _closed_meanwhile(activity.number, publisher, github)
    if closed is None:
        return publish(document, publisher, marker)
    code = publish(document, publisher, None)
    publisher.commands.notice(
        f"Pull request #{activity.number} was closed while the apply ran, so "
        f"{publisher.template.environment} is removed at once."
    )
    removed = cleaning.remove(
        settings,
        publisher,
        client,
        number=activity.number,
        head_sha=closed.head_sha,
        merged=closed.merged,
    )
    return removed or code


def take_over(own: Report, marker: Marker, publisher: Publisher) -> None:
    """From here on the run shows its own review, in files and comment, and says that it counts."""
    publisher.own_review = own
    publisher.template = replace(publisher.template, judged=own.decision, said=marker.decision)

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_review(own, context, budget)

    publisher.keep("report", own, render, review_phase(own))


def _closed_meanwhile(number: int, publisher: Publisher, github: GitHub) -> PullRequest | None:
    """The pull request, if it is closed by now: its own cleanup may have come too early."""
    try:
        pull = github.get_pull(number)
    except BotError as error:
        publisher.warn(
            "Nobody could say whether the pull request is still open. If it was closed while the "
            f"apply ran, the nightly sweep removes {publisher.template.environment}",
            error,
        )
        return None
    return None if pull.open else pull


def give_up(error: BotError, publisher: Publisher) -> int:
    """Reports an apply that ended before the worker was asked; returns the exit code."""
    document = applying.failed_document(
        failure_of(error, "start", publisher.redactor), environment=publisher.template.environment
    )
    return publish(document, publisher, publisher.look())


def refuse(against: list[Unmet], publisher: Publisher, marker: Marker | None) -> int:
    """Says in the comment, the log and the outputs what stands against it. Nothing is touched."""
    first = against[0]
    refusal = Refusal(
        reason_code=first.reason_code,
        message=publisher.redactor.redact(" ".join(item.message for item in against)),
        hint=publisher.redactor.redact(" ".join(item.hint for item in against)),
    )
    publisher.annotate([("error", f"{item.message} {item.hint}", None, None) for item in against])
    review = publisher.review_below()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_apply(None, context, budget, review=review)

    def show() -> bool:
        if _still_applied(marker):
            return _note(publisher, "refused", refusal.message, marker.plan if marker else None)
        return _may_show(marker) and publisher.try_post(
            "refused", MarkerFacts.of(marker), render, refusal=refusal
        )

    publisher.summarise(render, "refused", refusal=refusal)
    publisher.conclude(
        {"reason-code": first.reason_code, "plan-id": (marker.plan or "") if marker else ""},
        {
            "activity": "apply",
            "result": "refused",
            "reason_code": first.reason_code,
            "unmet": [item.reason_code for item in against],
            "exit_code": EXIT_REFUSED,
        },
        show,
    )
    return EXIT_REFUSED


def _may_show(marker: Marker | None) -> bool:
    """Whether the comment is there and about a plan, so that it may show what became of that."""
    return marker is not None and marker.phase not in _AFTER_THE_END


def _still_applied(marker: Marker | None) -> bool:
    """Whether the comment holds the evidence of an apply, which a refusal must not take away."""
    return marker is not None and marker.phase == "applied"


def _apply(
    activity: job.Apply,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    *,
    pull: PullRequest,
    own: Report,
    marker: Marker,
) -> ApplyDocument:
    review = publisher.review_below()
    started = publisher.machine.monotonic()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_apply(None, context, budget, review=review)

    def show(progress: DisplayProgress | None) -> None:
        publisher.try_post("applying", MarkerFacts.of(marker), render, progress=progress)

    begun = not _still_applied(marker)
    if begun:
        show(None)
    last = started

    def on_progress(step: WorkerProgress) -> None:
        nonlocal begun, last
        now = publisher.machine.monotonic()
        if step.phase == "apply" and not begun:
            # The worker has compared and holds the lease: from here on the old evidence is void.
            begun = True
            last = now
            show(None)
            return
        if step.phase != "apply" or not step.total or now - last < PROGRESS_SECONDS:
            return
        last = now
        done, total = step.done or 0, step.total
        left = (now - started) / done * (total - done) if done else None
        show(DisplayProgress(done=done, total=total, seconds_left=left, message=step.message))

    def on_cancel() -> None:
        if begun:
            publisher.try_post("cancelled", MarkerFacts.of(marker), render)

    client.listen(Listener(on_progress=on_progress, on_log=lambda _line: None, on_cancel=on_cancel))
    prefix = settings.prefix
    environment = EnvironmentName.of(prefix, activity.number)
    flags = flags_of(settings.inputs)
    try:
        commits = commits_of(pull, client)
        changed = changed_by(client.git, commits) if selects_by_git(flags) else None
        return applying.apply(
            client,
            environment=environment,
            environment_prefix=prefix,
            owner=owner(
                settings.runner.repository,
                number=activity.number,
                head_sha=pull.head_sha,
                run=str(settings.runner.run_id),
            ),
            plan_id=marker.plan,
            reviewed=own.identity,
            window=marker.window,
            flags=flags,
            head_branch=commits.head_branch,
            base_names=commits.base_names(),
            changed_files=changed.paths if changed is not None else None,
            table_diff=settings.inputs.table_diff,
            executor_hour_price=_price(settings, own),
            max_executor_hours=_budget(settings, own, overridden=publisher.template.override),
        )
    except BotError as error:
        failure = failure_of(error, "apply", publisher.redactor)
        return applying.failed_document(failure, environment=environment, plan_id=marker.plan)


def _price(settings: Settings, own: Report) -> Price | None:
    """What an executor-hour costs: by the input, else by the policy that the review found."""
    agreed = own.policy.executor_hour_price if own.policy else None
    return settings.inputs.executor_hour_price or agreed


def _budget(settings: Settings, own: Report, *, overridden: Override | None) -> float | None:
    """The most executor-hours that may be built without a word: what makes a plan No-Go, unless a
    maintainer goes ahead in spite of it."""
    policy, given = own.policy, settings.inputs.max_executor_hours
    if overridden is not None or (policy is not None and not policy.budget_blocks):
        return None
    agreed = policy.max_executor_hours if policy else None
    return agreed if given is None else given


def _record(document: ApplyDocument, publisher: Publisher) -> int:
    """What may be partial after a cancel: in files, summary and outputs, without asking GitHub.

    The comment was marked while the worker had its last seconds; there is no time for more.
    """
    _keep(document, publisher)
    publisher.result(
        {"reason-code": document.reason_code or "", "plan-id": document.plan_id or ""},
        _result(document),
    )
    return applying.exit_code(document)


def _keep(document: ApplyDocument, publisher: Publisher) -> Render:
    """Files, summary and the failure's annotation; gives what renders the document."""
    phase = apply_phase(document.result)
    review = publisher.review_below()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_apply(document, context, budget, review=review)

    publisher.keep("apply", document, render, phase)
    publisher.summarise(render, phase)
    if document.failure is not None:
        publisher.fail(document.failure)
    return render


def _result(document: ApplyDocument) -> dict[str, Any]:
    """The output `result`."""
    return {
        "activity": "apply",
        "result": document.result,
        "reason_code": document.reason_code,
        "plan_id": document.plan_id,
        "decision": document.verdict.decision if document.verdict else None,
        "exit_code": applying.exit_code(document),
    }


def publish(document: ApplyDocument, publisher: Publisher, marker: Marker | None) -> int:
    """Files, summary and outputs first: a result must not be lost because GitHub is down."""
    document = evidence.judged(document, publisher)
    if document.reason_code == "plan_changed" and document.difference is None:
        publisher.template = replace(publisher.template, refusal=_sets_gone(document))
    render = _keep(document, publisher)

    def show() -> bool:
        if _still_applied(marker) and document.result == "nothing_to_apply":
            return True
        if _still_applied(marker) and document.result == "refused":
            why = document.failure.message if document.failure else "The apply was refused."
            return _note(publisher, "refused", why, document.plan_id)
        phase = apply_phase(document.result)
        return _may_show(marker) and publisher.try_post(phase, MarkerFacts.of(marker), render)

    publisher.annotate(evidence.differences(document, publisher))
    posted = publisher.conclude(
        {
            "decision": evidence.decision(document, marker),
            "reason-code": document.reason_code or document.result,
            "plan-id": document.plan_id or (marker.plan if marker else None) or "",
        },
        _result(document),
        show,
    )
    if posted and document.result in ("applied", "failed"):
        _tell(publisher, document)
    return applying.exit_code(document)


def _sets_gone(document: ApplyDocument) -> Refusal:
    """The worker's refusal, and that nobody can say any more in what the plans differ."""
    failure = document.failure
    return Refusal(
        reason_code="plan_changed",
        message=failure.message if failure else "The plan is no longer the reviewed one.",
        hint=failure.hint if failure else None,
        reviewed_sets_gone=True,
    )


def _tell(publisher: Publisher, document: ApplyDocument) -> None:
    failure = document.failure
    summary = failure.message if failure else "The apply failed."
    if document.result == "applied":
        summary = evidence.said(document)
    _note(publisher, document.result, summary, document.plan_id)


def _note(publisher: Publisher, result: ApplyResult, summary: str, plan_id: str | None) -> bool:
    text = notice.apply_ended(
        result,
        summary,
        replace(publisher.template, phase=apply_phase(result)),
        plan_id=plan_id,
        comment_url=publisher.comment_url,
    )
    return publisher.try_note(text)
