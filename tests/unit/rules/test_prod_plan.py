"""What prod would still have to build: intervals taken off intervals."""

from __future__ import annotations

from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.plan.prod_plan import subtract

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
    assert points(subtract(wanted, built)) == [p for p in points(wanted) if p not in covered]


def test_subtract__five_minute_intervals_of_years_are_one_sweep() -> None:
    """Quadratic, a hundredth of these took a quarter of a minute; the margin is a thousandfold."""
    intervals = [(start, start + 5) for start in range(0, 2_000_000, 5)]
    started = perf_counter()
    assert subtract(intervals, intervals[:-1]) == intervals[-1:]
    assert perf_counter() - started < 30
