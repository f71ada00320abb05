"""A probe builds the newest batches of a plan, says what all of it costs, and wastes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ci_bot.errors import EXIT_REFUSED
from ci_bot.protocol.cleanup_report import EnvironmentList
from ci_bot.protocol.messages import ListRequest, Owner
from ci_bot.protocol.plan_identity import GivenFlags
from tests.conftest import PROD_UNTIL
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import Shop, write_shop
from tests.projects.by_time import amount_by_day
from tests.worker import built

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ORDERS_FILE = "models/orders.sql"
AMOUNT = "CAST(customer_id * 10 AS INT) AS amount"
# Reads what prod has, in five batches.
SIGNAL = """\
from sqlmesh import signal
from sqlmesh.utils.date import to_ds


@signal()
def until(batch, day: str):
    return [each for each in batch if to_ds(each[0]) <= day]
"""
RECENT = "MODEL (name shop.recent, kind VIEW);\n\nSELECT order_date, amount FROM shop.orders\n"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    with one_jvm(write_shop(tmp_path_factory.mktemp("probe-shop")), prod_until=PROD_UNTIL) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    with jvm.shop.kept():
        yield jvm.shop


def rows(shop: Shop, table: str, environment: str) -> list[dict[str, Any]]:
    """The ledger's rows of an environment."""
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        found = connection.execute(f"SELECT document FROM sqlmesh_ci_bot.{table}").fetchall()
    documents = [json.loads(row[0]) for row in found]
    return [row for row in documents if row["environment"] == environment]


def tables_of(jvm: OneJvm, model: str) -> set[str]:
    names = {row[1] for row in jvm.sql("SHOW TABLES IN sqlmesh__shop")[0]}
    return {name for name in names if name.startswith(f"shop__{model}__")}


@pytest.mark.night
def test_apply__after_a_probe_builds_what_is_left_of_the_same_plan(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "9"))
    before = tables_of(jvm, "orders")

    probed = jvm.apply("pr_1", probe=True)

    assert (probed.result, probed.reason_code) == ("probed", "probed"), probed.failure
    assert built(probed) == {"shop.orders": (5, 1)}
    (left,) = probed.not_probed
    assert (left.model, left.why) == ("shop.revenue", "its kind (FULL) is built as a whole")
    # No environment and no view, but a table, and the ledger knows what there is.
    assert shop.environments() == set()
    assert probed.views == []
    assert "shop__pr_1" not in {row[0] for row in jvm.sql("SHOW SCHEMAS")[0]}
    assert len(tables_of(jvm, "orders") - before) == 1
    (row,) = rows(shop, "_environments", "pr_1")
    assert (row["phase"], row["plan_id"]) == ("probed", probed.plan_id)
    assert [(run["model"], run["outcome"]) for run in rows(shop, "_runs", "pr_1")] == [
        ("shop.orders", "probed")
    ]
    # The whole is two such batches.
    whole = probed.estimate
    assert whole is not None
    assert (whole.tables, whole.intervals) == (2, 11)
    layers = {item.model: item.layer for item in whole.models}
    assert layers["shop.orders"] == "probe"
    seconds = next(m.executor_seconds for m in probed.models if m.model == "shop.orders")
    expected = next(m for m in whole.models if m.model == "shop.orders").executor_hours_mid
    assert expected * 3_600 == pytest.approx(2 * (seconds or 0), abs=0.01)
    assert probed.prod_estimate is not None

    applied = jvm.apply("pr_1", plan_id=probed.plan_id)

    assert applied.result == "applied", applied.failure
    assert applied.plan_id == probed.plan_id
    assert built(applied) == {"shop.orders": (5, 1), "shop.revenue": (1, 1)}
    assert shop.environments() == {"pr_1"}
    ((count, days, most),) = jvm.sql(
        "SELECT COUNT(*), COUNT(DISTINCT order_date), MAX(amount) FROM shop__pr_1.orders"
    )[0]
    assert (count, days, most) == ("30", "10", "27")
    assert tables_of(jvm, "orders") - before == {
        name.rpartition(".")[2] for name in (m.table for m in applied.models) if "orders__" in name
    }
    assert jvm.apply("pr_1", plan_id=probed.plan_id, probe=True).reason_code == "already_applied"


@pytest.mark.night
def test_cleanup_and_sweep__find_what_a_probe_has_built(jvm: OneJvm, shop: Shop) -> None:
    """SQLMesh's state has no environment that could name it."""
    shop.write("models/by_day.sql", amount_by_day("shop.by_day"))
    assert jvm.apply("pr_2", probe=True).result == "probed"
    assert len(tables_of(jvm, "by_day")) == 1
    assert "pr_2" in shop.not_cleaned_up()
    listed = jvm.request_environments(jvm.make_request(ListRequest, owner=Owner(name=OWNER)))
    assert isinstance(listed, EnvironmentList)
    (found,) = [item for item in listed.environments if item.environment == "pr_2"]
    assert (found.owner, found.pr_number, found.phase) == (OWNER, 2, "probed")

    document = jvm.cleanup("pr_2", merged=False, reclaim="always")

    assert document.result == "removed", document.failure
    assert [item.table for item in document.tables_reclaimed]
    assert tables_of(jvm, "by_day") == set()
    assert "pr_2" not in shop.not_cleaned_up()
    assert rows(shop, "_environments", "pr_2") == []


@pytest.mark.night
def test_probe__above_the_limit_ends_before_its_first_write(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "8"))
    before = tables_of(jvm, "orders")

    document = jvm.apply("pr_3", probe=True, max_executor_hours=0.0)

    assert (document.result, document.reason_code) == ("refused", "over_budget")
    assert document.failure is not None
    assert document.failure.exit_code == EXIT_REFUSED
    assert document.failure.message.startswith("The probe of pr_3 would take ")
    assert tables_of(jvm, "orders") == before
    assert rows(shop, "_environments", "pr_3") == []


@pytest.mark.night
def test_probe__of_another_plan_is_refused(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "7"))

    document = jvm.apply("pr_4", probe=True, plan_id="0" * 64)

    assert (document.result, document.reason_code) == ("refused", "plan_changed")
    assert rows(shop, "_environments", "pr_4") == []


@pytest.mark.night
def test_probe__looks_through_views_that_the_plan_makes(jvm: OneJvm, shop: Shop) -> None:
    shop.write("models/recent.sql", RECENT)
    shop.write("models/by_recent.sql", amount_by_day("shop.by_recent", "shop.recent"))

    probed = jvm.apply("pr_5", probe=True)

    assert probed.result == "probed", probed.failure
    assert built(probed) == {"shop.by_recent": (2, 1)}
    applied = jvm.apply("pr_5", plan_id=probed.plan_id)
    assert applied.result == "applied", applied.failure
    assert built(applied) == {"shop.by_recent": (8, 4)}


@pytest.mark.night
def test_probe__that_can_build_nothing_says_why_and_writes_nothing(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount + 1)")

    document = jvm.apply("pr_6", probe=True)

    assert (document.result, document.reason_code) == ("probed", "nothing_to_probe")
    assert [item.model for item in document.not_probed] == ["shop.revenue"]
    assert document.estimate is not None
    assert rows(shop, "_environments", "pr_6") == []


@pytest.mark.night
def test_probe__of_a_preview_is_reused_too(jvm: OneJvm, shop: Shop) -> None:
    """SQLMesh restates previews of snapshots that are new to the state, and these only."""
    shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "6"))
    flags = GivenFlags(forward_only=True)

    probed = jvm.apply("pr_7", probe=True, flags=flags, start="2024-01-01")

    assert probed.result == "probed", probed.failure
    assert [(name, batches) for name, (_, batches) in built(probed).items()] == [("shop.orders", 1)]
    applied = jvm.apply("pr_7", plan_id=probed.plan_id, flags=flags, start="2024-01-01")
    assert applied.result == "applied", applied.failure
    assert applied.plan_id == probed.plan_id
    days = [built(each)["shop.orders"][0] for each in (probed, applied)]
    assert days == [5, 5]


@pytest.mark.night
def test_apply__after_a_probe_still_runs_audits_that_changed(jvm: OneJvm, shop: Shop) -> None:
    """SQLMesh runs them on built data for snapshots that are new to its state, and never again."""
    shop.edit(
        ORDERS_FILE, "not_null(columns := (order_id))", "not_null(columns := (order_id, amount))"
    )
    shop.write("models/beside.sql", amount_by_day("shop.beside"))

    probed = jvm.apply("pr_8", probe=True)

    assert probed.result == "probed", probed.failure
    assert built(probed) == {"shop.beside": (2, 1)}
    assert [model.model for model in probed.models] == ["shop.beside"]
    (row,) = rows(shop, "_environments", "pr_8")
    assert ["beside" in item["name"] for item in row["snapshots"]] == [True]
    assert {item["kind"] for item in row["objects"]} == {"schema", "table"}
    applied = jvm.apply("pr_8", plan_id=probed.plan_id)
    assert applied.result == "applied", applied.failure
    audited = {model.model for model in applied.models if model.audits}
    assert audited == {"shop.orders"}


@pytest.mark.night
def test_probe__of_a_model_that_its_signals_hold_back_says_so(jvm: OneJvm, shop: Shop) -> None:
    shop.write("signals/__init__.py", SIGNAL)
    held = amount_by_day("shop.held", more="signals (until(day := '2024-01-04'))")
    shop.write("models/held.sql", held)
    shop.write("models/near.sql", amount_by_day("shop.near"))

    probed = jvm.apply("pr_9", probe=True)

    assert probed.result == "probed", probed.failure
    assert set(built(probed)) == {"shop.near"}
    (left,) = probed.not_probed
    assert left.model == "shop.held"
    assert left.why == "its signals say that its newest batch is not ready"
    applied = jvm.apply("pr_9", plan_id=probed.plan_id)
    assert applied.result == "applied", applied.failure
    ((days, last),) = jvm.sql(
        "SELECT COUNT(*), CAST(MAX(order_date) AS STRING) FROM shop__pr_9.held"
    )[0]
    assert (days, last) == ("4", "2024-01-04")
