"""What a doctor found, for a terminal: a line for each part, and the fix where one is needed."""

from __future__ import annotations

from ci_bot.bot.comment.text import words
from ci_bot.bot.terminal.page import Page
from ci_bot.contracts.documents.doctor import DoctorDocument

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "not_run": "yellow"}


def doctor_to_terminal(document: DoctorDocument, *, colour: bool = False) -> str:
    """The document as plain text, ending in a newline."""
    page = Page(color=colour)
    count = {
        status: sum(check.status == status for check in document.checks) for status in _COLOURS
    }
    worst = "red" if count["fail"] else "yellow" if count["warn"] else "green"
    page.title(
        f"Doctor · {count['ok']} ok, {count['warn']} to look at, {count['fail']} failing · "
        f"{words.duration(document.seconds)}",
        worst,
    )
    for check in document.checks:
        mark = check.status.replace("_", " ").ljust(4)
        page.item(f"{check.name}: {check.message}", mark=mark, color=_COLOURS[check.status])
        if check.fix:
            page.note(f"→ {check.fix}", indent=7)
    return page.text()
