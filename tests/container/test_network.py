"""A pull request's life on a cluster elsewhere: the driver is the action's container, on an address of its own.

As docs/where-spark-runs.md has it: executors call the driver back on fixed ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import PROD_UNTIL, missing, run_python
from tests.container.engine import Engine
from tests.container.test_life import live_in_image, scene_in_image
from tests.github_standin.standin import GitHubStandin
from tests.integration.test_standalone import EXECUTORS
from tests.networks import NETWORK, NetworkMachine, NoNetworkError, network
from tests.projects import write_shop
from tests.servers import spark_cluster

pytestmark = [pytest.mark.standin, pytest.mark.spark, pytest.mark.slow, pytest.mark.night]

DRIVER, BLOCKS = 40_001, 40_002


@dataclass(frozen=True)
class Place:
    """Where the action's containers run: the network namespace of one that only waits."""

    container: str
    machines: Sequence[NetworkMachine]


@pytest.fixture
def place(engine: Engine, image: str) -> Iterator[Place]:
    """The machines are the master's, the worker's and the container's."""
    # As an engine does on a network of its own: the container's name stands in its /etc/hosts.
    waiting = ("--entrypoint", "sleep", "--hostname", "runner", "--add-host", f"runner:{NETWORK}.3")
    with engine.started(image, "infinity", options=waiting, network="none") as container:
        pid = engine.call("inspect", "--format", "{{.State.Pid}}", container).stdout
        try:
            with network("master", "worker", runner=int(pid)) as machines:
                yield Place(container, machines)
        except NoNetworkError as error:
            missing(str(error))


def test_life_in_the_image__with_the_cluster_in_other_networks(
    place: Place,
    github_standin: GitHubStandin,
    engine: Engine,
    image: str,
    tmp_path: Path,
    java: None,
) -> None:
    master, worker, runner = place.machines
    shop = write_shop(tmp_path / "shop")
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    with spark_cluster(tmp_path / "cluster", master_on=master, worker_on=worker) as cluster:
        lines = [
            f"spark.master: {cluster.address}",
            *EXECUTORS,
            f'spark.driver.port: "{DRIVER}"',
            f'spark.driver.blockManager.port: "{BLOCKS}"',
            # Executors and driver are different accounts, and write into the same directories.
            'spark.hadoop.fs.permissions.umask-mode: "000"',
        ]
        shop.edit("config.yaml", "spark.master: local[1]", "\n        ".join(lines))
        shop.edit("config.yaml", "bindAddress: 127.0.0.1", "bindAddress: 0.0.0.0")
        shop.edit("config.yaml", "driver.host: 127.0.0.1", f"driver.host: {runner.address}")
        home = tmp_path / "jobs"
        home.mkdir()
        there = f"container:{place.container}"
        scene = scene_in_image(github_standin, shop, home, engine, image, network=there)
        runner.only_lets_in(DRIVER, BLOCKS)

        with runner.reaches(urlsplit(github_standin.url).port or 80):
            live_in_image(scene)

        assert list(cluster.work.glob("app-*/*")), "nothing ran on the cluster"
