"""The comparison of two queries in a terminal: the verdict, the reasons, and the example."""

from __future__ import annotations

from ci_bot.bot.report.model.execution_examples import GENERATED, list_lines, show_value
from ci_bot.bot.report.text.page import OutputScreen, TextPage
from ci_bot.protocol.executions import ExecutionExample, SameAnswer

_TITLES = {
    "same": ("The same", "green"),
    "differs": ("Different", "red"),
    "not_known": ("Not known", "yellow"),
}
_CHANGED = "*"


def render_compared_queries(answer: SameAnswer, screen: OutputScreen) -> str:
    """The answer as plain text, ending in a newline; changed values of the example are marked."""
    page = TextPage(width=screen.width, color=screen.colour)
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
            rows = [[show_value(value) for value in row] for row in table.rows]
            page.add_table(table.columns, rows)
    page.add_heading(f"The result before and after; {_CHANGED} marks what differs")
    lines = [
        [line.side, *(f"{cell.text}{_CHANGED if cell.changed else ''}" for cell in line.cells)]
        for line in list_lines(example)
    ]
    page.add_table(["", *example.columns], lines)
    page.add_gap()
    page.add_paragraph(GENERATED)
