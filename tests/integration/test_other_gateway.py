"""A project with a second gateway, of another engine: what a review covers, and what an apply refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import PROD_UNTIL, run_python
from tests.integration.test_review import ADD_ORDERS, state_rows
from tests.projects import Shop, write_shop
from tests.worker import client

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ELSEWHERE = """\
MODEL (name lake.elsewhere, kind FULL, gateway other, dialect duckdb);
SELECT 1 AS a
"""


def with_another_gateway(shop: Shop) -> None:
    other = f"  other:\n    connection:\n      type: duckdb\n      database: {shop.root}/other.db\n"
    shop.edit("config.yaml", "gateways:\n", f"gateways:\n{other}")
    shop.edit(
        "config.yaml", "default_gateway", "gateway_managed_virtual_layer: true\ndefault_gateway"
    )
    shop.write("models/elsewhere.sql", ELSEWHERE)


@pytest.fixture
def shop_to_build(tmp_path: Path, java: None) -> Shop:
    return write_shop(tmp_path / "shop")


@pytest.mark.night
def test_other_gateway__is_reviewed_and_not_applied(shop_to_build: Shop) -> None:
    shop = shop_to_build
    with_another_gateway(shop)
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    shop.edit("models/elsewhere.sql", "1 AS a", "1 AS a, 2 AS b")
    worker = client(shop)

    report = worker.review("pr_6")
    assert report.failure is None
    assert [change.model for change in report.changes] == ["other.lake.elsewhere"]
    before = state_rows(shop.state)
    applied = worker.apply("pr_6", plan_id=report.plan_id)

    assert applied.failure is not None
    assert (applied.failure.exit_code, applied.failure.reason_code) == (2, "not_spark")
    assert "other.lake.elsewhere (gateway `other`, duckdb)" in applied.failure.message
    assert state_rows(shop.state).keys() == before.keys()

    shop.write("models/elsewhere.sql", ELSEWHERE)
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    report = worker.review("pr_6")
    applied = worker.apply("pr_6", plan_id=report.plan_id)
    assert (applied.failure, applied.result) == (None, "applied")
    removed = worker.cleanup("pr_6")
    assert (removed.failure, removed.result) == (None, "removed")
