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
    from ci_bot.bot.report.html.page import render_page, render_page_of_document
    from ci_bot.bot.report.markdown import notices
    from ci_bot.bot.report.markdown.blocks import FencedBlock, split_passages
    from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
    from ci_bot.bot.report.markdown.check_run import (
        ApplyEnd,
        CheckAnnotation,
        CheckRun,
        make_check_run,
        name_check,
    )
    from ci_bot.bot.report.markdown.comments import (
        CarriedReview,
        ReviewSource,
        render_apply,
        render_cleanup,
        render_doctor,
        render_drift,
        render_planning,
        render_review,
        render_sweep,
    )
    from ci_bot.bot.report.markdown.marker import (
        MarkerFacts,
        decode_marker,
        is_news_claim,
        list_plans_before,
        mark_news,
    )
    from ci_bot.bot.report.model import advice
    from ci_bot.bot.report.model.apply_evidence import ApplyView
    from ci_bot.bot.report.model.context import (
        ApplyCondition,
        ApplyRefusal,
        CommentContext,
        DecisionOverride,
        DisplayProgress,
        RenderedText,
    )
    from ci_bot.bot.report.model.headline import baseline_notice, describe_baseline
    from ci_bot.bot.report.model.markdown_text import render_prose
    from ci_bot.bot.report.model.sarif_log import make_sarif
    from ci_bot.bot.report.model.sentences import SENTENCES
    from ci_bot.bot.report.resources import find_resource
    from ci_bot.bot.report.text.page import (
        PLACE,
        OutputScreen,
        TextPage,
        extract_code_spans,
        make_screen,
        make_text_page,
        render_plain,
    )
    from ci_bot.bot.report.text.report_text import (
        Document,
        compare_rounds,
        describe_error,
        redact_text,
        render_compared_queries,
        render_markdown_text,
        render_short_review,
        render_terminal_text,
    )

__all__ = [
    "CANNOT_WRITE",
    "COMMENT_BYTES",
    "PAGE",
    "PLACE",
    "SENTENCES",
    "ApplyCondition",
    "ApplyEnd",
    "ApplyRefusal",
    "ApplyView",
    "CarriedReview",
    "CheckAnnotation",
    "CheckRun",
    "CommentContext",
    "DecisionOverride",
    "DisplayProgress",
    "Document",
    "DocumentTexts",
    "FencedBlock",
    "Format",
    "MarkerFacts",
    "OutputScreen",
    "RenderedText",
    "ReviewSource",
    "TextPage",
    "advice",
    "baseline_notice",
    "check_output",
    "check_within",
    "compare_rounds",
    "decode_marker",
    "describe_baseline",
    "describe_error",
    "extract_code_spans",
    "find_resource",
    "is_news_claim",
    "list_plans_before",
    "make_check_run",
    "make_sarif",
    "make_screen",
    "make_text_page",
    "mark_news",
    "name_check",
    "notices",
    "redact_text",
    "render_apply",
    "render_cleanup",
    "render_compared_queries",
    "render_doctor",
    "render_drift",
    "render_markdown_text",
    "render_page",
    "render_page_of_document",
    "render_plain",
    "render_planning",
    "render_prose",
    "render_review",
    "render_short_review",
    "render_sweep",
    "render_terminal_text",
    "split_passages",
    "words",
    "write_files",
    "write_within",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "model.sentences": ["SENTENCES"],
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
        "html.page": ["render_page", "render_page_of_document"],
        "markdown.blocks": ["FencedBlock", "split_passages"],
        "markdown.budget": ["COMMENT_BYTES"],
        "markdown.check_run": [
            "make_check_run",
            "name_check",
            "ApplyEnd",
            "CheckAnnotation",
            "CheckRun",
        ],
        "markdown.marker": [
            "decode_marker",
            "is_news_claim",
            "mark_news",
            "MarkerFacts",
            "list_plans_before",
        ],
        "markdown.notices": [],
        "markdown.comments": [
            "render_apply",
            "render_cleanup",
            "render_doctor",
            "render_drift",
            "render_sweep",
            "CarriedReview",
            "ReviewSource",
            "render_planning",
            "render_review",
        ],
        "model.advice": [],
        "model.apply_evidence": ["ApplyView"],
        "model.context": [
            "CommentContext",
            "ApplyCondition",
            "DisplayProgress",
            "DecisionOverride",
            "ApplyRefusal",
            "RenderedText",
        ],
        "model.headline": ["baseline_notice", "describe_baseline"],
        "model.markdown_text": ["render_prose"],
        "model.sarif_log": ["make_sarif"],
        "words": [],
        "resources": ["find_resource"],
        "text.report_text": [
            "render_compared_queries",
            "Document",
            "render_markdown_text",
            "render_terminal_text",
            "describe_error",
            "redact_text",
            "compare_rounds",
            "render_short_review",
        ],
        "text.page": [
            "TextPage",
            "OutputScreen",
            "make_text_page",
            "make_screen",
            "PLACE",
            "render_plain",
            "extract_code_spans",
        ],
    },
)
