"""What an apply's evidence leads to: the decision with it, its annotations, and a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ci_bot.bot.decision import Limits, diff_risks, judge_applied
from ci_bot.bot.handlers.gate import Unmet
from ci_bot.bot.handlers.publisher import Publisher, Render
from ci_bot.bot.report import (
    ApplyView,
    CommentContext,
    MarkerFacts,
    Refusal,
    Rendered,
    notices,
    render_apply,
    render_review,
    words,
)
from ci_bot.bot.worker_client import apply, failure_of
from ci_bot.errors import EXIT_REFUSED, BotError
from ci_bot.protocol.apply_report import ApplyDocument, ApplyResult
from ci_bot.protocol.comment_marker import Marker, apply_phase, review_phase
from ci_bot.protocol.plan import totals


def judged(document: ApplyDocument, publisher: Publisher) -> ApplyDocument:
    """The document with the decision that its evidence leads to, where there is any; the report
    is written anew with it. What a worker says of a decision is not heard."""
    own = publisher.own_review
    found = judge_applied(own, document, _limits(publisher)) if own else None
    if found is None:
        return document.model_copy(update={"verdict": None})
    after, verdict = found
    publisher.own_review = after

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_review(after, context, budget)

    publisher.keep("report", after, render, review_phase(after))
    return document.model_copy(update={"verdict": verdict})


def decision(document: ApplyDocument, marker: Marker | None) -> str:
    """What is decided now: with the data, else of the plan."""
    if document.verdict is not None:
        return document.verdict.decision
    return (marker.decision or "") if marker else ""


def _limits(publisher: Publisher) -> Limits:
    """How much may differ, by the input or the policy."""
    policy = publisher.own_review.policy if publisher.own_review else None
    given = publisher.settings.inputs.diff_tolerance
    agreed = policy.diff_tolerance if policy else None
    return Limits(
        diff_tolerance=(agreed or 0.0) if given is None else given,
        tolerances=policy.tolerances if policy else {},
    )


def differences(
    document: ApplyDocument, publisher: Publisher
) -> list[tuple[str, str, str | None, int | None]]:
    """Annotations for what the data diff found beyond what the input or the policy tolerates."""
    return [
        ("warning", f"{risk.rule} on {risk.model}: {risk.evidence}", None, None)
        for risk in diff_risks(document.table_diff, _limits(publisher))
        if risk.severity in ("blocker", "high", "medium")
    ]


def said(document: ApplyDocument) -> str:
    """What the data says, what was built, and the decision with it."""
    built, views = totals(document.models), len(document.views)
    data, missing = ApplyView(document).sentence, document.evidence_missing
    sentences = [
        f"{data}." if data and not missing else "",
        f"{words.count(built.tables, 'table')} built, "
        f"{words.count(views, 'view')} {'resolves' if views == 1 else 'resolve'}.",
        f"Evidence not collected: {missing}." if missing else "",
        f"Decision: {words.DECISIONS[document.verdict.decision]}." if document.verdict else "",
    ]
    # A number and its sign stay together in what a notice prints.
    return " ".join(filter(None, sentences)).replace(" %", "%")


# What a run says of an apply at its end: files, summary, outputs, comment and note.


# What these show is proof that an environment is gone, or a list of what is left of it.
_AFTER_THE_END = ("closed", "cleanup_failed")


def report_apply_failure(error: BotError, publisher: Publisher) -> int:
    """Reports an apply that ended before the worker was asked; returns the exit code."""
    document = apply.failed_document(
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
        if still_applied(marker):
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


def still_applied(marker: Marker | None) -> bool:
    """Whether the comment holds the evidence of an apply, which a refusal must not take away."""
    return marker is not None and marker.phase == "applied"


def record(document: ApplyDocument, publisher: Publisher) -> int:
    """What may be partial after a cancel: in files, summary and outputs, without asking GitHub.

    The comment was marked while the worker had its last seconds; there is no time for more.
    """
    _keep(document, publisher)
    publisher.result(
        {"reason-code": document.reason_code or "", "plan-id": document.plan_id or ""},
        _result(document),
    )
    return apply.exit_code(document)


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
        "exit_code": apply.exit_code(document),
    }


def publish(document: ApplyDocument, publisher: Publisher, marker: Marker | None) -> int:
    """Files, summary and outputs first: a result must not be lost because GitHub is down."""
    document = judged(document, publisher)
    if document.reason_code == "plan_changed" and document.difference is None:
        publisher.template = replace(publisher.template, refusal=_sets_gone(document))
    render = _keep(document, publisher)

    def show() -> bool:
        if still_applied(marker) and document.result == "nothing_to_apply":
            return True
        if still_applied(marker) and document.result == "refused":
            why = document.failure.message if document.failure else "The apply was refused."
            return _note(publisher, "refused", why, document.plan_id)
        phase = apply_phase(document.result)
        return _may_show(marker) and publisher.try_post(phase, MarkerFacts.of(marker), render)

    publisher.annotate(differences(document, publisher))
    posted = publisher.conclude(
        {
            "decision": decision(document, marker),
            "reason-code": document.reason_code or document.result,
            "plan-id": document.plan_id or (marker.plan if marker else None) or "",
        },
        _result(document),
        show,
    )
    if posted and document.result in ("applied", "failed"):
        _tell(publisher, document)
    return apply.exit_code(document)


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
        summary = said(document)
    _note(publisher, document.result, summary, document.plan_id)


def _note(publisher: Publisher, result: ApplyResult, summary: str, plan_id: str | None) -> bool:
    text = notices.apply_ended(
        result,
        summary,
        replace(publisher.template, phase=apply_phase(result)),
        plan_id=plan_id,
        comment_url=publisher.comment_url,
    )
    return publisher.try_note(text)
