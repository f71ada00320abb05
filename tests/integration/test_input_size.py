"""Models that nobody has built are estimated by what they will read, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from ci_bot.errors import EXIT_REFUSED
from ci_bot.protocol.apply_report import EstimateDocument
from ci_bot.protocol.messages import EstimateRequest, Owner
from tests.conftest import PROD_UNTIL
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import Shop, write_shop
from tests.projects.by_time import amount_by_day

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

ORDERS_FILE = "models/orders.sql"
AMOUNT = "CAST(customer_id * 10 AS INT) AS amount"
# Of a model that was applied once the ledger knows more, so that each test has one of its own.
BY_CUSTOMER = """\
MODEL (name shop.{name}, kind FULL);

SELECT c.name, SUM(o.{column}) AS total
FROM shop.orders AS o JOIN shop.customers AS c ON c.customer_id = o.customer_id GROUP BY c.name
"""
# Its rows come from code, so only an earlier run tells what it takes.
PYTHON_TOTAL = """\
from sqlmesh import model


@model("shop.counted", kind="FULL", columns={"total": "int"}, depends_on=["shop.orders"])
def execute(context, start, end, execution_time, **kwargs):
    table = context.resolve_table("shop.orders")
    return context.fetchdf(f"SELECT CAST(SUM(amount) AS INT) AS total FROM {table}")
"""
ON_TOP = "MODEL (name shop.on_top, kind FULL);\n\nSELECT MAX(total) AS most FROM shop.by_customer\n"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    made_shop = write_shop(tmp_path_factory.mktemp("size-shop"))
    made_shop.write("models/counted.py", PYTHON_TOTAL)
    with one_jvm(made_shop, prod_until=PROD_UNTIL) as made:
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


@pytest.mark.night
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


@pytest.mark.night
def test_apply__prods_table_stands_in_for_one_that_the_plan_builds(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(ORDERS_FILE, AMOUNT, f"{AMOUNT},\n  CAST(2 AS INT) AS pieces")
    shop.write("models/by_pieces.sql", BY_CUSTOMER.format(name="by_pieces", column="pieces"))

    document = jvm.apply("pr_3", max_executor_hours=0.0)

    assert document.estimate is not None
    assert document.estimate.unknown == []
    # A new column is non-breaking, so `shop.revenue` is not built again.
    layers = {item.model: item.layer for item in document.estimate.models}
    assert layers == {"shop.orders": "ledger", "shop.by_pieces": "input_size"}


@pytest.mark.night
def test_apply__only_the_partitions_of_each_batch_count(jvm: OneJvm, shop: Shop) -> None:
    """Five batches of two days each read ten days once, not five times."""
    shop.write("models/by_day.sql", amount_by_day("shop.by_day"))
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

    answer = jvm.ask(jvm.make_request(EstimateRequest, owner=Owner(name=OWNER), environment="pr_5"))

    assert isinstance(answer, EstimateDocument), answer
    assert (tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()) == before
    refused = jvm.apply("pr_5", max_executor_hours=0.0)
    assert refused.estimate == answer.cost
    assert refused.prod_estimate == answer.after_merge
    assert (refused.plan_id, refused.environment) == (answer.plan_id, answer.environment)


@pytest.mark.night
def test_apply__of_a_short_window__is_held_against_what_prod_builds_after_the_merge(
    jvm: OneJvm, shop: Shop
) -> None:
    """The environment gets a day, and prod all that it has: at least five times as much."""
    shop.write("models/by_week.sql", amount_by_day("shop.by_week"))
    window = {"start": "2024-01-10", "end": "2024-01-10"}
    answer = jvm.ask(
        jvm.make_request(EstimateRequest, owner=Owner(name=OWNER), environment="pr_6", **window)
    )
    assert isinstance(answer, EstimateDocument), answer
    here, there = answer.cost.executor_hours_mid, answer.after_merge
    assert here is not None
    assert there is not None
    assert [item.layer for item in there.models] == ["input_size"]
    assert there.batches >= 5 * answer.cost.batches
    assert (there.executor_hours_mid or 0) > 2 * here
    before = tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()

    refused = jvm.apply("pr_6", max_executor_hours=1.5 * here, **window)

    assert (refused.result, refused.reason_code) == ("refused", "over_budget")
    assert refused.failure is not None
    assert "what prod builds after the merge" in refused.failure.message
    assert (tables_of(jvm), snapshots_of(shop), shop.not_cleaned_up()) == before
    enough = 1.5 * (there.executor_hours_mid or 0)
    assert jvm.apply("pr_6", max_executor_hours=enough, **window).result == "applied"


def test_apply__of_forward_only_full_models__is_held_against_prods_next_run(
    jvm: OneJvm, shop: Shop
) -> None:
    """The environment builds nothing, and prod's next run computes both tables whole."""
    config = shop.project / "config.yaml"
    config.write_text(f"{config.read_text()}\nplan:\n  enable_preview: false\n")
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount) * 2")
    shop.edit("models/counted.py", "SUM(amount)", "SUM(amount) * 2")
    flags = {"forward_only": True}
    answer = jvm.ask(
        jvm.make_request(EstimateRequest, owner=Owner(name=OWNER), environment="pr_9", flags=flags)
    )
    assert isinstance(answer, EstimateDocument), answer
    assert answer.after_merge is not None
    known = {item.model for item in answer.after_merge.models}
    assert known == {"shop.revenue", "shop.counted"}
    assert answer.after_merge.unknown == []

    refused = jvm.apply("pr_9", max_executor_hours=0.0, flags=flags)

    assert (refused.result, refused.reason_code) == ("refused", "over_budget")
    assert refused.failure is not None
    assert "what prod builds after the merge" in refused.failure.message


@pytest.mark.night
def test_estimate__of_what_columns_take_in_files_is_close_to_what_spark_reads(
    jvm: OneJvm, shop: Shop
) -> None:
    """One column has a few values and a wide type, another takes nearly all of the file."""
    jvm.sql(
        "CREATE TABLE IF NOT EXISTS default.wide USING parquet AS SELECT /*+ REPARTITION(2) */ "
        "CAST(id % 3 AS DECIMAL(38, 2)) AS few, "
        "CAST(XXHASH64(id) AS BIGINT) AS many FROM RANGE(400000)"
    )
    # What a byte costs is told by a run of something as large.
    for number, columns in enumerate((("few + many",), ("few", "many")), 7):
        for column in columns:
            name = column.partition(" ")[0] if len(columns) > 1 else "both"
            shop.write(
                f"models/of_{name}.sql",
                f"MODEL (name shop.of_{name}, kind FULL);\n\n"
                f"SELECT CAST(MAX({column}) AS DOUBLE) AS most FROM default.wide\n",
            )
        document = jvm.apply(f"pr_{number}", table_diff=False)
        assert document.result == "applied", document.failure

    assert document.estimate is not None
    expected = {item.model: item.input_bytes or 0 for item in document.estimate.models}
    read = {
        model.model: model.counters.input_bytes
        for model in document.models
        if model.counters is not None
    }
    for model in ("shop.of_few", "shop.of_many"):
        assert expected[model] == pytest.approx(read[model], rel=0.5), (expected, read)
    assert read["shop.of_many"] > 3 * read["shop.of_few"]
