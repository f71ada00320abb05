"""Models that nobody has built are estimated by what they will read, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from ci_bot.contracts.documents.apply import EstimateDocument
from ci_bot.contracts.messages import EstimateRequest, Owner
from ci_bot.errors import EXIT_REFUSED
from tests.conftest import PROD_UNTIL
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ORDERS_FILE = "models/orders.sql"
AMOUNT = "CAST(customer_id * 10 AS INT) AS amount"
BY_DAY = """\
MODEL (
  name shop.by_day,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 2),
  start '2024-01-01',
  cron '@daily'
);

SELECT order_date, SUM(amount) AS amount FROM shop.orders
WHERE order_date BETWEEN @start_ds AND @end_ds GROUP BY order_date
"""
# Of a model that was applied once the ledger knows more, so that each test has one of its own.
BY_CUSTOMER = """\
MODEL (name shop.{name}, kind FULL);

SELECT c.name, SUM(o.{column}) AS total
FROM shop.orders AS o JOIN shop.customers AS c ON c.customer_id = o.customer_id GROUP BY c.name
"""
ON_TOP = "MODEL (name shop.on_top, kind FULL);\n\nSELECT MAX(total) AS most FROM shop.by_customer\n"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    made_shop = write_shop(tmp_path_factory.mktemp("size-shop"))
    with one_jvm(made_shop) as made:
        made.plan_prod(PROD_UNTIL)
        made.apply_prod()
        with made_shop.kept():
            made_shop.edit(ORDERS_FILE, AMOUNT, AMOUNT.replace("10", "9"))
            assert made.apply("pr_1").result == "applied"
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    with jvm.shop.kept():
        yield jvm.shop


def tables_of(jvm: OneJvm) -> set[str]:
    return {row[1] for row in jvm.sql("SHOW TABLES IN sqlmesh__shop")[0]}


def snapshots_of(shop: Shop) -> int:
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        row = connection.execute("SELECT COUNT(*) FROM sqlmesh._snapshots").fetchone()
    assert row is not None
    return int(row[0])


def test_apply__above_the_limit_ends_before_its_first_write(jvm: OneJvm, shop: Shop) -> None:
    shop.write("models/by_customer.sql", BY_CUSTOMER.format(name="by_customer", column="amount"))
    shop.write("models/on_top.sql", ON_TOP)
    before = tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()

    document = jvm.apply("pr_2", max_executor_hours=0.0)

    assert (document.result, document.reason_code) == ("refused", "over_budget")
    assert document.failure is not None
    assert document.failure.exit_code == EXIT_REFUSED
    assert "would take at least" in document.failure.message
    assert "shop.by_customer" in document.failure.message
    assert "(the size of its input)" in document.failure.message
    assert document.estimate is not None
    (found,) = document.estimate.models
    assert (found.model, found.layer) == ("shop.by_customer", "input_size")
    assert (found.input_bytes or 0) > 0
    # Nobody has built what it reads, and prod does not have it.
    assert document.estimate.unknown == ["shop.on_top"]
    assert (tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()) == before

    applied = jvm.apply("pr_2", max_executor_hours=10.0)
    assert applied.result == "applied", applied.failure
    assert applied.estimate is not None
    assert applied.estimate.unknown == ["shop.on_top"]


def test_apply__prods_table_stands_in_for_one_that_the_plan_builds(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, f"{AMOUNT},\n  CAST(2 AS INT) AS pieces")
    shop.write("models/by_pieces.sql", BY_CUSTOMER.format(name="by_pieces", column="pieces"))

    document = jvm.apply("pr_3", max_executor_hours=0.0)

    assert document.estimate is not None
    assert document.estimate.unknown == []
    # A new column is non-breaking, so `shop.revenue` is not built again.
    layers = {item.model: item.layer for item in document.estimate.models}
    assert layers == {"shop.orders": "ledger", "shop.by_pieces": "input_size"}


def test_apply__only_the_partitions_of_each_batch_count(jvm: OneJvm, shop: Shop) -> None:
    """Five batches of two days each read ten days once, not five times."""
    shop.write("models/by_day.sql", BY_DAY)
    shop.write("models/by_name.sql", BY_CUSTOMER.format(name="by_name", column="amount"))

    document = jvm.apply("pr_4", max_executor_hours=0.0)

    assert document.estimate is not None
    sizes = {item.model: item.input_bytes or 0 for item in document.estimate.models}
    assert 0 < sizes["shop.by_day"] < 1.5 * sizes["shop.by_name"]


def test_estimate__says_the_same_without_an_apply_and_writes_nothing(
    jvm: OneJvm, shop: Shop
) -> None:
    shop.write("models/by_total.sql", BY_CUSTOMER.format(name="by_total", column="amount"))
    before = tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()

    answer = jvm.ask(jvm.request(EstimateRequest, owner=Owner(name=OWNER), environment="pr_5"))

    assert isinstance(answer, EstimateDocument), answer
    assert (tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()) == before
    refused = jvm.apply("pr_5", max_executor_hours=0.0)
    assert refused.estimate == answer.cost
    assert (refused.plan_id, refused.environment) == (answer.plan_id, answer.environment)
