"""Short new comments. They notify people, so there are three occasions for one."""

from __future__ import annotations

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.parts.blocks import tidy
from ci_bot.bot.comment.text.links import Links
from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.bot.comment.text.templating import environment
from ci_bot.contracts.documents.apply import ApplyResult
from ci_bot.contracts.documents.plan import Decision

_OUTCOMES: dict[ApplyResult, str] = {
    "applied": "✅ Applied",
    "nothing_to_apply": "⚪ Nothing to apply for",
    "failed": "❌ Failed to apply",
    "refused": "⛔ Refused to apply",
    "cancelled": "⏹️ Cancelled",
}


def decision_changed(
    before: Decision,
    after: Decision,
    summary: str,
    context: CommentContext,
    *,
    head: str | None,
    comment_url: str | None = None,
) -> str:
    """Says that a push moved the decision; `summary` is the report's first reason."""
    values = {"before": before, "after": after, "head": head}
    return _notice("decision_changed", context, summary, comment_url, **values)


def apply_ended(
    result: ApplyResult,
    summary: str,
    context: CommentContext,
    *,
    plan_id: str | None,
    comment_url: str | None = None,
) -> str:
    """Says how an apply ended; `summary` is one sentence about it."""
    values = {"outcome": SafeMarkdown(_OUTCOMES[result]), "plan_id": plan_id}
    return _notice("apply_ended", context, summary, comment_url, **values)


def cleanup_failed(
    summary: str,
    context: CommentContext,
    *,
    comment_url: str | None = None,
) -> str:
    """Says that something is left of an environment."""
    return _notice("cleanup_failed", context, summary, comment_url)


def _notice(
    kind: str,
    context: CommentContext,
    summary: str,
    comment_url: str | None,
    **values: object,
) -> str:
    template = environment().get_template("notice.md.j2")
    return tidy(
        template.render(
            kind=kind,
            c=context,
            links=Links(context),
            summary=summary,
            comment_url=comment_url,
            **values,
        )
    )
