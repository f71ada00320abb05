"""What an apply on Spark says of the data: what changed and how, and what prod says to audits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ci_bot.protocol.apply_report import ApplyDocument, Profile, TableDiff
from tests.conftest import PROD_UNTIL
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

AMOUNT = "CAST(customer_id * 10 AS INT) AS amount"
AUDIT = "unique_values(columns := (order_id))"
# Amounts are 10, 20 and 30 in prod, on each of ten days.
WARNS = "".join(
    f",\n    forall_non_blocking(criteria := ({criterion}))"
    for criterion in ("amount < 25", "amount <> 11", "bonus > 0")
)


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    with one_jvm(
        write_shop(tmp_path_factory.mktemp("verdict-shop")), prod_until=PROD_UNTIL
    ) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    orders = jvm.shop.project / "models" / "orders.sql"
    before = orders.read_bytes()
    yield jvm.shop
    orders.write_bytes(before)


def applied(jvm: OneJvm, environment: str, **fields: object) -> ApplyDocument:
    document = jvm.apply(environment, **fields)
    assert document.failure is None
    assert document.result == "applied"
    return document


def diffs(document: ApplyDocument) -> dict[str, TableDiff]:
    return {diff.model: diff for diff in document.table_diff}


@pytest.mark.night
def test_apply__the_same_results_over_all_history_are_known_to_be_the_same(
    jvm: OneJvm, shop: Shop
) -> None:
    shop.edit(
        "models/orders.sql",
        AMOUNT,
        AMOUNT.replace("customer_id * 10", "customer_id * 12 - customer_id * 2"),
    )

    found = diffs(applied(jvm, "pr_1"))

    assert found.keys() == {"shop.orders", "shop.revenue", "shop.top_customers"}
    for diff in found.values():
        assert diff.complete
        assert diff.same == diff.full_match == diff.rows_prod == diff.rows_pr
        assert all(column.pr is None for column in diff.columns)
    assert {name: diff.direct for name, diff in found.items()} == {
        "shop.orders": True,
        "shop.revenue": False,
        "shop.top_customers": False,
    }


@pytest.mark.night
def test_apply__a_part_of_the_history_is_not_complete(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(
        "models/orders.sql",
        AMOUNT,
        AMOUNT.replace("customer_id * 10", "customer_id * 13 - customer_id * 3"),
    )

    found = diffs(applied(jvm, "pr_2", start="2024-01-09"))["shop.orders"]

    assert found.compared
    assert found.same == found.rows_prod
    assert not found.complete


@pytest.mark.night
def test_apply__says_how_a_column_changed_and_whether_prod_fails_the_audit_too(
    jvm: OneJvm, shop: Shop
) -> None:
    shop.edit(
        "models/orders.sql",
        AMOUNT,
        "CAST(IF(customer_id = 1, 11, customer_id * 10) AS INT) AS amount,\n"
        "  CAST(0 AS INT) AS bonus",
    )
    shop.edit("models/orders.sql", AUDIT, f"{AUDIT}{WARNS}")

    document = applied(jvm, "pr_3")

    (amount,) = [c for c in diffs(document)["shop.orders"].columns if c.name == "amount"]
    assert amount.prod == Profile(nulls=0, distinct=3, mean=20.0, min="10", max="30")
    assert amount.pr is not None
    assert amount.pr.mean == pytest.approx(61 / 3)
    assert amount.pr == Profile(nulls=0, distinct=3, mean=amount.pr.mean, min="11", max="30")
    (orders,) = [model for model in document.models if model.model == "shop.orders"]
    warned = [audit for audit in orders.audits if audit.status == "failed"]
    assert [(audit.failed_rows, audit.prod_rows) for audit in warned] == [
        (10, 10),
        (10, 0),
        (30, None),
    ]
    assert [bool(audit.prod_unknown_because) for audit in warned] == [False, False, True]
    assert "bonus" in (warned[2].prod_unknown_because or "")
