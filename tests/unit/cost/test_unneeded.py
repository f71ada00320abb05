"""Rebuilds that nobody needs are named and priced; without a proof a rebuild is needed."""

from __future__ import annotations

from ci_bot.protocol.review_report import Impact, IndirectModel, Reached
from ci_bot.worker.cost.plan_estimate import (
    KnownCosts,
    add_unneeded_rebuilds_to_cost,
    predict_plan_cost,
)
from ci_bot.worker.cost.prediction import PastRun
from tests.unit.cost.test_estimate import HOUR, work


def impact(**models: Reached) -> Impact:
    return Impact(
        indirect=[IndirectModel(model=name, reached=how, why="x") for name, how in models.items()]
    )


def test_unneeded__are_rebuilt_tables_that_read_nothing_that_changes() -> None:
    items = [work("a", 1), work("b", 2), work("c", 1), work("d", 1), work("v", 1, "recreate_view")]
    past = {name: [PastRun(2, 1, 2 * HOUR)] for name in "abcdv"}
    cost = predict_plan_cost(items, KnownCosts(layers={"ledger": past}))
    found = add_unneeded_rebuilds_to_cost(
        cost, items, impact(b="no", c="unknown", d="yes", v="no", elsewhere="no")
    )
    assert (found.unneeded, found.unneeded_hours) == (["b"], 2.0)


def test_unneeded__without_a_known_run_have_no_price() -> None:
    items = [work("a", 1), work("b", 2)]
    found = add_unneeded_rebuilds_to_cost(predict_plan_cost(items), items, impact(b="no"))
    assert (found.unneeded, found.unneeded_hours) == (["b"], None)
