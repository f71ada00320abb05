"""A page of plain text, wrapped at a width: headings, facts, tables, and our own Markdown as text.

Of Markdown it reads what `ci_bot.bot.report` writes and no other, so that a terminal needs no
second renderer: there untrusted text stands in code spans and fences only, and each block begins at
the start of a line.
"""

from __future__ import annotations

import html
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import click

from ci_bot.bot.report.markdown.blocks import (
    FencedMarkdownBlock,
    join_markdown_lines,
    split_markdown_passages,
)
from ci_bot.bot.report.model.markdown_text import ELLIPSIS, clip_text, one_line, split_visible_lines
from ci_bot.host import Machine

WIDTH = 96

_GAP = "  "

_LEAST_COLUMN = 6
# Characters of a cell that are measured for each column of it: some take no room at all.
_MOST_KEPT = 8


class TextPage:
    """Collects lines. Colours are used only if `color` is set; the text is the same without them.

    Every text is made visible first, so nothing in it can move the cursor or set a title.
    """

    label_width = 13

    def __init__(self, *, width: int = WIDTH, color: bool = False) -> None:
        self._width = width
        self._color = color
        self._lines: list[str] = []
        self._below_heading = 0

    def render_text(self) -> str:
        """Everything so far, with one newline at the end."""
        return join_markdown_lines(self._lines)

    def add_title(self, text: str, color: str | None) -> None:
        """The first line, underlined; without a colour in that of the terminal's own text."""
        title = clip_text(one_line(text), self._width)
        self._lines += [
            self._style_text(title, fg=color, bold=True),
            "─" * min(len(title), self._width),
        ]

    def add_heading(self, text: str) -> None:
        wrapped = self._wrap_text(one_line(text), self._width)
        self._lines += ["", *(self._style_text(line, bold=True) for line in wrapped)]
        self._below_heading = len(self._lines)

    def add_gap(self) -> None:
        """An empty line, unless a heading stands above."""
        if len(self._lines) > self._below_heading:
            self._lines.append("")

    def add_fact(self, label: str, text: str | None) -> None:
        """`text` beside its label; nothing if there is no text."""
        if not text:
            return
        wrapped = self._wrap_text(text, self._width - self.label_width)
        first = self._style_text(label.ljust(self.label_width), bold=True)
        self._lines.append(first + wrapped[0])
        self._lines += [" " * self.label_width + line for line in wrapped[1:]]

    def add_item(self, text: str, *, mark: str = "-", color: str | None = None) -> None:
        """A list item; continued lines are indented."""
        indent = " " * (len(mark) + 3)
        wrapped = self._wrap_text(text, self._width - len(indent))
        self._lines.append(f"  {self._style_text(mark, fg=color) if color else mark} {wrapped[0]}")
        self._lines += [indent + line for line in wrapped[1:]]

    def add_note(self, text: str, indent: int = 4) -> None:
        """A paragraph below an item."""
        self._lines += [" " * indent + line for line in self._wrap_text(text, self._width - indent)]

    def add_paragraph(self, text: str) -> None:
        self._lines += self._wrap_text(text, self._width)

    def add_block(self, text: str, *, diff: bool = False) -> None:
        """Lines as they are, indented; a diff's lines in its colours."""
        colors = {"+": "green", "-": "red"} if diff else {}
        for line in split_visible_lines(text):
            expanded = line.replace("\t", "    ")
            self._lines.append("    " + self._style_text(expanded, fg=colors.get(expanded[:1])))

    def add_table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Columns in line, also with wide characters. The widest gives way on a narrow page."""
        cells = [[_plain_text(value) for value in row] for row in rows]
        if not cells:
            return
        columns = zip(header, *cells, strict=True)
        widths = [max(_count_cells(value) for value in column) for column in columns]
        room = self._width - len(_GAP) * len(widths)
        while sum(widths) > room and max(widths) > _LEAST_COLUMN:
            widths[widths.index(max(widths))] -= 1
        # Columns of numbers stand to the right.
        right = [
            all(value[:1].isdigit() or value == "–" for value in c)
            for c in zip(*cells, strict=True)
        ]
        self._lines.append(self._style_text(self._render_row(header, widths, right), dim=True))
        self._lines += [self._render_row(row, widths, right) for row in cells]

    @staticmethod
    def _render_row(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
        padded = []
        for index, (text, width) in enumerate(zip(row, widths, strict=True)):
            value = _keep_end(text, width)
            space = " " * (width - _count_cells(value))
            padded.append(space + value if index and right[index] else value + space)
        return (_GAP + _GAP.join(padded)).rstrip()

    def _style_text(self, text: str, **style: object) -> str:
        return click.style(text, **style) if self._color else text  # type: ignore[arg-type]  # the names are ours

    @staticmethod
    def _wrap_text(text: str, width: int) -> list[str]:
        return textwrap.wrap(_plain_text(text), width, break_on_hyphens=False) or [""]


def _count_cells(text: str) -> int:
    """Columns that a terminal gives a text; a character of East Asia or an emoji takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _keep_end(text: str, width: int) -> str:
    """A text that fits: the end of a name says more than its beginning."""
    if _count_cells(text) <= width:
        return text
    # A name may be as long as somebody likes; what is far from its end is never shown.
    end = text[-_MOST_KEPT * width :]
    while _count_cells(end) >= width:
        end = end[1:]
    return ELLIPSIS + end.lstrip(".")


def _plain_text(text: str) -> str:
    return one_line(text.replace("\u00a0", " ")).replace("`", "")


# What the terminal shows: whether in colours, and how wide.


# Narrower no table can be read, and wider no line.
NARROWEST, WIDEST = 60, 200

_DIGITS = 6


@dataclass(frozen=True)
class OutputScreen:
    """Where a text is printed. `width` is in columns."""

    colour: bool = False
    width: int = WIDTH


def make_screen(machine: Machine) -> OutputScreen:
    """The machine's standard output.

    A terminal that shows colours gets them, unless NO_COLOR is set (https://no-color.org) or the
    option says otherwise. COLUMNS counts where it is set, then the terminal's own width; a file
    or a pipe has none, and gets one that suits most readers.
    """
    return OutputScreen(colour=_wants_colour(machine), width=_find_width(machine))


def make_text_page(machine: Machine) -> TextPage:
    """An empty page for the machine's standard output."""
    screen = make_screen(machine)
    return TextPage(width=screen.width, color=screen.colour)


def _wants_colour(machine: Machine) -> bool:
    if machine.color != "auto":
        return machine.color == "always"
    refused = machine.environ.get("NO_COLOR") or machine.environ.get("TERM") == "dumb"
    return machine.out.isatty() and not refused


def _find_width(machine: Machine) -> int:
    columns = machine.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < _DIGITS and int(columns):
        return _bound_width(int(columns))
    try:
        return _bound_width(os.get_terminal_size(machine.out.fileno()).columns or WIDTH)
    except (OSError, ValueError):  # a file, a pipe, or a text in memory
        return WIDTH


def _bound_width(width: int) -> int:
    return max(NARROWEST, min(width, WIDEST))


_COLORS = {
    **dict.fromkeys("🟢✅🧹", "green"),
    **dict.fromkeys("🟡🟠⚠⏹", "yellow"),
    **dict.fromkeys("🔴❌💥⛔", "red"),
}
# Readers of a terminal have no use for the source of a picture.
_PICTURE = re.compile(r"<details><summary>[^\n]*\n\n```mermaid\n.*?\n</details>\n", re.DOTALL)
_HEADING = re.compile(r"\*\*([^*:]+)\*\*( \(\d[\d,]*\))?")
_FACT = re.compile(r"\*\*([^*:]{1,12}):\*\*\s*(.*)")
_ITEM = re.compile(r"(-|\d+\.) (.*)")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# Of ours: in other people's words an underscore stands in a span, or as its number.
_EMPHASIS = re.compile(r"(?<!\S)_(\S.*?\S)_(?!\S)")
_TAG = re.compile(r"</?[a-z]+(?: open)?/?>")
# No text of a report holds one: an unusual character is written with its number there.
PLACE = "\ue000"
# A table is drawn as one where its first column keeps at least so many characters.
_LEAST_NAME = 24
# One of what columns count.
_ONE = {"intervals": "interval", "batches": "batch", "rows": "row", "tables": "table"}
# So long is a cell that still stands beside the first one, where there is no table.
_BESIDE = 64


def render_plain(markdown: str, *, colour: bool = False, width: int = WIDTH) -> str:
    """The text of a comment, complete but for pictures, ending in a newline.

    Args:
        markdown: As this package's templates render it.
        colour: Whether the output is a terminal that shows colours.
        width: Columns to wrap at; what is to be copied may be wider.
    """
    page = TextPage(width=width, color=colour)
    markdown = _PICTURE.sub("", markdown)
    for passage in split_markdown_passages(markdown):
        if isinstance(passage, FencedMarkdownBlock):
            page.add_block("\n".join(passage.lines), diff=passage.language == "diff")
        else:
            _add_text(page, passage, width)
    return page.render_text()


def _add_text(page: TextPage, lines: Sequence[str], width: int) -> None:
    for kind, found in groupby(lines, _classify_line):
        _SHOW[kind](page, list(found), width)


def _classify_line(line: str) -> str:
    starts = {"": "nothing", "<!--": "nothing", "</details>": "nothing"}
    starts |= {"<details": "section", "## ": "title", "|": "table", ">": "alert"}
    for start, kind in starts.items():
        if line.startswith(start) and (start or not line):
            return kind
    return "item" if _ITEM.fullmatch(line) else "text"


def _add_title(page: TextPage, lines: Sequence[str], _width: int) -> None:
    text = _strip_markup(lines[0].removeprefix("## "))
    page.add_title(text, _COLORS.get(text[:1]))


def _add_section(page: TextPage, lines: Sequence[str], _width: int) -> None:
    page.add_heading(_strip_markup(lines[0]))


def _add_alert(page: TextPage, lines: Sequence[str], _width: int) -> None:
    label, *rest = (line.lstrip("> ") for line in lines)
    page.add_fact(label.strip("[!]"), _strip_markup(" ".join(rest)))


def _add_items(page: TextPage, lines: Sequence[str], _width: int) -> None:
    for number, line in enumerate(lines, start=1):
        mark, _, text = line.partition(" ")
        # Markdown counts by itself, whatever number each item has.
        page.add_item(_strip_markup(text), mark=mark if mark == "-" else f"{number}.")


def _add_paragraph(page: TextPage, lines: Sequence[str], _width: int) -> None:
    text = " ".join(lines)
    fact = _FACT.fullmatch(text)
    if _HEADING.fullmatch(text):
        page.add_heading(_strip_markup(text))
    elif fact and fact[2]:
        page.add_fact(fact[1], _strip_markup(fact[2]))
    else:
        page.add_paragraph(_strip_markup(text))


def _add_table(page: TextPage, lines: Sequence[str], width: int) -> None:
    header, _, *body = map(_split_cells, lines)
    # Two columns, of which the first has no name, are facts; rows before and after have more.
    if not header[0] and not header[2:]:
        page.add_heading(header[1])
        for label, text in body:
            page.add_fact(label, text)
        return
    columns = list(zip(header, *body, strict=True))
    rest = sum(max(map(len, column)) + 2 for column in columns[1:])
    page.add_gap()
    if rest + min(_LEAST_NAME, max(map(len, columns[0]))) <= width:
        page.add_table(header, body)
        return
    for name, *values in body:
        cells = list(zip(header[1:], values, strict=True))
        beside = [_format_amount(label, value) for label, value in cells if len(value) <= _BESIDE]
        page.add_item(" · ".join([name, *filter(None, beside)]))
        for label, value in cells:
            if len(value) > _BESIDE:
                page.add_note(f"{label}: {value}", indent=6)


def _format_amount(label: str, value: str) -> str:
    """A short cell: a number says of what it is one, and what there is none of is left out."""
    if value == "–":
        return ""
    if value == "1":
        return f"1 {_ONE.get(label.lower(), label.lower())}"
    return f"{value} {label.lower()}" if value.replace(",", "").isdigit() else value


def _split_cells(line: str) -> list[str]:
    text, spans = extract_code_spans(line)
    return [_restore_spans(cell.strip(), spans) for cell in text.strip("|").split("|")]


def _strip_markup(text: str) -> str:
    return _restore_spans(*extract_code_spans(text))


def extract_code_spans(text: str) -> tuple[str, list[str]]:
    """`text` with its code spans taken out, so that nothing in them is taken for markup."""
    spans: list[str] = []

    def take_span(span: re.Match[str]) -> str:
        content = span[2].replace("\\|", "|")
        padded = content[:1] == content[-1:] == " " and content.strip()
        spans.append(content[1:-1] if padded else content)
        return PLACE

    return _SPAN.sub(take_span, text), spans


def _restore_spans(text: str, spans: list[str]) -> str:
    """Our own words without markup, the spans back in their places (and off the list)."""
    # The icons' own request for colours is an invisible character, which Page would show.
    text = text.replace("<br>", " · ").replace("\ufe0f", "")
    text = html.unescape(
        _TAG.sub("", _EMPHASIS.sub(r"\1", _LINK.sub(r"\1", text)).replace("**", ""))
    )
    text = text.replace("\u00a0", " ")
    return re.sub(PLACE, lambda _: spans.pop(0), text)


_SHOW: dict[str, Callable[[TextPage, Sequence[str], int], None]] = {
    "nothing": lambda _page, _lines, _width: None,
    "title": _add_title,
    "section": _add_section,
    "alert": _add_alert,
    "item": _add_items,
    "table": _add_table,
    "text": _add_paragraph,
}
