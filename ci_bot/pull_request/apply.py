"""Somebody asks for the data: the reviewed plan, and no other, is applied to the PR environment."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import replace
from typing import Any

from ci_bot import activity
from ci_bot.activities import apply as applying
from ci_bot.bench import Bench, Listener, owner
from ci_bot.commands import Apply as ApplyCommand
from ci_bot.contracts.apply import ApplyDocument, ApplyResult
from ci_bot.contracts.comment import Marker
from ci_bot.contracts.environment import EnvironmentName
from ci_bot.contracts.identity import PlanIdentity
from ci_bot.contracts.messages import Progress as WorkerProgress
from ci_bot.contracts.report import Report
from ci_bot.decision import Limits, diff_risks
from ci_bot.errors import EXIT_REFUSED, BotError, Cancelled
from ci_bot.github.artifact import read_member
from ci_bot.github.port import GitHub, PullRequest
from ci_bot.local import apply_phase
from ci_bot.pull_request import cleanup as cleaning
from ci_bot.pull_request.asked import read_command
from ci_bot.pull_request.desk import Desk, Facts, Render
from ci_bot.pull_request.failures import failure_of
from ci_bot.pull_request.gate import Request, Unmet, unmet
from ci_bot.pull_request.review import checked_out, flags_of
from ci_bot.rendering import notice
from ci_bot.rendering.context import CommentContext, Override, Progress, Refusal, Rendered
from ci_bot.rendering.outcome import render_apply
from ci_bot.settings import Settings

ARTIFACT = "ci-bot-report"
MAX_ARTIFACT_BYTES = 32 * 1024 * 1024
PROGRESS_SECONDS = 30.0
# What these show is proof that an environment is gone, or a list of what is left of it.
_AFTER_THE_END = ("closed", "cleanup_failed")


def apply(
    asked: activity.Apply, settings: Settings, desk: Desk, bench: Bench, github: GitHub
) -> int:
    """Checks the gate, applies, and shows the evidence; returns the exit code."""
    pull = github.get_pull(asked.number, settle=True)
    marker = desk.before()
    wish = _wish(asked, settings, github)
    request = Request(
        by=wish.by,
        permission=github.permission(wish.by),
        plan_id=wish.plan_id,
        override_reason=wish.override_reason,
        checked_out=checked_out(bench),
    )
    against = unmet(request, pull, marker)
    if against or marker is None:
        return refuse(against, desk, marker)
    if wish.override_reason:
        desk.template = replace(
            desk.template, override=Override(by=wish.by, reason=wish.override_reason)
        )
    document = _apply(asked, settings, desk, bench, github=github, pull=pull, marker=marker)
    if document.result == "cancelled" and document.reason_code != "stop_requested":
        return _record(document, desk)
    closed = _closed_meanwhile(asked.number, desk, github)
    if closed is None:
        return publish(document, desk, marker)
    code = publish(document, desk, None)
    desk.commands.notice(
        f"Pull request #{asked.number} was closed while the apply ran, so "
        f"{desk.template.environment} is removed at once."
    )
    removed = cleaning.remove(
        settings,
        desk,
        bench,
        number=asked.number,
        head_sha=closed.head_sha,
        merged=closed.merged,
    )
    return removed or code


def _closed_meanwhile(number: int, desk: Desk, github: GitHub) -> PullRequest | None:
    """The pull request, if it is closed by now: its own cleanup may have come too early."""
    try:
        pull = github.get_pull(number)
    except Cancelled:
        raise
    except BotError as error:
        desk.warn(
            "Nobody could say whether the pull request is still open. If it was closed while the "
            f"apply ran, the nightly sweep removes {desk.template.environment}",
            error,
        )
        return None
    return None if pull.open else pull


def give_up(error: BotError, desk: Desk) -> int:
    """Reports an apply that ended before the worker was asked; returns the exit code."""
    document = applying.failed_document(
        failure_of(error, "start"), environment=desk.template.environment
    )
    return publish(document, desk, desk.look())


class _Wish:
    """What is asked, and by whom: from the comment where there is one, else from the inputs."""

    def __init__(self, by: str, plan_id: str | None, override_reason: str | None) -> None:
        self.by = by
        self.plan_id = plan_id
        self.override_reason = override_reason


def _wish(asked: activity.Apply, settings: Settings, github: GitHub) -> _Wish:
    """Reads the comment again: what was dispatched may not be what was written (DESIGN 6)."""
    if asked.comment_id is None:
        return _Wish(asked.asked_by, asked.plan_id, settings.inputs.override_reason)
    author, command = read_command(asked.comment_id, asked.number, ApplyCommand, github)
    return _Wish(author, command.plan_id, command.override)


def refuse(against: list[Unmet], desk: Desk, marker: Marker | None) -> int:
    """Says in the comment, the log and the outputs what stands against it. Nothing is touched."""
    first = against[0]
    refusal = Refusal(
        reason_code=first.reason_code,
        message=" ".join(item.message for item in against),
        hint=" ".join(item.hint for item in against),
    )
    desk.annotate([("error", f"{item.message} {item.hint}", None, None) for item in against])
    review = desk.earlier_review()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_apply(None, context, budget, review=review, redact=desk.redactor.redact)

    def show() -> bool:
        if _still_applied(marker):
            return _note(desk, "refused", refusal.message, marker.plan if marker else None)
        return _may_show(marker) and desk.try_post(
            "refused", Facts.of(marker), render, refusal=refusal
        )

    desk.summarise(render, "refused", refusal=refusal)
    desk.conclude(
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
    asked: activity.Apply,
    settings: Settings,
    desk: Desk,
    bench: Bench,
    *,
    github: GitHub,
    pull: PullRequest,
    marker: Marker,
) -> ApplyDocument:
    review = desk.earlier_review()
    started = desk.around.monotonic()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_apply(None, context, budget, review=review, redact=desk.redactor.redact)

    def show(progress: Progress | None) -> None:
        desk.try_post("applying", Facts.of(marker), render, progress=progress)

    begun = not _still_applied(marker)
    if begun:
        show(None)
    last = started

    def on_progress(step: WorkerProgress) -> None:
        nonlocal begun, last
        now = desk.around.monotonic()
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
        show(Progress(done=done, total=total, seconds_left=left, message=step.message))

    def on_cancel() -> None:
        if begun:
            desk.try_post("cancelled", Facts.of(marker), render)

    bench.listen(Listener(on_progress=on_progress, on_log=lambda _line: None, on_cancel=on_cancel))
    prefix = settings.inputs.environment_prefix
    options = applying.ApplyOptions(
        environment=EnvironmentName.of(prefix, asked.number),
        environment_prefix=prefix,
        owner=owner(
            settings.runner.repository,
            number=asked.number,
            head_sha=pull.head_sha,
            run=str(settings.runner.run_id),
        ),
        plan_id=marker.plan,
        reviewed=_reviewed(marker, desk, github),
        window=marker.window,
        flags=flags_of(settings.inputs),
        table_diff=settings.inputs.table_diff,
    )
    try:
        return applying.apply(bench, options)
    except Cancelled:
        raise
    except BotError as error:
        return applying.failed_document(
            failure_of(error, "apply"), environment=options.environment, plan_id=marker.plan
        )


def _reviewed(marker: Marker, desk: Desk, github: GitHub) -> PlanIdentity | None:
    """The reviewed sets, from the review's artifact; None where that is gone.

    They only serve to show a difference. What decides is the plan id.
    """
    if marker.report_run is None or marker.report_sha256 is None:
        return None
    try:
        archive = github.download_artifact(
            marker.report_run, ARTIFACT, max_bytes=MAX_ARTIFACT_BYTES
        )
        content = read_member(archive, "report.json", max_bytes=MAX_ARTIFACT_BYTES, alone=False)
        if hashlib.sha256(content).hexdigest() != marker.report_sha256:
            raise ValueError("it is another report than the one that the comment names")
        return Report.model_validate_json(content).identity
    except (BotError, ValueError, io.UnsupportedOperation, zipfile.BadZipFile) as error:
        desk.commands.debug(f"The review's artifact could not be read: {type(error).__name__}")
        return None


def _record(document: ApplyDocument, desk: Desk) -> int:
    """What may be partial after a cancel: in files, summary and outputs, without asking GitHub.

    The comment was marked while the worker had its last seconds; there is no time for more.
    """
    _keep(document, desk)
    desk.result(
        {"reason-code": document.reason_code or "", "plan-id": document.plan_id or ""},
        _result(document),
    )
    return applying.exit_code(document)


def _keep(document: ApplyDocument, desk: Desk) -> Render:
    """Files, summary and the failure's annotation; gives what renders the document."""
    phase = apply_phase(document.result)
    review = desk.earlier_review()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_apply(document, context, budget, review=review, redact=desk.redactor.redact)

    desk.keep("apply", document, render, phase)
    desk.summarise(render, phase)
    if document.failure is not None:
        desk.fail(document.failure)
    return render


def _result(document: ApplyDocument) -> dict[str, Any]:
    """The output `result`."""
    return {
        "activity": "apply",
        "result": document.result,
        "reason_code": document.reason_code,
        "plan_id": document.plan_id,
        "exit_code": applying.exit_code(document),
    }


def publish(document: ApplyDocument, desk: Desk, marker: Marker | None) -> int:
    """Files, summary and outputs first: a result must not be lost because GitHub is down."""
    if document.reason_code == "plan_changed" and document.difference is None:
        desk.template = replace(desk.template, refusal=_sets_gone(document))
    render = _keep(document, desk)

    def show() -> bool:
        if _still_applied(marker) and document.result == "nothing_to_apply":
            return True
        if _still_applied(marker) and document.result == "refused":
            why = document.failure.message if document.failure else "The apply was refused."
            return _note(desk, "refused", why, document.plan_id)
        phase = apply_phase(document.result)
        return _may_show(marker) and desk.try_post(phase, Facts.of(marker), render)

    desk.annotate(_differences(document, desk.settings))
    posted = desk.conclude(
        {
            "decision": (marker.decision or "") if marker else "",
            "reason-code": document.reason_code or document.result,
            "plan-id": document.plan_id or (marker.plan if marker else None) or "",
        },
        _result(document),
        show,
    )
    if posted and document.result in ("applied", "failed"):
        _tell(desk, document)
    return applying.exit_code(document)


def _differences(
    document: ApplyDocument, settings: Settings
) -> list[tuple[str, str, str | None, int | None]]:
    """Annotations for what the data diff found beyond `diff-tolerance`."""
    limits = Limits(diff_tolerance=settings.inputs.diff_tolerance)
    return [
        ("warning", f"{risk.rule} on {risk.model}: {risk.evidence}", None, None)
        for risk in diff_risks(document.table_diff, limits)
        if risk.severity in ("blocker", "high", "medium")
    ]


def _sets_gone(document: ApplyDocument) -> Refusal:
    """The worker's refusal, and that nobody can say any more in what the plans differ."""
    failure = document.failure
    return Refusal(
        reason_code="plan_changed",
        message=failure.message if failure else "The plan is no longer the reviewed one.",
        hint=failure.hint if failure else None,
        reviewed_sets_gone=True,
    )


def _tell(desk: Desk, document: ApplyDocument) -> None:
    built = f"{len(document.models)} models built" if document.models else "Nothing left to build"
    missing = document.evidence_missing
    summary = (
        f"{built}, {len(document.views)} views resolve."
        + (f" Evidence not collected: {missing}." if missing else "")
        if document.result == "applied"
        else (document.failure.message if document.failure else "The apply failed.")
    )
    _note(desk, document.result, summary, document.plan_id)


def _note(desk: Desk, result: ApplyResult, summary: str, plan_id: str | None) -> bool:
    text = notice.apply_ended(
        result,
        summary,
        replace(desk.template, phase=apply_phase(result)),
        plan_id=plan_id,
        comment_url=desk.comment_url,
        redact=desk.redactor.redact,
    )
    return desk.try_note(text)
