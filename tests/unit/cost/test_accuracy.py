"""How good estimates were: said from five on, and only of estimates that were whole."""

from __future__ import annotations

from ci_bot.worker.cost.known_costs import describe_accuracy_of_costs, measure_accuracy_of_costs
from ci_bot.worker.state_store.cost_ledger import ApplyRow, Outcome


def row(expected: float | None, actual: float, outcome: Outcome = "applied") -> ApplyRow:
    return ApplyRow(
        environment="pr_1",
        plan_id=None,
        at="2026-11-22T10:00:00Z",
        outcome=outcome,
        expected_hours=expected,
        allocated_hours=actual,
    )


def test_accuracy__is_not_told_of_fewer_than_five() -> None:
    assert measure_accuracy_of_costs([row(1.0, 1.0)] * 4) is None


def test_accuracy__leaves_out_what_was_not_whole() -> None:
    useless = [row(None, 1.0), row(1.0, 0.4, "failed"), row(1.0, 0.4, "cancelled"), row(1.0, 0.0)]
    useless += [row(1.0, 0.4, "probed")] * 5
    assert measure_accuracy_of_costs([row(1.0, 1.0)] * 4 + useless) is None


def test_accuracy__is_of_the_newest_twenty() -> None:
    found = measure_accuracy_of_costs([row(1.1, 1.0)] * 20 + [row(9.0, 1.0)] * 50)
    assert found is not None
    assert (found.estimates, found.median, found.nine_of_ten) == (20, 0.1, 0.1)


def test_accuracy__says_what_half_and_what_nine_in_ten_were_within() -> None:
    found = measure_accuracy_of_costs([row(1 + number / 100, 1.0) for number in range(1, 11)])
    assert found is not None
    assert (found.median, found.nine_of_ten) == (0.055, 0.09)
    assert (
        describe_accuracy_of_costs(found)
        == "the last 10 estimates: median error 6 %, 90 % within 9 %"
    )
