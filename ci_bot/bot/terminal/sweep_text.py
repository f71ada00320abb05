"""A sweep's report as plain text, for a terminal."""

from __future__ import annotations

from ci_bot.bot.comment.sweep_summary import GONE, parts_of
from ci_bot.bot.comment.text import words
from ci_bot.bot.terminal.page import Page
from ci_bot.contracts.documents.sweep import SweepReport, SweepRow

_STAYS = {
    "open": "its pull request is open",
    "unknown": "GitHub does not say whether its pull request is open",
    "grace": "removed already, its physical tables stay for a day after that",
    "pinned": "pinned in the project's configuration",
    "not_recorded": "not recorded by this action",
    "odd_record": "its record contradicts its name",
    "other_prefix": "made under another prefix, which a sweep of its own has to name",
}


def sweep_to_terminal(report: SweepReport, *, colour: bool = False) -> str:
    """The whole report."""
    rescued, tables, kept = parts_of(report)
    page = Page(color=colour)
    left = [row for row in [*rescued, *tables] if row.result not in GONE]
    found = words.count(len(rescued), "environment")
    if report.dry_run:
        page.title(f"Sweep, dry run · {found} would be removed", "yellow" if rescued else "green")
    elif left:
        of = words.count(len(rescued) + len(tables), "environment")
        page.title(f"Sweep · {len(left)} of {of} could not be removed", "red")
    else:
        page.title(f"Sweep · {found} rescued", "green")
    if report.failure is not None:
        page.fact("Failed", report.failure.message)
        page.fact("Next", report.failure.hint)
    for row in rescued:
        page.item(f"{row.environment}: {_outcome(row, dry_run=report.dry_run)}")
        page.note(f"likely cause: {row.cause or 'unknown'}")
    if tables:
        page.heading("Physical tables")
    for row in tables:
        page.item(f"{row.environment}: {_tables(row, dry_run=report.dry_run)}")
    if kept:
        page.heading("Not touched")
    for row in kept:
        page.item(f"{row.environment}: {_STAYS[row.standing]}")
    if report.others:
        page.fact("Others", f"{words.count(report.others, 'environment')} of other repositories")
    return page.text()


def _outcome(row: SweepRow, *, dry_run: bool) -> str:
    if row.result == "removed":
        return f"removed, {words.count(row.views_dropped, 'view')} dropped"
    if row.result == "nothing_to_do":
        return "gone already"
    return "would be removed" if dry_run else f"left: {row.waits or 'unknown why'}"


def _tables(row: SweepRow, *, dry_run: bool) -> str:
    """What became of the tables of an environment that was removed before."""
    if row.result not in GONE:
        return "would be reclaimed" if dry_run else f"left: {row.waits or 'unknown why'}"
    size = "" if row.bytes_reclaimed is None else f", {words.size(row.bytes_reclaimed)} freed"
    kept = f", {row.tables_kept} kept" if row.tables_kept else ""
    return f"{words.count(row.tables_reclaimed, 'table')} reclaimed{size}{kept}"
