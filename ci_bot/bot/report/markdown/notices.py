"""Short new comments. They notify people, so there are only three occasions for one."""

from __future__ import annotations

from collections.abc import Sequence

from ci_bot.bot.report.markdown.budget import tidy_blank_markdown_lines
from ci_bot.bot.report.markdown.templating import get_environment_of_comment_templates
from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model.context import CommentLinks, CommentViewContext
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.protocol.apply_report import (
    ApplyDocument,
    ApplyResult,
    EstimateDocument,
    list_limited_costs,
)
from ci_bot.protocol.base import PlanId, Sha
from ci_bot.protocol.comment import Marker, Phase
from ci_bot.protocol.cost import COST_SOURCES
from ci_bot.protocol.plan import Cost, Decision, select_tables
from ci_bot.protocol.review_report import Acceptance, Report

_OUTCOMES: dict[ApplyResult, str] = {
    "applied": "✅ Applied",
    "nothing_to_apply": "⚪ Nothing to apply for",
    "failed": "❌ Failed to apply",
    "refused": "⛔ Refused to apply",
    "cancelled": "⏹️ Cancelled",
}


def render_decision_changed_notice(
    before: Decision,
    after: Decision,
    summary: str,
    context: CommentViewContext,
    *,
    head: Sha | None,
    comment_url: str | None = None,
) -> str:
    """Says that a push changed the decision; `summary` is the report's first reason."""
    values = {"before": before, "after": after, "head": head}
    return _render_notice("decision_changed", context, summary, comment_url, **values)


def render_apply_ended_notice(
    result: ApplyResult,
    summary: str,
    context: CommentViewContext,
    *,
    plan_id: PlanId | None,
    comment_url: str | None = None,
) -> str:
    """Says how an apply ended; `summary` is one sentence about it."""
    values = {"outcome": SafeMarkdown(_OUTCOMES[result]), "plan_id": plan_id}
    return _render_notice("apply_ended", context, summary, comment_url, **values)


def render_cleanup_failed_notice(
    summary: str,
    context: CommentViewContext,
    *,
    comment_url: str | None = None,
) -> str:
    """Says that something is left of an environment."""
    return _render_notice("cleanup_failed", context, summary, comment_url)


def _render_notice(
    kind: str,
    context: CommentViewContext,
    summary: str,
    comment_url: str | None,
    **values: object,
) -> str:
    template = get_environment_of_comment_templates().get_template("notice.md.j2")
    return tidy_blank_markdown_lines(
        template.render(
            kind=kind,
            c=context,
            links=CommentLinks(context),
            summary=summary,
            comment_url=comment_url,
            **values,
        )
    )


# The short answers to comment commands: a refusal and why, the usage, the status.


_PHASES: dict[Phase, str] = {
    "planning": "a plan is being made",
    "planned": "planned",
    "no_changes": "planned, no model changes",
    "plan_failed": "the plan failed",
    "applying": "an apply is running",
    "applied": "applied",
    "apply_failed": "the apply failed",
    "refused": "planned; the last apply was refused",
    "cancelled": "cancelled",
    "closed": "the environment is removed",
    "cleanup_failed": SENTENCES.cleanup_incomplete,
}

_MODELS_SHOWN = 20


_CAN_BE_APPLIED: frozenset[Phase] = frozenset({"planned", "apply_failed", "refused", "cancelled"})


def render_refused_comment(
    reason_code: str,
    message: str,
    hint: str | None,
    context: CommentViewContext,
) -> str:
    """Says why a command is not carried out, and what to do instead."""
    return _render_reply_comment(
        "refused",
        context,
        reason_code=reason_code,
        message=message,
        hint=hint,
    )


def render_usage_comment(
    commands: Sequence[str], problem: str | None, context: CommentViewContext
) -> str:
    """Lists the commands; `problem` says what was wrong with a line that is no command."""
    return _render_reply_comment("help", context, problem=problem, usage="\n".join(commands))


def render_accepted_comment(
    acceptance: Acceptance, report: Report, context: CommentViewContext
) -> str:
    """Says what was accepted, if the sticky comment does not change to show it."""
    summary = f"`@{acceptance.by}` accepts `{acceptance.rule}` on `{acceptance.model}`:"
    return _render_reply_comment(
        "accepted",
        context,
        summary=summary,
        reason=acceptance.reason,
        decision=report.decision,
    )


def render_restated_comment(summary: str, context: CommentViewContext) -> str:
    """Says what was recorded or withdrawn, if the sticky comment does not change to show it."""
    return _render_reply_comment("restated", context, summary=summary)


def render_estimated_comment(
    document: EstimateDocument, hours: float | None, context: CommentViewContext
) -> str:
    """Says what building will cost, by model, here and in prod after the merge.

    `hours` is the limit with which both costs are compared.
    """
    return _render_figures_comment(
        "estimate", document, document.cost, document.after_merge, hours, context
    )


def render_probed_comment(
    document: ApplyDocument, hours: float | None, context: CommentViewContext
) -> str:
    """Says what a probe built, what the whole plan will cost by that, and what it left out.

    `hours` is as in `render_estimated_comment`. The document must be of a probe that was completed.
    """
    if document.estimate is None:
        return _render_reply_comment("nothing_to_probe", context, plan_id=document.plan_id)
    return _render_figures_comment(
        "probe",
        document,
        document.estimate,
        document.prod_estimate,
        hours,
        context,
        built=select_tables(document.models),
        actual=document.cost,
        not_probed=document.not_probed,
        apply_command=context.apply_command(document.plan_id) if document.plan_id else None,
    )


def _render_figures_comment(
    kind: str,
    document: EstimateDocument | ApplyDocument,
    cost: Cost,
    after_merge: Cost | None,
    hours: float | None,
    context: CommentViewContext,
    **values: object,
) -> str:
    """Renders an answer with the figures of the environment and of prod, by model."""
    here = {item.model: item for item in cost.models}
    there = {item.model: item for item in after_merge.models} if after_merge else {}
    models = [(here.get(name), there.get(name)) for name in {**here, **there}]
    unknown = [*cost.unknown, *(after_merge.unknown if after_merge else [])]
    return _render_reply_comment(
        kind,
        context,
        cost=cost,
        after_merge=after_merge,
        models=models,
        shown=models[:_MODELS_SHOWN],
        unknown=list(dict.fromkeys(unknown)),
        from_words=COST_SOURCES,
        plan_id=document.plan_id,
        limit=hours,
        above=is_estimate_above_in_comment(document, hours),
        **values,
    )


def is_estimate_above_in_comment(
    document: EstimateDocument | ApplyDocument, hours: float | None
) -> bool:
    """Whether the known cost of the environment or of prod is above the limit."""
    return any(cost.find_hours_above(hours) is not None for cost in list_limited_costs(document))


def render_status_comment(
    marker: Marker | None, context: CommentViewContext, *, comment_url: str | None
) -> str:
    """Says what our comment's marker says; without a marker, that there is no such comment."""
    return _render_reply_comment(
        "status",
        context,
        comment_url=comment_url,
        m=marker,
        phase_word=_PHASES[marker.phase] if marker else None,
        next_command=_describe_next_step(marker, context) if marker else None,
        links=CommentLinks(context),
    )


def _describe_next_step(marker: Marker, context: CommentViewContext) -> str | None:
    if marker.phase == "plan_failed":
        return context.plan_command
    if marker.phase == "cleanup_failed":
        return f"{context.command} cleanup"
    if marker.phase in _CAN_BE_APPLIED and marker.plan and marker.decision != "no_go":
        return context.apply_command(marker.plan)
    return None


def _render_reply_comment(kind: str, context: CommentViewContext, **values: object) -> str:
    template = get_environment_of_comment_templates().get_template("reply.md.j2")
    return tidy_blank_markdown_lines(
        template.render(**{"kind": kind, "c": context, "comment_url": None, **values})
    )
