"""A report, an apply or a cleanup for people: Markdown, a page, the same words at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ci_bot.bot.actions import make_variable_name
from ci_bot.bot.report.markdown.outcome_comment import render_apply, render_cleanup
from ci_bot.bot.report.markdown.review_comment import render_review
from ci_bot.bot.report.model.context import CommentContext
from ci_bot.bot.report.text.page import WIDTH
from ci_bot.bot.report.text.plain_markdown import render_plain
from ci_bot.bot.sandbox import make_redactor
from ci_bot.errors import BotError, RunCancelled
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment_marker import Phase, apply_phase, review_phase
from ci_bot.protocol.review_report import Report

Document = Report | ApplyDocument | CleanupDocument


def render_markdown_text(
    document: Document, context: CommentContext, budget: int | None = None
) -> str:
    """The document as Markdown, complete or with at most `budget` bytes.

    Args:
        context: What the comment of this document would be rendered with; its phase is not checked,
        the document has its own.
    """
    context = replace(context, phase=find_comment_phase(document))
    if isinstance(document, Report):
        return render_review(document, context, budget).text
    if isinstance(document, ApplyDocument):
        return render_apply(document, context, budget).text
    return render_cleanup(document, context, budget).text


def render_terminal_text(
    document: Document, context: CommentContext, *, colour: bool = False, width: int = WIDTH
) -> str:
    """The document as plain text, complete, ending in a newline."""
    return render_plain(render_markdown_text(document, context), colour=colour, width=width)


def find_comment_phase(document: Document) -> Phase:
    """The state of a comment that shows this document."""
    if isinstance(document, Report):
        return review_phase(document)
    if isinstance(document, ApplyDocument):
        return apply_phase(document.result)
    return "closed" if document.result in ("removed", "nothing_to_do") else "cleanup_failed"


# A failure on a terminal: what is wrong, how to mend it, and no secret in it.


def describe_error(error: BotError | RunCancelled, environ: Mapping[str, str]) -> str:
    """The sentence and the fix, each a line."""
    where = ""
    if error.path and error.path not in error.message:
        where = f"{error.path}{f', line {error.line}' if error.line else ''}: "
    lines = [f"ci-bot: {where}{error.message}"]
    if error.hint:
        lines.append(f"        {error.hint}")
    return redact_text("\n".join(lines), environ)


def redact_text(text: str, environ: Mapping[str, str]) -> str:
    """Removes the environment's secrets from `text`, for output outside of documents."""
    worker_env = environ.get(make_variable_name("worker-env"), "")
    return make_redactor(environ, worker_env=worker_env).redact(text)
