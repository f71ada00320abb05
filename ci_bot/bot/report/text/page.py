"""A page of text that rich draws: headings, facts, lists, blocks and tables."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from ci_bot.bot.report.markdown_text import ELLIPSIS, one_line, split_visible_lines
from ci_bot.bot.report.text.screen import WIDTH, OutputScreen, make_screen
from ci_bot.host import Machine

# Most callers have a `str`; the reader of Markdown makes a `Text` with bold words and links.
PageText = str | Text

_LEAST_COLUMN = 6
# How many characters of a cell are measured for each column of width: some take no room.
_MOST_KEPT = 8
_DIFF_STYLES = {"+": "green", "-": "red"}


class TextPage:
    """Collects lines. Colours are used only if `color` is set; the text is the same without them.

    Every text is made visible first, so no character in it can move the cursor or set a title.
    """

    label_width = 13

    def __init__(self, *, width: int = WIDTH, color: bool = False) -> None:
        self._out = io.StringIO()
        # All of it is set here, so that rich asks neither the environment nor the terminal.
        self._console = Console(
            file=self._out,
            width=width,
            height=25,
            color_system="standard" if color else None,
            force_terminal=color,
            no_color=not color,
            force_jupyter=False,
            legacy_windows=False,
        )
        self._width = width
        # Whether only a heading, or no line at all, is above the next line.
        self._at_start = True

    def render_text(self) -> str:
        """Returns all text so far, with one newline at the end."""
        return self._out.getvalue().strip("\n") + "\n"

    def add_title(self, text: PageText, color: str | None) -> None:
        """Adds the first line, underlined; without a colour it has the terminal's text colour."""
        title = _make_visible(text)
        title.truncate(self._width, overflow="ellipsis")
        title.stylize(f"bold {color or ''}")
        self._print_lines([title, Text("─" * title.cell_len)])

    def add_heading(self, text: PageText) -> None:
        heading = _make_visible(text)
        heading.stylize("bold")
        self._print_lines([Text()])
        self._print_wrapped(heading)
        self._at_start = True

    def add_gap(self) -> None:
        """Adds an empty line, unless the line above is a heading."""
        if not self._at_start:
            self._print_lines([Text()])

    def add_fact(self, label: str, text: PageText | None) -> None:
        """Adds `text` beside its label; nothing if there is no text."""
        if text:
            lead = Text.assemble((f"{label} ".ljust(self.label_width), "bold"))
            self._print_wrapped(_make_visible(text), lead=lead)

    def add_item(self, text: PageText, *, mark: str = "-", color: str | None = None) -> None:
        """Adds a list item; continued lines are indented."""
        lead = Text.assemble("  ", (mark, color or ""), " ")
        self._print_wrapped(_make_visible(text), lead=lead)

    def add_note(self, text: PageText, indent: int = 4) -> None:
        """Adds a paragraph below an item."""
        self._print_wrapped(_make_visible(text), lead=Text(" " * indent))

    def add_paragraph(self, text: PageText) -> None:
        self._print_wrapped(_make_visible(text))

    def add_block(self, text: str, *, diff: bool = False) -> None:
        """Adds lines unchanged, to be copied: indented, never wrapped; a diff has its colours."""
        styles = _DIFF_STYLES if diff else {}
        lines = [
            Text.assemble("    ", (line.expandtabs(4), styles.get(line[:1], "")))
            for line in split_visible_lines(text)
        ]
        self._print_lines(lines)

    def add_table(self, header: Sequence[str], rows: Iterable[Sequence[PageText]]) -> None:
        """Adds aligned columns. On a narrow page sentences wrap, and long names keep their end."""
        cells = [[_make_visible(value) for value in row] for row in rows]
        if not cells:
            return
        columns = list(zip(*cells, strict=True))
        table = Table(
            *(
                Column(one_line(name), justify="right" if index and _is_numeric(column) else "left")
                for index, (name, column) in enumerate(zip(header, columns, strict=True))
            ),
            box=None,
            padding=(0, 0, 0, 2),
            header_style="dim",
        )
        for row in cells:
            table.add_row(*map(_make_text_table_cell, row))
        self._print_lines(
            Text.assemble(*((each.text, each.style or "") for each in segments))
            for segments in self._console.render_lines(table, pad=False)
        )

    def _print_wrapped(self, text: Text, *, lead: Text | None = None) -> None:
        """Prints the text, wrapped beside `lead`; its other lines are indented as far."""
        lead = lead or Text()
        indent = Text(" " * lead.cell_len)
        lines = text.wrap(self._console, self._width - lead.cell_len) or [Text()]
        self._print_lines((indent if index else lead) + line for index, line in enumerate(lines))

    def _print_lines(self, lines: Iterable[Text]) -> None:
        """Prints lines that have their width already, without blanks at their ends."""
        kept = list(lines)
        for line in kept:
            line.rstrip()
        self._console.print(Text("\n").join(kept), soft_wrap=True, highlight=False)
        self._at_start = False


def make_text_page(machine: Machine) -> TextPage:
    """Makes an empty page for the machine's standard output."""
    return make_page_of_screen(make_screen(machine))


def make_page_of_screen(screen: OutputScreen) -> TextPage:
    """Makes an empty page that is as wide as the screen, and coloured if the screen is."""
    return TextPage(width=screen.width, color=screen.colour)


class _NameCell:
    """A name in a table. If it does not fit, its beginning is cut: the end says more."""

    def __init__(self, name: Text) -> None:
        self._name = name

    def __rich_measure__(self, _console: Console, _options: ConsoleOptions) -> Measurement:
        width = self._name.cell_len
        return Measurement(min(_LEAST_COLUMN, width), width)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield _keep_end_of_name(self._name, options.max_width)


def _make_text_table_cell(text: Text) -> Text | _NameCell:
    return text if " " in text.plain else _NameCell(text)


def _keep_end_of_name(name: Text, width: int) -> Text:
    if name.cell_len <= width:
        return name
    # A name can have any length; characters far from its end are never shown.
    end = name.plain[-_MOST_KEPT * width :]
    while cell_len(end) >= width:
        end = end[1:]
    return Text(ELLIPSIS + end.lstrip("."), style=name.style)


def _is_numeric(column: Iterable[Text]) -> bool:
    """Whether a column has only numbers, which are aligned to the right."""
    return all(value.plain[:1].isdigit() or value.plain == "–" for value in column)


def _make_visible(text: PageText) -> Text:
    """Makes a copy that may be styled. The reader of Markdown has made its words visible."""
    if isinstance(text, Text):
        return text.copy()
    return Text(one_line(text.replace("\u00a0", " ")).replace("`", ""))
