"""What applies cost on real Spark: counted by Spark, kept in the ledger, and used by the next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ci_bot.protocol.cost import LearnDocument
from ci_bot.protocol.messages import LearnRequest, Owner
from tests.conftest import PROD_UNTIL
from tests.integration.test_review import REVENUE
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import CONFIG, Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

REVENUE_FILE, ORDERS_FILE = "models/revenue.sql", "models/orders.sql"
AMOUNT = "CAST(customer_id * 10 AS INT) AS amount"


def logs(shop: Shop) -> Path:
    return shop.root / "event-logs"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    made_shop = write_shop(tmp_path_factory.mktemp("cost-shop"))
    logs(made_shop).mkdir()
    made_shop.edit(
        "config.yaml",
        "spark.log.level: ERROR",
        "spark.log.level: ERROR\n"
        '        spark.eventLog.enabled: "true"\n'
        f"        spark.eventLog.dir: {logs(made_shop).as_uri()}\n"
        '        spark.eventLog.compress: "true"\n'
        '        spark.eventLog.rolling.enabled: "true"',
    )
    with one_jvm(made_shop, prod_until=PROD_UNTIL) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    with jvm.shop.kept():
        yield jvm.shop


def documents(shop: Shop, table: str, environment: str) -> list[dict[str, Any]]:
    """The rows of an environment, oldest first."""
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        rows = connection.execute(
            f'SELECT document FROM sqlmesh_ci_bot.{table} ORDER BY "at"'
        ).fetchall()
    found = [json.loads(row[0]) for row in rows]
    return [row for row in found if row["environment"] == environment]


@pytest.mark.night
def test_learn__makes_prods_own_runs_the_first_estimate(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "9"))
    before = jvm.apply("pr_9", plan_id="0" * 64)
    assert before.result == "refused"

    learned = jvm.ask(
        jvm.make_request(LearnRequest, owner=Owner(name=OWNER), event_logs=logs(shop).as_uri())
    )

    assert isinstance(learned, LearnDocument), learned
    # Prod's application still runs: its log is compressed, rolling, and in progress.
    assert (learned.logs, learned.read, learned.cut, learned.remark) == (1, 1, 0, None)
    assert learned.tables >= 2
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        rows = connection.execute("SELECT document FROM sqlmesh_ci_bot._prod_runs").fetchall()
    writes = [json.loads(row[0]) for row in rows]
    orders = [row for row in writes if "shop__orders__" in row["table"]]
    assert sorted((row["start"], row["end"]) for row in orders) == [
        ("2024-01-01T00:00:00Z", "2024-01-06T00:00:00Z"),
        ("2024-01-06T00:00:00Z", "2024-01-11T00:00:00Z"),
    ]
    assert all(row["counters"]["output_rows"] == 15 for row in orders)

    document = jvm.apply("pr_9")
    assert document.estimate is not None
    assert {found.layer for found in document.estimate.models} == {"event_logs"}
    assert document.estimate.unknown == []
    assert (document.estimate.executor_hours_mid or 0) > 0


@pytest.mark.night
def test_apply__is_counted_by_spark_model_by_model(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "11"))

    document = jvm.apply("pr_1")

    assert document.failure is None
    cost = document.cost
    assert cost is not None
    assert cost.source == "counters"
    assert cost.counters is not None
    assert cost.counters.stages_lost == 0
    # One local executor, from the begin of building to its end.
    assert document.executor_hours == cost.allocated_hours
    assert cost.allocated_hours * 3_600 == pytest.approx(document.timings["apply"], rel=0.2)
    cores = int(CONFIG.partition("local[")[2].partition("]")[0])
    assert cost.core_hours == pytest.approx(cores * cost.allocated_hours, rel=0.01)
    assert 0 < (cost.used_share or 0) <= 1
    models = {model.model: model for model in document.models}
    orders = models["shop.orders"].counters
    assert orders is not None
    assert orders.output_rows == models["shop.orders"].rows
    assert orders.output_bytes > 0
    assert orders.used_seconds > 0
    revenue = models["shop.revenue"].counters
    assert revenue is not None
    # It reads what the orders hold, and its audit what it wrote itself.
    assert revenue.input_rows >= orders.output_rows
    assert revenue.shuffle_write_bytes > 0
    parts = sum(model.executor_seconds or 0 for model in models.values())
    assert 0 < parts <= cost.allocated_hours * 3_600 * 1.01

    rows = {row["model"]: row for row in documents(shop, "_runs", "pr_1")}
    assert (rows["shop.orders"]["intervals"], rows["shop.orders"]["batches"]) == (10, 2)
    assert {row["source"] for row in rows.values()} == {"counters"}
    (apply,) = documents(shop, "_applies", "pr_1")
    assert document.estimate is not None
    assert apply["outcome"] == "applied"
    assert apply["expected_hours"] == document.estimate.executor_hours_mid

    # The next plan of the same models is expected to cost what the last ones did.
    shop.edit(ORDERS_FILE, AMOUNT.replace("10", "11"), AMOUNT.replace("10", "12"))
    second = jvm.apply("pr_2")
    assert second.estimate is not None
    assert second.estimate.unknown == []
    assert {found.layer for found in second.estimate.models} == {"ledger"}
    assert (second.estimate.executor_hours_mid or 0) * 3_600 == pytest.approx(parts, rel=0.9)
    (apply,) = documents(shop, "_applies", "pr_2")
    assert apply["expected_hours"] == second.estimate.executor_hours_mid


@pytest.mark.night
def test_apply__that_fails_is_recorded_with_what_it_had_cost(jvm: OneJvm, shop: Shop) -> None:
    broken = f"{REVENUE},\n  CAST(RAISE_ERROR('no') AS BIGINT) AS broken"
    shop.edit(REVENUE_FILE, REVENUE, broken)
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "13"))

    document = jvm.apply("pr_3")

    assert document.result == "failed"
    assert document.cost is not None
    assert document.cost.source == "counters"
    rows = {row["model"]: row for row in documents(shop, "_runs", "pr_3")}
    assert (rows["shop.orders"]["intervals"], rows["shop.orders"]["lost_seconds"]) == (10, 0)
    assert rows["shop.revenue"]["intervals"] == 0
    assert rows["shop.revenue"]["lost_seconds"] > 0
    assert {row["outcome"] for row in rows.values()} == {"failed"}
    (apply,) = documents(shop, "_applies", "pr_3")
    assert apply["outcome"] == "failed"
    assert apply["allocated_hours"] > 0
