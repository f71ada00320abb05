"""What the environment builds now, beside what `prod` builds after the merge: by kind of work.

There is one row for each kind and not for each model, because a model's name alone is wider than a
phone. The picture and the lists below name the models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from ci_bot.bot.report import words
from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model.changed_rows import list_forward_only_models, list_history_keepers
from ci_bot.protocol.plan import Backfill, Cost, Work, select_tables, sum_planned_work
from ci_bot.protocol.review_inputs import ProdRestatement
from ci_bot.protocol.review_report import Report

_NOTHING = "–"
_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class BuildRowView:
    """One kind of work. All words are ours; no names are in it."""

    label: SafeMarkdown
    here: SafeMarkdown
    later: SafeMarkdown


def list_build_row_views(report: Report) -> list[BuildRowView]:
    """Returns the rows; empty if no table is built on either side."""
    here = report.backfill
    plan = report.prod_plan
    later = [*plan.full_backfill, *plan.next_run] if plan else []
    if not select_tables(here) and not select_tables(later):
        return []
    kept = list_forward_only_models(report)
    rows = [
        (
            "Incremental",
            _describe_history(here, kept),
            _describe_history(later, kept),
        ),
        (
            "Forward-only",
            _describe_previews(here, kept),
            _describe_old_rows(report),
        ),
        (
            "Whole tables",
            _format_number_or_blank(_count_whole_tables(here, kept)),
            _format_number_or_blank(_count_whole_tables(later, kept)),
        ),
        (
            "Views",
            _format_number_or_blank(_count_views(here)),
            _format_number_or_blank(_count_views(later)),
        ),
        (
            "Executor time",
            _format_expected_time(report.cost),
            _format_expected_time(_find_prod_cost(report)),
        ),
    ]
    return [
        BuildRowView(*(SafeMarkdown(text or _NOTHING) for text in row))
        for row in rows
        if row[1] or row[2]
    ]


def _describe_old_rows(report: Report) -> str:
    """Says what happens to the rows that prod's forward-only tables hold."""
    forward, kept = list_forward_only_models(report), list_history_keepers(report)
    if not forward:
        return ""
    if forward == kept:
        return "history stays"
    return f"history stays in {len(kept)} of {len(forward)}" if kept else "old rows can change"


def _describe_history(items: Iterable[Backfill], kept: frozenset[str]) -> str:
    return _describe_intervals(
        [item for item in _list_incremental_models(items) if item.model not in kept]
    )


def _describe_previews(items: Iterable[Backfill], kept: frozenset[str]) -> str:
    found = [item for item in select_tables(items) if item.model in kept]
    return f"preview, {_describe_intervals(found)}" if found else ""


def _describe_intervals(items: Sequence[Backfill]) -> str:
    """Returns "2 tables, 730 days since 2013-01-01", "365 days since ...", "1 day, 2024-11-30"."""
    if not items:
        return ""
    tables = "" if len(items) == 1 else f"{words.format_count(len(items), 'table')}, "
    amount = words.format_count(sum(item.intervals for item in items), _name_interval_unit(items))
    starts = [item.start for item in items if item.start]
    if starts and amount == "1 day":
        return f"{amount}, {_format_unbroken_date(starts[0])}"
    since = f" since {_format_unbroken_date(min(starts, key=words.parse_moment))}" if starts else ""
    return f"{tables}{amount}{since}"


def _format_unbroken_date(moment: str) -> str:
    """Formats a date so that no narrow column breaks it in two."""
    return words.format_day(moment).replace("-", "\N{NON-BREAKING HYPHEN}")


def _name_interval_unit(items: Sequence[Backfill]) -> str:
    """Returns "day" if the windows show that each interval is a day, else "interval"."""
    return "day" if all(map(_is_daily, items)) else "interval"


def _is_daily(item: Backfill) -> bool:
    if item.start is None or item.end is None:
        return False
    length = words.parse_moment(item.end) - words.parse_moment(item.start)
    return length.total_seconds() == item.intervals * _DAY_SECONDS


def _list_incremental_models(items: Iterable[Backfill]) -> list[Backfill]:
    return [item for item in select_tables(items) if item.action == "incremental"]


def _count_whole_tables(items: Iterable[Backfill], kept: frozenset[str]) -> int:
    tables = [item for item in select_tables(items) if item.model not in kept]
    return sum(item.action != "incremental" for item in tables)


def _count_views(items: Iterable[Backfill]) -> int:
    return sum_planned_work(items).views


def _format_number_or_blank(value: int) -> str:
    return words.format_number(value) if value else ""


def _find_prod_cost(report: Report) -> Cost | None:
    return report.prod_plan.cost if report.prod_plan else None


def _format_expected_time(cost: Cost | None) -> str:
    """Returns the expected time in a few words; "" if nothing is known."""
    if cost is None or cost.executor_hours_mid is None:
        return ""
    about = "at least" if cost.unknown else "about"
    price = f", {about} {words.format_money(cost.price)}" if cost.price is not None else ""
    return f"{about} {words.executor_time(cost.executor_hours_mid)}{price}"


# Totals of planned work, in the form that readers need.


TOP_WORK = 5


@dataclass(frozen=True)
class DisplayWorkView(Work):
    """Totals over a list of backfills, with two figures that only a reader needs."""

    previews: int = 0
    window: SafeMarkdown | None = None


def describe_restated_models(items: Sequence[ProdRestatement]) -> str:
    """Says how much the restatements build again, and who asks; "" if none of them is valid."""
    held = [item for item in items if item.problem is None]
    if not held:
        return ""
    models = {work.model for item in held for work in item.work}
    askers = words.describe_askers(item.recorded.by for item in held)
    return f"builds {words.format_count(len(models), 'model')} again, as {askers}"


def describe_displayed_work(backfill: Sequence[Backfill]) -> DisplayWorkView:
    """Returns the totals of `backfill`."""
    tables = select_tables(backfill)
    covered = words.format_covering_window([(item.start, item.end) for item in tables])
    return DisplayWorkView(
        **asdict(sum_planned_work(backfill)),
        previews=sum(item.preview for item in tables),
        window=None if covered is None else SafeMarkdown(covered),
    )


def _get_build_size_order(item: Backfill) -> tuple[bool, int, int, str]:
    return item.action == "recreate_view", -item.intervals, -item.batches, item.model


@dataclass(frozen=True)
class PlannedWorkView:
    """The work here and in prod, as lists (the largest first) and as totals."""

    report: Report

    @cached_property
    def backfill(self) -> list[Backfill]:
        """The largest first: by intervals, then whole tables, then views."""
        return sorted(self.report.backfill, key=_get_build_size_order)

    @cached_property
    def reused(self) -> list[Backfill]:
        return [item for item in self.backfill if not item.preview]

    @cached_property
    def previews(self) -> list[Backfill]:
        return [item for item in self.backfill if item.preview]

    @property
    def top_work(self) -> list[Backfill]:
        return select_tables(self.backfill)[:TOP_WORK]

    @cached_property
    def planned(self) -> DisplayWorkView:
        return describe_displayed_work(self.report.backfill)

    @cached_property
    def remaining_work(self) -> DisplayWorkView:
        """The part of the backfill that is still to do."""
        return describe_displayed_work(self.report.work)

    @property
    def partly_done(self) -> bool:
        """Whether an earlier apply already built a part of this plan."""
        return len(self.report.work) < len(self.report.backfill) or (
            self.remaining_work.intervals < self.planned.intervals
        )

    @property
    def already_built(self) -> bool:
        """Whether the environment holds exactly this plan, and all of it is built."""
        return self.report.environment_holds_plan and not self.report.work

    @cached_property
    def prod_work(self) -> DisplayWorkView | None:
        """What prod builds after the merge, if nothing is applied before."""
        return describe_displayed_work(self.prod_backfill) if self.report.prod_plan else None

    @property
    def restated(self) -> str:
        """What prod builds again once the merge is deployed; "" if nobody asks for it."""
        return describe_restated_models(self.report.prod_restatements)

    @cached_property
    def prod_left(self) -> DisplayWorkView | None:
        """What prod builds after an apply of this plan; None if an apply changes nothing."""
        plan = self.report.prod_plan
        if plan is None or self.report.baseline == "base-branch":
            return None
        left = describe_displayed_work(plan.backfill)
        return None if left == self.prod_work else left

    @cached_property
    def prod_backfill(self) -> list[Backfill]:
        plan = self.report.prod_plan
        return sorted(plan.full_backfill, key=_get_build_size_order) if plan else []

    def describe_in_prod(self, item: Backfill) -> SafeMarkdown:
        """Says what a table of the environment means for prod after the merge."""
        plan = self.report.prod_plan
        again = {b.model for b in plan.full_backfill} if plan else set()
        left = {b.model: b.intervals for b in plan.backfill} if plan else {}
        if item.preview:
            return SafeMarkdown("built again" if item.model in again else "preview only")
        if not item.reused_in_prod:
            return SafeMarkdown("built again")
        more = left.get(item.model, 0)
        return SafeMarkdown(f"reused, {words.format_number(more)} more built" if more else "reused")

    @property
    def prod_cost(self) -> Cost | None:
        """What a merge costs in prod; None if nothing is known about it."""
        cost = self.report.prod_plan.cost if self.report.prod_plan else None
        return None if cost is None or cost.executor_hours_mid is None else cost
