"""Applies and cleanups for a terminal."""

from __future__ import annotations

from ci_bot.bot.comment.outcome_view import ApplyView, DiffView, differences
from ci_bot.bot.comment.text import words
from ci_bot.bot.terminal.page import Page
from ci_bot.contracts.base import Failure, short
from ci_bot.contracts.documents.apply import AppliedModel, ApplyDocument
from ci_bot.contracts.documents.cleanup import CleanupDocument

_APPLY = {
    "applied": ("Applied", "green"),
    "nothing_to_apply": ("Nothing to apply", "white"),
    "failed": ("Apply failed", "red"),
    "refused": ("Apply refused", "red"),
    "cancelled": ("Apply cancelled", "yellow"),
}
_CLEANUP = {
    "removed": ("removed", "green"),
    "nothing_to_do": ("nothing to remove", "green"),
    "incomplete": ("cleanup incomplete", "red"),
    "refused": ("cleanup refused", "red"),
}
_STATES = {
    "same": "identical",
    "empty": "no rows",
    "suspect": "keys not unique",
    "differs": "differs",
}
_HOW = {
    "changed": "another version than the reviewed one",
    "added": "only in the plan of now",
    "gone": "only in the reviewed plan",
    "field": "this setting differs",
}


def apply_page(page: Page, document: ApplyDocument) -> None:
    """How an apply ended, and the evidence."""
    view = ApplyView(document)
    title, color = _APPLY[document.result]
    plan = f" {short(document.plan_id)}" if document.plan_id else ""
    took = words.duration(document.seconds)
    page.title(f"{title}{plan} · {document.environment} · {took}", color)
    _failure(page, document.failure)
    for difference in differences(document.difference):
        page.item(f"{difference.name}: {_HOW[difference.how]}")
    if document.partial:
        page.heading("May be half built")
    for line in document.partial:
        page.item(line)
    if document.result in ("refused", "nothing_to_apply"):
        return
    built = f"{words.count(view.built.tables, 'table')}, "
    built += f"{words.count(view.built.intervals, 'interval')} in "
    built += words.count(view.built.batches, "batch")
    page.fact("Built", built + (f", {words.count(view.rows, 'row')}" if view.rows else ""))
    audits = document.audits
    page.fact(
        "Audits",
        f"{audits.passed} passed, {audits.failed} failed, {audits.blocking_failed} blocking failed,"
        f" {audits.not_run} not run",
    )
    if document.estimate:
        expected = words.count(document.estimate.intervals, "interval")
        page.fact("Expected", f"{expected} in {words.count(document.estimate.batches, 'batch')}")
    if document.evidence_missing:
        page.fact("Evidence", f"not collected: {document.evidence_missing}")
    if document.models:
        page.heading("Tables")
        page.table(
            ["model", "intervals", "rows", "time"],
            [
                [m.model, _intervals(m), _maybe(m.rows), words.duration(m.seconds)]
                for m in document.models
            ],
        )
    if view.compared:
        page.heading("Data against prod")
        page.table(
            ["model", "result", "rows in prod", "rows here", "only prod", "only here", "equal"],
            [_diff(diff) for diff in view.compared],
        )
    for skipped in view.skipped:
        page.item(f"{skipped.model} not compared: {skipped.skipped_because or 'no reason given'}")
    if document.views:
        page.heading("Views")
    for item in document.views:
        page.item(item.view if item.resolves else f"{item.view} DOES NOT RESOLVE: {item.error}")


def _diff(diff: DiffView) -> list[str]:
    equal = "–" if diff.equal is None else words.percent(diff.equal)
    counts = [diff.rows_prod, diff.rows_pr, diff.only_prod, diff.only_pr]
    return [diff.model, _STATES[diff.state], *(_maybe(count) for count in counts), equal]


def _intervals(model: AppliedModel) -> str:
    return "view" if model.action == "recreate_view" else words.number(model.intervals)


def _maybe(value: int | None) -> str:
    return "–" if value is None else words.number(value)


def _failure(page: Page, failure: Failure | None) -> None:
    if failure is None:
        return
    place = f"{failure.path}:{failure.line}" if failure.line else failure.path
    where = ", ".join(part for part in (failure.model, place) if part)
    page.fact(
        "Failed", f"at {failure.stage}: {failure.reason_code}{f' in {where}' if where else ''}"
    )
    page.block(failure.message)
    page.fact("Next", failure.hint)


def cleanup_page(page: Page, document: CleanupDocument) -> None:
    """What was removed, and what is left."""
    title, color = _CLEANUP[document.result]
    took = words.duration(document.seconds)
    page.title(f"Environment {document.environment} · {title} · {took}", color)
    _failure(page, document.failure)
    if document.result == "refused":
        return
    views, schemas = len(document.views_dropped), len(document.schemas_dropped)
    page.fact("Dropped", f"{words.count(views, 'view')}, {words.count(schemas, 'schema')}")
    page.fact("Reclaimed", _reclaimed(document))
    page.fact("Left over", str(len(document.leftovers)))
    page.fact("Record", _record(document))
    for left in document.leftovers:
        page.item(f"{left.object}: {left.why}")
    for name in document.foreign:
        page.item(f"{name} was not made by this environment and stays")
    if document.tables_reclaimed:
        page.heading("Physical tables that are gone")
    for table in document.tables_reclaimed:
        page.item(f"{table.table}: {'unknown' if table.bytes is None else words.size(table.bytes)}")
    if document.tables_kept:
        page.heading("Physical tables that stay")
    for kept in document.tables_kept:
        until = f", until {words.clock(kept.until)}" if kept.until else ""
        page.item(f"{kept.table}: {kept.why}{until}")
    if document.result == "incomplete":
        page.fact("Next", "clear the cause and run the same cleanup again; it is safe to repeat")


def _reclaimed(document: CleanupDocument) -> str:
    size = document.bytes_reclaimed
    freed = "" if size is None else f", {words.size(size)} freed"
    return words.count(len(document.tables_reclaimed), "physical table") + freed


def _record(document: CleanupDocument) -> str:
    """What became of SQLMesh's own record of the environment."""
    if document.state_record_removed:
        return "removed"
    return "still in the state" if document.existed else "there was none"
