"""A review as a check: its conclusion, its first screen, and its findings at their lines.

GitHub's limits and words: https://docs.github.com/en/rest/checks/runs (conclusions, 65,535
characters of a summary, 255 of an annotation's title, 64 KB of its message).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ci_bot.bot.report import words
from ci_bot.bot.report.markdown.budget import (
    COMMENT_BYTES,
    make_base_values_of_comment_template,
    tidy_blank_markdown_lines,
    trim_markdown_blocks,
)
from ci_bot.bot.report.markdown.templating import get_environment_of_comment_templates
from ci_bot.bot.report.markdown_text import clip_text, one_line
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.bot.report.model.finding_groups import PlacedFindingView, place_finding_views
from ci_bot.bot.report.model.view import ReviewView
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.review_report import Report

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


Conclusion = Literal["success", "neutral", "failure", "action_required"]
AnnotationLevel = Literal["failure", "warning", "notice"]


@dataclass(frozen=True, kw_only=True)
class CheckAnnotation:
    """A finding at its line. Title and message are plain text: GitHub reads no Markdown in them."""

    path: str
    line: int
    level: AnnotationLevel
    title: str
    message: str


@dataclass(frozen=True, kw_only=True)
class CheckRun:
    """A check that has ended. `summary` is Markdown, `title` is plain text."""

    name: str
    head: Sha
    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[CheckAnnotation, ...]
    details_url: str | None = None


_NAME, _TITLE, _ANNOTATION_TITLE, _MESSAGE = 100, 200, 200, 4_000
_LEVELS: dict[Severity, AnnotationLevel] = {
    "blocker": "failure",
    "high": "warning",
    "medium": "warning",
    "low": "notice",
    "info": "notice",
}


@dataclass(frozen=True)
class ApplyEnd:
    """The result of an apply of the reviewed plan, as sentences."""

    text: str
    failed: bool = False


def make_check_run_markdown(
    report: Report, context: CommentViewContext, *, apply_end: ApplyEnd | None = None
) -> CheckRun | None:
    """Makes the check of a report; None if the report is about no commit.

    Args:
        report: The decided report, without secrets.
        context: The context of this run; its project names the check.
        apply_end: None if the plan was only reviewed.
    """
    if report.head_sha is None:
        return None
    view = ReviewView(report, context, pictured=False, is_applied=apply_end is not None)
    placed = place_finding_views(view.findings.listed_risks, report.changes)
    values = make_base_values_of_comment_template(context, report.head_sha) | {
        "v": view,
        "apply_end": apply_end,
        "elsewhere": len(view.findings.listed_risks) - len(placed),
        "placed": len(placed),
    }
    text = (
        get_environment_of_comment_templates()
        .get_template("check_run.md.j2")
        .render(values | {"c": context})
    )
    return CheckRun(
        name=name_check_run(context.project),
        head=report.head_sha,
        conclusion=choose_conclusion_of_check_run(view, apply_end),
        title=_make_title(view, apply_end),
        summary=trim_markdown_blocks(tidy_blank_markdown_lines(text), COMMENT_BYTES)[0],
        annotations=tuple(_make_annotation(item) for item in placed),
        details_url=context.report_url,
    )


def name_check_run(project: str) -> str:
    """Returns the name by which a branch rule requires the check of a project."""
    return f"sqlmesh plan ({one_line(project, _NAME)})"


def choose_conclusion_of_check_run(
    view: ReviewView, apply_end: ApplyEnd | None = None
) -> Conclusion:
    """Returns what GitHub shows for a decision.

    A Review is `action_required` only if an action can end it: an owner may accept. A plan that
    could not be built is no success, whatever its review decided.
    """
    match view.report.decision:
        case "go" | "no_changes":
            return "neutral" if apply_end is not None and apply_end.failed else "success"
        case "no_go":
            return "failure"
        case "review":
            return "action_required" if view.may_accept else "neutral"


def _make_title(view: ReviewView, apply_end: ApplyEnd | None) -> str:
    decision = words.DECISIONS[view.report.decision]
    if apply_end is not None and apply_end.failed:
        text = f"{decision}, but the apply failed: {apply_end.text.replace('`', '')}"
        return clip_text(one_line(text), _TITLE)
    if view.report.decision == "no_changes":
        return decision
    sentence = view.what_does_not_load if view.report.base_failures else view.head.sentence
    return clip_text(one_line(f"{decision}: {sentence.replace('`', '')}"), _TITLE)


def _make_annotation(item: PlacedFindingView) -> CheckAnnotation:
    risk = item.risk
    clearing = words.describe_clearing(risk.clears_when)
    team_message = f"Your team says: {one_line(risk.message)}" if risk.message else ""
    lines = (one_line(risk.evidence), clearing, team_message)
    return CheckAnnotation(
        path=item.path,
        line=item.line,
        level=_LEVELS[risk.severity],
        title=one_line(f"{risk.severity}: {risk.rule}", _ANNOTATION_TITLE),
        message=clip_text("\n".join(filter(None, lines)), _MESSAGE),
    )
