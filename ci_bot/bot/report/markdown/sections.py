"""The kinds of section that can be shortened: tables, diffs, examples, stages, the lineage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ci_bot.bot.report import markdown_text
from ci_bot.bot.report.markdown.budget import (
    CELL_LIMIT,
    EMPTY,
    NOTE_BYTES,
    FittedMarkdownPiece,
    SectionShare,
    full_report,
    load_markdown_row_macro,
    make_markdown_row_renderer,
    note_markdown_cut,
    trim_markdown_blocks,
)
from ci_bot.bot.report.markdown_text import (
    SafeMarkdown,
    make_code_span,
    make_fenced_block,
    make_table_cell,
    render_prose,
)
from ci_bot.bot.report.model import lineage as graph
from ci_bot.bot.report.model.execution_examples import (
    NO_WITNESS,
    WITNESS,
    list_lines_of_example_view,
    show_example_value,
)
from ci_bot.bot.report.model.lineage import make_node_notes
from ci_bot.bot.report.model.view import ReviewView
from ci_bot.protocol.plan import Backfill, Change, Lineage, Stage
from ci_bot.protocol.review_inputs import ExampleInput, ExecutionExample, ModelExecution


def render_example_markdown(item: ModelExecution) -> SafeMarkdown:
    """Renders a heading, a table for each input table, and one for the results."""
    if item.example is None:
        raise ValueError(f"no example of {item.model}")
    parts = [f"**{make_code_span(item.model)}** gives another result if it reads these rows:"]
    parts += [_render_input_markdown(table) for table in item.example.inputs]
    parts += ["The result before and after, with what changes in bold:"]
    return SafeMarkdown(
        "\n\n".join([*parts, _render_outputs_markdown(item.example), *_render_test_markdown(item)])
    )


def _render_test_markdown(item: ModelExecution) -> Iterator[str]:
    """Yields a fold with the unit test, or why there is none."""
    if item.witness is not None:
        place = make_code_span(item.witness.path)
        yield f"<details><summary>{WITNESS}</summary>"
        yield f"For {place}; {make_code_span(f'ci-bot witness {item.model} --write')} writes it."
        yield make_fenced_block(item.witness.text, "yaml")
        yield "</details>"
    elif item.no_witness is not None:
        yield f"{NO_WITNESS} {make_code_span(item.no_witness)}."


def _render_input_markdown(table: ExampleInput) -> str:
    name = make_code_span(table.table)
    if not table.rows:
        return f"{name}, without rows"
    if not table.columns:
        return f"{name}, {len(table.rows)} of any rows"
    rows = [[make_table_cell(show_example_value(value)) for value in row] for row in table.rows]
    heads = [make_table_cell(column) for column in table.columns]
    return f"{name}\n\n{_render_markdown_table(heads, rows)}"


def _render_outputs_markdown(example: ExecutionExample) -> str:
    heads = ["", *(make_table_cell(column) for column in example.columns)]
    return _render_markdown_table(heads, list(_list_outputs(example)))


def _list_outputs(example: ExecutionExample) -> Iterator[list[str]]:
    lines = list(list_lines_of_example_view(example))
    none = ["" for _ in example.columns]
    if all(line.side == "after" for line in lines):
        yield ["before: no row", *none]
    for line in lines:
        cells = [(make_table_cell(cell.text), cell.changed) for cell in line.cells]
        yield [line.side, *(f"**{text}**" if changed else text for text, changed in cells)]
    if all(line.side == "before" for line in lines):
        yield ["after: no row", *none]


def _render_markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, [":--"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_Item = TypeVar("_Item")

_LINE_LIMIT = 500
_NODE_CAPS = (graph.MAX_LINEAGE_NODES, 28, 20, 14, 9, 5)
_STAGE_CAPS = (100, 40, 15, 6, 2, 0)


def _count_bytes(text: str) -> int:
    return len(text.encode())


@dataclass
class RowsMarkdownSection(Generic[_Item]):
    """A table, or a list of blocks if `header` is empty; the heaviest items come first.

    It renders only the rows that are needed: 5,000 models cost no more than the rows that fit.
    """

    name: str
    items: Sequence[_Item]
    row: Callable[[_Item], str]
    noun: str
    full_report: SafeMarkdown
    header: str = ""
    separator: str = "\n"
    _done: list[str] = field(default_factory=list, init=False, repr=False)

    def fit_section(self, budget: int | None) -> FittedMarkdownPiece:
        if not self.items:
            return EMPTY
        used = _count_bytes(self.header) + 1
        shown: list[str] = []
        for index, item in enumerate(self.items):
            if index == len(self._done):
                self._done.append(self.row(item))
            used += _count_bytes(self._done[index]) + len(self.separator)
            if budget is not None and used > budget:
                break
            shown.append(self._done[index])
        total = len(self.items)
        parts = [self.header, *shown] if self.header and shown else shown
        text = self.separator.join(parts)
        if len(shown) < total:
            remark = note_markdown_cut(len(shown), total, self.noun, self.full_report)
            text = f"{text}\n\n{remark}" if shown else remark
        return FittedMarkdownPiece(SafeMarkdown(text), len(shown), total)


@dataclass(frozen=True)
class ModelDiff:
    """One model's heading, which is safe already, and its unified diff, which is not."""

    heading: SafeMarkdown
    text: str


@dataclass
class DiffsMarkdownSection:
    """Diffs of definitions, each with an equal share; large ones get what small ones leave."""

    name: str
    items: Sequence[ModelDiff]
    full_report: SafeMarkdown
    least: int = 500
    _lines: dict[int, list[str]] = field(default_factory=dict, init=False, repr=False)

    def fit_section(self, budget: int | None) -> FittedMarkdownPiece:
        if not self.items:
            return EMPTY
        if budget is None:
            blocks = [
                _render_diff(item, markdown_text.split_visible_lines(item.text))
                for item in self.items
            ]
            return FittedMarkdownPiece(SafeMarkdown("\n\n".join(blocks)), len(blocks), len(blocks))
        count = min(len(self.items), budget // self.least)
        blocks, whole = [], 0
        left = budget
        # The smallest first, so that later ones can use what earlier ones left.
        chosen = sorted(range(count), key=lambda index: len(self.items[index].text))
        texts: dict[int, str] = {}
        for position, index in enumerate(chosen):
            share = left // (count - position)
            text, complete = self._fit_within(index, share)
            whole += complete
            left -= _count_bytes(text) + 2
            texts[index] = text
        blocks = [texts[index] for index in range(count)]
        total = len(self.items)
        if whole < total:
            blocks.append(
                note_markdown_cut(count, total, "diffs, long ones shortened,", self.full_report)
            )
            if count == total:
                long = total - whole
                blocks[-1] = SafeMarkdown(
                    f"<sub>{long:,} of {total:,} diffs shortened; all are complete in "
                    f"{self.full_report}.</sub>"
                )
        return FittedMarkdownPiece(SafeMarkdown("\n\n".join(blocks)), whole, total)

    def _fit_within(self, index: int, share: int) -> tuple[str, bool]:
        item = self.items[index]
        if index not in self._lines:
            self._lines[index] = markdown_text.split_visible_lines(item.text)
        lines = self._lines[index]
        room = share - _count_bytes(item.heading) - 120
        head: list[str] = []
        for line in lines:
            shown = markdown_text.clip_text(line, _LINE_LIMIT)
            room -= _count_bytes(shown) + 1
            if room < 0:
                break
            head.append(shown)
        if len(head) == len(lines):
            return _render_diff(item, head), all(len(line) <= _LINE_LIMIT for line in lines)
        rest = lines[len(head) :]
        hunks = sum(line.startswith("@@") for line in rest)
        more = f"… {len(rest):,} more lines" + (f" in {hunks:,} more hunks" if hunks else "")
        return _render_diff(item, [*head, more]), False


def _render_diff(item: ModelDiff, lines: Sequence[str]) -> str:
    return f"{item.heading}\n\n{markdown_text.make_fenced_block(chr(10).join(lines), 'diff')}"


@dataclass
class StagesMarkdownSection:
    """The steps of an apply, in order. All stages are shown; their items are shortened first."""

    name: str
    items: Sequence[Stage]
    full_report: SafeMarkdown

    def fit_section(self, budget: int | None) -> FittedMarkdownPiece:
        total = sum(1 + len(stage.items) for stage in self.items)
        if not total:
            return EMPTY
        if budget is None:
            return FittedMarkdownPiece(self._render_fence(None), total, total)
        largest = max(len(stage.items) for stage in self.items)
        for cap in (*([largest] if largest < _STAGE_CAPS[0] else []), *_STAGE_CAPS):
            text = self._render_fence(cap)
            if _count_bytes(text) <= budget:
                shown = sum(1 + min(cap, len(stage.items)) for stage in self.items)
                if shown == total:
                    return FittedMarkdownPiece(text, total, total)
                remark = note_markdown_cut(shown, total, "lines", self.full_report)
                return FittedMarkdownPiece(SafeMarkdown(f"{text}\n\n{remark}"), shown, total)
        return FittedMarkdownPiece(note_markdown_cut(0, total, "lines", self.full_report), 0, total)

    def _render_fence(self, cap: int | None) -> SafeMarkdown:
        lines: list[str] = []
        limit = None if cap is None else _LINE_LIMIT
        for position, stage in enumerate(self.items, start=1):
            lines.append(f"{position}. {markdown_text.one_line(stage.title, limit)}")
            shown = stage.items if cap is None else stage.items[:cap]
            lines += [f"   {markdown_text.one_line(item, limit)}" for item in shown]
            if len(shown) < len(stage.items):
                lines.append(f"   … {len(stage.items) - len(shown):,} more")
        return markdown_text.make_fenced_block("\n".join(lines), "text")


@dataclass
class GraphMarkdownSection:
    """The lineage with as many models as fit; complete texts list every edge below it."""

    name: str
    lineage: Lineage
    full_report: SafeMarkdown
    notes: Mapping[str, str] = field(default_factory=dict)

    def fit_section(self, budget: int | None) -> FittedMarkdownPiece:
        for cap in _NODE_CAPS:
            drawn = graph.draw_lineage_view(self.lineage, cap, self.notes)
            if drawn is None:
                return EMPTY
            text = f"{drawn.text}\n\n<sub>{drawn.legend}</sub>"
            if budget is None:
                return FittedMarkdownPiece(
                    SafeMarkdown(text + self._list_edges(drawn)), drawn.total, drawn.total
                )
            if _count_bytes(text) <= budget:
                if drawn.drawn < drawn.total:
                    remark = note_markdown_cut(drawn.drawn, drawn.total, "models", self.full_report)
                    text = f"{text}\n\n{remark}"
                return FittedMarkdownPiece(SafeMarkdown(text), drawn.drawn, drawn.total)
        total = len(self.lineage.nodes)
        return FittedMarkdownPiece(
            note_markdown_cut(0, total, "models of the lineage", self.full_report), 0, total
        )

    def _list_edges(self, drawn: graph.LineageView) -> str:
        if drawn.drawn == drawn.total:
            return ""
        edges = "\n".join(f"{parent} -> {reader}" for parent, reader in self.lineage.edges)
        block = markdown_text.make_fenced_block(edges, "text")
        return f"\n\nAll edges, from the read model to its reader:\n\n{block}"


@dataclass
class OlderReviewMarkdownSection:
    """A review of which only our own earlier comment has the text; it is cut between blocks."""

    name: str
    text: str
    full_report: SafeMarkdown

    def fit_section(self, budget: int | None) -> FittedMarkdownPiece:
        if not self.text:
            return EMPTY
        room = None if budget is None else max(budget - NOTE_BYTES, 0)
        kept, shown, total = trim_markdown_blocks(self.text, room)
        if shown < total:
            remark = note_markdown_cut(shown, total, "parts of the review", self.full_report)
            kept = f"{kept}\n\n{remark}" if kept else remark
        return FittedMarkdownPiece(SafeMarkdown(kept), shown, total)


# The sections of a review in the order in which the budget cuts them, each with its reserve.


_CHANGES = "| Model | Change | Category | Kind | Owner |\n|:--|:--|:--|:--|:--|"
_MINOR = "| Model | Category | Kind |\n|:--|:--|:--|"
_IMPACT = "| Changed | How | Reaches |\n|:--|:--|:--|"
_RISKS = "| Risk | Where | Evidence | Clears when |\n|:--|:--|:--|:--|"
_ASIDE = "| Finding | Where | Evidence | Why it does not count |\n|:--|:--|:--|:--|"
_FINDINGS = "| Finding | Where | Evidence |\n|:--|:--|:--|"
_LOSSES = "| Model | What goes | Still read by |\n|:--|:--|:--|"
_BACKFILL = "| Model | How | Window | Intervals | Batches | Table |\n|:--|:--|:--|--:|--:|:--|"
_RESTATEMENTS = "| Model | Window | Clears data of |\n|:--|:--|:--|"
_STATEMENTS = "| When | Change | Statement |\n|:--|:--|:--|"

_WORK = (
    "| Model | Change | What is built here | Intervals | In `prod` later |\n|:--|:--|:--|--:|:--|"
)

_GAPS = "| Model | Missing |\n|:--|:--|"
_HISTORY = "| When | Head | Plan | Decision | Run |\n|:--|:--|:--|:--|:--|"


def _make_work_rows(
    view: ReviewView, full: markdown_text.SafeMarkdown
) -> RowsMarkdownSection[Backfill]:
    macro = load_markdown_row_macro("work")

    def render_work(item: Backfill) -> str:
        change = view.change_of.get(item.model)
        return macro(item, change, view.links, view.describe_in_prod(item))

    return RowsMarkdownSection("work", view.backfill, render_work, "models", full, _WORK)


def make_shares_of_review_comment(view: ReviewView, *, complete: bool) -> list[SectionShare]:
    """Makes all sections; those that a reader needs least come first, because they are cut first.

    `complete` texts also keep long cells whole.
    """
    report, links = view.report, view.links
    full = full_report(view.context)
    limit = None if complete else CELL_LIMIT

    def make_table(
        name: str, items: Sequence[Any], header: str, noun: str, *args: Any
    ) -> RowsMarkdownSection[Any]:
        macro, *rest = args
        return RowsMarkdownSection(
            name, items, make_markdown_row_renderer(macro, *rest), noun, full, header
        )

    change = make_markdown_row_renderer("diff_heading", links)

    def make_diff(item: Change) -> ModelDiff:
        return ModelDiff(markdown_text.SafeMarkdown(change(item)), item.diff or "")

    checks = report.checks
    plan = report.prod_plan
    history = list(reversed(view.context.history))

    def make_lines(name: str, items: Sequence[str], noun: str) -> RowsMarkdownSection[str]:
        return RowsMarkdownSection(
            name, items, lambda text: f"- {render_prose(text, limit)}", noun, full
        )

    tests = RowsMarkdownSection(
        "tests",
        checks.tests.failures,
        make_markdown_row_renderer("test_failure", links, limit),
        "failed tests",
        full,
        separator="\n\n",
    )
    alters = plan.forward_only_schema_changes if plan else []
    failure = [plan.failure] if plan and plan.failure else []
    small = [
        SectionShare(make_lines("notes", report.notes, "notes"), 800),
        SectionShare(make_lines("basis", [report.cost.basis], "remarks"), 500),
        SectionShare(make_table("gaps", view.gaps, _GAPS, "gaps", "gap"), 500),
        SectionShare(
            RowsMarkdownSection(
                "alters", alters, make_markdown_row_renderer("named"), "tables", full
            ),
            500,
        ),
        SectionShare(make_lines("prod_failure", failure, "lines"), 500),
        SectionShare(
            make_table(
                "statements", report.statements, _STATEMENTS, "statements", "statement", limit
            ),
            800,
        ),
        SectionShare(
            make_table("restatements", view.restatements, _RESTATEMENTS, "models", "restatement"),
            800,
        ),
    ]
    graph = None if view.picture else report.lineage
    shared = [
        SectionShare(
            make_table("history", history, _HISTORY, "earlier plans", "entry", links), 1_500
        ),
        SectionShare(
            GraphMarkdownSection("lineage", graph or Lineage(), full, make_node_notes(report)),
            5_000,
        ),
        SectionShare(
            make_table("metadata", view.metadata, _MINOR, "models", "minor", links), 1_000
        ),
        SectionShare(
            DiffsMarkdownSection("diffs", [make_diff(item) for item in view.diffs], full), 14_000
        ),
        SectionShare(
            make_table("indirect", view.downstream, _MINOR, "models", "minor", links), 2_500
        ),
        SectionShare(
            RowsMarkdownSection(
                "examples", view.examples, render_example_markdown, "models", full, separator="\n\n"
            ),
            2_500,
        ),
        SectionShare(make_lines("unproved", view.unproved_notes, "models"), 800),
        SectionShare(make_table("impact", view.impact, _IMPACT, "changes", "impact"), 1_500),
        SectionShare(make_table("drift", view.drift, _CHANGES, "models", "change", links), 1_500),
        SectionShare(tests, 2_500),
        *small,
        SectionShare(
            make_table("edited", view.edited_changes, _CHANGES, "models", "change", links), 3_500
        ),
        SectionShare(
            make_table("aside", view.aside_points, _ASIDE, "findings", "aside", links, limit), 1_500
        ),
        SectionShare(make_table("losses", view.losses, _LOSSES, "models", "loss", links), 2_000),
    ]
    if not complete:
        below = view.findings.lower_points
        return [
            *shared,
            SectionShare(_make_work_rows(view, full), 3_500),
            SectionShare(
                make_table("below", below, _RISKS, "findings", "risk", links, limit), 4_000
            ),
        ]
    blockers = [point for point in view.risks if point.risk.severity == "blocker"]
    risks = [point for point in view.risks if point.risk.severity != "blocker"]
    advice = RowsMarkdownSection(
        "recommendations",
        view.recommendations,
        lambda text: f"1. {render_prose(text, limit)}",
        "recommendations",
        full,
    )
    lint = make_table("lint", checks.lint.findings, _FINDINGS, "findings", "finding", links, limit)
    prod = make_table("prod_backfill", view.prod_backfill, _BACKFILL, "models", "backfill")
    return [
        *shared,
        SectionShare(StagesMarkdownSection("stages", report.stages, full), 0),
        SectionShare(lint, 0),
        SectionShare(advice, 0),
        SectionShare(prod, 0),
        SectionShare(make_table("previews", view.previews, _BACKFILL, "models", "backfill"), 0),
        SectionShare(make_table("reused", view.reused, _BACKFILL, "models", "backfill"), 0),
        SectionShare(make_table("risks", risks, _RISKS, "risks", "risk", links, limit), 0),
        SectionShare(make_table("blockers", blockers, _RISKS, "blockers", "risk", links, limit), 0),
    ]
