"""The queries that Spark is asked about before anything is built: on tables that are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker.cost.input_size_estimator import read_prod_snapshots
from ci_bot.worker.cost.input_size_measurement import InputSizeQueries
from ci_bot.worker.cost.prediction import cut_batches
from ci_bot.worker.messages import report_times
from ci_bot.worker.planning import describe_plan, make_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, PlanRequest
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened

ORDERS_FILE = "models/orders.sql"
AMOUNT = "CAST(c.customer_id * 10 AS INT) AS amount"
BY_CUSTOMER = """\
MODEL (name shop.by_customer, kind FULL);

SELECT o.customer_id, SUM(o.{column}) AS total FROM shop.orders AS o GROUP BY o.customer_id
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = write_duck_shop(tmp_path)
    run_prod(found, "2024-01-11")
    return found


@contextmanager
def planned(shop: Shop, tmp_path: Path) -> Iterator[tuple[BuiltPlan, Any]]:
    with opened(tmp_path, shop.project) as found:
        plan = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=PlanFlags())
        )
        assert plan is not None
        yield plan, found.context


def query(plan: BuiltPlan, context: Any, model: str) -> str | None:
    """Of the first batch of a model, on Spark."""
    missing = {item.snapshot_id.name: item.intervals for item in plan.plan.missing_intervals}
    snapshots = {s.name: s for s in plan.plan_snapshots.values()}
    tables = {name for name in missing if not snapshots[name].is_view}
    queries = InputSizeQueries(
        plan, lambda names: read_prod_snapshots(context, names), tables, "spark"
    )
    (snapshot,) = [s for name, s in snapshots.items() if name.endswith(f'"{model}"')]
    return queries.render_batch_query(snapshot, cut_batches(snapshot, missing[snapshot.name])[0])


def tables(text: str | None) -> set[str]:
    assert text is not None
    return {table.name for table in sqlglot.parse_one(text, read="spark").find_all(exp.Table)}


def prods(context: Any, model: str) -> str:
    """The name of a model's table in prod."""
    (found,) = read_prod_snapshots(
        context, [f'"{context.default_catalog}"."shop"."{model}"']
    ).values()
    return exp.to_table(found.table_name()).name


def test_queries__read_prods_table_where_the_plan_builds_its_own(
    shop: Shop, tmp_path: Path
) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("* 10", "* 20"))
    with planned(shop, tmp_path) as (plan, context):
        text = query(plan, context, "revenue")
        assert tables(text) == {prods(context, "orders")}
        assert "NULL" not in str(text)


def test_queries__a_column_that_prod_does_not_have_is_null(shop: Shop, tmp_path: Path) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, f"{AMOUNT},\n  CAST(2 AS INT) AS pieces")
    shop.write("models/by_customer.sql", BY_CUSTOMER.format(column="pieces"))
    with planned(shop, tmp_path) as (plan, context):
        text = query(plan, context, "by_customer")
        assert tables(text) == {prods(context, "orders")}
        assert "CAST(NULL AS INT) AS `pieces`" in str(text)


def test_queries__what_nobody_has_built_and_prod_does_not_have_is_unknown(
    shop: Shop, tmp_path: Path
) -> None:
    shop.write("models/by_customer.sql", BY_CUSTOMER.format(column="amount"))
    shop.write(
        "models/on_top.sql",
        "MODEL (name shop.on_top, kind FULL);\nSELECT MAX(total) AS most FROM shop.by_customer",
    )
    with planned(shop, tmp_path) as (plan, context):
        assert query(plan, context, "by_customer") is not None
        assert query(plan, context, "on_top") is None


def test_queries__a_view_on_the_way_that_is_not_there_yet_is_read_through(
    shop: Shop, tmp_path: Path
) -> None:
    shop.write(
        "models/large.sql",
        "MODEL (name shop.large, kind VIEW);\n"
        "SELECT customer_id, amount FROM shop.orders WHERE amount > 10",
    )
    on_view = BY_CUSTOMER.format(column="amount").replace("shop.orders", "shop.large")
    shop.write("models/by_customer.sql", on_view)
    with planned(shop, tmp_path) as (plan, context):
        assert tables(query(plan, context, "by_customer")) == {prods(context, "orders")}


def test_queries__hold_the_time_column_inside_of_the_batch(shop: Shop, tmp_path: Path) -> None:
    """SQLMesh cuts a batch's rows itself, also where the model's own query does not."""
    shop.write(
        "models/by_day.sql",
        "MODEL (name shop.by_day, kind INCREMENTAL_BY_TIME_RANGE (time_column order_date, "
        "batch_size 2), start '2024-01-01', cron '@daily');\n"
        "SELECT order_date, COUNT(*) AS orders FROM shop.orders GROUP BY order_date",
    )
    with planned(shop, tmp_path) as (plan, context):
        text = str(query(plan, context, "by_day"))
        assert "BETWEEN CAST('2024-01-01' AS DATE) AND CAST('2024-01-02' AS DATE)" in text


def test_batches__are_those_of_sqlmeshs_scheduler(shop: Shop, tmp_path: Path) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("* 10", "* 20"))
    with planned(shop, tmp_path) as (plan, _):
        for item in plan.plan.missing_intervals:
            snapshot = plan.plan_snapshots[item.snapshot_id]
            found = cut_batches(snapshot, item.intervals)
            if snapshot.is_incremental:
                assert len(found) == describe_plan.count_planned_batches(snapshot, item.intervals)
            shown = [
                (
                    report_times.format_iso_in_message(start)[:10],
                    report_times.format_iso_in_message(end)[:10],
                )
                for start, end in found
            ]
            if "orders" in snapshot.name:
                assert shown == [("2024-01-01", "2024-01-06"), ("2024-01-06", "2024-01-11")]
            elif not snapshot.is_view:
                assert shown == [("2024-01-01", "2024-01-11")]
