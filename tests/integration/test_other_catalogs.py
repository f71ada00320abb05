"""Lives on Iceberg tables through a REST catalog, and on Delta Lake in Spark's own catalog.

The project, its change and what has to be seen of it are those of test_iceberg.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROD_UNTIL, missing, run_python
from tests.integration.test_apply_and_cleanup import sql
from tests.integration.test_doctor import examine
from tests.integration.test_iceberg import (
    EXTENSIONS,
    MODELS,
    changed,
    check_evidence,
    check_removal,
    reviewed_and_applied,
)
from tests.maven import DELTA, DELTA_STORAGE, ICEBERG, ICEBERG_REST, Artifact, JarMissingError, jar
from tests.projects import Shop
from tests.projects.lake import write_lake
from tests.servers import iceberg_rest
from tests.worker import client

pytestmark = [
    pytest.mark.iceberg,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.night,
    pytest.mark.own_jvm,  # jars belong to a JVM
]


def brought(*artifacts: Artifact) -> list[str]:
    """The files of jars, as `spark.jars` names them."""
    try:
        return [str(jar(artifact, os.environ)) for artifact in artifacts]
    except JarMissingError as error:
        missing(str(error))
        raise


@pytest.fixture
def on_rest(tmp_path: Path, java: None) -> Iterator[Shop]:
    """Prod in a catalog that a REST server keeps, as Spark's default."""
    spark, server = brought(ICEBERG, ICEBERG_REST)
    catalog = "spark.sql.catalog.warehouse"
    with iceberg_rest(Path(server), tmp_path / "rest") as address:
        shop = write_lake(
            tmp_path / "project",
            {
                **EXTENSIONS,
                "spark.jars": spark,
                "spark.sql.defaultCatalog": "warehouse",
                catalog: "org.apache.iceberg.spark.SparkCatalog",
                f"{catalog}.type": "rest",
                f"{catalog}.uri": address,
            },
        )
        run_python("tests.projects.lake", str(shop.project), PROD_UNTIL)
        yield shop


@pytest.fixture
def on_delta(tmp_path: Path, java: None) -> Shop:
    """Prod on Delta's tables in Spark's own catalog, over an embedded Hive metastore."""
    shop = write_lake(
        tmp_path / "project",
        {
            "spark.jars": ",".join(brought(DELTA, DELTA_STORAGE)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
        "delta",
    )
    run_python("tests.projects.lake", str(shop.project), PROD_UNTIL)
    return shop


def check_life(shop: Shop, tmp_path: Path, parts: set[str]) -> None:
    """Doctor, review, apply, cleanup; `parts` are lines of doctor's."""
    _, checks, _ = examine(shop.project, tmp_path / "doctor")
    assert {checks[part]["status"] for part in parts} == {"ok"}
    worker = client(changed(shop))

    report, applied = reviewed_and_applied(worker, "pr_1")

    assert {change.model for change in report.changes} == MODELS
    check_evidence(applied)
    check_removal(worker)
    schemas, prod = sql(shop, "SHOW NAMESPACES", "SELECT SUM(credit) FROM lake.latest")
    assert ["lake"] in schemas
    assert ["lake__pr_1"] not in schemas
    assert prod == [["60"]]


def test_life__in_a_rest_catalog(on_rest: Shop, tmp_path: Path) -> None:
    check_life(on_rest, tmp_path, {"catalog warehouse", "jars"})


def test_life__on_delta_lake(on_delta: Shop, tmp_path: Path) -> None:
    check_life(on_delta, tmp_path, {"jars", "listing"})
