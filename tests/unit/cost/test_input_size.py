"""From the size of a model's input to the time that it takes, and which batches are asked about."""

from __future__ import annotations

import pytest

from ci_bot.protocol.cost import ModelEstimate
from ci_bot.protocol.plan import Cost
from ci_bot.worker.cost.input_size_measurement import ModelOfUnknownCost, measure_input_sizes
from ci_bot.worker.cost.plan_estimate import find_cost_budget_failure
from ci_bot.worker.cost.prediction import (
    CountedRun,
    InputSize,
    PastRun,
    estimate_cost_by_input_size,
    spread_batches,
)

GB = 1_000_000_000
FULL, RANGE = "FULL", "INCREMENTAL_BY_TIME_RANGE"


def seen(
    model: str, seconds: float, size: float, *, batches: int = 1, kind: str = FULL
) -> CountedRun:
    run = PastRun(intervals=1, batches=batches, seconds=seconds, input_bytes=round(size))
    return CountedRun(model, kind, run)


def expected(size: float, *runs: CountedRun, batches: int = 1, model: str = "new") -> float | None:
    found = estimate_cost_by_input_size(model, InputSize(round(size), batches, FULL), runs)
    return None if found is None else found.expected.middle


def test_by_size__takes_as_much_a_byte_as_the_projects_other_models() -> None:
    # 20 s a gigabyte.
    assert expected(5 * GB, seen("a", 20, GB), seen("b", 44, 2.2 * GB)) == pytest.approx(100)


def test_by_size__knows_that_a_batch_costs_something_by_itself() -> None:
    # 2 s a batch and 10 s a gigabyte.
    runs = [
        seen("a", 12, GB),
        seen("b", 32, 3 * GB),
        seen("c", 25, 0.5 * GB, batches=10),
    ]
    assert expected(4 * GB, *runs, batches=30) == pytest.approx(100)


def test_by_size__the_models_own_runs_count_before_those_of_its_kind() -> None:
    others = [seen(name, 10, GB) for name in "abc"]
    own = seen("new", 50, GB, kind=FULL)
    assert expected(2 * GB, *others, own) == pytest.approx(100)


@pytest.mark.parametrize(("models", "wanted"), [("abc", 20), ("ab", 160)])
def test_by_size__a_kind_counts_from_three_models_on(models: str, wanted: float) -> None:
    ranges = [seen(name, 100, GB, kind=RANGE) for name in "xyz"]
    assert expected(2 * GB, *ranges, *(seen(m, 10, GB) for m in models)) == pytest.approx(
        wanted, rel=0.3
    )


def test_by_size__a_model_counts_once_however_many_runs_it_has() -> None:
    def guess(runs_of_a: int) -> float:
        slow = [seen("c", 80, 3 * GB), seen("d", 50, 2 * GB)]
        found = expected(2 * GB, *[seen("a", 5, 0.5 * GB)] * runs_of_a, *slow)
        assert found is not None
        return found

    assert guess(3) == pytest.approx(guess(1), rel=1e-3)


def test_by_size__batches_smaller_than_any_are_no_cheaper_than_the_smallest() -> None:
    """The runs lie on a line without a fixed part, which is no reason to build for nothing."""
    runs = [seen(name, 10 * size, size * GB) for name, size in (("a", 1), ("b", 2), ("c", 4))]
    assert expected(1_000, *runs, batches=7) == pytest.approx(70)


def test_by_size__small_runs_do_not_tell_of_large_ones() -> None:
    """A run of 5 KB takes a second to start; that is no two days for a gigabyte."""
    small = [seen("a", 1, 5_000), seen("b", 1.2, 6_000)]
    assert expected(GB, *small) is None
    assert expected(50_000, *small) is not None
    assert expected(900 * GB, seen("a", 20, GB), seen("b", 40, 2 * GB)) is not None


def test_by_size__without_a_run_that_was_counted_nothing_is_known() -> None:
    assert expected(GB) is None
    assert expected(GB, seen("a", 20, 0)) is None


def test_by_size__a_small_model_takes_no_less_than_the_shortest_batch() -> None:
    assert expected(0, seen("a", 4, GB), seen("b", 6, GB), batches=3) == pytest.approx(12)


def test_by_size__says_that_it_is_off_by_a_factor_of_two() -> None:
    found = estimate_cost_by_input_size("new", InputSize(GB, 1, FULL), [seen("a", 20, GB)])
    assert found is not None
    assert (found.expected.low, found.expected.high) == (10, 40)


def test_spread__asks_the_newest_first_and_never_more_than_its_share() -> None:
    batches = [(number, number + 1) for number in range(1_000)]
    order = spread_batches(batches)
    assert len(order) == len(set(order)) == 20
    assert order[:3] == [(999, 1_000), (0, 1), batches[473]]
    assert spread_batches(batches[:3]) == [(2, 3), (0, 1), (1, 2)]
    assert spread_batches([]) == []


class Reading:
    """A model whose batch n reads `sizes[n]` bytes."""

    def __init__(self, *sizes: int | None) -> None:
        self.sizes, self.times = sizes, 0

    def asked(self, name: str = "m") -> ModelOfUnknownCost:
        return ModelOfUnknownCost(name, FULL, [(n, n + 1) for n in range(len(self.sizes))], self)

    def __call__(self, span: tuple[int, int]) -> int | None:
        self.times += 1
        return self.sizes[span[0]]


def sizes(
    *models: ModelOfUnknownCost, seconds: float = 0.0, stop_after: int = 1_000
) -> dict[str, int]:
    clock = [0.0]
    asked = [0]

    def now() -> float:
        clock[0] += seconds
        return clock[0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > stop_after

    found = measure_input_sizes(
        models, now=now, stop=stop, log=lambda _text: None, budget_seconds=10
    )
    return {name: size.bytes for name, size in found.items()}


def test_measure__takes_the_mean_of_batches_that_differ() -> None:
    assert sizes(Reading(*range(0, 1_000, 10)).asked()) == {"m": pytest.approx(49_500, rel=0.05)}


def test_measure__stops_asking_where_the_range_makes_no_difference() -> None:
    reading = Reading(*[7] * 100)
    assert sizes(reading.asked()) == {"m": 700}
    assert reading.times == 3


def test_measure__one_batch_that_nobody_knows_makes_the_model_unknown() -> None:
    unknown, broken = Reading(5, None), Reading(5, 6)
    broken.sizes = ()  # raises
    assert sizes(
        unknown.asked("a"), ModelOfUnknownCost("b", FULL, [(0, 1)], broken), Reading(5).asked("c")
    ) == {"c": 5}


def test_measure__asks_one_batch_of_each_model_before_a_second_one_of_any() -> None:
    many, one = Reading(*range(100)), Reading(8)
    assert sizes(many.asked("a"), one.asked("b"), seconds=4) == {"a": 9_900, "b": 8}


def test_measure__that_is_stopped_gives_what_it_has() -> None:
    assert sizes(Reading(3).asked("a"), Reading(4).asked("b"), stop_after=1) == {"a": 3}


def cost(hours: float, unknown: int = 0) -> Cost:
    model = ModelEstimate(
        model="shop.orders",
        layer="input_size",
        runs=3,
        executor_hours_low=hours / 2,
        executor_hours_mid=hours,
        executor_hours_high=hours * 2,
    )
    return Cost(
        intervals=3,
        batches=1,
        tables_rebuilt=1,
        tables=1 + unknown,
        unknown=[f"shop.m{number}" for number in range(unknown)],
        executor_hours_mid=hours,
        basis="",
        models=[model],
    )


def test_over_budget__says_the_figures_where_each_is_from_and_that_it_is_a_part() -> None:
    failure = find_cost_budget_failure(cost(14.2, unknown=2), 10, "pr_7")
    assert failure is not None
    assert (failure.exit_code, failure.reason_code) == (3, "over_budget")
    assert failure.message == (
        "Building pr_7 would take at least 14 h 12 min; the limit is 10 h of executor time. The "
        "dearest: shop.orders 14 h 12 min (the size of its input); 2 of 3 tables unknown. Nothing "
        "was built."
    )


def test_over_budget__judges_also_what_prod_builds_after_the_merge() -> None:
    failure = find_cost_budget_failure(cost(1), 10, "pr_7", after_merge=cost(30))
    assert failure is not None
    assert failure.message == (
        "Building pr_7 would take about 1 h, and what prod builds after the merge about 30 h; the "
        "limit is 10 h of executor time. The dearest: shop.orders 30 h (the size of its input). "
        "Nothing was built."
    )
    assert "rebuild less" in (failure.hint or "")
    assert find_cost_budget_failure(cost(1), 10, "pr_7", after_merge=cost(9)) is None
    both = find_cost_budget_failure(cost(20), 10, "pr_7", after_merge=cost(9))
    assert both is not None
    assert "`select-model`" in (both.hint or "")


@pytest.mark.parametrize(("hours", "limit"), [(9.9, 10), (10, 10), (1_000, None)])
def test_over_budget__holds_up_to_the_limit(hours: float, limit: float | None) -> None:
    assert find_cost_budget_failure(cost(hours), limit, "pr_7") is None
