"""Plans, pinned in time: what keeps a plan id and what changes it, on a real state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_bot.contracts.documents.plan import Window
from ci_bot.contracts.documents.plan_identity import PlanFlags, PlanIdentity
from ci_bot.worker.plan import planning
from ci_bot.worker.plan.planning import Planned, PlanRequest
from tests.integration.test_review import REVENUE
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = write_duck_shop(tmp_path)
    run_prod(found, "2024-01-11")
    return found


def identity(
    shop: Shop, tmp_path: Path, *, window: Window | None = None, **wish: Any
) -> PlanIdentity:
    with opened(tmp_path, shop.project) as found:
        flags = wish.pop("flags", PlanFlags())
        planned = planning.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=flags, window=window, **wish)
        )
        assert planned is not None
        return planning.identity_of(
            found.context, planned, state_schema_version=102, repository=shop.project
        )


def work(shop: Shop, tmp_path: Path, window: Window | None = None) -> dict[str, list[Any]]:
    with opened(tmp_path, shop.project) as found:
        planned: Planned | None = planning.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=PlanFlags(), window=window)
        )
        assert planned is not None
        return {item.snapshot_id.name: item.intervals for item in planned.plan.missing_intervals}


def change_orders(shop: Shop) -> None:
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")


def test_identity__is_the_same_for_the_same_code(shop: Shop, tmp_path: Path) -> None:
    change_orders(shop)

    assert identity(shop, tmp_path).plan_id() == identity(shop, tmp_path).plan_id()


def test_identity__survives_a_prod_run_when_it_is_pinned(shop: Shop, tmp_path: Path) -> None:
    change_orders(shop)
    reviewed = identity(shop, tmp_path)
    before = work(shop, tmp_path, reviewed.window)

    run_prod(shop, "2024-01-12")

    assert identity(shop, tmp_path).plan_id() != reviewed.plan_id(), "prod has moved on"
    assert identity(shop, tmp_path, window=reviewed.window).plan_id() == reviewed.plan_id()
    assert work(shop, tmp_path, reviewed.window) == before


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("models/revenue.sql", REVENUE, f"{REVENUE},\n  1 AS one"),
        ("models/orders.sql", "customer_id * 10", "customer_id * 30"),
        ("models/orders.sql", "batch_size 5", "batch_size 4"),
        ("models/customers.sql", "grain customer_id", "grain customer_id, owner data"),
        ("seeds/customers.csv", "3,Alan,retail", "3,Alan,trade"),
        ("config.yaml", "start: 2024-01-01", "start: 2024-01-01\nbefore_all:\n  - SELECT 1"),
    ],
)
def test_identity__changes_with_the_project(
    shop: Shop, tmp_path: Path, path: str, before: str, after: str
) -> None:
    change_orders(shop)
    reviewed = identity(shop, tmp_path)
    if path == "models/orders.sql":
        before = before.replace("* 10", "* 20")

    shop.edit(path, before, after)

    again = identity(shop, tmp_path, window=reviewed.window)
    assert again.plan_id() != reviewed.plan_id()


def test_plan__never_reaches_beyond_prods_frontier(shop: Shop, tmp_path: Path) -> None:
    change_orders(shop)

    asked = identity(shop, tmp_path, end="2024-06-01")

    assert asked.window.end == "2024-01-11T00:00:00Z"
    ends = {target.end for target in asked.snapshots if "orders" in target.model}
    assert ends == {"2024-01-11T00:00:00Z"}


def test_plan__of_an_earlier_window__builds_that_window(shop: Shop, tmp_path: Path) -> None:
    change_orders(shop)

    asked = identity(shop, tmp_path, start="2024-01-03", end="2024-01-04")

    orders = next(target for target in asked.snapshots if "orders" in target.model)
    assert (orders.start, orders.end) == ("2024-01-03T00:00:00Z", "2024-01-05T00:00:00Z")


def test_plan__without_a_change__is_none(shop: Shop, tmp_path: Path) -> None:
    with opened(tmp_path, shop.project) as found:
        wish = PlanRequest(environment="pr_1", flags=PlanFlags())
        assert planning.plan_against_prod(found.context, wish) is None
