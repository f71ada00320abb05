"""A life on a Hive metastore service, whose catalog several JVMs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import PROD_UNTIL, run_python
from tests.integration.test_apply_and_cleanup import sql
from tests.integration.test_review import ADD_ORDERS
from tests.projects import CONFIG, Shop, write_shop
from tests.servers import hive_metastore
from tests.worker import client

pytestmark = [pytest.mark.metastore, pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


@pytest.fixture(scope="module")
def shared_shop(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Shop]:
    """The shop with prod built, on a metastore service."""
    root = tmp_path_factory.mktemp("metastore-shop")
    with hive_metastore(root / "service") as address:
        lines = [line for line in CONFIG.splitlines() if "datanucleus" not in line]
        start = next(i for i, line in enumerate(lines) if "ConnectionURL" in line)
        lines[start : start + 2] = [f"        spark.hadoop.hive.metastore.uris: {address}"]
        shop = write_shop(root, config="\n".join(lines) + "\n")
        run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
        yield shop


@pytest.mark.night
def test_life__on_a_metastore_service(shared_shop: Shop) -> None:
    shared_shop.edit("models/revenue.sql", *ADD_ORDERS)
    worker = client(shared_shop)
    report = worker.review("pr_5")
    assert report.failure is None

    applied = worker.apply("pr_5", plan_id=report.plan_id)

    assert applied.result == "applied"
    # Another JVM sees the environment: the catalog is the service's and not a process's.
    assert sql(shared_shop, "SELECT SUM(orders) FROM shop__pr_5.revenue")[0] == [["30"]]

    removed = worker.cleanup("pr_5")

    assert removed.result == "removed"
    assert removed.schemas_dropped == ["shop__pr_5"]
    schemas = [row[0] for row in sql(shared_shop, "SHOW NAMESPACES")[0]]
    assert "shop__pr_5" not in schemas
