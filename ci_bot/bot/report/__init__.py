"""The report of a review, an apply or a cleanup, as Markdown, as a page, and for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.report.files import (
        PAGE,
        Format,
        Texts,
        check_output,
        check_within,
        write_files,
        write_within,
    )
    from ci_bot.bot.report.html.page import page_parts, render_page
    from ci_bot.bot.report.markdown import notices
    from ci_bot.bot.report.markdown.blocks import Fence, passages
    from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
    from ci_bot.bot.report.markdown.marker import decode
    from ci_bot.bot.report.markdown.outcome_comment import (
        render_apply,
        render_cleanup,
        render_sweep,
    )
    from ci_bot.bot.report.markdown.review_comment import (
        Carried,
        ReviewSource,
        render_planning,
        render_review,
    )
    from ci_bot.bot.report.model import advice, words
    from ci_bot.bot.report.model.apply_evidence import ApplyView
    from ci_bot.bot.report.model.context import (
        CommentContext,
        Condition,
        DisplayProgress,
        Override,
        Refusal,
        Rendered,
    )
    from ci_bot.bot.report.model.headline import baseline_notice, compared_with
    from ci_bot.bot.report.model.marker_facts import MarkerFacts, plans_before
    from ci_bot.bot.report.model.prose import prose
    from ci_bot.bot.report.resources import resource
    from ci_bot.bot.report.text.page import Page, Screen, new_page, screen_of
    from ci_bot.bot.report.text.plain_markdown import PLACE, plain, without_spans
    from ci_bot.bot.report.text.report_text import (
        Document,
        to_markdown,
        to_page,
        to_terminal,
        told,
        without_secrets,
    )
    from ci_bot.bot.report.text.short_review import short_text

__all__ = [
    "COMMENT_BYTES",
    "PAGE",
    "PLACE",
    "ApplyView",
    "Carried",
    "CommentContext",
    "Condition",
    "DisplayProgress",
    "Document",
    "Fence",
    "Format",
    "MarkerFacts",
    "Override",
    "Page",
    "Refusal",
    "Rendered",
    "ReviewSource",
    "Screen",
    "Texts",
    "advice",
    "baseline_notice",
    "check_output",
    "check_within",
    "compared_with",
    "decode",
    "new_page",
    "notices",
    "page_parts",
    "passages",
    "plain",
    "plans_before",
    "prose",
    "render_apply",
    "render_cleanup",
    "render_page",
    "render_planning",
    "render_review",
    "render_sweep",
    "resource",
    "screen_of",
    "short_text",
    "to_markdown",
    "to_page",
    "to_terminal",
    "told",
    "without_secrets",
    "without_spans",
    "words",
    "write_files",
    "write_within",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "files": [
            "Format",
            "PAGE",
            "Texts",
            "check_output",
            "check_within",
            "write_files",
            "write_within",
        ],
        "html.page": ["page_parts", "render_page"],
        "markdown.blocks": ["Fence", "passages"],
        "markdown.budget": ["COMMENT_BYTES"],
        "markdown.marker": ["decode"],
        "markdown.notices": [],
        "markdown.outcome_comment": ["render_apply", "render_cleanup", "render_sweep"],
        "markdown.review_comment": ["Carried", "ReviewSource", "render_planning", "render_review"],
        "model.advice": [],
        "model.apply_evidence": ["ApplyView"],
        "model.context": [
            "CommentContext",
            "Condition",
            "DisplayProgress",
            "Override",
            "Refusal",
            "Rendered",
        ],
        "model.headline": ["baseline_notice", "compared_with"],
        "model.marker_facts": ["MarkerFacts", "plans_before"],
        "model.prose": ["prose"],
        "model.words": [],
        "resources": ["resource"],
        "text.page": ["Page", "Screen", "new_page", "screen_of"],
        "text.plain_markdown": ["PLACE", "plain", "without_spans"],
        "text.report_text": [
            "Document",
            "to_markdown",
            "to_page",
            "to_terminal",
            "told",
            "without_secrets",
        ],
        "text.short_review": ["short_text"],
    },
)
