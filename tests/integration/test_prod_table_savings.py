"""Tables of prod that a plan reads as they are, and what building them would have cost."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from ci_bot.protocol.plan import Cost
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker.cost.known_costs import add_reused_tables_to_cost
from ci_bot.worker.cost.plan_estimate import predict_plan_cost
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import describe_plan, make_plan
from ci_bot.worker.planning.make_plan import PlanRequest
from ci_bot.worker.state_store.cost_ledger import ApplyRow, CostLedger, RunRow
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened
from tests.unit.cost.test_estimate import HOUR, run


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = write_duck_shop(tmp_path)
    run_prod(found, "2024-01-11")
    return found


class Runs:
    """What a ledger says: a day of orders takes 2 h, or nothing."""

    knows_prod = False

    def __init__(self, *, known: bool) -> None:
        self.rows = [run("shop.orders", 5, 10 * HOUR)] if known else []

    def list_runs(self, models: set[str]) -> list[RunRow]:
        return [row for row in self.rows if row.model in models]

    def list_applies(self, *, newest: int) -> list[ApplyRow]:
        return []


def cost(shop: Shop, tmp_path: Path, *, known: bool = True) -> Cost:
    """Of what a review of the project has to build."""
    with opened(tmp_path, shop.project) as found:
        context, ledger = found.context, cast(CostLedger, Runs(known=known))
        names = MessageNames(context.default_catalog, context.default_dialect)
        planned = make_plan.plan_against_prod(
            context, PlanRequest(environment="pr_1", flags=PlanFlags())
        )
        assert planned is not None
        work = describe_plan.list_remaining_work_of_plan(planned, names)
        built = {item.model for item in work}
        return add_reused_tables_to_cost(
            predict_plan_cost(work), planned, built, ledger, context, names
        )


def test_savings__are_what_prods_tables_would_cost_over_the_plans_window(
    shop: Shop, tmp_path: Path
) -> None:
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount + 1)")
    found = cost(shop, tmp_path)
    # Ten days of orders; the seed below them is a file, and costs nothing.
    assert (found.reused, found.reused_hours) == (1, pytest.approx(20))


def test_savings__without_a_run_have_no_hours(shop: Shop, tmp_path: Path) -> None:
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount + 1)")
    found = cost(shop, tmp_path, known=False)
    assert (found.reused, found.reused_hours) == (1, None)


def test_savings__what_is_built_is_not_saved(shop: Shop, tmp_path: Path) -> None:
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")
    assert cost(shop, tmp_path).reused == 0
