"""The same reports for a terminal: plain text, 96 columns, colours only when asked for."""

from __future__ import annotations

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.text import shell_commands, weights, words
from ci_bot.bot.comment.view import DisplayWork, ReviewView
from ci_bot.bot.terminal.outcome_text import apply_page, cleanup_page
from ci_bot.bot.terminal.page import WIDTH, Page
from ci_bot.contracts.base import Contract, short
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.contracts.documents.cleanup import CleanupDocument
from ci_bot.contracts.documents.plan import Backfill, Change, Checks, Cost
from ci_bot.contracts.documents.report import Report

_COLORS = {"go": "green", "review": "yellow", "no_go": "red", "no_changes": "white"}
_SEVERITY_COLORS = {"blocker": "red", "high": "red", "medium": "yellow"}
_BASELINES = {
    "state": "compared with prod",
    "base-branch": "compared with the base branch, without state",
    "empty": "there is no prod yet, so everything is new",
}


def to_terminal(
    document: Contract,
    *,
    project: str | None = None,
    colour: bool = False,
    width: int = WIDTH,
) -> str:
    """A document as plain text, complete, ending in a newline.

    Args:
        document: A `Report`, an `ApplyDocument` or a `CleanupDocument`.
        project: What the title calls the project; its directories otherwise.
        colour: Whether the output is a terminal that shows colours.
        width: Columns to wrap at; long table rows may be wider.

    Raises:
        TypeError: the document is none of the three.
    """
    page = Page(width=width, color=colour)
    if isinstance(document, Report):
        _review(page, ReviewView(document, _context(document, project)))
    elif isinstance(document, ApplyDocument):
        apply_page(page, document)
    elif isinstance(document, CleanupDocument):
        cleanup_page(page, document)
    else:
        raise TypeError(f"no terminal report for {type(document).__name__}")
    return page.text()


def _context(report: Report, project: str | None) -> CommentContext:
    return CommentContext(
        project=project or " + ".join(report.project.paths),
        environment=report.environment,
        now=report.planned_at,
        phase="planned",
    )


def _review(page: Page, view: ReviewView) -> None:
    report, context = view.report, view.context
    counts = [
        words.count(view.severities[name], noun)
        for name, noun in (("blocker", "blocker"), ("high", "high risk"), ("medium", "medium risk"))
        if view.severities[name]
    ]
    parts = [words.DECISIONS[report.decision], *counts, f"{context.project} → {report.environment}"]
    page.title(" · ".join(parts), _COLORS[report.decision])
    if report.state_failure:
        why = f"{report.state_failure.message} {report.state_failure.hint or ''}".strip()
        page.fact("NO STATE", f"compared with the base branch, because prod's was not read: {why}")
    for index, reason in enumerate(report.reasons):
        page.fact("" if index else "Why", reason)
    if report.failure:
        failure = report.failure
        place = f"{failure.path}:{failure.line}" if failure.line else failure.path
        page.fact("Failed", f"at {failure.stage}: {failure.reason_code}")
        page.fact("Where", ", ".join(part for part in (failure.model, place) if part))
        page.block(failure.message)
        page.fact("Next", failure.hint)
    for failure in report.base_failures[:1]:
        place = f"{failure.path}:{failure.line}" if failure.line else failure.path
        page.fact("Base branch", f"does not load here{f', at {place}' if place else ''}")
        page.block(failure.message)
        page.fact("To mend it", failure.hint)
    plan = f"{short(report.plan_id)}, " if report.plan_id else ""
    page.fact("Plan", f"{plan}{_BASELINES[report.baseline]}, {words.duration(view.seconds)}")
    page.fact("Changes", _changes(view))
    page.fact("Options", view.options)
    skipped = "none, on purpose (skip-backfill): new tables stay empty"
    page.fact("Backfill", skipped if view.skips_backfill else _work(view.planned))
    page.fact("Window", view.short_window)
    page.fact("Compute", cost_words(report.cost))
    if view.prod_cost is not None:
        page.fact("", f"after the merge in prod {cost_words(view.prod_cost)}")
    page.fact("Evidence", _checks(report.checks))
    page.fact("After merge", _prod(view))
    page.fact("Now", report.environment_now)
    _risks(page, view)
    _models(page, view)
    _backfill(page, view)
    _evidence(page, view)
    _rest(page, view)
    if report.appliable:
        page.heading("Next, to see the data")
        page.block(shell_commands.apply(report))
    elif report.not_appliable_because:
        page.fact("Next", f"this plan cannot be applied: {report.not_appliable_because}")


def _changes(view: ReviewView) -> str:
    found = [f"{amount:,} {words.CHANGES[name]}" for name, amount in view.change_counts] or ["none"]
    kinds = ", ".join(f"{amount} {word}" for word, amount in view.categories)
    drift = f"; {len(view.drift):,} more come from the base branch" if view.drift else ""
    total = words.count(view.report.project.models, "model")
    return f"{' · '.join(found)}, out of {total}{f'; {kinds}' if kinds else ''}{drift}"


def _work(work: DisplayWork) -> str:
    if not work.tables:
        return f"no table; {words.count(work.views, 'view')}" if work.views else "nothing to build"
    text = f"{words.count(work.tables, 'table')}, {words.count(work.intervals, 'interval')}"
    text += f" in {words.count(work.batches, 'batch')}"
    text += f", {work.window}" if work.window else ""
    return text + (f"; {words.count(work.previews, 'preview')} only" if work.previews else "")


def cost_words(cost: Cost) -> str:
    """The estimate in one line; unknown stays unknown."""
    if cost.executor_hours_mid is None:
        to_build = cost.tables or cost.intervals
        return f"executor time unknown: {cost.basis}" if to_build else cost.basis
    least = "at least" if cost.unknown else "about"
    text = f"{least} {words.executor_time(cost.executor_hours_mid)} of executor time"
    price = f", {least} {words.money(cost.price)} at your rate" if cost.price is not None else ""
    if cost.unknown:
        return (
            f"{text}{price}; {len(cost.unknown):,} of {words.count(cost.tables, 'table')} unknown"
        )
    low, high = cost.executor_hours_low, cost.executor_hours_high
    if low is not None and high is not None:
        text += f" ({words.executor_time(low)} to {words.executor_time(high)})"
    return f"{text}{price}; confidence {cost.confidence}"


def _checks(checks: Checks) -> str:
    tests, lint = checks.tests, checks.lint
    before = tests.failed_before
    tested = {
        "passed": f"{words.count(tests.run, 'unit test')} passed",
        "failed": f"{tests.failed} of {words.count(tests.run, 'unit test')} FAILED"
        + (f", {tests.failed_before} of them on the base branch, too" if before else ""),
        "none": "no unit tests",
        "not_run": "unit tests not run",
    }
    linted = {
        "passed": "lint passed",
        "failed": words.count(lint.errors, "lint error"),
        "warnings": words.count(lint.warnings, "lint warning"),
        "off": "lint is off",
        "not_run": "lint not run",
    }
    formatting = checks.formatting
    formatted = {
        "passed": "formatted" if formatting.checked else "nothing to format",
        "needs_format": f"{words.count(len(formatting.files), 'file')} to format",
        "not_run": "format not checked",
    }
    later = "audits and data diff come with an apply"
    parts = (tested[tests.status], linted[lint.status], formatted[formatting.status], later)
    return " · ".join(parts)


def _prod(view: ReviewView) -> str:
    plan, work = view.report.prod_plan, view.prod_work
    if plan is None or work is None:
        return "not planned"
    if plan.would_fail:
        return f"the plan for prod WOULD FAIL: {plan.failure or 'no reason given'}"
    text = f"prod builds {_work(work)}" if work.tables or work.views else "prod builds nothing"
    left = view.prod_left
    if left is not None:
        rest = _work(left) if left.tables else "it reuses every table"
        text += f"; after an apply of this plan {rest}"
    altered = len(plan.forward_only_schema_changes)
    return text + (f"; alters {words.count(altered, 'table')} in place" if altered else "")


def _risks(page: Page, view: ReviewView) -> None:
    if view.risks:
        page.heading("Risks")
    for risk in view.risks:
        place = f"{risk.path}:{risk.line}" if risk.path and risk.line else risk.path
        where = ", ".join(part for part in (risk.model, place) if part) or "the plan"
        color = _SEVERITY_COLORS.get(risk.severity)
        page.item(f"{where} · {risk.rule}", mark=f"{risk.severity:8}", color=color)
        page.note(risk.evidence, indent=11)
        if risk.weighed is not None:
            page.note(weights.weighed(risk), indent=11)
        page.note(f"Clears when {risk.clears_when}", indent=11)
    _aside(page, view)


def _aside(page: Page, view: ReviewView) -> None:
    used = view.report.policy
    if view.report.set_aside:
        page.heading(f"Not counted: {view.set_aside}")
    for risk in view.report.set_aside:
        where = risk.model or risk.path or "the plan"
        page.item(f"{where} · {risk.rule}", mark=f"{risk.severity:8}")
        page.note(risk.evidence, indent=11)
        page.note(weights.weighed(risk), indent=11)
    if used is not None:
        page.fact("Policy", view.policy.removeprefix("Policy: "))
        page.fact("", used.not_loosened_because)


def _models(page: Page, view: ReviewView) -> None:
    def rows(changes: list[Change]) -> list[list[str]]:
        return [
            [
                change.model,
                words.CHANGES[change.change],
                words.CATEGORIES[change.category] if change.category else "–",
                words.KINDS.get(change.kind, change.kind),
            ]
            for change in changes
        ]

    for title, changes in (("Changed models", view.own), ("From the base branch", view.drift)):
        if changes:
            page.heading(f"{title} ({len(changes):,})")
            page.table(["model", "change", "category", "kind"], rows(changes))
    if view.losses:
        page.heading("What goes, and who still reads it")
    for change in view.losses:
        if change.change == "removed":
            readers = ", ".join(change.readers) or "nobody known"
            page.item(f"{change.model} is removed; read by {readers}")
        for column in change.columns:
            if column.before is not None:
                readers = ", ".join(column.readers) or "nobody known"
                after = f"becomes {column.after}" if column.after else "is dropped"
                what = f"{change.model}.{column.name} ({column.before})"
                page.item(f"{what} {after}; read by {readers}")
    for change in view.diffs:
        page.heading(f"Diff of {change.model}")
        page.block(change.diff or "", diff=True)


_WHOLE = {
    "full_refresh": "the whole table",
    "seed": "the seed file",
    "recreate_view": "the view",
}


def _extent(item: Backfill) -> str:
    return _WHOLE.get(item.action) or words.window(item.start, item.end)


def _amounts(item: Backfill) -> list[str]:
    """Intervals and batches; a view has none."""
    if item.action == "recreate_view":
        return ["–", "–"]
    return [words.number(item.intervals), words.number(item.batches)]


def _backfill(page: Page, view: ReviewView) -> None:
    if view.backfill:
        page.heading(f"Backfill ({len(view.backfill):,})")
        page.table(
            ["model", "what is built", "intervals", "batches", "in prod later"],
            [[b.model, _extent(b), *_amounts(b), view.later(b)] for b in view.backfill],
        )
    if view.restatements:
        page.heading("Restatements")
    for item in view.restatements:
        others = ", ".join(item.environments) or "this environment only"
        page.item(f"{item.model}, {words.window(item.start, item.end)}; clears data of {others}")
    if view.report.statements:
        page.heading("Statements around the environment")
    for statement in view.report.statements:
        page.item(f"{statement.when}, {statement.change}: {statement.sql}")


def _evidence(page: Page, view: ReviewView) -> None:
    checks = view.report.checks
    for failure in checks.tests.failures:
        page.heading(f"Failed test {failure.name}")
        page.block(failure.message)
    if checks.lint.findings:
        page.heading("Lint findings")
    for finding in checks.lint.findings:
        place = f"{finding.path}:{finding.line}" if finding.line else finding.path
        where = ", ".join(part for part in (finding.model, place) if part)
        page.item(f"{finding.rule}: {finding.evidence} ({where})", mark=f"{finding.severity:8}")


def _rest(page: Page, view: ReviewView) -> None:
    report = view.report
    if report.prod_plan and (view.prod_backfill or view.gaps):
        page.heading("What a merge would do to prod")
        for item in view.prod_backfill:
            view_only = item.action == "recreate_view"
            amount = "" if view_only else f", {words.count(item.intervals, 'interval')}"
            page.item(f"{item.model}: {_extent(item)}{amount}")
        for gap in view.gaps:
            page.item(f"gap in {gap.model}: {words.window(gap.start, gap.end)}")
    if report.stages:
        page.heading("What an apply does")
    for position, stage in enumerate(report.stages, start=1):
        page.item(stage.title, mark=f"{position}.")
        for line in stage.items:
            page.note(line, indent=6)
    if report.notes:
        page.heading("Notes")
    for note in report.notes:
        page.item(note)
