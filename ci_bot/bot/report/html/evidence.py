"""What an apply showed: rows and columns beside those of prod, audits, views, what it took."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.model import prose, words
from ci_bot.bot.report.model.apply_evidence import ApplyView, ColumnRow, differences
from ci_bot.bot.report.model.data_words import DiffView
from ci_bot.protocol.apply_report import AppliedModel, ApplyDocument, ApplyVerdict, ModelAudit

_STATES = {
    "suspect": ("high", "rows cannot be paired", 0),
    "differs": ("medium", "differs", 1),
    "empty": ("info", "no rows on either side", 2),
    "same": ("good", "identical", 3),
}
_COLUMNS_SHOWN = 12


def _state(diff: DiffView) -> list[str | int]:
    key, label, order = _STATES[diff.state]
    return cells.chip(key, diff.key_fault if diff.state == "suspect" else label, order)


def data_section(document: ApplyDocument) -> list[PageItem]:
    """The data diff against prod: aggregates only."""
    view = ApplyView(document)
    missing = document.evidence_missing
    parts = [
        *cells.prose(f"Evidence was not collected: {missing}" if missing else None),
        *cells.table(
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
            [_row(diff) for diff in view.compared],
            key="data",
        ),
        *cells.table(
            [
                ("Column", "text"),
                ("Model", "name"),
                ("Rows that change", "bars"),
                ("How its values changed", "text"),
            ],
            [_column(row) for row in view.columns],
            title="How the columns changed, over the rows that were compared",
            key="columns",
        ),
        *_verdict(document.verdict),
        *cells.table(
            [("Model", "name"), ("Why it was not compared", "text")],
            [[cells.name(d.model), d.skipped_because or ""] for d in view.skipped],
            key="skipped",
        ),
    ]
    return cells.section("data", "Data against prod", parts, len(view.compared), short="Data")


def _row(diff: DiffView) -> list[Any]:
    prod, here = diff.rows_prod, diff.rows_pr
    most = max(prod or 0, here or 0) or 1
    rows = [
        cells.bar(label, None if known is None else known / most, _count(known), tone)
        for label, known, tone in (("prod", prod, "plain"), ("here", here, "accent"))
    ]
    equal = None if diff.changed is None else 1 - diff.changed
    unequal = diff.unequal
    columns = [
        cells.bar(c.name, c.match_rate, _share(c.match_rate), "match")
        for c in unequal[:_COLUMNS_SHOWN]
    ]
    if len(unequal) > _COLUMNS_SHOWN:
        columns.append(cells.bar(f"and {len(unequal) - _COLUMNS_SHOWN} more", None, ""))
    return [
        cells.name(diff.model, None, _compared(diff)),
        _state(diff),
        rows,
        [cells.bar("", equal, _share(equal), "match")],
        diff.only_prod,
        diff.only_pr,
        columns,
        _schema(diff),
    ]


def _column(row: ColumnRow) -> list[Any]:
    return [
        f"`{row.column.name}`",
        cells.name(row.model),
        [cells.bar("", row.share, _share(row.share), "accent")],
        row.how.replace("\u00a0", " "),
    ]


def _verdict(verdict: ApplyVerdict | None) -> list[PageItem]:
    """What the data did to the findings of the review."""
    if verdict is None:
        return []
    return cells.table(
        [("Rule", "rule"), ("Model", "name"), ("By the data", "text"), ("Why", "text")],
        [
            *(
                [r.rule, cells.name(r.model or "the plan"), "cleared", prose.weighed(r)]
                for r in verdict.cleared
            ),
            *([s.rule, cells.name(s.model), "stands", s.why] for s in verdict.standing),
            *(
                [r.rule, cells.name(r.model or "the plan"), "new", r.evidence]
                for r in verdict.risks
            ),
        ],
        title="What the data says of the findings",
        key="verdict",
    )


def _count(known: int | None) -> str:
    return "unknown" if known is None else words.number(known)


def _share(rate: float | None) -> str:
    return "–" if rate is None else words.percent(rate)


def _schema(diff: DiffView) -> str:
    found = diff.schema_
    said = [f"+`{n}`" for n in found.added] + [f"−`{n}`" for n in found.removed]
    return ", ".join([*said, *(f"`{n}` has another type" for n in found.changed)]) or "the same"


def _compared(diff: DiffView) -> str:
    keys = f"by {', '.join(diff.keys)}" if diff.keys else "without keys"
    if diff.coverage:
        return f"{diff.coverage[0]:,} of {words.count(diff.coverage[1], 'day')}, {keys}"
    return f"{'a window' if diff.window else 'the whole table'}, {keys}"


def built_section(document: ApplyDocument) -> list[PageItem]:
    """What was built, with its audits, and how long each model took."""
    view = ApplyView(document)
    models = sorted(document.models, key=lambda m: (-m.seconds, m.model))
    slowest = max((model.seconds for model in models), default=0.0) or 1.0
    broken = [item for item in document.views if not item.resolves]
    parts = [
        *cells.prose(
            f"{view.resolving:,} of {words.count(len(document.views), 'view')} resolve on Spark."
            if document.views
            else None,
        ),
        *cells.table(
            [
                ("Model", "name"),
                ("Intervals", "number"),
                ("Batches", "number"),
                ("Rows", "number"),
                ("Time", "bars"),
                ("Audits", "text"),
            ],
            [_applied(model, slowest) for model in models],
            key="built",
        ),
        *cells.table(
            [("View", "text"), ("On Spark", "text")],
            [[f"`{item.view}`", item.error or "does not resolve"] for item in broken],
            title="Views that do not resolve",
            key="views",
        ),
        *cells.table(
            [("Attempt", "number"), ("Result", "text"), ("Error", "text"), ("Tried again", "text")],
            [
                [a.number, a.result, a.error or "", a.retried_because or ""]
                for a in document.attempts
                if len(document.attempts) > 1 or a.error
            ],
            title="Attempts",
            key="attempts",
        ),
        *cells.prose(*document.partial, title="May be half built"),
        *cells.table(
            [("What", "text"), ("How it differs", "text")],
            [[f"`{d.name}`", d.how] for d in differences(document.difference)],
            title="The current plan is not the reviewed one",
            key="difference",
        ),
        *cells.code(document.failure.message if document.failure else "", "Why it failed"),
        *cells.prose(document.failure.hint if document.failure else None),
    ]
    return cells.section("built", "What was built", parts, len(models), short="Built")


def _applied(model: AppliedModel, slowest: float) -> list[Any]:
    return [
        cells.name(model.model, None, model.table),
        model.intervals if model.action != "recreate_view" else None,
        model.batches if model.action != "recreate_view" else None,
        model.rows,
        [cells.bar("", model.seconds / slowest, words.duration(model.seconds))],
        _audits(model.audits),
    ]


def _audits(audits: list[ModelAudit]) -> str:
    failed = [
        f"failed: `{a.audit}`"
        + (f" ({_failed_rows(a)})" if a.failed_rows is not None else "")
        + (", blocking" if a.blocking else "")
        for a in audits
        if a.status == "failed"
    ]
    passed = sum(a.status == "passed" for a in audits)
    skipped = sum(a.status == "skipped" for a in audits)
    said = [*failed, *([f"{passed} passed"] if passed else [])]
    return "; ".join([*said, *([f"{skipped} not run"] if skipped else [])]) or "none"


def _failed_rows(audit: ModelAudit) -> str:
    rows = words.count(audit.failed_rows or 0, "row")
    if audit.prod_rows is None:
        return f"{rows}; prod could not be asked" if audit.prod_unknown_because else rows
    same = audit.prod_rows == audit.failed_rows
    return f"{rows}; {'the same' if same else words.count(audit.prod_rows, 'row')} in prod"
