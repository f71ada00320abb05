"""`ci-bot doctor` where Spark runs elsewhere: which part is missing, told before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_doctor import examine
from tests.projects import Shop, write_shop
from tests.servers import free_port, spark_cluster

MASTER = "spark.master: local[1]"


def settings(shop: Shop, *lines: str) -> None:
    shop.edit("config.yaml", MASTER, "\n        ".join(lines))


def test_doctor__names_each_part_that_is_missing_and_starts_no_spark(
    tmp_path: Path, java: None
) -> None:
    shop = write_shop(tmp_path / "shop")
    nobody = free_port()
    settings(
        shop,
        f"spark.master: spark://127.0.0.1:{nobody}",
        f"spark.hadoop.hive.metastore.uris: thrift://127.0.0.1:{nobody}",
        "spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.warehouse: abfss://lake@example.dfs.core.windows.net/",
        f"spark.sql.catalog.lake.uri: http://127.0.0.1:{nobody}",
    )
    shop.edit("config.yaml", "bindAddress: 127.0.0.1", "bindAddress: 192.0.2.1")

    code, checks, _ = examine(shop.project, tmp_path)

    assert code == 1
    missing = {"master", "driver address", "metastore", "catalog lake", "jars"}
    assert {name for name, check in checks.items() if check["status"] == "fail"} == missing
    refused = f"127.0.0.1:{nobody} (Connection refused)"
    assert all(refused in checks[name]["message"] for name in missing - {"driver address", "jars"})
    assert "192.0.2.1" in checks["driver address"]["message"]
    assert "iceberg-spark-runtime" in checks["jars"]["fix"]
    assert checks["credentials of Azure"]["status"] == "warn"
    assert "spark" not in checks
    assert checks["java"]["status"] == "ok", "what does not hang on it is looked at all the same"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.night
def test_doctor__on_a_cluster__knows_whether_executors_come(shop: Shop, tmp_path: Path) -> None:
    with spark_cluster(tmp_path / "cluster") as cluster:
        settings(shop, f"spark.master: {cluster.address}", "spark.executor.memory: 512m")
        code, checks, _ = examine(shop.project, tmp_path / "well")
        assert code == 0
        assert checks["executors"]["message"] == "1 of them; one has done a job"
        assert checks["driver address"]["status"] == "ok"

        shop.edit("config.yaml", "memory: 512m", "memory: 64g")
        code, checks, _ = examine(shop.project, tmp_path / "unwell")

    assert code == 1
    assert checks["spark"]["status"] == "ok"
    assert checks["executors"]["status"] == "fail"
    assert "No executor did a job in 60 s" in checks["executors"]["message"]
    assert "spark.executor.memory" in checks["executors"]["fix"]
    assert "rights" not in checks, "it would wait for executors, too"
