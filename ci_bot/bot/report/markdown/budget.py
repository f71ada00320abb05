"""Cuts by importance: first what a reader needs least, and it always says how much it cut.

A comment holds 65,536 characters, and GitHub drops a step summary over one megabyte completely, so
both have a budget in bytes. The frame (marker, decision, reasons, glance, next step) is never cut.
Sections are shortened in their given order down to their reserve, then in a second and third round
below it. A section only loses whole rows, lines or nodes, so its fences and `<details>` always have
their end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from ci_bot.bot.report.markdown import marker
from ci_bot.bot.report.markdown.templating import get_environment_of_comment_templates
from ci_bot.bot.report.markdown_text import SafeMarkdown, make_link
from ci_bot.bot.report.model.context import CommentLinks, CommentViewContext, RenderedText

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


_FENCE = re.compile(r"(`{3,})([a-z]*)$")
_OPEN, _CLOSE = "<details", "</details>"
REVIEW_START = "<!-- review -->"
REVIEW_END = "<!-- /review -->"


def iterate_markdown_lines_with_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Yields every line of `text`, with whether it is outside of every fence."""
    fence = ""
    for line in _split_markdown_lines(text):
        match = _FENCE.match(line)
        if not fence:
            yield line, match is None
            fence = match[1] if match else ""
        else:
            yield line, False
            if match and not match[2] and len(match[1]) >= len(fence):
                fence = ""


def _split_markdown_lines(text: str) -> Iterator[str]:
    """Yields `text.split("\\n")` line by line, because a large report has tens of thousands."""
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    yield text[begin:]


def split_markdown_blocks(text: str) -> list[str]:
    """Returns the top-level blocks: paragraphs, tables, fences, each `<details>` as a whole."""
    blocks: list[list[str]] = [[]]
    depth = 0
    for line, outside in iterate_markdown_lines_with_fences(text):
        if outside and depth == 0 and not line.strip():
            blocks.append([])
            continue
        blocks[-1].append(line)
        if outside:
            depth += line.startswith(_OPEN)
            depth -= line.startswith(_CLOSE)
    return ["\n".join(block) for block in blocks if block]


def trim_markdown_blocks(text: str, budget: int | None) -> tuple[str, int, int]:
    """Returns the blocks of `text` that fit into `budget` bytes, their number, and that of all.

    It leaves out a block that is too large as a whole; later ones may still fit.
    """
    blocks = split_markdown_blocks(text)
    if budget is None:
        return text, len(blocks), len(blocks)
    kept: list[str] = []
    left = budget
    for block in blocks:
        needed = len(block.encode()) + 2
        if needed <= left:
            kept.append(block)
            left -= needed
    return "\n\n".join(kept), len(kept), len(blocks)


def tidy_blank_markdown_lines(text: str) -> str:
    """Returns `text` without repeated blank lines; fences keep theirs."""
    result: list[str] = []
    for line, outside in iterate_markdown_lines_with_fences(text):
        if outside and not line.strip():
            if result and result[-1] != "":
                result.append("")
            continue
        result.append(line.rstrip() if outside else line)
    return join_markdown_lines(result)


def join_markdown_lines(lines: Sequence[str]) -> str:
    """Joins the lines, without empty ones at both ends, and with one newline at the end.

    It joins all at once, without a copy: one icon makes Python use four bytes for each letter.
    """
    begin, end = 0, len(lines)
    while begin < end and not lines[begin]:
        begin += 1
    while begin < end and not lines[end - 1]:
        end -= 1
    return "\n".join([*lines[begin:end], ""]) or "\n"


def lift_review_from_comment_body(body: str) -> str:
    """Returns the review inside a comment that this package rendered; "" if there is none."""
    parts: list[str] = []
    inside = False
    for line, outside in iterate_markdown_lines_with_fences(body.replace("\r\n", "\n")):
        if outside and line in (REVIEW_START, REVIEW_END):
            inside = line == REVIEW_START
            parts.append("")
        elif inside:
            parts.append(line)
    return tidy_blank_markdown_lines("\n".join(parts)).strip("\n")


COMMENT_BYTES = 60_000
SUMMARY_BYTES = 1_000_000
_ROUNDS = (1.0, 0.25, 0.0)


@dataclass(frozen=True)
class FittedMarkdownPiece:
    """A section as far as it fits; it has `total` items, and `shown` of them are in the text."""

    text: SafeMarkdown
    shown: int
    total: int

    @property
    def size(self) -> int:
        return len(self.text.encode())

    @property
    def is_cut(self) -> bool:
        return self.shown < self.total


EMPTY = FittedMarkdownPiece(SafeMarkdown(""), 0, 0)


class MarkdownSection(Protocol):
    """A part of the text that can be shortened."""

    @property
    def name(self) -> str: ...

    def fit_section(self, budget: int | None) -> FittedMarkdownPiece:
        """Returns the best version of at most `budget` bytes (plus a note of a line, if cut)."""
        ...


@dataclass(frozen=True)
class SectionShare:
    """A section, and the bytes that it keeps in the first round in a comment of 60,000 bytes."""

    section: MarkdownSection
    reserve: int


def make_first_markdown_pieces(
    shares: Sequence[SectionShare], budget: int | None
) -> dict[str, FittedMarkdownPiece]:
    """Makes every section as if it had the whole budget alone."""
    return {share.section.name: share.section.fit_section(budget) for share in shares}


def fit_markdown_sections(
    frame: int,
    shares: Sequence[SectionShare],
    pieces: dict[str, FittedMarkdownPiece],
    budget: int | None,
) -> dict[str, FittedMarkdownPiece]:
    """Shortens `pieces` in the order of `shares` until they fit beside `frame` bytes."""
    if budget is None:
        return pieces
    fitted = dict(pieces)
    scale = budget / COMMENT_BYTES
    total = frame + sum(piece.size for piece in fitted.values())
    for part in _ROUNDS:
        for share in shares:
            if total <= budget:
                return fitted
            name = share.section.name
            size = fitted[name].size
            target = max(int(share.reserve * scale * part), size - (total - budget))
            if size <= target:
                continue
            # A cut adds its note; without this margin the note would exceed the budget.
            fitted[name] = share.section.fit_section(max(target - NOTE_BYTES, 0))
            total += fitted[name].size - size
    return fitted


def list_cut_markdown_sections(pieces: dict[str, FittedMarkdownPiece]) -> list[str]:
    """Lists the sections that are not complete."""
    return [name for name, piece in pieces.items() if piece.is_cut]


NOTE_BYTES = 400


def note_markdown_cut(shown: int, total: int, noun: str, full_report: SafeMarkdown) -> SafeMarkdown:
    """Makes the note that each cut leaves, so that no cut is silent."""
    counted = f"{shown:,} of {total:,} {noun} shown" if shown else f"{total:,} {noun} left out here"
    return SafeMarkdown(f"<sub>{counted}; all are in {full_report}.</sub>")


# Puts a comment together: the marker, the template's frame, the sections as far as they fit.


# The marker names the cuts, which are known only when all other text is ready.
_CUT_NAMES_BYTES = 400
CELL_LIMIT = 400


def compose_markdown_text(
    template: str,
    values: dict[str, object],
    shares: Sequence[SectionShare],
    context: CommentViewContext,
    budget: int | None,
) -> RenderedText:
    """Renders `template` in at most `budget` bytes; None means complete.

    Raises:
        jinja2.UndefinedError: a template names something that `values` does not have.
    """
    source = get_environment_of_comment_templates().get_template(template)

    def render_pieces(pieces: dict[str, FittedMarkdownPiece]) -> str:
        return tidy_blank_markdown_lines(source.render(values | {"c": context, "pieces": pieces}))

    pieces = make_first_markdown_pieces(shares, budget)
    frame = render_pieces({name: replace(p, text=SafeMarkdown("")) for name, p in pieces.items()})
    head = _make_marker_line(context, [])
    reserved = len(head.encode()) + _CUT_NAMES_BYTES
    pieces = fit_markdown_sections(len(frame.encode()) + reserved, shares, pieces, budget)
    cut = list_cut_markdown_sections(pieces)
    text = render_pieces(pieces)
    if budget is not None and len(text.encode()) > budget - reserved:
        # Only names and reasons of absurd length come to this; whole blocks are cut, from the end.
        text = trim_markdown_blocks(text, budget - reserved)[0] + "\n"
        cut = [*cut, "frame"]
    return RenderedText(_make_marker_line(context, cut) + text, cut)


def _make_marker_line(context: CommentViewContext, cut: list[str]) -> str:
    if context.marker is None:
        return ""
    return marker.encode_comment_marker(context.marker.model_copy(update={"cut": cut})) + "\n"


def full_report(context: CommentViewContext) -> SafeMarkdown:
    """Returns the link to the complete report, as the note of a cut names it."""
    return make_link(SafeMarkdown("the full report"), context.report_url)


def load_markdown_row_macro(name: str) -> Callable[..., str]:
    """Returns the macro `name` of the rows' template."""
    macro = getattr(get_environment_of_comment_templates().get_template("_rows.md.j2").module, name)

    def render_macro(*args: Any) -> str:
        return str(macro(*args)).strip("\n")

    return render_macro


def make_markdown_row_renderer(name: str, *args: Any) -> Callable[[Any], str]:
    """Returns the macro `name` of the rows' template as a function of one item."""
    macro = load_markdown_row_macro(name)
    return lambda item: macro(item, *args)


def make_base_values_of_comment_template(
    context: CommentViewContext, head: Sha | None = None
) -> dict[str, object]:
    """Returns the values that every template of a comment may use."""
    return {"v": None, "carried": None, "links": CommentLinks(context, head), "earlier_head": None}
