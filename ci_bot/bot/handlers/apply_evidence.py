"""What follows from an apply's evidence: the new decision, its annotations, and a sentence."""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.decision import TeamLimits, decide_again_after_apply, judge_risks_of_data_diffs
from ci_bot.bot.handlers.gate import UnmetApplyCondition
from ci_bot.bot.handlers.publisher import HandlerPublisher, Render
from ci_bot.bot.report import (
    ApplyEnd,
    ApplyRefusalView,
    ApplyView,
    CommentMarkerFacts,
    CommentViewContext,
    RenderedText,
    notices,
    render_apply_comment,
    render_review_comment,
    words,
)
from ci_bot.bot.worker_client import apply, make_activity_failure_of_worker
from ci_bot.errors import EXIT_REFUSED, BotError
from ci_bot.protocol.apply_report import ApplyDocument, ApplyResult
from ci_bot.protocol.base import PlanId
from ci_bot.protocol.comment import Marker, choose_apply_phase, choose_review_phase
from ci_bot.protocol.plan import sum_planned_work


def judge_evidence_of_apply_run(
    document: ApplyDocument, publisher: HandlerPublisher
) -> ApplyDocument:
    """Returns the document with the decision on its evidence, if there is evidence.

    It writes the report again with this decision. A decision of the worker itself does not count.
    """
    own = publisher.own_review
    found = decide_again_after_apply(own, document, _get_tolerances(publisher)) if own else None
    if found is None:
        return document.model_copy(update={"verdict": None})
    after, verdict = found
    publisher.own_review = after

    def render_comment(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_review_comment(after, context, budget)

    publisher.keep_report_files("report", after, render_comment, choose_review_phase(after))
    return document.model_copy(update={"verdict": verdict})


def get_decision_after_apply_run(document: ApplyDocument, marker: Marker | None) -> str:
    """Returns the current decision: the one with the data, else the plan's; "" if there is none."""
    if document.verdict is not None:
        return document.verdict.decision
    return (marker.decision or "") if marker else ""


def _get_tolerances(publisher: HandlerPublisher) -> TeamLimits:
    """Returns how much may differ, by the input or the policy."""
    policy = publisher.own_review.policy if publisher.own_review else None
    given = publisher.settings.inputs.diff_tolerance
    agreed = policy.diff_tolerance if policy else None
    return TeamLimits(
        diff_tolerance=(agreed or 0.0) if given is None else given,
        tolerances=policy.tolerances if policy else {},
    )


def list_annotations_of_differences(
    document: ApplyDocument, publisher: HandlerPublisher
) -> list[tuple[str, str, str | None, int | None]]:
    """Makes annotations for differences in the data above what the input or the policy allows."""
    return [
        ("warning", f"{risk.rule} on {risk.model}: {risk.evidence}", None, None)
        for risk in judge_risks_of_data_diffs(document.table_diff, _get_tolerances(publisher))
        if risk.severity in ("blocker", "high", "medium")
    ]


def summarize_evidence(document: ApplyDocument) -> str:
    """Says what the data shows, what was built, and the decision with it."""
    built, views = sum_planned_work(document.models), len(document.views)
    data, missing = ApplyView(document).sentence, document.evidence_missing
    sentences = [
        f"{data}." if data and not missing else "",
        f"{words.format_count(built.tables, 'table')} built, "
        f"{words.format_count(views, 'view')} {'resolves' if views == 1 else 'resolve'}.",
        f"Evidence not collected: {missing}." if missing else "",
        f"Decision: {words.DECISIONS[document.verdict.decision]}." if document.verdict else "",
    ]
    # In a notice, a number and its percent sign stay together.
    return " ".join(filter(None, sentences)).replace(" %", "%")


# What a run reports about an apply at its end: files, summary, outputs, comment and note.


# In these phases the comment proves that an environment is gone, or lists what is left of it.
_AFTER_THE_END = ("closed", "cleanup_failed")


def report_apply_failure(error: BotError, publisher: HandlerPublisher) -> int:
    """Reports an apply that ended before the worker was asked; returns the exit code."""
    document = apply.make_failed_apply_document(
        make_activity_failure_of_worker(error, "start", publisher.redactor),
        environment=publisher.environment,
    )
    return publish_apply(document, publisher, publisher.try_read_marker())


def publish_refused_apply(
    against: list[UnmetApplyCondition], publisher: HandlerPublisher, marker: Marker | None
) -> int:
    """Reports the unmet conditions in the comment, the log and the outputs; changes nothing else.

    Returns the exit code.
    """
    first = against[0]
    refusal = ApplyRefusalView(
        reason_code=first.reason_code,
        message=publisher.redactor.redact(" ".join(item.message for item in against)),
        hint=publisher.redactor.redact(" ".join(item.hint for item in against)),
    )
    publisher.annotate_findings(
        [("error", f"{item.message} {item.hint}", None, None) for item in against]
    )
    review = publisher.get_review_below()

    def render_refusal(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_apply_comment(None, context, budget, review=review)

    def post_refusal() -> bool:
        if does_comment_hold_apply_evidence(marker):
            return _post_note_on_apply(
                publisher, "refused", refusal.message, marker.plan if marker else None
            )
        return _may_show_in_comment(marker) and publisher.try_post(
            "refused", CommentMarkerFacts.from_marker(marker), render_refusal, refusal=refusal
        )

    publisher.write_summary(render_refusal, "refused", refusal=refusal)
    publisher.set_outputs_and_post(
        {"reason-code": first.reason_code, "plan-id": (marker.plan or "") if marker else ""},
        {
            "activity": "apply",
            "result": "refused",
            "reason_code": first.reason_code,
            "unmet": [item.reason_code for item in against],
            "exit_code": EXIT_REFUSED,
        },
        post_refusal,
    )
    return EXIT_REFUSED


def _may_show_in_comment(marker: Marker | None) -> bool:
    """Whether the comment exists and is about a plan, so that it may show the plan's result."""
    return marker is not None and marker.phase not in _AFTER_THE_END


def does_comment_hold_apply_evidence(marker: Marker | None) -> bool:
    """Whether the comment holds the evidence of an apply, which a refusal must not remove."""
    return marker is not None and marker.phase == "applied"


def publish_partial_apply(document: ApplyDocument, publisher: HandlerPublisher) -> int:
    """Reports what may be half built after a cancel: files, summary and outputs, but not GitHub.

    The comment was updated during the worker's last seconds; there is no time for more.
    """
    _publish_apply_files(document, publisher)
    publisher.set_outputs(
        {"reason-code": document.reason_code or "", "plan-id": document.plan_id or ""},
        _build_result_output(document),
    )
    return apply.choose_exit_code_of_worker_apply(document)


def _publish_apply_files(document: ApplyDocument, publisher: HandlerPublisher) -> Render:
    """Writes files, summary and the failure's annotation; returns what renders the document."""
    phase = choose_apply_phase(document.result)
    review = publisher.get_review_below()

    def render_comment(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_apply_comment(document, context, budget, review=review)

    publisher.keep_report_files("apply", document, render_comment, phase)
    publisher.write_summary(render_comment, phase)
    if document.failure is not None:
        publisher.annotate_failure(document.failure)
    return render_comment


def _build_result_output(document: ApplyDocument) -> dict[str, object]:
    """Returns the output `result`."""
    return {
        "activity": "apply",
        "result": document.result,
        "reason_code": document.reason_code,
        "plan_id": document.plan_id,
        "decision": document.verdict.decision if document.verdict else None,
        "exit_code": apply.choose_exit_code_of_worker_apply(document),
    }


def publish_apply(
    document: ApplyDocument, publisher: HandlerPublisher, marker: Marker | None
) -> int:
    """Writes files, summary and outputs, then the comment; returns the exit code.

    The comment is last, because a result must not be lost if GitHub does not answer.
    """
    document = judge_evidence_of_apply_run(document, publisher)
    if document.reason_code == "plan_changed" and document.difference is None:
        publisher.template = replace(
            publisher.template, refusal=_refuse_apply_without_reviewed_sets(document)
        )
    render = _publish_apply_files(document, publisher)

    def post_result() -> bool:
        if does_comment_hold_apply_evidence(marker) and document.result == "nothing_to_apply":
            return True
        if does_comment_hold_apply_evidence(marker) and document.result == "refused":
            why = document.failure.message if document.failure else "The apply was refused."
            return _post_note_on_apply(publisher, "refused", why, document.plan_id)
        phase = choose_apply_phase(document.result)
        return _may_show_in_comment(marker) and publisher.try_post(
            phase, CommentMarkerFacts.from_marker(marker), render
        )

    publisher.annotate_findings(list_annotations_of_differences(document, publisher))
    posted = publisher.set_outputs_and_post(
        {
            "decision": get_decision_after_apply_run(document, marker),
            "reason-code": document.reason_code or document.result,
            "plan-id": document.plan_id or (marker.plan if marker else None) or "",
        },
        _build_result_output(document),
        post_result,
    )
    if publisher.own_review is not None and document.result in ("applied", "failed"):
        end = ApplyEnd(_describe_apply_result(document), failed=document.result == "failed")
        publisher.write_check(publisher.own_review, end)
    if posted and document.result in ("applied", "failed"):
        _notify_of_apply(publisher, document)
    return apply.choose_exit_code_of_worker_apply(document)


def _refuse_apply_without_reviewed_sets(document: ApplyDocument) -> ApplyRefusalView:
    """Returns the worker's refusal, noting that nobody can say any more how the plans differ."""
    failure = document.failure
    return ApplyRefusalView(
        reason_code="plan_changed",
        message=failure.message if failure else "The plan is no longer the reviewed one.",
        hint=failure.hint if failure else None,
        reviewed_sets_gone=True,
    )


def _notify_of_apply(publisher: HandlerPublisher, document: ApplyDocument) -> None:
    _post_note_on_apply(
        publisher, document.result, _describe_apply_result(document), document.plan_id
    )


def _describe_apply_result(document: ApplyDocument) -> str:
    """Describes the end of an apply in sentences."""
    if document.result == "applied":
        return summarize_evidence(document)
    return document.failure.message if document.failure else "The apply failed."


def _post_note_on_apply(
    publisher: HandlerPublisher, result: ApplyResult, summary: str, plan_id: PlanId | None
) -> bool:
    text = notices.render_apply_ended_notice(
        result,
        summary,
        replace(publisher.template, phase=choose_apply_phase(result)),
        plan_id=plan_id,
        comment_url=publisher.comment_url,
    )
    return publisher.try_news(text)
