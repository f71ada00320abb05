"""The meter beside a store that stands in for Spark's; tests/integration/test_cost.py has Spark."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.protocol.cost import Price
from ci_bot.worker.cost.batch_meter import BatchMeter, make_counted_cost

MB = 1024 * 1024


class Store:
    """Answers what it is told to; `groups` are the stages of each job group."""

    def __init__(self, **groups: list[dict[str, Any]]) -> None:
        self.groups = {name.replace("_", "/"): stages for name, stages in groups.items()}
        self.asked: list[str] = []
        self.broken = False

    def begin_group(self, group: str, description: str) -> None:
        if self.broken:
            raise ConnectionError("Spark is gone")

    def end_group(self) -> None:
        pass

    def settle_store(self, milliseconds: int) -> None:
        pass

    def list_stages(self, group: str) -> tuple[list[dict[str, Any]], int]:
        self.asked.append(group)
        return self.groups.get(group, []), 0

    def list_executors(self) -> list[Any]:
        return [{"id": "1", "addTime": 0, "totalCores": 2}]

    def task_seconds(self, stage: int, attempt: int) -> tuple[float, float] | None:
        return 2.0, 90.0


def stage(milliseconds: int, **more: Any) -> dict[str, Any]:
    return {
        "stageId": 1,
        "attemptId": 0,
        "executorRunTime": milliseconds,
        "numCompleteTasks": 8,
        **more,
    }


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def started(store: Store) -> tuple[BatchMeter, Clock]:
    clock = Clock()
    meter = BatchMeter(lambda: store, clock, "m")
    meter.start_metering()
    return meter, clock


def test_meter__reads_a_batch_once_when_the_next_one_has_ended() -> None:
    store = Store(m_1=[stage(4_000, inputBytes=10)], m_2=[stage(2_000)])
    meter, clock = started(store)
    for seconds in (10, 20):
        with meter.meter_batch("a", 3):
            clock.now += seconds
    assert store.asked == ["m/1"]
    clock.now += 5
    meter.finish_metering()
    meter.finish_metering()
    assert store.asked == ["m/1", "m/2"]
    found = meter.list_models()["a"]
    assert (found.intervals, found.batches, found.counters.used_seconds) == (6, 2, 6.0)
    assert found.counters.input_bytes == 10
    assert found.allocated.executors == pytest.approx(30)
    # From the start of building to its end, idle or not.
    assert (meter.total_allocation().executors, meter.total_allocation().cores) == (35, 70)


def test_meter__what_went_into_a_failed_batch_is_lost_and_no_interval() -> None:
    meter, clock = started(Store())
    with meter.meter_batch("a", 1):
        clock.now += 10
    with pytest.raises(ValueError, match="no"), meter.meter_batch("a", 1):
        clock.now += 30
        raise ValueError("no")
    meter.finish_metering()
    found = meter.list_models()["a"]
    assert (found.intervals, found.batches) == (1, 1)
    assert (found.allocated.executors, found.lost.executors) == (10, 30)


def test_meter__a_store_that_fails_costs_no_apply_and_says_why() -> None:
    store = Store()
    meter, _ = started(store)
    store.broken = True
    with meter.meter_batch("a", 1):
        pass
    meter.finish_metering()
    assert not meter.is_complete
    assert meter.failure is not None
    assert "Spark is gone" in meter.failure


def test_meter__without_a_session_of_its_kind_nothing_is_counted() -> None:
    def none() -> Store:
        raise AttributeError("_jsc")

    meter = BatchMeter(none, Clock(), "m")
    meter.start_metering()
    with meter.meter_batch("a", 1):
        pass
    meter.finish_metering()
    assert not meter.is_complete


def test_cost__names_spill_and_skew_from_where_they_cost_time() -> None:
    store = Store(
        m_1=[stage(120_000, diskBytesSpilled=300 * MB)],
        m_2=[stage(120_000, numCompleteTasks=3, diskBytesSpilled=10 * MB)],
    )
    meter, clock = started(store)
    for name in ("big", "small"):
        with meter.meter_batch(name, 1):
            clock.now += 60
    meter.finish_metering()
    spill, skew = make_counted_cost(meter).remarks
    assert "big spilled 0.3 GB" in spill
    assert "One task of big took 1 min 30 s" in skew


def test_cost__says_how_much_of_the_allocated_time_was_used() -> None:
    meter, clock = started(Store(m_1=[stage(60_000)]))
    with meter.meter_batch("a", 1):
        clock.now += 60
    meter.finish_metering()
    cost = make_counted_cost(meter, hour_price=Price.parse_price("6 USD"))
    assert (cost.used_share, cost.allocated_hours, cost.price) == (0.5, 0.01667, 0.1)
