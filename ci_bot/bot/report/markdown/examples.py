"""The example of a changed model in a comment: its generated rows, and both results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_bot.bot.report.model.execution_examples import (
    NO_WITNESS,
    WITNESS,
    list_lines,
    show_value,
)
from ci_bot.bot.report.model.markdown_text import (
    SafeMarkdown,
    make_code_span,
    make_fenced_block,
    make_table_cell,
)
from ci_bot.protocol.executions import ExampleInput, ExecutionExample, ModelExecution


def render_example(item: ModelExecution) -> SafeMarkdown:
    """A heading, a table for each table that is read, and one for the results."""
    if item.example is None:
        raise ValueError(f"no example of {item.model}")
    parts = [f"**{make_code_span(item.model)}** gives another result if it reads these rows:"]
    parts += [_render_input(table) for table in item.example.inputs]
    parts += ["The result before and after, with what changes in bold:"]
    return SafeMarkdown("\n\n".join([*parts, _render_outputs(item.example), *_render_test(item)]))


def _render_test(item: ModelExecution) -> Iterator[str]:
    """A fold with the unit test, or why there is none."""
    if item.witness is not None:
        place = make_code_span(item.witness.path)
        yield f"<details><summary>{WITNESS}</summary>"
        yield f"For {place}; {make_code_span(f'ci-bot witness {item.model} --write')} writes it."
        yield make_fenced_block(item.witness.text, "yaml")
        yield "</details>"
    elif item.no_witness is not None:
        yield f"{NO_WITNESS} {make_code_span(item.no_witness)}."


def _render_input(table: ExampleInput) -> str:
    name = make_code_span(table.table)
    if not table.rows:
        return f"{name}, without rows"
    if not table.columns:
        return f"{name}, {len(table.rows)} of any rows"
    rows = [[make_table_cell(show_value(value)) for value in row] for row in table.rows]
    return f"{name}\n\n{_render_table([make_table_cell(column) for column in table.columns], rows)}"


def _render_outputs(example: ExecutionExample) -> str:
    heads = ["", *(make_table_cell(column) for column in example.columns)]
    return _render_table(heads, list(_list_outputs(example)))


def _list_outputs(example: ExecutionExample) -> Iterator[list[str]]:
    lines = list(list_lines(example))
    none = ["" for _ in example.columns]
    if all(line.side == "after" for line in lines):
        yield ["before: no row", *none]
    for line in lines:
        cells = [(make_table_cell(cell.text), cell.changed) for cell in line.cells]
        yield [line.side, *(f"**{text}**" if changed else text for text, changed in cells)]
    if all(line.side == "before" for line in lines):
        yield ["after: no row", *none]


def _render_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, [":--"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
