"""What an apply showed: rows and columns beside those of prod, audits, views, what it took."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.model import markdown_text, words
from ci_bot.bot.report.model.apply_evidence import ApplyView, ColumnRow, list_plan_differences
from ci_bot.bot.report.model.sentences import SENTENCES, DiffView
from ci_bot.protocol.apply_report import AppliedModel, ApplyDocument, ApplyVerdict, ModelAudit

_STATES = {
    "suspect": ("high", SENTENCES.rows_unpaired, 0),
    "differs": ("medium", "differs", 1),
    "empty": ("info", SENTENCES.no_rows, 2),
    "same": ("good", "identical", 3),
}
_COLUMNS_SHOWN = 12


def _make_state_chip(diff: DiffView) -> list[str | int]:
    key, label, order = _STATES[diff.state]
    return cells.make_chip_cell(key, diff.key_fault if diff.state == "suspect" else label, order)


def make_data_section(document: ApplyDocument) -> list[PageItem]:
    """The data diff against prod: aggregates only."""
    view = ApplyView(document)
    missing = document.evidence_missing
    parts = [
        *cells.make_prose_part(f"Evidence was not collected: {missing}" if missing else None),
        *cells.make_table_part(
            [
                ("Model", "name"),
                ("Result", "chip"),
                ("Rows", "bars"),
                ("Equal", "bars"),
                ("Gone", "number"),
                ("New", "number"),
                ("Columns that differ, and their equal part", "bars"),
                ("Schema", "text"),
            ],
            [_make_diff_row(diff) for diff in view.compared],
            key="data",
        ),
        *cells.make_table_part(
            [
                ("Column", "text"),
                ("Model", "name"),
                ("Rows that change", "bars"),
                ("How its values changed", "text"),
            ],
            [_make_column_row(row) for row in view.columns],
            title="How the columns changed, over the rows that were compared",
            key="columns",
        ),
        *_make_verdict_part(document.verdict),
        *cells.make_table_part(
            [("Model", "name"), ("Why it was not compared", "text")],
            [[cells.name_cell(d.model), d.skipped_because or ""] for d in view.skipped],
            key="skipped",
        ),
    ]
    return cells.make_section_part(
        "data", "Data against prod", parts, len(view.compared), short="Data"
    )


def _make_diff_row(diff: DiffView) -> list[Any]:
    prod, here = diff.rows_prod, diff.rows_pr
    most = max(prod or 0, here or 0) or 1
    rows = [
        cells.make_bar_cell(
            label, None if known is None else known / most, _format_count(known), tone
        )
        for label, known, tone in (("prod", prod, "plain"), ("here", here, "accent"))
    ]
    equal = None if diff.changed_share is None else 1 - diff.changed_share
    unequal = diff.unequal_columns
    columns = [
        cells.make_bar_cell(c.name, c.match_rate, _format_share(c.match_rate), "match")
        for c in unequal[:_COLUMNS_SHOWN]
    ]
    if len(unequal) > _COLUMNS_SHOWN:
        columns.append(cells.make_bar_cell(f"and {len(unequal) - _COLUMNS_SHOWN} more", None, ""))
    return [
        cells.name_cell(diff.model, None, _describe_comparison(diff)),
        _make_state_chip(diff),
        rows,
        [cells.make_bar_cell("", equal, _format_share(equal), "match")],
        diff.only_prod,
        diff.only_pr,
        columns,
        _describe_schema(diff),
    ]


def _make_column_row(row: ColumnRow) -> list[Any]:
    return [
        f"`{row.column.name}`",
        cells.name_cell(row.model),
        [cells.make_bar_cell("", row.share, _format_share(row.share), "accent")],
        row.how.replace("\u00a0", " "),
    ]


def _make_verdict_part(verdict: ApplyVerdict | None) -> list[PageItem]:
    """What the data did to the findings of the review."""
    if verdict is None:
        return []
    return cells.make_table_part(
        [("Rule", "rule"), ("Model", "name"), ("By the data", "text"), ("Why", "text")],
        [
            *(
                [
                    r.rule,
                    cells.name_cell(r.model or "the plan"),
                    "cleared",
                    markdown_text.describe_weight(r),
                ]
                for r in verdict.cleared
            ),
            *([s.rule, cells.name_cell(s.model), "stands", s.why] for s in verdict.standing),
            *(
                [r.rule, cells.name_cell(r.model or "the plan"), "new", r.evidence]
                for r in verdict.risks
            ),
        ],
        title="What the data says of the findings",
        key="verdict",
    )


def _format_count(known: int | None) -> str:
    return "unknown" if known is None else words.format_number(known)


def _format_share(rate: float | None) -> str:
    return "–" if rate is None else words.format_percent(rate)


def _describe_schema(diff: DiffView) -> str:
    found = diff.schema_
    differences = [f"+`{n}`" for n in found.added] + [f"−`{n}`" for n in found.removed]
    return (
        ", ".join([*differences, *(f"`{n}` has another type" for n in found.changed)]) or "the same"
    )


def _describe_comparison(diff: DiffView) -> str:
    keys = f"by {', '.join(diff.keys)}" if diff.keys else "without keys"
    if diff.coverage:
        return f"{diff.coverage[0]:,} of {words.format_count(diff.coverage[1], 'day')}, {keys}"
    return f"{'a window' if diff.window else 'the whole table'}, {keys}"


def make_built_section(document: ApplyDocument) -> list[PageItem]:
    """What was built, with its audits, and how long each model took."""
    view = ApplyView(document)
    models = sorted(document.models, key=lambda m: (-m.seconds, m.model))
    slowest = max((model.seconds for model in models), default=0.0) or 1.0
    broken = [item for item in document.views if not item.resolves]
    parts = [
        *cells.make_prose_part(
            f"{view.resolving_views:,} of "
            f"{words.format_count(len(document.views), 'view')} resolve on Spark."
            if document.views
            else None,
        ),
        *cells.make_table_part(
            [
                ("Model", "name"),
                ("Intervals", "number"),
                ("Batches", "number"),
                ("Rows", "number"),
                ("Time", "bars"),
                ("Audits", "text"),
            ],
            [_make_applied_row(model, slowest) for model in models],
            key="built",
        ),
        *cells.make_table_part(
            [("View", "text"), ("On Spark", "text")],
            [[f"`{item.view}`", item.error or "does not resolve"] for item in broken],
            title="Views that do not resolve",
            key="views",
        ),
        *cells.make_table_part(
            [("Attempt", "number"), ("Result", "text"), ("Error", "text"), ("Tried again", "text")],
            [
                [a.number, a.result, a.error or "", a.retried_because or ""]
                for a in document.attempts
                if len(document.attempts) > 1 or a.error
            ],
            title="Attempts",
            key="attempts",
        ),
        *cells.make_prose_part(*document.partial, title=SENTENCES.half_built),
        *cells.make_table_part(
            [("What", "text"), ("How it differs", "text")],
            [
                [", ".join(f"`{name}`" for name in d.names), d.how]
                for d in list_plan_differences(document.difference)
            ],
            title=SENTENCES.other_plan,
            key="difference",
        ),
        *cells.make_code_part(
            document.failure.message if document.failure else "", "Why it failed"
        ),
        *cells.make_prose_part(document.failure.hint if document.failure else None),
    ]
    return cells.make_section_part("built", "What was built", parts, len(models), short="Built")


def _make_applied_row(model: AppliedModel, slowest: float) -> list[Any]:
    return [
        cells.name_cell(model.model, None, model.table),
        model.intervals if model.action != "recreate_view" else None,
        model.batches if model.action != "recreate_view" else None,
        model.rows,
        [cells.make_bar_cell("", model.seconds / slowest, words.duration(model.seconds))],
        _describe_audits(model.audits),
    ]


def _describe_audits(audits: list[ModelAudit]) -> str:
    failed = [
        f"failed: `{a.audit}`"
        + (f" ({_describe_failed_rows(a)})" if a.failed_rows is not None else "")
        + (", blocking" if a.blocking else "")
        for a in audits
        if a.status == "failed"
    ]
    passed = sum(a.status == "passed" for a in audits)
    skipped = sum(a.status == "skipped" for a in audits)
    results = [*failed, *([f"{passed} passed"] if passed else [])]
    return "; ".join([*results, *([f"{skipped} not run"] if skipped else [])]) or "none"


def _describe_failed_rows(audit: ModelAudit) -> str:
    rows = words.format_count(audit.failed_rows or 0, "row")
    if audit.prod_rows is None:
        return f"{rows}; prod could not be asked" if audit.prod_unknown_because else rows
    same = audit.prod_rows == audit.failed_rows
    return f"{rows}; {'the same' if same else words.format_count(audit.prod_rows, 'row')} in prod"
