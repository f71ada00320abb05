"""Which models of a plan are probed, by which batch, and why the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker.cost.plan_estimate import CostProbe, choose_cost_probe
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import make_plan
from ci_bot.worker.planning.make_plan import PlanRequest
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened

AMOUNT = "CAST(c.customer_id * 10 AS INT) AS amount"
BY_TIME = "INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 3)"
COLUMNS = "CAST(o.order_date AS DATE) AS order_date, CAST({} AS INT) AS order_id"
QUERY = f"SELECT {COLUMNS.format('o.order_id')} FROM {{reads}} AS o"
OWN = "o.order_id + COALESCE((SELECT MAX(i.order_id) FROM shop.itself AS i), 0)"


def model(name: str, kind: str = BY_TIME, reads: str = "shop.orders", query: str = QUERY) -> str:
    head = f"MODEL (name shop.{name}, kind {kind}, start '2024-01-01', cron '@daily');"
    return f"{head}\n\n{query.format(reads=reads)}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = write_duck_shop(tmp_path)
    run_prod(found, "2024-01-11")
    return found


def chosen(shop: Shop, tmp_path: Path, **flags: Sequence[str]) -> CostProbe:
    with opened(tmp_path, shop.project) as found:
        context = found.context
        request = PlanRequest(environment="pr_1", flags=PlanFlags(**flags))
        planned = make_plan.plan_against_prod(context, request)
        assert planned is not None
        names = MessageNames(context.default_catalog, context.default_dialect)
        return choose_cost_probe(planned, planned.list_missing(), names)


def left_out(probe: CostProbe) -> dict[str, str]:
    return {item.model: item.why for item in probe.left_out}


def ranges(probe: CostProbe) -> dict[str, tuple[str, str]]:
    return {item.model: (str(item.start), str(item.end)) for item in probe.work if item.start}


def test_choose__takes_the_newest_batch_of_what_reads_nothing_new(
    shop: Shop, tmp_path: Path
) -> None:
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("10", "9"))
    shop.write("models/below.sql", model("below"))

    probe = chosen(shop, tmp_path)

    assert ranges(probe) == {"shop.orders": ("2024-01-06T00:00:00Z", "2024-01-11T00:00:00Z")}
    assert [(item.intervals, item.batches) for item in probe.work] == [(5, 1)]
    assert left_out(probe) == {
        "shop.below": "it reads what this plan builds, too: shop.orders",
        "shop.revenue": "its kind (FULL) is built as a whole",
    }
    assert probe.views == frozenset()


KINDS = {
    "whole": ("FULL", QUERY, "its kind (FULL) is built as a whole"),
    "keyed": (
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id)",
        QUERY,
        "batches of its kind (INCREMENTAL_BY_UNIQUE_KEY) rest on those before them",
    ),
    "once": (
        "INCREMENTAL_BY_TIME_RANGE (time_column order_date)",
        QUERY,
        "all that it lacks is one batch; with a `batch_size` it would be several",
    ),
    "large": (
        "INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 30)",
        QUERY,
        "all that it lacks is one batch",
    ),
    "itself": (
        BY_TIME,
        f"SELECT {COLUMNS.format(OWN)} FROM {{reads}} AS o",
        "it reads itself, so a batch rests on those before it",
    ),
}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", KINDS)
def test_choose__says_why_a_model_is_not_probed(shop: Shop, tmp_path: Path, name: str) -> None:
    kind, query, why = KINDS[name]
    shop.write(f"models/{name}.sql", model(name, kind, query=query))
    probe = chosen(shop, tmp_path)
    assert left_out(probe) == {f"shop.{name}": why}
    assert probe.batches == {}


def test_choose__looks_through_views(shop: Shop, tmp_path: Path) -> None:
    """One over prod's table is made, too; one over a table of the plan stands in the way."""
    shop.write("models/view.sql", model("view", "VIEW"))
    shop.write("models/on_view.sql", model("on_view", reads="shop.view"))
    shop.write("models/fresh.sql", model("fresh", "FULL"))
    shop.write("models/over.sql", model("over", "VIEW", reads="shop.fresh"))
    shop.write("models/on_over.sql", model("on_over", reads="shop.over"))

    probe = chosen(shop, tmp_path)

    assert {s_id.name for s_id in probe.views} == {'"warehouse"."shop"."view"'}
    # Ten days in batches of three: three are the newest whole one, not the day that is left.
    assert ranges(probe) == {"shop.on_view": ("2024-01-08T00:00:00Z", "2024-01-11T00:00:00Z")}
    assert left_out(probe)["shop.on_over"] == "it reads what this plan builds, too: shop.fresh"


def test_choose__leaves_out_what_is_restated(shop: Shop, tmp_path: Path) -> None:
    """An apply would build that batch a second time."""
    shop.write("models/mine.sql", model("mine"))
    assert left_out(chosen(shop, tmp_path, restate_models=["shop.mine"])) == {
        "shop.mine": "it is restated, and an apply builds all of a restatement, even if it is there"
    }
