"""The changed models: how each changes, what that reaches, its lineage and its diff."""

from __future__ import annotations

from collections import Counter

from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.findings import ReviewedReport
from ci_bot.bot.report.html.graph import place_models
from ci_bot.bot.report.model import execution_examples, words
from ci_bot.bot.report.model.column_impact import make_lineage_notes
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.protocol.plan import Change, ColumnChange
from ci_bot.protocol.review_report import ChangedPart, Impact

_READERS = "Who reads what changes"


def rank_changes(changes: list[Change]) -> list[Change]:
    """Changes of the pull request before those of the base branch, the weightiest first."""
    return sorted(changes, key=lambda c: (c.from_base, words.CHANGE_ORDER.index(c.change), c.model))


def make_models_section(sources: ReviewedReport) -> list[PageItem]:
    """All changed models in one table."""
    changes = rank_changes(sources.report.changes)
    reached = _list_reached(sources.report.impact)
    rows = [
        [
            sources.make_model_cell(change.model, _describe_notes(change)),
            cells.make_chip_cell(
                change.change, words.CHANGES[change.change], words.CHANGE_ORDER.index(change.change)
            ),
            words.CATEGORIES.get(change.category or "", "–"),
            words.KINDS.get(change.kind, change.kind),
            change.owner or "",
            ", ".join(_describe_column(column) for column in change.columns),
            reached.get(change.model, [] if change.change == "indirect" else None),
            change.model if change.diff else None,
        ]
        for change in changes
    ]
    table = cells.make_table_part(
        [
            ("Model", "name"),
            ("Change", "chip"),
            ("Category", "text"),
            ("Kind", "text"),
            ("Owner", "text"),
            ("Columns", "text"),
            (_READERS, "names"),
            ("Diff", "diff"),
        ],
        rows,
        key="models",
    )
    return cells.make_section_part(
        "models",
        "Changed models",
        [*table, *_make_impact_part(sources), *_make_example_parts(sources)],
        len(rows),
        short="Models",
    )


def _describe_notes(change: Change) -> str:
    base = SENTENCES.from_base if change.from_base else ""
    also = f"also in {', '.join(change.also_in)}" if change.also_in else ""
    return "; ".join(text for text in (base, also, ", ".join(change.tags)) if text)


def _describe_column(column: ColumnChange) -> str:
    readers = (
        f", read by {words.format_count(len(column.readers), 'model')}" if column.readers else ""
    )
    if column.before is None:
        return f"+`{column.name}` {column.after}"
    if column.after is None:
        return f"−`{column.name}`{readers}"
    return f"`{column.name}` {column.before} → {column.after}{readers}"


def _list_reached(impact: Impact) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for part in impact.changed:
        found.setdefault(part.model, {}).update(dict.fromkeys(r.model for r in part.reached))
    return {model: list(models) for model, models in found.items()}


def _make_impact_part(sources: ReviewedReport) -> list[PageItem]:
    impact = sources.report.impact
    more = impact.more_changed
    return cells.make_table_part(
        [
            ("Model", "name"),
            ("Column", "text"),
            ("How", "text"),
            (_READERS, "names"),
            ("Why", "text"),
        ],
        [
            [
                sources.make_model_cell(part.model),
                f"`{part.column}`" if part.column else "all rows",
                words.HOW_CHANGED[part.how],
                _list_depending(part),
                part.why or "",
            ]
            for part in impact.changed
        ],
        title=SENTENCES.readers_of_change,
        note=f"{words.format_count(more, 'further change')} not listed." if more else "",
        key="impact",
    )


def _make_example_parts(sources: ReviewedReport) -> list[PageItem]:
    """What changed queries give on generated rows: a table of each input, and one of results."""
    report = sources.report
    examples = execution_examples.list_examples(report)
    unproved = execution_examples.list_unproved(report)
    parts: list[PageItem] = []
    if examples or unproved:
        title = "On generated rows"
        parts += cells.make_prose_part(execution_examples.GENERATED, *unproved, title=title)
    for one in examples:
        if one.example is None:
            continue
        for table in one.example.inputs:
            shown = [[execution_examples.show_value(cell) for cell in row] for row in table.rows]
            parts += cells.make_table_part(
                [(name, "text") for name in table.columns] or [("rows", "text")],
                shown if table.columns else [["a row"] for _ in table.rows],
                title=f"{one.model} reads {table.table}",
            )
        parts += cells.make_table_part(
            [("Result", "text"), *((name, "text") for name in one.example.columns)],
            [
                [line.side, *(f"{'● ' * cell.changed}{cell.text}" for cell in line.cells)]
                for line in execution_examples.list_lines(one.example)
            ],
            title=f"{one.model} before and after",
            note="● marks what changes.",
        )
        if one.witness is not None:
            title = f"{execution_examples.WITNESS}: {one.witness.path}"
            parts += cells.make_code_part(one.witness.text, title=title)
        elif one.no_witness is not None:
            parts += cells.make_prose_part(f"{execution_examples.NO_WITNESS} {one.no_witness}.")
    return parts


def _list_depending(part: ChangedPart) -> list[str]:
    found = []
    for reached in part.reached:
        names = [*(["rows"] if reached.rows else []), *reached.columns]
        names += [f"{reached.more_columns} more"] if reached.more_columns else []
        found.append(f"{reached.model} ({', '.join(names)})" if names else reached.model)
    return [*found, *([f"and {part.more_models} more"] if part.more_models else [])]


def make_lineage_section(sources: ReviewedReport) -> list[PageItem]:
    """The changed models and their readers, each with its place in the picture."""
    report = sources.report
    names = [node.model for node in report.lineage.nodes]
    if len(names) < 2:  # noqa: PLR2004 - one box says nothing
        return []
    places = place_models(names, report.lineage.edges)
    notes = make_lineage_notes(report.impact)
    forward = {c.model for c in report.changes if c.category == "forward_only"}
    index = {name: number for number, name in enumerate(places)}
    changes = {node.model: node.change for node in report.lineage.nodes}
    counts: Counter[str] = Counter(change or "same" for change in changes.values())
    part = {
        "type": "lineage",
        "nodes": [
            [
                name,
                changes[name] or "same",
                round(at.x),
                round(at.y),
                notes.get(name, ""),
                name in forward,
                sources.links.file_url(sources.model_paths.get(name)),
            ]
            for name, at in places.items()
        ],
        "edges": [
            [index[parent], index[reader]]
            for parent, reader in report.lineage.edges
            if parent in index and reader in index and parent != reader
        ],
        "legend": [
            [key, words.CHANGES.get(key, "unchanged"), counts[key]]
            for key in (*words.CHANGE_ORDER, "same")
            if counts[key]
        ],
        "forward": bool(forward & index.keys()),
    }
    return cells.make_section_part("lineage", "Lineage", [part], len(names))


def make_diffs_section(sources: ReviewedReport) -> list[PageItem]:
    """The diffs of the definitions, to be read side by side."""
    diffs = [
        [
            change.model,
            cells.make_chip_cell(change.change, words.CHANGES[change.change]),
            change.diff,
            sources.links.file_url(change.path),
        ]
        for change in rank_changes(sources.report.changes)
        if change.diff
    ]
    parts = [{"type": "diffs", "diffs": diffs}] if diffs else []
    return cells.make_section_part(
        "diffs", "SQL, before and after", parts, len(diffs), short="Diffs"
    )
