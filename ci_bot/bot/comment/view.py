"""A report as its readers ask for it: counts, and lists in the order of weight. No prose here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from ci_bot.bot.comment.column_impact import ImpactRow, impact_rows, reads_nothing
from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.text import shell_commands, weights, words
from ci_bot.bot.comment.text.advice import recommendations
from ci_bot.bot.comment.text.links import Links
from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.bot.comment.text.options import options_sentence, said
from ci_bot.bot.comment.text.window import short_window
from ci_bot.contracts.documents.plan import Backfill, Change, Cost, Gap, Restatement
from ci_bot.contracts.documents.report import Report, Risk
from ci_bot.contracts.documents.work import Work, tables_of, totals

# Together they keep everything above the first collapsed section within 28 lines.
TOP_RISKS = 5
TOP_WORK = 5
TOP_ROWS = 8
FAILURE_LINES = 15

_CHANGE_ORDER = {"removed": 0, "direct": 1, "added": 2, "indirect": 3, "metadata": 4}
_CATEGORY_ORDER = {
    "uncategorized": 0,
    "breaking": 1,
    "forward_only": 2,
    "indirect_breaking": 3,
    "non_breaking": 4,
    "indirect_non_breaking": 5,
    "metadata": 6,
}
_SEVERITY_ORDER = {name: index for index, name in enumerate(words.SEVERITIES)}


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
class TopRisk:
    """The first risk of one rule and severity, and how many more like it there are."""

    risk: Risk
    more: int


@dataclass(frozen=True)
class ReviewView:
    """What the review's templates and the terminal read."""

    report: Report
    context: CommentContext

    @cached_property
    def links(self) -> Links:
        return Links(self.context, self.report.head_sha)

    @cached_property
    def own(self) -> list[Change]:
        """The pull request's own changes, weightiest first."""
        return self._ranked(from_base=False)

    @cached_property
    def drift(self) -> list[Change]:
        """Changes that the base branch brings and prod does not have yet."""
        return self._ranked(from_base=True)

    def _ranked(self, *, from_base: bool) -> list[Change]:
        return sorted(
            (change for change in self.report.changes if change.from_base == from_base),
            key=lambda change: (
                _CHANGE_ORDER[change.change],
                _CATEGORY_ORDER.get(change.category or "", len(_CATEGORY_ORDER)),
                change.model,
            ),
        )

    @cached_property
    def counts(self) -> Counter[str]:
        """Own changes by type."""
        return Counter(change.change for change in self.own)

    @property
    def change_counts(self) -> list[tuple[str, int]]:
        """Own changes by type, in the order in which people ask for them."""
        order = ("direct", "added", "removed", "indirect", "metadata")
        return [(name, self.counts[name]) for name in order if self.counts[name]]

    @cached_property
    def categories(self) -> list[tuple[SafeMarkdown, int]]:
        """How SQLMesh classified the pull request's direct changes, weightiest first."""
        found = Counter(
            change.category
            for change in self.own
            if change.category and change.change in ("direct", "added", "removed")
        )
        return [
            (SafeMarkdown(words.CATEGORIES[name]), found[name])
            for name in sorted(found, key=lambda name: _CATEGORY_ORDER[name])
        ]

    @cached_property
    def edited(self) -> list[Change]:
        """Rows of the table of the models that the pull request touches itself."""
        return [c for c in self.own if c.change in ("removed", "direct", "added")]

    @cached_property
    def downstream(self) -> list[Change]:
        return [c for c in self.own if c.change == "indirect"]

    @cached_property
    def impact(self) -> list[ImpactRow]:
        """What the pull request's changed columns and rows reach."""
        return impact_rows(self.report.impact, {change.model for change in self.drift})

    @cached_property
    def reads_nothing(self) -> list[str]:
        """Models that are built anew although they read nothing that changes."""
        return reads_nothing(self.report.impact, (item.model for item in tables_of(self.backfill)))

    @cached_property
    def metadata(self) -> list[Change]:
        return [c for c in self.own if c.change == "metadata"]

    @cached_property
    def losses(self) -> list[Change]:
        """Models that go, and models that drop or retype a column."""
        return [
            c
            for c in (*self.own, *self.drift)
            if c.change == "removed" or any(col.before is not None for col in c.columns)
        ]

    @cached_property
    def diffs(self) -> list[Change]:
        return [change for change in (*self.own, *self.drift) if change.diff]

    @cached_property
    def risks(self) -> list[Risk]:
        return sorted(
            self.report.risks,
            key=lambda risk: (_SEVERITY_ORDER[risk.severity], risk.rule, risk.model or ""),
        )

    @property
    def set_aside(self) -> str:
        """How many findings took no part in the decision; "" where there is none."""
        return weights.set_aside(self.report.set_aside)

    @property
    def policy(self) -> str:
        """Which policy counted; "" where there is none."""
        return weights.policy(self.report.policy)

    @cached_property
    def severities(self) -> Counter[str]:
        return Counter(risk.severity for risk in self.risks)

    @cached_property
    def top_risks(self) -> list[TopRisk]:
        """One row per rule, at most five; anything below medium only counts."""
        heavy = [r for r in self.risks if r.severity in ("blocker", "high", "medium")]
        groups: dict[tuple[str, str], list[Risk]] = {}
        for risk in heavy:
            groups.setdefault((risk.severity, risk.rule), []).append(risk)
        return [TopRisk(found[0], len(found) - 1) for found in groups.values()][:TOP_RISKS]

    @cached_property
    def other_risks(self) -> list[tuple[str, int]]:
        """How many risks of each severity no row of the first table speaks of."""
        rest = self.severities.copy()
        for top in self.top_risks:
            rest[top.risk.severity] -= 1 + top.more
        return [(name, rest[name]) for name in words.SEVERITIES if rest[name]]

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
        return tables_of(self.backfill)[: min(TOP_WORK, TOP_ROWS - len(self.top_risks))]

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

    @property
    def short_window(self) -> str | None:
        """Why the environment gets less history; None where it gets all."""
        window = self.report.short_window
        if window is None:
            return None
        return short_window(window, self.report.environment, self.report.options)

    @property
    def options(self) -> str | None:
        """The plan's options that somebody has said, and who did."""
        return options_sentence(self.report.options)

    @property
    def skips_backfill(self) -> bool:
        """Whether the plan builds no data on purpose."""
        option = said(self.report.options, "skip-backfill")
        return option is not None and option.value == "true"

    @cached_property
    def recommendations(self) -> list[str]:
        """What to mend, most pressing first."""
        return recommendations(self.report)

    @property
    def gaps(self) -> list[Gap]:
        return list(self.report.prod_plan.gaps) if self.report.prod_plan else []

    @property
    def restatements(self) -> list[Restatement]:
        return sorted(self.report.restatements, key=lambda r: (-len(r.environments), r.model))

    @property
    def seconds(self) -> float:
        return sum(self.report.timings.values())

    @property
    def reproduce(self) -> str:
        """Shell lines that make the same review on a laptop."""
        return shell_commands.reproduce(self.report, self.context)

    @property
    def restatement(self) -> str:
        """The command with which a person rebuilds data that prod already has."""
        return shell_commands.restatement(self.report)

    @cached_property
    def change_of(self) -> dict[str, Change]:
        return {change.model: change for change in self.report.changes}

    @property
    def unplanned(self) -> bool:
        """Whether there is no plan because the base branch does not load."""
        return bool(self.report.base_failures) and not self.report.project.models

    @property
    def base_head(self) -> str:
        """The first lines of what keeps the base branch from being loaded."""
        failures = self.report.base_failures
        lines = failures[0].message.strip().splitlines() if failures else []
        return "\n".join(lines[:FAILURE_LINES])

    @property
    def failure_head(self) -> tuple[str, int]:
        """The first lines of a failure's message, and how many lines there are beyond them."""
        failure = self.report.failure
        lines = failure.message.strip().splitlines() if failure else []
        return "\n".join(lines[:FAILURE_LINES]), max(len(lines) - FAILURE_LINES, 0)
