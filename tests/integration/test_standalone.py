"""A full apply on a Spark standalone cluster, whose executors are processes of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.test_review import REVENUE
from tests.projects import Shop
from tests.servers import Cluster, spark_cluster
from tests.worker import client

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster") / "spark") as started:
        yield started


@pytest.mark.night
def test_life__on_a_standalone_cluster(shop: Shop, cluster: Cluster) -> None:
    settings = "\n        ".join(
        [
            f"spark.master: {cluster.address}",
            'spark.cores.max: "2"',
            "spark.executor.memory: 512m",
            "spark.executor.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        ]
    )
    shop.edit("config.yaml", "spark.master: local[1]", settings)
    shop.edit("models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS spread")
    worker = client(shop)
    report = worker.review("pr_61")
    assert report.failure is None
    assert report.identity is not None
    assert "spark" not in worker.heard.phases, "a review does not wait for a cluster"

    applied = worker.apply("pr_61", plan_id=report.plan_id, window=report.identity.window)

    assert applied.failure is None
    assert applied.result == "applied"
    assert {model.model: model.rows for model in applied.models} == {
        "shop.revenue": 3,
        "shop.top_customers": 2,
    }
    assert all(view.resolves for view in applied.views)
    diffs = {diff.model: diff for diff in applied.table_diff}
    assert (diffs["shop.revenue"].compared, diffs["shop.revenue"].matched) == (True, 3)
    executors = list(cluster.work.glob("app-*/*"))
    assert executors, "nothing ran on the cluster"

    removed = worker.cleanup("pr_61")

    assert removed.result == "removed"
    assert removed.schemas_dropped == ["shop__pr_61"]
