"""Two queries compared, for people at a terminal."""

from __future__ import annotations

from ci_bot.bot.report.model.execution_examples import (
    GENERATED,
    list_lines_of_example_view,
    show_example_value,
)
from ci_bot.bot.report.text.page import TextPage, make_page_of_screen
from ci_bot.bot.report.text.screen import OutputScreen
from ci_bot.protocol.review_inputs import ExecutionExample, SameAnswer

_TITLES = {
    "same": ("The same", "green"),
    "differs": ("Different", "red"),
    "not_known": ("Not known", "yellow"),
}
_CHANGED = "*"


def render_compared_queries(answer: SameAnswer, screen: OutputScreen) -> str:
    """The answer as plain text, ending in a newline; changed values of the example are marked."""
    page = make_page_of_screen(screen)
    title, color = _TITLES[answer.verdict]
    page.add_title(title, color)
    page.add_paragraph(answer.told)
    if answer.example is not None:
        _add_example(page, answer.example)
    return page.render_text()


def _add_example(page: TextPage, example: ExecutionExample) -> None:
    for table in example.inputs:
        page.add_heading(table.table)
        if not table.rows:
            page.add_paragraph("without rows")
        elif not table.columns:
            page.add_paragraph(f"rows: {len(table.rows)}, of any values")
        else:
            rows = [[show_example_value(value) for value in row] for row in table.rows]
            page.add_table(table.columns, rows)
    page.add_heading(f"The result before and after; {_CHANGED} marks what differs")
    lines = [
        [line.side, *(f"{cell.text}{_CHANGED if cell.changed else ''}" for cell in line.cells)]
        for line in list_lines_of_example_view(example)
    ]
    page.add_table(["", *example.columns], lines)
    page.add_gap()
    page.add_paragraph(GENERATED)
