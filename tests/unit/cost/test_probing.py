"""The newest batch of a model, and what a probe of it teaches."""

from __future__ import annotations

import pytest

from ci_bot.protocol.plan import Cost
from ci_bot.worker.cost.plan_estimate import (
    KnownCosts,
    choose_newest_batch_for_cost_probe,
    find_cost_budget_failure,
    list_past_runs_for_cost,
    predict_plan_cost,
)
from ci_bot.worker.cost.prediction import PastRun, cut_batches
from ci_bot.worker.planning.describe_plan import count_planned_intervals
from ci_bot.worker.planning.prod_plan import subtract_intervals
from ci_bot.worker.state_store.cost_ledger import RunRow
from tests.factories import make_backfill
from tests.unit.cost.test_intervals import moment, snapshot

DAY = 86_400_000


@pytest.mark.parametrize("days", range(2, 14))
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_newest_batch__is_whole_and_leaves_one_batch_less(size: int, days: int) -> None:
    """However small SQLMesh's own last batch would have been."""
    start = moment("2024-02-25")
    missing = [(start, start + days * DAY)]
    model = snapshot("@daily", batch_size=size)
    found = choose_newest_batch_for_cost_probe(model, missing)
    assert found[1] == missing[0][1]
    assert count_planned_intervals(model, [found]) == min(size, days)
    left = cut_batches(model, subtract_intervals(missing, [found]))
    assert len(left) == len(cut_batches(model, missing)) - 1


def test_newest_batch__of_months_is_by_the_calendar() -> None:
    missing = [(moment("1992-01-01"), moment("1999-01-01"))]
    found = choose_newest_batch_for_cost_probe(snapshot("@monthly", batch_size=12), missing)
    assert found == (moment("1998-01-01"), moment("1999-01-01"))


def test_newest_batch__without_a_size_is_the_newest_range() -> None:
    early = (moment("2024-01-01"), moment("2024-01-03"))
    late = (moment("2024-01-05"), moment("2024-01-06"))
    assert choose_newest_batch_for_cost_probe(snapshot("@daily"), [late, early]) == late
    # A batch does not reach over what is built already.
    assert (
        choose_newest_batch_for_cost_probe(snapshot("@daily", batch_size=3), [early, late]) == late
    )


def probed(seconds: float, intervals: int) -> RunRow:
    return RunRow(
        environment="pr_1",
        model="stg.orders",
        version="1",
        intervals=intervals,
        batches=1,
        seconds=seconds,
        executor_seconds=seconds,
        rows=None,
        at="2026-11-22T10:00:00Z",
        source="counters",
        outcome="probed",
    )


def test_estimate__by_a_probe_comes_before_earlier_runs() -> None:
    """They were of the model as it was."""
    work = [make_backfill(intervals=84, batches=7), make_backfill("mart.rest", intervals=1)]
    earlier = {"stg.orders": [PastRun(intervals=84, batches=7, seconds=1.0)]}
    layers = {"probe": list_past_runs_for_cost([probed(60.0, 12)]), "ledger": earlier}
    cost = predict_plan_cost(work, KnownCosts(layers=layers))
    [found] = cost.models
    assert (found.layer, found.runs) == ("probe", 1)
    assert found.executor_hours_mid * 3_600 == pytest.approx(60.0 * 7)
    assert cost.unknown == ["mart.rest"]
    assert "their newest batch, built just now" in cost.basis


def test_estimate__learns_from_a_probe_as_from_any_run() -> None:
    cost = predict_plan_cost(
        [make_backfill(intervals=24)],
        KnownCosts(layers={"ledger": list_past_runs_for_cost([probed(60.0, 12)])}),
    )
    assert [(m.layer, round(m.executor_hours_mid * 3_600)) for m in cost.models] == [
        ("ledger", 120)
    ]


def test_over_budget__names_the_probe() -> None:
    cost: Cost = predict_plan_cost(
        [make_backfill(intervals=24)],
        KnownCosts(layers={"ledger": list_past_runs_for_cost([probed(60.0, 12)])}),
    )
    failure = find_cost_budget_failure(cost, 0.0, "pr_1", what="The probe of")
    assert failure is not None
    assert failure.message.startswith("The probe of pr_1 would take about ")
    assert failure.message.endswith("Nothing was built.")
