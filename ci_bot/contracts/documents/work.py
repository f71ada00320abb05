"""Counting work: one rule for reviews, estimates, gates and applies.

Tables are counted. Views are named apart: they are replaced in a moment, and nothing is computed
into them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ci_bot.contracts.documents.plan import Backfill, BackfillAction


class Counted(Protocol):
    """What can be counted: a planned backfill, or a model that an apply has built."""

    @property
    def action(self) -> BackfillAction | None: ...
    @property
    def intervals(self) -> int: ...
    @property
    def batches(self) -> int: ...


_Item = TypeVar("_Item", bound=Counted)


@dataclass(frozen=True)
class Work:
    """Totals; intervals and batches are those of the tables."""

    tables: int = 0
    views: int = 0
    intervals: int = 0
    batches: int = 0
    rebuilt: int = 0


def totals(items: Iterable[Counted]) -> Work:
    """How much work `items` are."""
    every = list(items)
    tables = tables_of(every)
    return Work(
        tables=len(tables),
        views=sum(item.action == "recreate_view" for item in every),
        intervals=sum(item.intervals for item in tables),
        batches=sum(item.batches for item in tables),
        rebuilt=sum(item.action == "full_refresh" for item in tables),
    )


def tables_of(items: Iterable[_Item]) -> list[_Item]:
    """The tables among `items`; not the views, and not what an apply only audited."""
    return [item for item in items if item.action != "recreate_view" and item.intervals]


def larger(one: list[Backfill], other: list[Backfill]) -> list[Backfill]:
    """The plan that is more work: by intervals, then by tables, then by batches; `one` if equal."""
    first, second = totals(one), totals(other)
    keys = [(work.intervals, work.tables, work.batches) for work in (first, second)]
    return other if keys[1] > keys[0] else one
