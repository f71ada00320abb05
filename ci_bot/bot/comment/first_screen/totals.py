"""Totals of planned work, as readers ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from ci_bot.bot.comment.text import words
from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.contracts.documents.plan import Backfill, Cost
from ci_bot.contracts.documents.report import Report
from ci_bot.contracts.documents.work import Work, tables_of, totals

TOP_WORK = 5


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


def _largest_first(item: Backfill) -> tuple[bool, int, int, str]:
    return item.action == "recreate_view", -item.intervals, -item.batches, item.model


@dataclass(frozen=True)
class PlannedWork:
    """What is built here and in prod, as lists in the order of weight and as totals."""

    report: Report

    @cached_property
    def backfill(self) -> list[Backfill]:
        """The largest first: intervals, then whole tables, then views."""
        return sorted(self.report.backfill, key=_largest_first)

    @cached_property
    def reused(self) -> list[Backfill]:
        return [item for item in self.backfill if not item.preview]

    @cached_property
    def previews(self) -> list[Backfill]:
        return [item for item in self.backfill if item.preview]

    @property
    def top_work(self) -> list[Backfill]:
        return tables_of(self.backfill)[:TOP_WORK]

    @cached_property
    def planned(self) -> DisplayWork:
        return display_work(self.report.backfill)

    @cached_property
    def left(self) -> DisplayWork:
        """What of the backfill is still to do."""
        return display_work(self.report.work)

    @property
    def partly_done(self) -> bool:
        """Whether an earlier apply already built a part of this plan."""
        return len(self.report.work) < len(self.report.backfill) or (
            self.left.intervals < self.planned.intervals
        )

    @property
    def already_built(self) -> bool:
        """Whether the environment holds this very plan, and all of it is built."""
        return self.report.environment_holds_plan and not self.report.work

    @cached_property
    def prod_work(self) -> DisplayWork | None:
        """What prod builds after the merge, if nothing is applied before."""
        return display_work(self.prod_backfill) if self.report.prod_plan else None

    @cached_property
    def prod_left(self) -> DisplayWork | None:
        """What prod builds after an apply of this plan; None where an apply changes nothing."""
        plan = self.report.prod_plan
        if plan is None or self.report.baseline == "base-branch":
            return None
        left = display_work(plan.backfill)
        return None if left == self.prod_work else left

    @cached_property
    def prod_backfill(self) -> list[Backfill]:
        plan = self.report.prod_plan
        return sorted(plan.full_backfill, key=_largest_first) if plan else []

    def later(self, item: Backfill) -> SafeMarkdown:
        """What a table of the environment is to prod after the merge."""
        plan = self.report.prod_plan
        again = {b.model for b in plan.full_backfill} if plan else set()
        left = {b.model: b.intervals for b in plan.backfill} if plan else {}
        if item.preview:
            return SafeMarkdown("built again" if item.model in again else "preview only")
        if not item.reused_in_prod:
            return SafeMarkdown("built again")
        more = left.get(item.model, 0)
        return SafeMarkdown(f"reused, {words.number(more)} more built" if more else "reused")

    @property
    def prod_cost(self) -> Cost | None:
        """What a merge costs in prod, as far as anything is known of it."""
        cost = self.report.prod_plan.cost if self.report.prod_plan else None
        return None if cost is None or cost.executor_hours_mid is None else cost
