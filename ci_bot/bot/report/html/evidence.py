"""The evidence behind a decision.
It is what was checked; what an apply showed (rows and columns next to those of prod, audits, views,
time); how the decision changed over the pull request's life; and all other details.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ci_bot.bot.report import words
from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.findings import HtmlReportSources, is_evidence_gap
from ci_bot.bot.report.model import advice, policy_words
from ci_bot.bot.report.model.apply_evidence import ApplyView, ColumnRowView, list_plan_differences
from ci_bot.bot.report.model.sentences import SENTENCES, DiffView
from ci_bot.bot.report.words import CheckWords, describe_lint, describe_options, describe_tests
from ci_bot.protocol.apply_report import AppliedModel, ApplyDocument, ApplyVerdict, ModelAudit
from ci_bot.protocol.base import shorten_plan_id
from ci_bot.protocol.comment import PlanHistoryEntry
from ci_bot.protocol.plan import Checks, Finding, LintCheck
from ci_bot.protocol.review_report import Report

_RESULTS = {
    "ok": ("good", "passed"),
    "warn": ("medium", "look at it"),
    "fail": ("blocker", "failed"),
    "not_run": ("info", "not run"),
}


def describe_lint_in_html_head(check: LintCheck) -> CheckWords:
    """Says how the linter ended; next to its mark, the word "lint" alone would say nothing."""
    found = describe_lint(check)
    return replace(found, text="no lint error") if found.result == "ok" else found


def make_checks_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes the section of checks: results, what was not checked, messages of tests and linter."""
    report = sources.report
    checks = report.checks
    gaps = [risk for risk in report.risks if is_evidence_gap(risk)]
    parts = [
        *cells.make_table_part(
            [("Check", "text"), ("Result", "chip"), ("Detail", "text")],
            _make_check_rows(checks),
            key="checks",
        ),
        *cells.make_prose_part(*(risk.evidence for risk in gaps), title="Not checked"),
    ]
    for failure in checks.tests.failures:
        parts += cells.make_prose_part(failure.cause, title=f"Unit test `{failure.name}` fails")
        parts += cells.make_code_part(failure.message)
    parts += cells.make_table_part(
        [("Severity", "chip"), ("Rule", "text"), ("Where", "name"), ("What", "text")],
        [_make_lint_row(finding, sources) for finding in checks.lint.findings],
        title="What the linter found",
        key="lint",
    )
    return cells.make_section_part("checks", "Checks", parts)


def _make_check_rows(checks: Checks) -> list[list[object]]:
    tests, lint, form = checks.tests, checks.lint, checks.formatting
    audits, diff = checks.audits, checks.table_diff
    need = "needs" if len(form.files) == 1 else "need"
    changed = words.format_count(form.checked, "changed file")
    unformatted = f"{len(form.files):,} of {changed} {need} `sqlmesh format`"
    descriptions = {
        "passed": ("ok", "formatted" if form.checked else "nothing to format"),
        "needs_format": ("warn", f"{unformatted}: {', '.join(f'`{name}`' for name in form.files)}"),
        "not_run": ("not_run", ""),
    }
    some = audits.blocking + audits.non_blocking
    amount = f"{audits.blocking} blocking, {audits.non_blocking} not blocking. " if some else ""
    audited = {"passed": "ok", "failed": "warn", "not_run": "not_run"}[audits.status]
    project: list[list[object]] = [
        [c.name.capitalize(), _make_result_chip(c.status), f"{c.message} {c.fix or ''}"]
        for c in checks.project
    ]
    return [
        *project,
        [
            "Unit tests",
            _make_result_chip(describe_tests(tests).result),
            tests.not_run_because or describe_tests(tests).text,
        ],
        [
            "Lint",
            _make_result_chip(describe_lint_in_html_head(lint).result),
            describe_lint_in_html_head(lint).text,
        ],
        [
            "Format",
            _make_result_chip(descriptions[form.status][0]),
            descriptions[form.status][1],
        ],
        ["Audits", _make_result_chip(audited), f"{amount}{audits.not_run_because or ''}"],
        [
            "Data diff",
            _make_result_chip("ok" if diff.status == "compared" else "not_run"),
            diff.not_run_because or "",
        ],
    ]


def _make_result_chip(result: str) -> list[str | int]:
    key, label = _RESULTS[result]
    return cells.make_chip_cell(key, label, [*_RESULTS].index(result))


def _make_lint_row(finding: Finding, sources: HtmlReportSources) -> list[object]:
    url = sources.links.file_url(finding.path, finding.line)
    where = cells.make_name_cell(finding.model or finding.path or "the project", url)
    return [
        cells.make_chip_cell(finding.severity, finding.severity),
        finding.rule,
        where,
        finding.evidence,
    ]


def make_history_section(
    sources: HtmlReportSources, history: Sequence[PlanHistoryEntry]
) -> list[PageItem]:
    """Makes the list of decisions on this pull request, the oldest first, this report's last."""
    if not history:
        return []
    report, now = sources.report, sources.context.now
    steps = [
        *(
            [
                e.decision or "none",
                _get_decision_word(e.decision),
                words.format_clock(e.at, now),
                shorten_plan_id(e.plan),
                e.head,
                e.run,
            ]
            for e in history
        ),
        [
            report.decision,
            _get_decision_word(report.decision),
            words.format_clock(report.planned_at, now),
            shorten_plan_id(report.plan_id),
            report.head_sha,
            None,
        ],
    ]
    part = {
        "type": "timeline",
        "steps": [
            [
                key,
                label,
                at,
                plan,
                (head or "")[:7],
                sources.make_commit_url(head),
                sources.run_url(run),
            ]
            for key, label, at, plan, head, run in steps
        ],
    }
    return cells.make_section_part(
        "history", "Decisions on this pull request", [part], len(steps), short="History"
    )


def _get_decision_word(decision: str | None) -> str:
    found = {name: word for name, word in words.DECISIONS.items() if name == decision}
    return found.popitem()[1] if found else "no decision"


def make_details_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes the section of stages, options, notes, versions, and how to repeat this report."""
    report = sources.report
    stages: list[list[object]] = [
        [f"{n}. {s.title}", s.items] for n, s in enumerate(report.stages, start=1)
    ]
    options = describe_options(report.options)
    parts = [
        *cells.make_prose_part(
            report.environment_now,
            f"Options: {options}." if options else None,
            *report.notes,
            _describe_versions(report),
            _describe_timings(report),
        ),
        *cells.make_code_part(
            advice.describe_reproduction(report, sources.context), "The same on a laptop"
        ),
        *(
            [{"type": "stages", "title": SENTENCES.apply_stages, "stages": stages}]
            if stages
            else []
        ),
    ]
    return cells.make_section_part("details", "Details", parts)


def _describe_versions(report: Report) -> str:
    found = report.versions
    named = [
        ("bot", found.ci_bot),
        ("Python", found.python),
        ("SQLMesh", found.sqlmesh),
        ("PySpark", found.pyspark),
        ("Java", found.java),
        ("state", found.state_engine),
    ]
    return " · ".join(f"{name} {version}" for name, version in named if version)


def _describe_timings(report: Report) -> str:
    spent = (f"{phase} {words.duration(took)}" for phase, took in report.timings.items())
    return " · ".join(spent)


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
    """Makes the section of the data diff against prod: aggregates only."""
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
            [_make_compared_column_row(row) for row in view.columns],
            title="How the columns changed, over the rows that were compared",
            key="columns",
        ),
        *_make_verdict_part(document.verdict),
        *cells.make_table_part(
            [("Model", "name"), ("Why it was not compared", "text")],
            [[cells.make_name_cell(d.model), d.skipped_because or ""] for d in view.skipped],
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
            label, None if known is None else known / most, _format_known_count_as_cell(known), tone
        )
        for label, known, tone in (("prod", prod, "plain"), ("here", here, "accent"))
    ]
    equal = None if diff.changed_share is None else 1 - diff.changed_share
    unequal = diff.unequal_columns
    columns = [
        cells.make_bar_cell(c.name, c.match_rate, _format_share_of_rows(c.match_rate), "match")
        for c in unequal[:_COLUMNS_SHOWN]
    ]
    if len(unequal) > _COLUMNS_SHOWN:
        columns.append(cells.make_bar_cell(f"and {len(unequal) - _COLUMNS_SHOWN} more", None, ""))
    return [
        cells.make_name_cell(diff.model, None, _describe_comparison(diff)),
        _make_state_chip(diff),
        rows,
        [cells.make_bar_cell("", equal, _format_share_of_rows(equal), "match")],
        diff.only_prod,
        diff.only_pr,
        columns,
        _describe_schema(diff),
    ]


def _make_compared_column_row(row: ColumnRowView) -> list[Any]:
    return [
        f"`{row.column.name}`",
        cells.make_name_cell(row.model),
        [cells.make_bar_cell("", row.share, _format_share_of_rows(row.share), "accent")],
        row.how.replace("\u00a0", " "),
    ]


def _make_verdict_part(verdict: ApplyVerdict | None) -> list[PageItem]:
    """Shows what the data did to the findings of the review."""
    if verdict is None:
        return []
    return cells.make_table_part(
        [("Rule", "rule"), ("Model", "name"), ("By the data", "text"), ("Why", "text")],
        [
            *(
                [
                    r.rule,
                    cells.make_name_cell(r.model or "the plan"),
                    "cleared",
                    policy_words.describe_weight_of_finding(r),
                ]
                for r in verdict.cleared
            ),
            *([s.rule, cells.make_name_cell(s.model), "stands", s.why] for s in verdict.standing),
            *(
                [r.rule, cells.make_name_cell(r.model or "the plan"), "new", r.evidence]
                for r in verdict.risks
            ),
        ],
        title="What the data says about the findings",
        key="verdict",
    )


def _format_known_count_as_cell(known: int | None) -> str:
    return "unknown" if known is None else words.format_number(known)


def _format_share_of_rows(rate: float | None) -> str:
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


def make_html_built_section(document: ApplyDocument) -> list[PageItem]:
    """Makes the section about the build: its tables, audits, and the time of each model."""
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
        cells.make_name_cell(model.model, None, model.table),
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
