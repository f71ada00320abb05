"""Plans, pinned in time: what keeps a plan id and what changes it, on a real state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core.context import Context

from ci_bot.errors import RequestRefused
from ci_bot.protocol.plan import Window
from ci_bot.protocol.plan_identity import PlanFlags, PlanIdentity
from ci_bot.worker.apply import preconditions
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import make_plan
from ci_bot.worker.planning.identity import identify_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, PlanRequest
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
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=flags, window=window, **wish)
        )
        assert planned is not None
        return identify_plan(
            found.context, planned, state_schema_version=102, repository=shop.project
        )


def work(shop: Shop, tmp_path: Path, window: Window | None = None) -> dict[str, list[Any]]:
    with opened(tmp_path, shop.project) as found:
        planned: BuiltPlan | None = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=PlanFlags(), window=window)
        )
        assert planned is not None
        return {item.snapshot_id.name: item.intervals for item in planned.plan.missing_intervals}


def change_orders(shop: Shop) -> None:
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")


def test_models__stand_in_the_order_of_their_names(shop: Shop, tmp_path: Path) -> None:
    """What is told model by model would otherwise change with which file was loaded first."""
    for letter in "zyxwv":
        shop.write(
            f"models/a_{letter}.sql", f"MODEL (name shop.{letter}, kind VIEW);\n\nSELECT 1 AS x"
        )
    with opened(tmp_path, shop.project) as found:
        names = list(found.context.models)
    assert len(names) > 8
    assert names == sorted(names)


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
@pytest.mark.by_day(3)
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


MONTHLY = """\
MODEL (
  name shop.by_month,
  kind INCREMENTAL_BY_TIME_RANGE (time_column month),
  start '2023-01-01',
  cron '@monthly'
);

SELECT CAST(@start_ds AS DATE) AS month, CAST(1 AS INT) AS orders
"""


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2023-04-01", "2023-06-30"),  # whole months, long before prod's end
        ("2023-04-12", "2023-06-17"),  # in the middle of months
        ("2024-01-03", "2024-01-06"),  # no month that is over
        ("2023-04-01", "2024-01-10"),  # to prod's end
    ],
)
@pytest.mark.by_day(2)
def test_plan__of_a_window__builds_what_sqlmesh_does(
    shop: Shop, tmp_path: Path, start: str, end: str
) -> None:
    shop.write("models/by_month.sql", MONTHLY)
    run_prod(shop, "2024-01-11")
    shop.edit("models/by_month.sql", "CAST(1 AS", "CAST(2 AS")
    change_orders(shop)
    context = Context(paths=[str(shop.project)])
    by_hand = context.plan_builder("dev", start=start, end=end, execution_time="2024-01-11").build()
    expected = {item.snapshot_id.name: item.intervals for item in by_hand.missing_intervals}
    context.close()

    with opened(tmp_path, shop.project) as found:
        wish = PlanRequest(environment="pr_1", flags=PlanFlags(), start=start, end=end)
        planned = make_plan.plan_against_prod(found.context, wish)
        assert planned is not None
        names = MessageNames(found.context.default_catalog, found.context.default_dialect)
        preconditions.check_work_before_apply(found.context, planned, names)
        missing = {item.snapshot_id.name: item.intervals for item in planned.plan.missing_intervals}

    assert missing == expected
    assert missing, "nothing would be built"


def test_check__of_work_that_no_part_of_the_window_touches__refuses(
    shop: Shop, tmp_path: Path
) -> None:
    change_orders(shop)
    with opened(tmp_path, shop.project) as found:
        names = MessageNames(found.context.default_catalog, found.context.default_dialect)
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=PlanFlags())
        )
        assert planned is not None
        for reviewed in (
            Window(start=None, end="2024-01-10T00:00:00Z", execution_time=planned.window.end or ""),
            Window(
                start="2024-01-02T00:00:00Z",
                end=planned.window.end,
                execution_time=planned.window.end or "",
            ),
        ):
            with pytest.raises(RequestRefused) as refused:
                preconditions.check_window_before_apply(replace(planned, window=reviewed), names)
            assert refused.value.reason_code == "outside_window"


def test_plan__without_a_change__is_none(shop: Shop, tmp_path: Path) -> None:
    with opened(tmp_path, shop.project) as found:
        wish = PlanRequest(environment="pr_1", flags=PlanFlags())
        assert make_plan.plan_against_prod(found.context, wish) is None
