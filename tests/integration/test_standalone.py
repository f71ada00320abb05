"""A full apply on a Spark standalone cluster, whose executors are processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.host import make_process_machine
from ci_bot.protocol.cleanup_report import CleanupDocument
from tests.conftest import missing
from tests.integration.test_review import REVENUE
from tests.networks import NetworkMachine, NoNetworkError, network
from tests.projects import Shop
from tests.servers import Cluster, spark_cluster
from tests.worker import Client, client

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster") / "spark") as started:
        yield started


EXECUTORS = (
    'spark.cores.max: "2"',
    "spark.executor.memory: 512m",
    "spark.executor.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)


@pytest.mark.night
def test_life__on_a_standalone_cluster(shop: Shop, cluster: Cluster) -> None:
    live_on(cluster, shop, client(shop))


@pytest.fixture
def machines() -> Iterator[Sequence[NetworkMachine]]:
    try:
        with network("master", "worker", "runner") as made:
            yield made
    except NoNetworkError as error:
        missing(str(error))


@pytest.mark.night
def test_life__across_networks__with_two_ports_open_on_the_runner(
    shop: Shop, machines: Sequence[NetworkMachine], tmp_path: Path, java: None
) -> None:
    """As docs/where-spark-runs.md has it: executors call the driver back on fixed ports."""
    master, worker, runner = machines
    driver, blocks = 40_001, 40_002
    runner.only_lets_in(driver, blocks)
    shop.edit("config.yaml", "bindAddress: 127.0.0.1", "bindAddress: 0.0.0.0")
    shop.edit("config.yaml", "driver.host: 127.0.0.1", f"driver.host: {runner.address}")
    ports = (f'spark.driver.port: "{driver}"', f'spark.driver.blockManager.port: "{blocks}"')
    python = runner.interpreter(sys.executable, tmp_path / "python")
    there = replace(make_process_machine(), python=python)
    with spark_cluster(tmp_path / "cluster", master_on=master, worker_on=worker) as cluster:
        live_on(cluster, shop, Client(shop.project, around=there), *ports)


def live_on(cluster: Cluster, shop: Shop, worker: Client, *settings: str) -> None:
    """A pull request's life on the cluster."""
    lines = [f"spark.master: {cluster.address}", *EXECUTORS, *settings]
    shop.edit("config.yaml", "spark.master: local[1]", "\n        ".join(lines))
    live(shop, worker)
    assert list(cluster.work.glob("app-*/*")), "nothing ran on the cluster"


def live(shop: Shop, worker: Client, **cleanup: object) -> CleanupDocument:
    """Review, apply and cleanup of a pull request; what the cleanup said, which was asked so."""
    shop.edit("models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS spread")
    report = worker.review("pr_61")
    assert report.failure is None
    assert report.identity is not None
    assert "spark" not in worker.heard.phases, "a review does not wait for Spark"

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

    removed = worker.cleanup("pr_61", **cleanup)

    assert removed.result == "removed"
    assert removed.schemas_dropped == ["shop__pr_61"]
    return removed
