"""The report of a review, an apply or a cleanup, as Markdown, as a page, and for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.report import words
    from ci_bot.bot.report.files import (
        CANNOT_WRITE,
        PAGE,
        DocumentTexts,
        Format,
        check_output,
        check_within,
        write_files,
        write_within,
    )
    from ci_bot.bot.report.html.page import render_html_page, render_html_page_of_document
    from ci_bot.bot.report.markdown import notices
    from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
    from ci_bot.bot.report.markdown.check_run import ApplyEnd, CheckRun, make_check_run_markdown
    from ci_bot.bot.report.markdown.comments import (
        CarriedCommentReview,
        Document,
        ReviewSource,
        prepare_review_comment,
        render_apply_comment,
        render_cleanup_comment,
        render_doctor_markdown,
        render_drift_markdown,
        render_markdown_text,
        render_planning_comment,
        render_review_comment,
        render_sweep_markdown,
    )
    from ci_bot.bot.report.markdown.marker import (
        CommentMarkerFacts,
        decode_comment_marker,
        is_claim_of_news_comment,
        list_plans_before_in_comment,
        mark_news_comment,
    )
    from ci_bot.bot.report.markdown_text import render_prose
    from ci_bot.bot.report.model import advice
    from ci_bot.bot.report.model.apply_evidence import ApplyView
    from ci_bot.bot.report.model.changed_rows import (
        TAKEN_COLUMNS,
        TakenColumn,
        describe_old_rows,
        judge_past_numbers,
        list_columns_taken_in,
        list_new_columns_of_impact,
    )
    from ci_bot.bot.report.model.context import (
        ApplyConditionView,
        ApplyRefusalView,
        CommentViewContext,
        DecisionOverrideView,
        ProgressView,
        RenderedText,
    )
    from ci_bot.bot.report.model.headline import (
        describe_baseline_in_view,
        make_baseline_notice_view,
    )
    from ci_bot.bot.report.model.risk_groups import group_findings, group_risks
    from ci_bot.bot.report.model.sarif_log import make_sarif_view_of_report
    from ci_bot.bot.report.model.sentences import SENTENCES
    from ci_bot.bot.report.text.markdown_page import render_plain
    from ci_bot.bot.report.text.page import TextPage, make_page_of_screen, make_text_page
    from ci_bot.bot.report.text.report_text import (
        compare_rounds,
        render_compared_queries,
        render_short_review,
        render_terminal_text,
    )
    from ci_bot.bot.report.text.screen import OutputScreen, describe_error, make_screen, redact_text

__getattr__ = open_on_demand(
    __name__,
    {
        "model.sentences": ["SENTENCES"],
        "model.changed_rows": [
            "TAKEN_COLUMNS",
            "TakenColumn",
            "describe_old_rows",
            "judge_past_numbers",
            "list_new_columns_of_impact",
            "list_columns_taken_in",
        ],
        "model.risk_groups": ["group_findings", "group_risks"],
        "files": [
            "CANNOT_WRITE",
            "Format",
            "PAGE",
            "DocumentTexts",
            "check_output",
            "check_within",
            "write_files",
            "write_within",
        ],
        "html.page": ["render_html_page", "render_html_page_of_document"],
        "markdown.budget": ["COMMENT_BYTES"],
        "markdown.comments": [
            "Document",
            "render_markdown_text",
            "render_apply_comment",
            "render_cleanup_comment",
            "render_doctor_markdown",
            "render_drift_markdown",
            "render_sweep_markdown",
            "CarriedCommentReview",
            "ReviewSource",
            "prepare_review_comment",
            "render_planning_comment",
            "render_review_comment",
        ],
        "markdown.check_run": [
            "make_check_run_markdown",
            "ApplyEnd",
            "CheckRun",
        ],
        "markdown.marker": [
            "decode_comment_marker",
            "is_claim_of_news_comment",
            "mark_news_comment",
            "CommentMarkerFacts",
            "list_plans_before_in_comment",
        ],
        "markdown.notices": [],
        "model.advice": [],
        "model.apply_evidence": ["ApplyView"],
        "model.context": [
            "CommentViewContext",
            "ApplyConditionView",
            "ProgressView",
            "DecisionOverrideView",
            "ApplyRefusalView",
            "RenderedText",
        ],
        "model.headline": ["make_baseline_notice_view", "describe_baseline_in_view"],
        "markdown_text": ["render_prose"],
        "model.sarif_log": ["make_sarif_view_of_report"],
        "words": [],
        "text.report_text": [
            "render_compared_queries",
            "compare_rounds",
            "render_short_review",
            "render_terminal_text",
        ],
        "text.screen": ["describe_error", "redact_text", "OutputScreen", "make_screen"],
        "text.markdown_page": ["render_plain"],
        "text.page": ["TextPage", "make_page_of_screen", "make_text_page"],
    },
)
