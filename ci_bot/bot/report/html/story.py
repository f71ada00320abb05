"""What was checked, how the decision came about over the pull request's life, and all the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.findings import ReviewedReport, is_gap
from ci_bot.bot.report.model import advice, words
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.bot.report.model.words import (
    CheckWords,
    describe_lint,
    describe_options,
    describe_tests,
)
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


def describe_lint_short(check: LintCheck) -> CheckWords:
    """How the linter ended; beside a mark of its own "lint" alone would say nothing."""
    found = describe_lint(check)
    return replace(found, text="no lint error") if found.result == "ok" else found


def make_checks_section(sources: ReviewedReport) -> list[PageItem]:
    """Each check with its result; what was not checked; what tests and linter said."""
    report = sources.report
    checks = report.checks
    gaps = [risk for risk in report.risks if is_gap(risk)]
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
    audited = {"passed": "ok", "failed": "fail", "not_run": "not_run"}[audits.status]
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
            _make_result_chip(describe_lint_short(lint).result),
            describe_lint_short(lint).text,
        ],
        ["Format", _make_result_chip(descriptions[form.status][0]), descriptions[form.status][1]],
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


def _make_lint_row(finding: Finding, sources: ReviewedReport) -> list[object]:
    url = sources.links.file_url(finding.path, finding.line)
    where = cells.name_cell(finding.model or finding.path or "the project", url)
    return [
        cells.make_chip_cell(finding.severity, finding.severity),
        finding.rule,
        where,
        finding.evidence,
    ]


def make_history_section(
    sources: ReviewedReport, history: Sequence[PlanHistoryEntry]
) -> list[PageItem]:
    """The decisions on this pull request, the oldest first; the last one is this report's."""
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


def make_details_section(sources: ReviewedReport) -> list[PageItem]:
    """Stages, options, notes, versions, and how to make this report again."""
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


def _make_stages_part(stages: list[list[object]]) -> list[PageItem]:
    if not stages:
        return []
    return [{"type": "stages", "title": SENTENCES.apply_stages, "stages": stages}]


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
