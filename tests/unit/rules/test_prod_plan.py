"""What prod would still have to build, and whether its tables are altered."""

from __future__ import annotations

from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.planning.prod_plan import list_built_columns_of_planned_model, subtract_intervals
from tests.unit.rules.world import models

INTERVALS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda t: (t[0], t[0] + t[1])),
    max_size=8,
)


def points(intervals: list[tuple[int, int]]) -> list[int]:
    return sorted(point for start, end in intervals for point in range(start, end))


@given(INTERVALS, INTERVALS)
def test_subtract__leaves_each_point_that_nothing_covers(
    wanted: list[tuple[int, int]], built: list[tuple[int, int]]
) -> None:
    covered = set(points(built))
    assert points(subtract_intervals(wanted, built)) == [
        p for p in points(wanted) if p not in covered
    ]


def test_subtract__five_minute_intervals_of_years_are_one_sweep() -> None:
    """Quadratic, a hundredth of these took a quarter of a minute; the margin is a thousandfold."""
    intervals = [(start, start + 5) for start in range(0, 2_000_000, 5)]
    started = perf_counter()
    assert subtract_intervals(intervals, intervals[:-1]) == intervals[-1:]
    assert perf_counter() - started < 30


def test_columns__of_a_history_are_the_same_when_they_come_back_from_the_state() -> None:
    text = """
        MODEL (
          name mart.h,
          kind SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [status])
        );
        SELECT o.order_id, o.status FROM raw.orders AS o
    """
    (now, *_), (before, *_) = (
        [m for m in models({"models/h.sql": text}, stored=stored).values() if m.is_sql]
        for stored in (False, True)
    )
    assert now.columns_to_types != before.columns_to_types, "SQLGlot has two types for it"
    assert (
        list_built_columns_of_planned_model(now)
        == list_built_columns_of_planned_model(before)
        is not None
    )
