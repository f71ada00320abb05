"""The page of a cleanup: what there was, what became of each object, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.head import MOST_POINTS, HeadPoint, PageHead
from ci_bot.bot.report.model import words
from ci_bot.bot.report.model.context import CommentContext
from ci_bot.protocol.cleanup_report import CleanupDocument

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


def make_cleanup_head(document: CleanupDocument, context: CommentContext) -> PageHead:
    """The first screen of a cleanup."""
    tone, icon, word = _RESULTS[document.result]
    failure = document.failure
    left = [HeadPoint(f"`{left.object}`: {left.why}") for left in document.leftovers]
    failed = document.result in ("incomplete", "refused")
    hint = (failure.hint if failure else None) or "A cleanup can be repeated at any time:"
    return PageHead(
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
        found.append(("Checked after the drop", _describe_check(document)))
        found.append(("SQLMesh's record", _describe_record(document)))
    return found


def _describe_check(document: CleanupDocument) -> str:
    if document.leftovers:
        return f"{words.format_count(len(document.leftovers), 'object')} left over"
    if document.result == "incomplete":
        return "not checked to the end"
    return "Spark finds nothing left of the environment"


def _describe_record(document: CleanupDocument) -> str:
    if document.state_record_removed:
        return "removed, as the last step"
    if document.state_record_left:
        return "still there, so the next cleanup finds the environment"
    return "not checked" if document.state_record_left is None else "was gone before"


def list_cleanup_sections(document: CleanupDocument) -> Iterator[PageItem]:
    """The proof: each object of the environment in one row, what needs a person first."""
    rows = list(_list_objects(document))
    yield from cells.make_section_part(
        "proof",
        "What became of each object",
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
            cells.name_cell(name),
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
