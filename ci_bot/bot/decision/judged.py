"""The work that is judged: the larger of what the environment gets and what prod builds.

An environment often gets a part of the history only (see `ShortWindow`), while a merge makes prod
build all of it. Every rule that speaks of an amount of work reads it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ci_bot.contracts.documents.plan import Backfill, Cost
from ci_bot.contracts.documents.report import ReviewFacts
from ci_bot.contracts.documents.work import Work, larger, totals

Where = Literal["environment", "prod"]


@dataclass(frozen=True)
class Judged:
    """The work on one model.

    Attributes:
        item: the larger of both plans' entries.
        where: which plan it is from.
        here: intervals that the environment gets.
        next_run: whether a merge builds nothing, and prod's next run computes all of it.
    """

    item: Backfill
    where: Where
    here: int
    next_run: bool = False

    @property
    def keeps_history(self) -> bool:
        """Whether only a preview is built, which prod does not take over, of a kind whose table
        keeps the rows that it has."""
        incremental = self.item.action == "incremental"
        return self.where == "environment" and self.item.preview and incremental


@dataclass(frozen=True)
class JudgedWork:
    """The work on the changed models.

    Attributes:
        models: by model name; nothing for models that neither plan builds.
        total: of the larger plan, and `where` says which one that is.
        prod_known: False where planning prod failed, or was not possible.
    """

    models: Mapping[str, Judged]
    total: Work
    where: Where
    prod_known: bool


def judged_work(facts: ReviewFacts) -> JudgedWork:
    """What a change builds, by the larger of both plans."""
    plan = facts.prod_plan
    known = plan is not None and not plan.would_fail
    changed = {change.model for change in facts.changes}
    # Prod also fills gaps of models that this change does not touch.
    prod = [item for item in plan.full_backfill if item.model in changed] if plan else []
    # Prod pays for it, if not with the merge.
    prod += plan.next_run if plan else []
    later = {item.model for item in plan.next_run} if plan else set()
    here = {item.model: item for item in facts.backfill}
    there = {item.model: item for item in prod}
    models = {
        name: None if found is None else replace(found, next_run=name in later)
        for name in sorted({*here, *there})
        for found in (_judged(here.get(name), there.get(name)),)
    }
    bigger = larger(facts.backfill, prod)
    return JudgedWork(
        models={name: found for name, found in models.items() if found is not None},
        total=totals(bigger),
        where="prod" if bigger is prod else "environment",
        prod_known=known,
    )


def _judged(here: Backfill | None, there: Backfill | None) -> Judged | None:
    if here is None:
        return Judged(there, "prod", 0) if there else None
    if there is not None and (here.preview or there.intervals > here.intervals):
        return Judged(there, "prod", here.intervals)
    return Judged(here, "environment", here.intervals)


def judged_costs(facts: ReviewFacts) -> list[tuple[Cost, Where]]:
    """The estimates of both plans, the dearer one first."""
    costs: list[tuple[Cost, Where]] = [(facts.cost, "environment")]
    if facts.prod_plan is not None and facts.prod_plan.cost is not None:
        costs.append((facts.prod_plan.cost, "prod"))
    return sorted(costs, key=lambda pair: -(pair[0].executor_hours_mid or 0.0))
