"""Totals of planned work, as readers ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ci_bot.bot.comment.text import words
from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.contracts.documents.plan import Backfill
from ci_bot.contracts.documents.work import Work, tables_of, totals


@dataclass(frozen=True)
class DisplayWork(Work):
    """Totals over a list of backfills, with what only a reader asks for."""

    previews: int = 0
    window: SafeMarkdown | None = None


def display_work(backfill: Sequence[Backfill]) -> DisplayWork:
    """The totals of `backfill`."""
    tables = tables_of(backfill)
    covered = words.span([(item.start, item.end) for item in tables])
    return DisplayWork(
        **asdict(totals(backfill)),
        previews=sum(item.preview for item in tables),
        window=None if covered is None else SafeMarkdown(covered),
    )


def largest_first(item: Backfill) -> tuple[bool, int, int, str]:
    return item.action == "recreate_view", -item.intervals, -item.batches, item.model
