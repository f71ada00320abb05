"""The sticky comment in each of its states: a review, an apply, the end of an environment.

It also renders the reports of a sweep, a doctor and a drift run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ci_bot.bot.report import words
from ci_bot.bot.report.markdown.budget import (
    CELL_LIMIT,
    COMMENT_BYTES,
    SectionShare,
    compose_markdown_text,
    full_report,
    lift_review_from_comment_body,
    make_base_values_of_comment_template,
    make_markdown_row_renderer,
    tidy_blank_markdown_lines,
)
from ci_bot.bot.report.markdown.sections import (
    OlderReviewMarkdownSection,
    RowsMarkdownSection,
    make_shares_of_review_comment,
)
from ci_bot.bot.report.markdown.templating import get_environment_of_comment_templates
from ci_bot.bot.report.markdown_text import SafeMarkdown, make_link
from ci_bot.bot.report.model.apply_evidence import ApplyView, list_plan_differences
from ci_bot.bot.report.model.context import CommentLinks, CommentViewContext, RenderedText
from ci_bot.bot.report.model.view import ReviewView
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Sha
from ci_bot.protocol.cleanup_report import CleanupDocument, DriftReport, SweepReport
from ci_bot.protocol.comment import Marker, Phase, choose_apply_phase, choose_review_phase
from ci_bot.protocol.messages import DoctorDocument
from ci_bot.protocol.plan import Decision
from ci_bot.protocol.review_report import Report


@dataclass(frozen=True, kw_only=True)
class CarriedCommentReview:
    """An earlier review of which only the text in our own comment exists."""

    text: str
    head: Sha | None = None
    plan: str | None = None
    decision: Decision | None = None

    @classmethod
    def from_body(cls, body: str, marker: Marker | None) -> CarriedCommentReview | None:
        """Reads the review in `body`, a comment that is known to be ours; None if it holds none.

        Never call it with somebody else's comment: the text goes into the next one unchanged.
        """
        text = lift_review_from_comment_body(body)
        if not text or marker is None:
            return cls(text=text) if text else None
        return cls(text=text, head=marker.head, plan=marker.plan, decision=marker.decision)


ReviewSource = Report | CarriedCommentReview | None

_REVIEW_PHASES = ("planned", "no_changes", "plan_failed")
_OLDER_BYTES = 6_000
# What a review of a plan is made of. Each takes tens of milliseconds to compile.
_REVIEW_TEMPLATES = (
    "planned.md.j2",
    "_check_table.md.j2",
    "_macros.md.j2",
    "_next.md.j2",
    "_review.md.j2",
    "_review_checks.md.j2",
    "_review_complete.md.j2",
    "_review_details.md.j2",
    "_review_examples.md.j2",
    "_review_models.md.j2",
    "_review_top.md.j2",
    "_rows.md.j2",
)


def render_review_comment(
    report: Report,
    context: CommentViewContext,
    budget_bytes: int | None = COMMENT_BYTES,
    *,
    last_good: CarriedCommentReview | None = None,
) -> RenderedText:
    """Renders the review as Markdown, in the state that `context.phase` names.

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
    values, shares = make_parts_of_review_comment(report, context, budget_bytes)
    if last_good:
        values["carried"] = last_good
    shares.insert(0, _make_older_share(last_good, context))
    return compose_markdown_text(f"{context.phase}.md.j2", values, shares, context, budget_bytes)


def prepare_review_comment() -> None:
    """Compiles the templates of a review's comment, which can be done before there is a review."""
    templates = get_environment_of_comment_templates()
    for name in _REVIEW_TEMPLATES:
        templates.get_template(name)


def render_planning_comment(
    context: CommentViewContext,
    budget_bytes: int | None = COMMENT_BYTES,
    *,
    review: ReviewSource = None,
) -> RenderedText:
    """Renders the comment while a plan is made, with the earlier review collapsed below."""
    values, shares = make_earlier_parts(review, context, budget_bytes)
    return compose_markdown_text("planning.md.j2", values, shares, context, budget_bytes)


def make_parts_of_review_comment(
    report: Report, context: CommentViewContext, budget: int | None
) -> tuple[dict[str, object], list[SectionShare]]:
    """Returns the values and sections of a report."""
    view = ReviewView(report, context, complete=budget is None)
    values = make_base_values_of_comment_template(context, report.head_sha) | {
        "v": view,
        "earlier_head": report.head_sha,
    }
    return values, make_shares_of_review_comment(view, complete=budget is None)


def make_earlier_parts(
    review: ReviewSource, context: CommentViewContext, budget: int | None
) -> tuple[dict[str, object], list[SectionShare]]:
    """Returns values and sections of an earlier review: a report, or the text of our comment."""
    if isinstance(review, Report):
        return make_parts_of_review_comment(review, context, budget)
    values = make_base_values_of_comment_template(context)
    if review:
        values |= {"carried": review, "earlier_head": review.head}
    return values, [_make_older_share(review, context)]


def _make_older_share(
    carried: CarriedCommentReview | None, context: CommentViewContext
) -> SectionShare:
    text = carried.text if carried else ""
    return SectionShare(
        OlderReviewMarkdownSection("review", text, full_report(context)), _OLDER_BYTES
    )


_APPLY_PHASES = ("applying", "applied", "apply_failed", "refused", "cancelled")
_CLEANUP_PHASES = ("closed", "cleanup_failed")
_MODELS = "| Model | Intervals | Batches | Rows | Time | Audits |\n|:--|--:|--:|--:|--:|:--|"
_DIFF = "| Data against `prod` | Rows changed |\n|:--|:--|"

_DETAIL = (
    "| Model | Window | Keys | Columns that differ, and how much of them is equal | Schema |\n"
    "|:--|:--|:--|:--|:--|"
)
# How many columns show above all folds how they changed; the others show it below.
_COLUMNS = 4
_VIEWS = "| View | On Spark |\n|:--|:--|"
_ATTEMPTS = "| Attempt | Result | Time | Error | Tried again because |\n|--:|:--|--:|:--|:--|"
_LEFT = "| Left over | Why |\n|:--|:--|"
_RECLAIMED = "| Table | Size |\n|:--|--:|"
# How many reasons are sentences; the table below them has all.
_REASONS = 3
# After these refusals the next try can succeed without a change.
_TURNS = ("held", "state_locked")
_KEPT = "| Table | Why | Until |\n|:--|:--|:--|"


def render_apply_comment(
    document: ApplyDocument | None,
    context: CommentViewContext,
    budget_bytes: int | None = COMMENT_BYTES,
    *,
    review: ReviewSource = None,
) -> RenderedText:
    """Renders an apply that runs (no document yet), ended, was refused, or was cancelled.

    Args:
        document: The worker's answer; None in phase `applying`, and if the bot itself refused or
            was cancelled before the worker answered.
        review: The review that was applied; it stays collapsed below.

    Raises:
        ValueError: `context.phase` is no state of an apply, or it needs a document.
    """
    phase = context.phase
    if phase not in _APPLY_PHASES:
        raise ValueError(f"an apply has no phase {phase!r}")
    if document is None and phase in ("applied", "apply_failed"):
        raise ValueError(f"phase {phase!r} shows a document, and there is none")
    values, shares = make_earlier_parts(review, context, budget_bytes)
    shares += _make_apply_shares(document, context, complete=budget_bytes is None)
    values |= _make_apply_values(document, context, values)
    return compose_markdown_text(f"{phase}.md.j2", values, shares, context, budget_bytes)


def _make_apply_values(
    document: ApplyDocument | None, context: CommentViewContext, values: dict[str, object]
) -> dict[str, object]:
    refusal, failure = context.refusal, document.failure if document else None
    review = cast("ReviewView | None", values.get("v"))
    marked = context.marker.plan if context.marker else None
    return {
        "a": ApplyView(document) if document else None,
        "head": values["earlier_head"] or (context.marker.head if context.marker else None),
        "plan_id": (document.plan_id if document else None) or marked,
        "reason_code": (refusal.reason_code if refusal else None)
        or (document.reason_code if document else None)
        or (failure.reason_code if failure else "refused"),
        "refusal_message": refusal.message if refusal else failure.message if failure else None,
        "refusal_hint": refusal.hint if refusal else failure.hint if failure else None,
        "owners_of_data": review.owners_of_data if review else "",
        "may_accept": review.may_accept if review else "",
        "sets_gone": bool(refusal and refusal.reviewed_sets_gone),
    }


def _make_apply_shares(
    document: ApplyDocument | None, context: CommentViewContext, *, complete: bool
) -> list[SectionShare]:
    view = ApplyView(document) if document else None
    full = full_report(context)
    limit = None if complete else CELL_LIMIT

    def make_table(
        name: str, items: Sequence[Any], header: str, noun: str, *macro: Any
    ) -> RowsMarkdownSection[Any]:
        return RowsMarkdownSection(
            name, items, make_markdown_row_renderer(*macro), noun, full, header
        )

    models = sorted(document.models if document else [], key=lambda m: (-m.seconds, m.model))
    views = sorted(document.views if document else [], key=lambda item: item.resolves)
    partial = document.partial if document else []
    attempts = document.attempts if document else []
    compared = view.compared if view else []
    columns = view.columns if view else []
    rows = view.rows_of_diff if view else []
    differing = list_plan_differences(document.difference if document else None)
    return [
        SectionShare(
            make_table("attempts", attempts, _ATTEMPTS, "attempts", "attempt", limit), 1_500
        ),
        SectionShare(make_table("views", views, _VIEWS, "views", "view", limit), 3_000),
        SectionShare(
            make_table("more_columns", columns[_COLUMNS:], "", "columns", "how_changed"), 2_000
        ),
        SectionShare(make_table("models", models, _MODELS, "tables", "applied_model"), 8_000),
        SectionShare(make_table("diff_detail", compared, _DETAIL, "models", "diff_detail"), 6_000),
        SectionShare(
            make_table("how_changed", columns[:_COLUMNS], "", "columns", "how_changed"), 3_000
        ),
        SectionShare(make_table("table_diff", rows, _DIFF, "models", "table_diff"), 6_000),
        SectionShare(make_table("difference", differing, "", "differences", "difference"), 6_000),
        SectionShare(
            RowsMarkdownSection(
                "partial", partial, make_markdown_row_renderer("sentence", limit), "lines", full
            ),
            4_000,
        ),
    ]


def render_cleanup_comment(
    document: CleanupDocument,
    context: CommentViewContext,
    budget_bytes: int | None = COMMENT_BYTES,
    *,
    review: ReviewSource = None,
) -> RenderedText:
    """Renders the tombstone of an environment, or what is left of it and how to try again.

    Raises:
        ValueError: `context.phase` is neither `closed` nor `cleanup_failed`.
    """
    if context.phase not in _CLEANUP_PHASES:
        raise ValueError(f"a cleanup has no phase {context.phase!r}")
    values, shares = make_earlier_parts(review, context, budget_bytes)
    refused = document.result == "refused"
    why = document.failure.reason_code if document.failure else None
    values |= {
        "k": document,
        "kept": count_kept_by_reason(document)[:_REASONS],
        # The same request is refused again, unless only another run was in the way.
        "retry": None if refused and why not in _TURNS else context.cleanup_command,
    }
    shares += _make_cleanup_shares(document, context, complete=budget_bytes is None)
    return compose_markdown_text(f"{context.phase}.md.j2", values, shares, context, budget_bytes)


def count_kept_by_reason(document: CleanupDocument) -> list[tuple[str, int, str | None]]:
    """Groups the physical tables that stay by their reason, the most frequent first.

    Each entry has the reason, the number of tables, and the latest time until which they stay (None
    if that is not known for one of them).
    """
    groups: dict[str, list[str | None]] = {}
    for table in document.tables_kept:
        groups.setdefault(table.why, []).append(table.until)
    found = []
    for why, ends in groups.items():
        known = [until for until in ends if until is not None]
        longest = max(known, key=words.parse_moment) if len(known) == len(ends) else None
        found.append((why, len(ends), longest))
    return sorted(found, key=lambda group: -group[1])


def _make_cleanup_shares(
    document: CleanupDocument, context: CommentViewContext, *, complete: bool
) -> list[SectionShare]:
    full = full_report(context)
    limit = None if complete else CELL_LIMIT

    def make_share(
        name: str, items: Sequence[Any], noun: str, *macro: Any, header: str = ""
    ) -> SectionShare:
        reserve = 8_000 if name in ("leftovers", "foreign") else 3_000
        return SectionShare(
            RowsMarkdownSection(
                name, items, make_markdown_row_renderer(*macro), noun, full, header
            ),
            reserve,
        )

    dropped = [*document.schemas_dropped, *document.views_dropped]
    return [
        make_share("dropped", dropped, "objects", "named"),
        make_share(
            "reclaimed", document.tables_reclaimed, "tables", "reclaimed", header=_RECLAIMED
        ),
        make_share("kept", document.tables_kept, "tables", "kept", limit, header=_KEPT),
        make_share("foreign", document.foreign, "objects", "named"),
        make_share("leftovers", document.leftovers, "objects", "leftover", limit, header=_LEFT),
    ]


# A sweep's report as Markdown, for the step summary and the terminal.


# The runner's limit must not drop the whole summary of a state with thousands of environments.
MOST_ROWS = 500
# An issue holds 65,536 characters, and it has five tables.
_MOST_DRIFTED = 50
_GONE = ("removed", "nothing_to_do")


def render_sweep_markdown(report: SweepReport, context: CommentViewContext) -> str:
    """Renders the whole report as Markdown; `context` has the time and where links lead."""
    rescued = [row for row in report.rows if row.standing == "remove"]
    # Tables of environments that were removed before.
    tables = [row for row in report.rows if row.standing == "tables"]
    kept = [row for row in report.rows if row.standing not in ("remove", "tables")]
    template = get_environment_of_comment_templates().get_template("sweep.md.j2")
    return tidy_blank_markdown_lines(
        template.render(
            s=report,
            c=context,
            rescued=rescued,
            tables=tables,
            left=[row for row in [*rescued, *tables] if row.result not in _GONE],
            kept=kept,
            most=MOST_ROWS,
            pull=lambda number: _link_pull_request(context, number),
        )
    )


def render_doctor_markdown(document: DoctorDocument) -> str:
    """Renders what a doctor found, for the step summary: failed checks come first."""
    order = ("fail", "warn", "not_run", "ok")
    template = get_environment_of_comment_templates().get_template("doctor.md.j2")
    checks = sorted(document.checks, key=lambda check: order.index(check.status))
    counts = {status: sum(c.status == status for c in checks) for status in order}
    return tidy_blank_markdown_lines(template.render(d=document, checks=checks, counts=counts))


def render_drift_markdown(report: DriftReport, context: CommentViewContext) -> str:
    """Renders what a drift run found, for its issue and its summary.

    The text has no time of the run: the same drift at the same commit gives the same text, so an
    issue is edited only if something changed.
    """
    return tidy_blank_markdown_lines(
        get_environment_of_comment_templates()
        .get_template("drift.md.j2")
        .render(
            d=report,
            commit=CommentLinks(context).link_commit(report.commit),
            most=_MOST_DRIFTED,
            pull=lambda number: _link_pull_request(context, number),
        )
    )


def _link_pull_request(context: CommentViewContext, number: int | None) -> SafeMarkdown:
    if number is None:
        return SafeMarkdown("–")
    root = f"{context.server_url.rstrip('/')}/{context.repository}" if context.repository else None
    # Without a link GitHub would make a reference of it, which leads to the same place.
    return make_link(SafeMarkdown(f"#{number}"), f"{root}/pull/{number}" if root else None)


Document = Report | ApplyDocument | CleanupDocument


def render_markdown_text(
    document: Document, context: CommentViewContext, budget: int | None = None
) -> str:
    """Renders the document as Markdown, complete or with at most `budget` bytes.

    Args:
        context: The context of this document's comment. Its phase is replaced by that of the
            document.
    """
    context = replace(context, phase=find_comment_phase(document))
    if isinstance(document, Report):
        return render_review_comment(document, context, budget).text
    if isinstance(document, ApplyDocument):
        return render_apply_comment(document, context, budget).text
    return render_cleanup_comment(document, context, budget).text


def find_comment_phase(document: Document) -> Phase:
    """Returns the state of a comment that shows this document."""
    if isinstance(document, Report):
        return choose_review_phase(document)
    if isinstance(document, ApplyDocument):
        return choose_apply_phase(document.result)
    return "closed" if document.result in ("removed", "nothing_to_do") else "cleanup_failed"
