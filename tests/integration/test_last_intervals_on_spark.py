"""Tables whose interval is longer than the window, applied on Spark: what they hold, and what the
evidence says of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ci_bot.protocol.apply_report import ApplyDocument, TableDiff
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import CONFIG, Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# Prod is up to date, as it is where `1 week ago` is used. A month ends two weeks before, on whatever
# day the test runs, so that none ends in the window; the 28th is the last day that each month has.
TODAY = datetime.now(tz=UTC).date()
START = TODAY - timedelta(days=100)
MONTHLY = f"0 0 {min((TODAY - timedelta(days=14)).day, 28)} * *"
MODELS = {
    "whole": f"""\
MODEL (name shop.whole, kind FULL, cron '{MONTHLY}', grain customer_id);

SELECT CAST(customer_id AS INT) AS customer_id, CAST(SUM(amount) AS BIGINT) AS total
FROM shop.orders GROUP BY customer_id
""",
    "of_whole": """\
MODEL (name shop.of_whole, kind FULL, grain customer_id);

SELECT CAST(customer_id AS INT) AS customer_id, CAST(total AS BIGINT) AS total FROM shop.whole
""",
    "months": f"""\
MODEL (
  name shop.months,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_date),
  cron '{MONTHLY}',
  grain order_date
);

SELECT CAST(order_date AS DATE) AS order_date, CAST(SUM(amount) AS BIGINT) AS total
FROM shop.orders WHERE order_date BETWEEN @start_ds AND @end_ds GROUP BY order_date
""",
    "of_months": """\
MODEL (name shop.of_months, kind FULL, grain days);

SELECT CAST(COUNT(*) AS BIGINT) AS days, CAST(SUM(total) AS BIGINT) AS total FROM shop.months
""",
}


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    shop = write_shop(
        tmp_path_factory.mktemp("months"),
        config=f"{CONFIG.replace('2024-01-01', str(START))}\ncicd_bot:\n  type: github\n  default_pr_start: 1 week ago\n",
    )
    shop.edit("models/orders.sql", "start '2024-01-01'", f"start '{START}'")
    shop.edit("models/orders.sql", "batch_size 5", "batch_size 50")
    for name, text in MODELS.items():
        shop.write(f"models/{name}.sql", text)
    with one_jvm(shop, prod_until=str(TODAY)) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    yield jvm.shop
    for name, text in MODELS.items():
        jvm.shop.write(f"models/{name}.sql", text)


def applied(jvm: OneJvm, environment: str, **fields: object) -> ApplyDocument:
    document = jvm.apply(environment, **fields)
    assert document.failure is None
    assert document.result == "applied"
    return document


def diffs(document: ApplyDocument) -> dict[str, TableDiff]:
    return {diff.model: diff for diff in document.table_diff}


def rows(document: ApplyDocument) -> dict[str, int | None]:
    return {model.model: model.rows for model in document.models}


@pytest.mark.night
def test_whole_table__gets_its_last_interval_and_is_compared(jvm: OneJvm, shop: Shop) -> None:
    """`default_pr_start: 1 week ago` is of the project, as the bundled bot's users have it."""
    shop.edit("models/whole.sql", "SUM(amount)", "SUM(amount) + 1")

    document = applied(jvm, "pr_1")

    assert rows(document)["shop.whole"] == 3
    assert rows(document)["shop.of_whole"] == 3
    found = diffs(document)
    for model in ("shop.whole", "shop.of_whole"):
        assert found[model].compared, found[model].skipped_because
        assert (found[model].rows_prod, found[model].rows_pr) == (3, 3)
        assert (found[model].matched, found[model].full_match) == (3, 0)


@pytest.mark.night
def test_incremental_and_its_reader__without_an_interval_are_left_out_of_the_verdict(
    jvm: OneJvm, shop: Shop
) -> None:
    shop.edit("models/months.sql", "SUM(amount)", "SUM(amount) + 1")

    document = applied(jvm, "pr_2")

    assert rows(document) == {"shop.of_months": 1}  # nothing of `months` was built
    found = diffs(document)
    assert not found["shop.months"].compared
    assert not found["shop.of_months"].compared
    assert "It has no data here" in (found["shop.months"].skipped_because or "")
    assert "which has no data in the plan's window" in (
        found["shop.of_months"].skipped_because or ""
    )


@pytest.mark.night
def test_incremental__with_one_interval_at_least_is_compared(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/months.sql", "SUM(amount)", "SUM(amount) + 1")

    document = applied(jvm, "pr_3", flags={"min_intervals": 1})

    found = diffs(document)
    assert found["shop.months"].compared, found["shop.months"].skipped_because
    assert (rows(document)["shop.months"] or 0) >= 28
