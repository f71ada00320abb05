"""Estimates from recorded runs: ranges, confidence, and unknown said as unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.protocol.cost import Price
from ci_bot.protocol.plan import Backfill, Cost
from ci_bot.worker.cost.plan_estimate import (
    KnownCosts,
    is_cost_from_long_build,
    list_past_runs_for_cost,
)
from ci_bot.worker.cost.plan_estimate import predict_plan_cost as estimate_known
from ci_bot.worker.cost.prediction import PastRun
from ci_bot.worker.state_store.cost_ledger import CostLedger, RunRow

HOUR = 3_600.0


def work(model: str, intervals: int, action: str = "incremental") -> Backfill:
    return Backfill.model_validate(
        {
            "model": model,
            "kind": "INCREMENTAL_BY_TIME_RANGE",
            "action": action,
            "start": None,
            "end": None,
            "intervals": intervals,
            "batches": 1,
            "preview": False,
            "reused_in_prod": True,
            "table": f"sqlmesh__{model}",
        }
    )


def run(model: str, intervals: int, executor_seconds: float, day: int = 1) -> RunRow:
    return RunRow(
        environment="pr_1",
        model=model,
        version="1",
        intervals=intervals,
        batches=1,
        seconds=executor_seconds,
        executor_seconds=executor_seconds,
        rows=None,
        at=f"2026-01-{day:02}T00:00:00Z",
    )


def estimate(
    items: Sequence[Backfill], history: Iterable[RunRow], *, hour_price: Price | None = None
) -> Cost:
    known = KnownCosts(layers={"ledger": list_past_runs_for_cost(history)})
    return estimate_known(items, known, hour_price=hour_price)


class Runs:
    """The ledger's rows."""

    def __init__(self, *rows: RunRow) -> None:
        self.rows = list(rows)

    def list_runs(self, models: object = None, *, newest: int) -> list[RunRow]:
        return self.rows[:newest]


def test_builds_long__adds_up_the_models_of_one_apply() -> None:
    assert not is_cost_from_long_build(cast(CostLedger, Runs()))
    assert not is_cost_from_long_build(
        cast(CostLedger, Runs(run("a", 1, 40.0, 1), run("a", 1, 40.0, 2)))
    )
    assert is_cost_from_long_build(
        cast(CostLedger, Runs(run("a", 1, 40.0, 1), run("b", 1, 40.0, 1)))
    )


def test_estimate__without_a_run_is_unknown_and_never_zero() -> None:
    cost = estimate([work("a.b", 10)], [])
    assert (cost.executor_hours_mid, cost.price, cost.confidence) == (None, None, "unknown")
    assert cost.intervals == 10


def test_estimate__scales_by_intervals_and_spans_what_was_seen() -> None:
    seen = [run("a.b", 10, 10 * HOUR, 1), run("a.b", 10, 20 * HOUR, 2), run("a.b", 5, 20 * HOUR, 3)]
    cost = estimate([work("a.b", 100)], seen, hour_price=Price.parse_price("0.5 EUR"))
    hours = (cost.executor_hours_low, cost.executor_hours_mid, cost.executor_hours_high)
    # Of an hour, the minute at most that a batch takes to start is not taken ten times.
    assert hours == pytest.approx((100.0, 200.0, 400.0), rel=0.02)
    assert cost.price == pytest.approx(100.0, rel=0.02)
    assert cost.currency == "EUR"
    assert cost.confidence == "high"


def test_estimate__of_one_run_has_a_range_and_medium_confidence() -> None:
    cost = estimate([work("a.b", 2)], [run("a.b", 1, HOUR)])
    low, high = cost.executor_hours_low, cost.executor_hours_high
    assert low is not None
    assert high is not None
    assert low < 2.0 < high
    assert cost.confidence == "medium"


def test_estimate__names_the_models_that_it_knows_nothing_of() -> None:
    cost = estimate([work("a.b", 1), work("a.c", 1)], [run("a.b", 1, HOUR)])
    assert cost.executor_hours_mid == 1.0
    assert cost.confidence == "low"
    assert "1 without a run" in cost.basis


def test_estimate__of_views_alone_has_nothing_to_build() -> None:
    cost = estimate([work("a.v", 1, "recreate_view")], [run("a.v", 1, HOUR)])
    assert cost.executor_hours_mid is None
    assert "no table" in cost.basis


def test_estimate__follows_the_newest_ten_runs() -> None:
    old = [run("a.b", 1, 100 * HOUR, day) for day in range(1, 6)]
    new = [run("a.b", 1, HOUR, day) for day in range(10, 20)]
    assert estimate([work("a.b", 1)], old + new).executor_hours_high == 1.0


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=15), st.integers(1, 10_000))
def test_estimate__middle_lies_within_its_range(seconds: list[float], intervals: int) -> None:
    cost = estimate([work("a.b", intervals)], [run("a.b", 1, each) for each in seconds])
    low, middle, high = cost.executor_hours_low, cost.executor_hours_mid, cost.executor_hours_high
    assert low is not None
    assert middle is not None
    assert high is not None
    assert low <= middle <= high


def test_estimate__takes_prods_runs_where_the_model_was_never_applied() -> None:
    known = KnownCosts(
        layers={
            "ledger": list_past_runs_for_cost([run("a.b", 1, HOUR)]),
            "event_logs": {"a.b": [PastRun(1, 1, 99 * HOUR)], "a.c": [PastRun(2, 1, 4 * HOUR)]},
        }
    )
    cost = estimate_known([work("a.b", 1), work("a.c", 3), work("a.d", 1)], known)
    assert [(m.model, m.layer, m.executor_hours_mid) for m in cost.models] == [
        ("a.c", "event_logs", 6.0),
        ("a.b", "ledger", 1.0),
    ]
    assert cost.executor_hours_mid == 7.0
    assert cost.unknown == ["a.d"]
    assert "event logs" in cost.basis


def test_estimate__trusts_what_was_counted_more_than_a_clock() -> None:
    counted = run("a.b", 1, HOUR).model_copy(update={"source": "counters"})
    cost = estimate([work("a.b", 1)], [run("a.b", 1, 50 * HOUR, 2), counted])
    assert cost.executor_hours_mid == 1.0


def test_past__of_an_apply_that_completed_nothing_is_none() -> None:
    # Else the model would count as known, and nobody would look for prod's runs of it.
    failed = run("a.b", 0, HOUR).model_copy(update={"outcome": "failed", "source": "counters"})
    assert list_past_runs_for_cost([failed]) == {}
    assert [
        past.seconds for past in list_past_runs_for_cost([failed, run("a.b", 1, 60.0)])["a.b"]
    ] == [60.0]
