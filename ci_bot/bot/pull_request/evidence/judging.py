"""What an apply's evidence leads to: the decision with it, its annotations, and a sentence."""

from __future__ import annotations

from ci_bot.bot.comment.context import CommentContext, Rendered
from ci_bot.bot.comment.evidence.apply_view import ApplyView
from ci_bot.bot.comment.report import render_review
from ci_bot.bot.comment.text import words
from ci_bot.bot.decision import Limits, diff_risks, judge_applied
from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.contracts.documents.comment import Marker, review_phase
from ci_bot.contracts.documents.work import totals


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
