"""What the flags of a plan do through the worker on Spark: as SQLMesh means them.

One JVM for all of them; each test has a version of the orders of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from sqlmesh.core.context import Context

from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ApplyRequest, FailedAnswer
from ci_bot.protocol.plan_identity import GivenFlags
from tests.conftest import PROD_UNTIL
from tests.integration.test_apply_and_cleanup import prod_intervals
from tests.integration.test_review import ADD_ORDERS
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# Of a version below 0.236 previews begin where the plan does.
PREVIEW_OPTIONS = "preview_start" in inspect.signature(Context.plan_builder).parameters
AMOUNT = "CAST(customer_id * 10 AS INT) AS amount"
BY_DAY = "SELECT DAY(order_date), SUM(amount) FROM {}.orders GROUP BY 1 ORDER BY 1"
SEGMENTS = """\
MODEL (name shop.segments, kind FULL);

SELECT DISTINCT
  c.segment
FROM shop.customers AS c
"""


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    """A shop with prod built, and a table from outside whose only value is a factor."""
    with one_jvm(
        write_shop(tmp_path_factory.mktemp("restated-shop")), prod_until=PROD_UNTIL
    ) as made:
        made.sql("CREATE DATABASE outside", "CREATE TABLE outside.rate USING parquet AS SELECT 2 r")
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test; prod is never written."""
    models = jvm.shop.project / "models"
    before = {path: path.read_bytes() for path in models.iterdir()}
    intervals = prod_intervals(jvm.shop)
    yield jvm.shop
    for path in set(models.iterdir()) - before.keys():
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)
    assert prod_intervals(jvm.shop) == intervals


def apply(jvm: OneJvm, environment: str, *, until: dict[str, Any], **flags: Any) -> ApplyDocument:
    document = jvm.apply(environment, flags=GivenFlags(**flags), table_diff=False, **until)
    assert document.failure is None
    assert document.result == "applied"
    return document


def refused(jvm: OneJvm, environment: str, **flags: Any) -> Failure:
    place = jvm._place(environment)
    ask = ApplyRequest(environment=environment, flags=GivenFlags(**flags), **place)
    answer = jvm.ask(ask)
    assert isinstance(answer, FailedAnswer)
    assert not any(told.startswith("apply") for told in jvm.progress)
    return answer.failure


def built(document: ApplyDocument) -> dict[str, int | None]:
    return {model.model: model.intervals for model in document.models}


def by_day(jvm: OneJvm, schema: str) -> dict[int, int]:
    (rows,) = jvm.sql(BY_DAY.format(schema))
    return {int(day): int(amount) for day, amount in rows}


@pytest.mark.night
def test_restate_model__builds_its_range_again_and_all_downstream(jvm: OneJvm, shop: Shop) -> None:
    rate = "CAST(customer_id * 10 * (SELECT MAX(r) FROM outside.rate) AS INT) AS amount"
    shop.edit("models/orders.sql", AMOUNT, rate)
    apply(jvm, "pr_1", until={})
    assert by_day(jvm, "shop__pr_1") == dict.fromkeys(range(1, 11), 120)
    jvm.sql("INSERT OVERWRITE outside.rate SELECT 3")

    document = apply(
        jvm,
        "pr_1",
        until={"start": "2024-01-03", "end": "2024-01-05"},
        restate_models=["shop.orders"],
    )

    assert built(document) == {"shop.orders": 3, "shop.revenue": 1, "shop.top_customers": 1}
    days = {day: 180 if day in (3, 4, 5) else 120 for day in range(1, 11)}
    assert by_day(jvm, "shop__pr_1") == days
    (total,) = jvm.sql("SELECT SUM(revenue) FROM shop__pr_1.revenue")
    assert total == [[str(sum(days.values()))]]


@pytest.mark.night
def test_restate_model__beside_another_change__builds_both(jvm: OneJvm, shop: Shop) -> None:
    # SQLMesh would build the restated model only, and point the other view at a missing table.
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("10", "11"))
    shop.write("models/segments.sql", SEGMENTS)

    document = apply(jvm, "pr_2", until={}, restate_models=["shop.orders"])

    assert built(document) == {
        "shop.orders": 10,
        "shop.revenue": 1,
        "shop.segments": 1,
        "shop.top_customers": 1,
    }
    assert all(view.resolves for view in document.views)


def test_restate_model__of_prods_version__is_refused(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)

    failure = refused(jvm, "pr_3", restate_models=["shop.orders"])

    assert (failure.reason_code, failure.exit_code) == ("restates_prod", 2)
    assert "shop.orders" in failure.message
    assert "sqlmesh plan prod --restate-model" in (failure.hint or "")


def test_select_model__leaves_everything_else_as_prod_has_it(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("10", "12"))
    shop.edit("models/revenue.sql", *ADD_ORDERS)

    document = apply(jvm, "pr_4", until={}, select_models=["shop.revenue"])

    assert built(document) == {"shop.revenue": 1}
    assert [view.view for view in document.views] == ["shop__pr_4.revenue"]
    (total,) = jvm.sql("SELECT SUM(revenue), SUM(orders) FROM shop__pr_4.revenue")
    assert total == [["600", "30"]], "the orders are prod's"


@pytest.mark.night
def test_min_intervals__reaches_further_back_than_start(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("10", "13"))

    document = apply(jvm, "pr_5", until={"start": "2024-01-09"}, min_intervals=4)

    assert built(document)["shop.orders"] == 4
    assert sorted(by_day(jvm, "shop__pr_5")) == [7, 8, 9, 10]


@pytest.mark.night
def test_forward_only__builds_a_preview_from_its_start(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("10", "14"))

    first, until = {"preview_start": "2024-01-08"}, {}
    if not PREVIEW_OPTIONS:
        failure = refused(jvm, "pr_6", forward_only=True, **first)
        assert (failure.exit_code, "`preview-start`" in failure.message) == (2, True)
        first, until = {}, {"start": "2024-01-08"}

    document = apply(jvm, "pr_6", until=until, forward_only=True, **first)

    assert built(document) == {"shop.orders": 3, "shop.revenue": 1, "shop.top_customers": 1}
    assert all(model.table.endswith("__dev") for model in document.models)
    assert by_day(jvm, "shop__pr_6") == dict.fromkeys((8, 9, 10), 84)


def test_allow_destructive__permits_a_forward_only_change_of_type(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("INT", "STRING"))

    failure = refused(jvm, "pr_7", forward_only=True)
    assert failure.exit_code == 1
    assert "destructive change to a forward-only model: shop.orders." in failure.message
    assert "`allow-destructive`" in failure.message

    document = apply(
        jvm,
        "pr_7",
        until={} if PREVIEW_OPTIONS else {"start": "2024-01-09"},
        forward_only=True,
        allow_destructive=["shop.orders"],
        **({"preview_min_intervals": 2} if PREVIEW_OPTIONS else {}),
    )
    assert built(document)["shop.orders"] == 2
    (columns,) = jvm.sql("DESCRIBE shop__pr_7.orders")
    assert ["amount", "string", "None"] in columns


@pytest.mark.night
def test_skip_backfill__makes_an_environment_without_data_and_compares_none(
    jvm: OneJvm, shop: Shop
) -> None:
    shop.edit("models/orders.sql", AMOUNT, AMOUNT.replace("10", "15"))
    shop.edit("models/customers.sql", "grain customer_id", "grain customer_id, owner data")

    document = jvm.apply("pr_8", flags=GivenFlags(skip_backfill=True))

    assert (document.failure, document.result) == (None, "applied")
    assert built(document) == {}
    assert {view.view for view in document.views if view.resolves} >= {
        "shop__pr_8.orders",
        "shop__pr_8.revenue",
        "shop__pr_8.top_customers",
    }
    (rows,) = jvm.sql("SELECT COUNT(*) FROM shop__pr_8.orders")
    assert rows == [["0"]]
    skipped = {diff.model: diff.skipped_because for diff in document.table_diff}
    assert set(skipped) >= {"shop.orders", "shop.revenue"}
    assert skipped["shop.orders"] == "It is empty, because the plan skips the backfill."
    assert not any(diff.compared for diff in document.table_diff)

    again = jvm.apply("pr_8", flags=GivenFlags(skip_backfill=True))
    assert again.result == "nothing_to_apply"
    # Who wants the data then asks for another plan.
    filled = jvm.apply("pr_8", flags=GivenFlags(skip_backfill=False), table_diff=False)
    assert built(filled)["shop.orders"] == 10
