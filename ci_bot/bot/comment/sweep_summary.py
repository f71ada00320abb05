"""A sweep's report: Markdown for the step summary, plain text for a terminal."""

from __future__ import annotations

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.parts.blocks import tidy
from ci_bot.bot.comment.text import words
from ci_bot.bot.comment.text.markdown import SafeMarkdown, link
from ci_bot.bot.comment.text.templating import environment
from ci_bot.bot.terminal.page import Page
from ci_bot.contracts.documents.sweep import SweepReport, SweepRow

# A state of thousands of environments must not lose the whole summary to the runner's limit.
MOST_ROWS = 500
_GONE = ("removed", "nothing_to_do")
_STAYS = {
    "open": "its pull request is open",
    "unknown": "GitHub does not say whether its pull request is open",
    "grace": "removed already, its physical tables stay for a day after that",
    "pinned": "pinned in the project's configuration",
    "not_recorded": "not recorded by this action",
    "odd_record": "its record contradicts its name",
}


def render_sweep(report: SweepReport, context: CommentContext) -> str:
    """The whole report as Markdown; `context` says where links lead and what time it is."""
    rescued, tables, kept = _parts(report)
    template = environment().get_template("sweep.md.j2")
    return tidy(
        template.render(
            s=report,
            c=context,
            rescued=rescued,
            tables=tables,
            left=[row for row in [*rescued, *tables] if row.result not in _GONE],
            kept=kept,
            most=MOST_ROWS,
            pull=lambda number: _pull(context, number),
        )
    )


def sweep_to_terminal(report: SweepReport, *, colour: bool = False) -> str:
    """The same for a terminal."""
    rescued, tables, kept = _parts(report)
    page = Page(color=colour)
    left = [row for row in [*rescued, *tables] if row.result not in _GONE]
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
    if row.result not in _GONE:
        return "would be reclaimed" if dry_run else f"left: {row.waits or 'unknown why'}"
    size = "" if row.bytes_reclaimed is None else f", {words.size(row.bytes_reclaimed)} freed"
    kept = f", {row.tables_kept} kept" if row.tables_kept else ""
    return f"{words.count(row.tables_reclaimed, 'table')} reclaimed{size}{kept}"


def _parts(report: SweepReport) -> tuple[list[SweepRow], list[SweepRow], list[SweepRow]]:
    """Rescues, tables of environments that were removed before, and what was not touched."""
    rescued = [row for row in report.rows if row.standing == "remove"]
    tables = [row for row in report.rows if row.standing == "tables"]
    kept = [row for row in report.rows if row.standing not in ("remove", "tables")]
    return rescued, tables, kept


def _pull(context: CommentContext, number: int | None) -> SafeMarkdown:
    if number is None:
        return SafeMarkdown("–")
    root = f"{context.server_url.rstrip('/')}/{context.repository}" if context.repository else None
    # Without a link GitHub would make a reference of it, which is the same place.
    return link(SafeMarkdown(f"#{number}"), f"{root}/pull/{number}" if root else None)
