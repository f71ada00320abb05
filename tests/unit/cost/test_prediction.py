"""Predicting one model from its runs: a line where runs tell one, else so much an interval."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ci_bot.worker.cost.prediction import (
    PastRun,
    compute_seconds_on_cost_line,
    fit_cost_line,
    predict_cost,
)

GB = 10**9


def line(*sizes: int, fixed: float = 10.0, per_gb: float = 5.0) -> list[PastRun]:
    """Runs of one interval and one batch each that lie on a line."""
    return [PastRun(1, 1, fixed + per_gb * size, size * GB) for size in sizes]


def test_predict__without_a_run_knows_nothing() -> None:
    assert predict_cost([], intervals=3, batches=1) is None
    assert predict_cost([PastRun(0, 0, 5.0)], intervals=3, batches=1) is None


def test_predict__five_runs_with_spread_give_a_fixed_part_and_one_for_bytes() -> None:
    # Twelve intervals in one batch: the fixed part once, not twelve times as a rate would say.
    found = predict_cost(line(1, 2, 3, 4, 5), intervals=12, batches=1)
    assert found is not None
    assert found.middle == pytest.approx(10 + 5 * 3 * 12)


def test_predict__of_a_table_that_grows_reads_what_the_newest_run_read() -> None:
    found = predict_cost(line(9, 7, 5, 3, 1), intervals=1, batches=1, grows=True)
    assert found is not None
    assert found.middle == pytest.approx(10 + 5 * 9)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(line(1, 2, 3, 4), id="four runs"),
        pytest.param(line(10, 10, 11, 12, 14), id="no spread"),
        pytest.param([*line(1, 2, 3, 4), PastRun(1, 1, 35.0)], id="a run nobody counted"),
        pytest.param([*line(1, 2, 3, 4), PastRun(1, 1, 10.0, 0)], id="a run that read nothing"),
    ],
)
def test_predict__else_the_median_per_interval(runs: list[PastRun]) -> None:
    rates = sorted(run.seconds for run in runs)
    half = len(rates) // 2
    middle = rates[half] if len(rates) % 2 else (rates[half - 1] + rates[half]) / 2
    found = predict_cost(runs, intervals=10, batches=10)
    assert found is not None
    assert found.middle == pytest.approx(10 * middle)


def test_predict__no_part_of_the_line_is_below_nothing() -> None:
    # Larger reads took less: a line through them would promise a gift for more data.
    runs = [PastRun(1, 1, 100.0 / size, size * GB) for size in (1, 2, 4, 8, 16)]
    found = predict_cost(runs, intervals=1_000, batches=1)
    assert found is not None
    assert found.middle > 0


@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_line__is_as_far_from_runs_above_it_as_from_those_below(factor: float) -> None:
    """No line is right for both, and neither is to be preferred."""
    runs = [
        PastRun(1, 1, seconds * by, size * GB)
        for size, seconds in ((1, 15.0), (2, 20.0), (4, 30.0))
        for by in (factor, 1 / factor)
    ]
    line = fit_cost_line(runs)
    assert line is not None
    assert line == pytest.approx((10.0, 5.0 / GB), rel=1e-3)


@given(st.floats(0, 1_000), st.floats(0, 1_000), st.integers(3, 8))
def test_line__through_runs_that_lie_on_one_is_that_one(
    fixed: float, per_gb: float, count: int
) -> None:
    assume(fixed + per_gb > 1e-3)
    runs = line(*(2**number for number in range(count)), fixed=fixed, per_gb=per_gb)
    found = fit_cost_line(runs, fewest=3)
    assert found is not None
    for run in runs:
        assert compute_seconds_on_cost_line(found, run) == pytest.approx(run.seconds, rel=1e-3)


RUNS = st.lists(
    st.builds(
        PastRun,
        intervals=st.integers(1, 500),
        batches=st.integers(1, 50),
        seconds=st.floats(0.01, 1e6),
        input_bytes=st.one_of(st.none(), st.integers(0, 10**14)),
    ),
    min_size=1,
    max_size=12,
)


@given(RUNS, st.integers(1, 2_000), st.integers(1, 100), st.booleans())
def test_predict__is_ordered_finite_and_not_negative(
    runs: list[PastRun], intervals: int, batches: int, grows: bool
) -> None:
    found = predict_cost(runs, intervals=intervals, batches=batches, grows=grows)
    assert found is not None
    assert 0 <= found.low <= found.middle <= found.high < float("inf")


def test_predict__by_a_line_takes_what_the_newest_run_will_read_now() -> None:
    """A table that is computed whole is one interval; what lies above it may have grown."""
    runs = [replace(past, growth=3.0) for past in line(2, 1, 4, 8, 16)]
    grown = predict_cost(runs, intervals=1, batches=1, grows=True)
    as_large = predict_cost([line(6)[0], *line(1, 4, 8, 16)], intervals=1, batches=1, grows=True)
    assert grown is not None
    assert as_large is not None
    assert grown.middle == pytest.approx(as_large.middle, rel=0.02)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(11.0, 110.0, id="as the others"),
        pytest.param(22.0, 220.0, id="slower than the others"),
    ],
)
def test_predict__of_more_input__leaves_what_a_batch_costs_itself(
    seconds: float, expected: float
) -> None:
    """10 seconds for a batch and 1 for a GB: of 1 GB, a hundredfold is 110 seconds and not 1,100."""
    run = PastRun(1, 1, seconds, GB, growth=100.0)
    found = predict_cost([run], intervals=1, batches=1, grows=True, others=(10.0, 1 / GB))
    assert found is not None
    assert found.middle == pytest.approx(expected)
    uncounted = predict_cost(
        [replace(run, input_bytes=None)], intervals=1, batches=1, others=(10.0, 1)
    )
    assert uncounted is not None
    assert uncounted.middle == pytest.approx(100 * seconds)


MB = 10**6


@pytest.mark.parametrize(
    ("read", "others", "at_least", "at_most"),
    [
        pytest.param(MB, None, 9.0, 60.0, id="little was read"),
        pytest.param(MB, (9.0, 1e-12), 9.0, 20.0, id="other models say that starting takes it"),
        pytest.param(20 * GB, None, 7_000.0, 8_460.0, id="reading took it"),
        pytest.param(None, None, 9.0, 600.0, id="nobody counted"),
    ],
)
def test_predict__of_longer_batches__counts_what_a_batch_costs_itself_once(
    read: int | None, others: tuple[float, float] | None, at_least: float, at_most: float
) -> None:
    """9 seconds for one interval, and then 940 intervals in one batch: 2 h 21 min by a rate."""
    found = predict_cost([PastRun(1, 1, 9.0, read)], intervals=940, batches=1, others=others)
    assert found is not None
    assert at_least <= found.middle <= at_most
    assert found.low <= found.middle <= found.high


def test_predict__of_longer_batches_that_nobody_counted__has_both_bounds() -> None:
    found = predict_cost([PastRun(1, 1, 9.0)], intervals=900, batches=1)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((9.0, 8_100.0))


def test_predict__of_as_many_batches_as_intervals__is_a_rate_still() -> None:
    """`batch_size 1`: each interval has a batch of its own, in the run and in the plan."""
    found = predict_cost([PastRun(1, 1, 9.0, MB)], intervals=940, batches=940)
    assert found is not None
    assert found.middle == pytest.approx(9.0 * 940)


@given(RUNS, st.integers(1, 2_000), st.integers(1, 100))
def test_predict__of_longer_batches__lies_between_the_two_rates(
    runs: list[PastRun], intervals: int, batches: int
) -> None:
    """Never above what as many intervals took, nor below what as many batches took."""
    run = replace(runs[0], batches=min(runs[0].batches, runs[0].intervals))
    batches = min(batches, intervals)
    assume(intervals / batches > 2 * run.intervals / run.batches)
    found = predict_cost([run], intervals=intervals, batches=batches)
    assert found is not None
    by_batch, by_interval = (
        run.seconds / run.batches * batches,
        run.seconds / run.intervals * intervals,
    )
    assert by_batch * 0.999 <= found.middle <= by_interval * 1.001
