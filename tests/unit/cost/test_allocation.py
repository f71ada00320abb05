"""Whose the executors were: right while they come and go, and nothing counted twice."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.cost.spark_counters import (
    BusySpan,
    ExecutorSpan,
    read_executors,
    share_executor_allocation,
    sum_executor_allocation,
)

TIMES = st.floats(0, 1_000)


def test_allocated__counts_executors_that_are_gone_by_now() -> None:
    # Dynamic allocation: ten came for the middle, and none is left at the end.
    fleet = [ExecutorSpan(added=40, removed=60, cores=4) for _ in range(10)]
    found = sum_executor_allocation(fleet, 0, 100)
    assert (found.executors, found.cores) == (200, 800)


def test_allocated__counts_only_what_lies_in_the_window() -> None:
    assert sum_executor_allocation([ExecutorSpan(0, None, 1)], 90, 100).executors == 10
    assert sum_executor_allocation([ExecutorSpan(95, None, 1)], 90, 100).executors == 5
    assert sum_executor_allocation([ExecutorSpan(0, 50, 1)], 90, 100).executors == 0


def test_shares__one_after_the_other_gets_what_was_there_meanwhile() -> None:
    fleet = [ExecutorSpan(0, None, 2), ExecutorSpan(10, 20, 2)]
    found = share_executor_allocation(fleet, [BusySpan("a", 0, 10, 5), BusySpan("b", 10, 20, 1)])
    assert (found["a"].executors, found["b"].executors) == (10, 20)


def test_shares__side_by_side_by_what_each_uses() -> None:
    found = share_executor_allocation(
        [ExecutorSpan(0, None, 4)], [BusySpan("a", 0, 10, 30), BusySpan("b", 0, 10, 10)]
    )
    assert (found["a"].executors, found["b"].executors) == (7.5, 2.5)


def test_shares__in_equal_parts_where_nobody_knows_what_was_used() -> None:
    found = share_executor_allocation(
        [ExecutorSpan(0, None, 4)], [BusySpan("a", 0, 10, 0), BusySpan("b", 0, 10, 0)]
    )
    assert found["a"] == found["b"]


@given(
    st.lists(
        st.builds(
            lambda added, seconds, cores: ExecutorSpan(added, added + seconds, cores),
            TIMES,
            TIMES,
            st.integers(1, 16),
        ),
        max_size=6,
    ),
    st.lists(
        st.builds(lambda start, seconds, used: (start, start + seconds, used), TIMES, TIMES, TIMES),
        max_size=6,
    ),
)
def test_shares__add_up_to_what_was_occupied_while_anything_ran(
    fleet: list[ExecutorSpan], pieces: list[tuple[float, float, float]]
) -> None:
    spans = [BusySpan(str(number), *piece) for number, piece in enumerate(pieces)]
    moments = sorted({moment for piece in pieces for moment in piece[:2]})
    busy = sum(
        sum_executor_allocation(fleet, start, end).executors
        for start, end in pairwise(moments)
        if any(span.start <= start and end <= span.end for span in spans)
    )
    total = sum(part.executors for part in share_executor_allocation(fleet, spans).values())
    assert total == pytest.approx(busy, rel=1e-6, abs=1e-6)


def test_executors__the_driver_is_one_only_where_there_is_no_other() -> None:
    driver = {"id": "driver", "addTime": 1_795_341_600_000, "totalCores": 2}
    worker = {**driver, "id": "1", "removeTime": 1_795_341_660_000}
    assert set(read_executors([driver])) == {"driver"}
    assert read_executors([driver, worker]) == {
        "1": ExecutorSpan(1_795_341_600.0, 1_795_341_660.0, 2)
    }
    # A cluster whose executors are gone, and whose driver has no cores for tasks.
    assert read_executors([{**driver, "totalCores": 0}]) == {}
