"""Makes the page of a review, an apply or a cleanup: one file that loads nothing else.

Three things prevent a project's text from being run as code. The page's own policy allows only the
scripts and styles in the page, by their hashes. What comes from documents is in a block of JSON
that no browser executes; the scripts write it as text, never as markup. And Jinja escapes the few
values that the template prints.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup, escape

from ci_bot.bot.report import words
from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.builds import make_building_section, make_cost_section
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.evidence import (
    make_checks_section,
    make_data_section,
    make_details_section,
    make_history_section,
    make_html_built_section,
)
from ci_bot.bot.report.html.findings import (
    HtmlReportSources,
    make_findings_section,
    make_rules_section,
)
from ci_bot.bot.report.html.head import (
    MOST_POINTS,
    HtmlHeadPoint,
    HtmlPageHead,
    make_html_page_head,
)
from ci_bot.bot.report.html.models import (
    make_diffs_section,
    make_lineage_section,
    make_models_section,
)
from ci_bot.bot.report.markdown.templating import make_sandbox_of_comment_templates
from ci_bot.bot.report.markdown_text import reveal_invisible
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment import PlanHistoryEntry
from ci_bot.protocol.review_report import Report
from ci_bot.resources import find_resource

_RESULTS = {
    "removed": ("go", "🧹", "Environment removed"),
    "nothing_to_do": ("no_changes", "🧹", "Nothing to remove"),
    "incomplete": ("no_go", "⚠️", "Cleanup incomplete"),
    "refused": ("no_go", "⚠️", "Cleanup refused"),
}
_LEFT = cells.make_chip_cell("blocker", "left over", 0)
_FOREIGN = cells.make_chip_cell("medium", "not ours, left alone", 1)
_KEPT = cells.make_chip_cell("low", "stays", 2)
_DROPPED = cells.make_chip_cell("good", "dropped", 3)
_RECLAIMED = cells.make_chip_cell("good", "reclaimed", 4)


def make_cleanup_head(document: CleanupDocument, context: CommentViewContext) -> HtmlPageHead:
    """Makes the first screen of a cleanup."""
    tone, icon, word = _RESULTS[document.result]
    failure = document.failure
    left = [HtmlHeadPoint(f"`{left.object}`: {left.why}") for left in document.leftovers]
    failed = document.result in ("incomplete", "refused")
    hint = (failure.hint if failure else None) or "A cleanup can be repeated at any time:"
    return HtmlPageHead(
        tone=tone,
        icon=icon,
        word=word,
        reviewed="",
        project=context.project,
        environment=document.environment,
        number=context.pr_number,
        sentence=failure.message if failure else "",
        asked="",
        said="",
        points=left[:MOST_POINTS],
        more=max(len(left) - MOST_POINTS, 0),
        facts=_list_cleanup_facts(document),
        checks=(),
        warnings=(),
        next=hint if failed else "",
        command=(context.cleanup_command or "") if failed else "",
        meta=[words.format_clock(context.now), words.duration(document.seconds)],
        run_url=context.run_url,
        title=f"{word} · {context.project} → {document.environment}".replace("`", ""),
    )


def _list_cleanup_facts(document: CleanupDocument) -> list[tuple[str, str]]:
    views, schemas = len(document.views_dropped), len(document.schemas_dropped)
    tables, size = len(document.tables_reclaimed), document.bytes_reclaimed
    freed = f", {words.format_size(size)} freed" if size is not None else ""
    found = [
        (
            "Removed",
            f"{words.format_count(views, 'view')}, {words.format_count(schemas, 'schema')}, "
            f"{words.format_count(tables, 'physical table')}{freed}",
        )
    ]
    if document.tables_kept:
        found.append(("Stays", words.format_count(len(document.tables_kept), "physical table")))
    if document.foreign:
        found.append(("Not ours", words.format_count(len(document.foreign), "object")))
    if document.result != "refused":
        found.append(("Checked after the drop", _describe_cleanup_check(document)))
        found.append(("SQLMesh's record", _describe_cleanup_record(document)))
    return found


def _describe_cleanup_check(document: CleanupDocument) -> str:
    if document.leftovers:
        return f"{words.format_count(len(document.leftovers), 'object')} left over"
    if document.result == "incomplete":
        return "not checked to the end"
    return "Spark finds nothing left of the environment"


def _describe_cleanup_record(document: CleanupDocument) -> str:
    if document.state_record_removed:
        return "removed, as the last step"
    if document.state_record_left:
        return "still there, so the next cleanup finds the environment"
    return "not checked" if document.state_record_left is None else "was gone before"


def list_cleanup_sections(document: CleanupDocument) -> Iterator[PageItem]:
    """Yields the proof: each object of the environment in one row; first what needs a person."""
    rows = list(_list_objects(document))
    yield from cells.make_section_part(
        "proof",
        "What happened to each object",
        cells.make_table_part(
            (
                ("Object", "name"),
                ("Kind", "text"),
                ("Result", "chip"),
                ("Why", "text"),
                ("Until", "text"),
                ("Size", "value"),
            ),
            rows,
            key="proof",
        ),
        len(rows),
        short="Proof",
    )
    spent = [f"{phase}: {words.duration(took)}" for phase, took in document.timings.items()]
    yield from cells.make_section_part("details", "Time", cells.make_prose_part(*spent))


def _list_objects(document: CleanupDocument) -> Iterator[Sequence[Any]]:
    def make_row(
        name: str, kind: str, result: Any, why: str = "", until: str | None = None, size: Any = None
    ) -> Sequence[Any]:
        return (
            cells.make_name_cell(name),
            kind,
            result,
            why,
            words.format_clock(until) if until else "",
            cells.make_value_cell(words.format_size(size) if size is not None else "", size),
        )

    for left in document.leftovers:
        yield make_row(left.object, "object", _LEFT, left.why)
    for name in document.foreign:
        yield make_row(name, "object", _FOREIGN, "The environment did not make it.")
    for kept in document.tables_kept:
        yield make_row(kept.table, "physical table", _KEPT, kept.why, kept.until)
    for name in document.schemas_dropped:
        yield make_row(name, "schema", _DROPPED, "It was empty after its views.")
    for name in document.views_dropped:
        yield make_row(name, "view", _DROPPED, "The environment made it.")
    for table in document.tables_reclaimed:
        why = "The environment made it, and nothing else reads it."
        yield make_row(table.table, "physical table", _RECLAIMED, why, size=table.bytes)


TEMPLATE = "report.html.j2"
# In their order in the page: first those of others, each with its licence at its top.
SCRIPTS = (
    "vendor/panzoom.js",
    "vendor/diff.js",
    "parts.js",
    "tables.js",
    "drawings.js",
    "lineage.js",
    "diffs.js",
    "page.js",
)
STYLES = ("report.css",)
_CODE = re.compile(r"`([^`]+)`")
# They would end the element or a line of a script; JSON contains them only inside of texts.
_HARMFUL = ("<", ">", "&", "\u2028", "\u2029")


def render_html_page(
    report: Report | None,
    context: CommentViewContext,
    *,
    applied: ApplyDocument | None = None,
    history: Sequence[PlanHistoryEntry] = (),
) -> str:
    """Returns the whole page; see `render_page_parts`."""
    return "".join(render_page_parts(report, context, applied=applied, history=history))


def render_page_parts(
    report: Report | None,
    context: CommentViewContext,
    *,
    applied: ApplyDocument | None = None,
    history: Sequence[PlanHistoryEntry] = (),
) -> Iterator[str]:
    """Yields the page of a review, of an apply, or of an apply with the review that it built.

    Each piece is made only when it is needed: with its icons, the whole page as one text would take
    four bytes for each letter.

    Args:
        report: Without secrets, as are all documents that reach this module.
        history: The earlier plans of the pull request, the oldest first.

    Raises:
        ValueError: there is neither a report nor an apply.
    """
    sections = list_page_sections(report, context, applied, history)
    return _generate_page(make_html_page_head(report, context, applied), sections)


def render_html_page_of_document(
    document: Report | ApplyDocument | CleanupDocument,
    context: CommentViewContext,
    review: Report | None = None,
    history: Sequence[PlanHistoryEntry] = (),
) -> Iterator[str]:
    """Yields the page of a review, an apply or a cleanup, in pieces.

    Args:
        review: The review that an apply has built, if it is known.
        history: As in `render_page_parts`.
    """
    if isinstance(document, Report):
        return render_page_parts(document, context, history=history)
    if isinstance(document, ApplyDocument):
        return render_page_parts(review, context, applied=document, history=history)
    return _generate_page(make_cleanup_head(document, context), list_cleanup_sections(document))


def _generate_page(head: HtmlPageHead, sections: Iterator[dict[str, object]]) -> Iterator[str]:
    styles = [_read_page_asset(name) for name in STYLES]
    scripts = [_read_page_asset(name) for name in SCRIPTS]
    return (
        _make_environment()
        .get_template(TEMPLATE)
        .generate(
            head=head,
            # One after the other: all together take 30 MB for 5,000 models.
            sections=(_mark_as_safe_html(embed_json_in_html(section)) for section in sections),
            styles=[_mark_as_safe_html(text) for text in styles],
            scripts=[_mark_as_safe_html(text) for text in scripts],
            policy=make_content_policy(scripts, styles),
        )
    )


def _mark_as_safe_html(text: str) -> Markup:
    """Marks text as safe: our own files, or JSON in which no character can end an element."""
    return Markup(text)  # noqa: S704 - escaped  # nosec B704


def list_page_sections(
    report: Report | None,
    context: CommentViewContext,
    applied: ApplyDocument | None,
    history: Sequence[PlanHistoryEntry],
) -> Iterator[dict[str, object]]:
    """Yields what the scripts draw, in the order of the page."""
    if applied is not None:
        yield from make_data_section(applied)
        yield from make_html_built_section(applied)
    if report is None:
        yield from make_cost_section(None, applied)
        return
    sources = HtmlReportSources(report, context)
    yield from make_findings_section(sources)
    yield from make_lineage_section(sources)
    yield from make_models_section(sources)
    yield from make_diffs_section(sources)
    yield from make_building_section(sources)
    yield from make_cost_section(report, applied)
    yield from make_checks_section(sources)
    yield from make_history_section(sources, history)
    yield from make_details_section(sources)
    yield from make_rules_section(_list_rules(report, applied), context.rules_url)


def _list_rules(report: Report, applied: ApplyDocument | None) -> list[str]:
    verdict = applied.verdict if applied else None
    data = [*verdict.risks, *verdict.cleared] if verdict else []
    return [risk.rule for risk in (*report.risks, *report.set_aside, *data)]


def embed_json_in_html(data: Any) -> str:
    """Returns JSON that is safe inside of an HTML element, with invisible characters shown."""
    text = json.dumps(
        _reveal_invisible_texts_in_html(data), ensure_ascii=False, separators=(",", ":")
    )
    for char in _HARMFUL:
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _reveal_invisible_texts_in_html(data: Any) -> Any:
    if isinstance(data, str):
        # Line by line, because a plain line costs nothing.
        return "\n".join(reveal_invisible(line, keep="\t") for line in data.split("\n"))
    if isinstance(data, dict):
        return {key: _reveal_invisible_texts_in_html(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_reveal_invisible_texts_in_html(item) for item in data]
    return data


def make_content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Returns the page's Content-Security-Policy: only these scripts and styles, no other load."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(_hash_source(text) for text in scripts)}",
            f"style-src {' '.join(_hash_source(text) for text in styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _hash_source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def find_directory_of_html_page() -> Path:
    """Returns the directory of this installation's scripts and styles for the page."""
    return find_resource("templates") / "webpage"


@cache
def _read_page_asset(name: str) -> str:
    return (find_directory_of_html_page() / name).read_text("utf-8")


def render_prose_html(text: str) -> Markup:
    """Renders a sentence as HTML, with text between backticks as code."""
    shown = reveal_invisible(text, keep="\n")
    parts = _CODE.split(shown)
    pieces = [
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    ]
    return Markup("").join(pieces)


@cache
def _make_environment() -> SandboxedEnvironment:
    created = make_sandbox_of_comment_templates(find_directory_of_html_page())
    created.filters |= {"prose": render_prose_html}
    return created
