"""A report's document as Markdown, whichever activity wrote it."""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.report.markdown.comments import (
    render_apply_comment,
    render_cleanup_comment,
    render_review_comment,
)
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment import Phase, apply_phase, review_phase
from ci_bot.protocol.review_report import Report

Document = Report | ApplyDocument | CleanupDocument


def render_markdown_text(
    document: Document, context: CommentViewContext, budget: int | None = None
) -> str:
    """The document as Markdown, complete or with at most `budget` bytes.

    Args:
        context: What the comment of this document would be rendered with; its phase is not checked,
        the document has its own.
    """
    context = replace(context, phase=find_comment_phase(document))
    if isinstance(document, Report):
        return render_review_comment(document, context, budget).text
    if isinstance(document, ApplyDocument):
        return render_apply_comment(document, context, budget).text
    return render_cleanup_comment(document, context, budget).text


def find_comment_phase(document: Document) -> Phase:
    """The state of a comment that shows this document."""
    if isinstance(document, Report):
        return review_phase(document)
    if isinstance(document, ApplyDocument):
        return apply_phase(document.result)
    return "closed" if document.result in ("removed", "nothing_to_do") else "cleanup_failed"
