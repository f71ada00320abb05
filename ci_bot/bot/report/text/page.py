"""A page of plain text: headings, labelled facts, tables and paragraphs, wrapped at a width."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from ci_bot.bot.report.markdown.blocks import join_lines
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
        return join_lines(self._lines)

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
