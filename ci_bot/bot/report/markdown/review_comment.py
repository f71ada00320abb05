"""The review's comment, in every state in which a review stands alone."""

from __future__ import annotations

from dataclasses import dataclass

from ci_bot.bot.report.markdown.blocks import lift_review
from ci_bot.bot.report.markdown.budget import (
    COMMENT_BYTES,
    SectionShare,
    compose_text,
    full_report,
    make_base_values,
)
from ci_bot.bot.report.markdown.sections import OlderReviewSection, make_review_shares
from ci_bot.bot.report.model.context import CommentContext, RenderedText
from ci_bot.bot.report.model.view import ReviewView
from ci_bot.protocol.base import Sha
from ci_bot.protocol.comment_marker import Marker
from ci_bot.protocol.plan import Decision
from ci_bot.protocol.review_report import Report


@dataclass(frozen=True, kw_only=True)
class CarriedReview:
    """An earlier review that exists only as the text of our own comment."""

    text: str
    head: Sha | None = None
    plan: str | None = None
    decision: Decision | None = None

    @classmethod
    def from_body(cls, body: str, marker: Marker | None) -> CarriedReview | None:
        """The review in `body`, a comment that is known to be ours; None if it holds none.

        Never call it with somebody else's comment: the text goes into the next one as it is.
        """
        text = lift_review(body)
        if not text or marker is None:
            return cls(text=text) if text else None
        return cls(text=text, head=marker.head, plan=marker.plan, decision=marker.decision)


ReviewSource = Report | CarriedReview | None

_REVIEW_PHASES = ("planned", "no_changes", "plan_failed")
_OLDER_BYTES = 6_000


def render_review(
    report: Report,
    context: CommentContext,
    budget_bytes: int | None = COMMENT_BYTES,
    *,
    last_good: CarriedReview | None = None,
) -> RenderedText:
    """The review as Markdown; `context.phase` says in which state.

    Args:
        report: What the review found, without secrets. With `failure` set, phase `plan_failed`
            shows it.
        budget_bytes: The most UTF-8 bytes; None for the complete text of the artifact.
        last_good: The last plan that worked, shown collapsed under a failed one.

    Raises:
        ValueError: `context.phase` is not a state of a review.
    """
    if context.phase not in _REVIEW_PHASES:
        raise ValueError(f"a review has no phase {context.phase!r}")
    values, shares = review_parts(report, context, budget_bytes)
    if last_good:
        values["carried"] = last_good
    shares.insert(0, _make_older_share(last_good, context))
    return compose_text(f"{context.phase}.md.j2", values, shares, context, budget_bytes)


def render_planning(
    context: CommentContext,
    budget_bytes: int | None = COMMENT_BYTES,
    *,
    review: ReviewSource = None,
) -> RenderedText:
    """The comment while a plan is being made, with the earlier review collapsed below."""
    values, shares = make_earlier_parts(review, context, budget_bytes)
    return compose_text("planning.md.j2", values, shares, context, budget_bytes)


def review_parts(
    report: Report, context: CommentContext, budget: int | None
) -> tuple[dict[str, object], list[SectionShare]]:
    """Values and sections of a report."""
    view = ReviewView(report, context, complete=budget is None)
    values = make_base_values(context, report.head_sha) | {
        "v": view,
        "earlier_head": report.head_sha,
    }
    return values, make_review_shares(view, complete=budget is None)


def make_earlier_parts(
    review: ReviewSource, context: CommentContext, budget: int | None
) -> tuple[dict[str, object], list[SectionShare]]:
    """Values and sections of an earlier review, as a report or as the text of our own comment."""
    if isinstance(review, Report):
        return review_parts(review, context, budget)
    values = make_base_values(context)
    if review:
        values |= {"carried": review, "earlier_head": review.head}
    return values, [_make_older_share(review, context)]


def _make_older_share(carried: CarriedReview | None, context: CommentContext) -> SectionShare:
    text = carried.text if carried else ""
    return SectionShare(OlderReviewSection("review", text, full_report(context)), _OLDER_BYTES)
