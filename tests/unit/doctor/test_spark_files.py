"""Jars and credentials that Spark will miss, by settings, files and variables."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from ci_bot.protocol.plan import ProjectCheck
from ci_bot.worker.doctor import spark_checks

ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
CATALOG = {"spark.sql.catalog.lake": ICEBERG, "spark.sql.catalog.lake.type": "rest"}


def a_jar(path: Path, *classes: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in classes:
            archive.writestr(f"{name.replace('.', '/')}.class", b"")
    return path


def checked(
    settings: Mapping[str, str], own: Path, environ: Mapping[str, str] | None = None
) -> dict[str, ProjectCheck]:
    found = list(spark_checks.check_spark_files(settings, environ or {}, [own]))
    assert all(check.fix for check in found if check.status != "ok")
    return {check.name: check for check in found}


def test_checks__of_plain_settings__say_nothing(tmp_path: Path) -> None:
    settings = {"spark.master": "local[*]", "spark.sql.warehouse.dir": "/data"}
    assert checked(settings, tmp_path) == {}


@pytest.mark.parametrize(
    ("settings", "name", "jar"),
    [
        (CATALOG, ICEBERG, "iceberg-spark-runtime"),
        (
            {**CATALOG, "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.aws.s3.S3FileIO"},
            "org.apache.iceberg.aws.s3.S3FileIO",
            "iceberg-aws-bundle",
        ),
        (
            {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"},
            "io.delta.sql.DeltaSparkSessionExtension",
            "delta-spark",
        ),
        (
            {"spark.sql.warehouse.dir": "s3a://lake/x", "spark.hadoop.fs.s3a.access.key": "k"},
            "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "hadoop-aws",
        ),
        ({"spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.X"}, "hadoop.X", "gcs-connector"),
        ({"spark.sql.catalog.own": "com.acme.Catalog"}, "com.acme.Catalog", "the jar that brings"),
    ],
)
def test_jars__without_the_class__name_it_and_what_brings_it(
    tmp_path: Path, settings: dict[str, str], name: str, jar: str
) -> None:
    found = checked(settings, tmp_path)["jars"]
    assert found.status == "fail"
    assert name in found.message
    assert jar in (found.fix or "")


def test_jars__are_looked_into(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    jar = a_jar(tmp_path / "iceberg.jar", ICEBERG)
    (tmp_path / "broken.jar").write_text("no archive")
    for named in (str(jar), f"file://{jar}", f"{tmp_path / 'broken.jar'},{jar}"):
        assert checked({**CATALOG, "spark.jars": named}, own)["jars"].status == "ok"
    assert checked({**CATALOG, "spark.driver.extraClassPath": str(jar)}, own)["jars"].status == "ok"
    a_jar(own / "spark.jar", ICEBERG)
    assert checked(CATALOG, own)["jars"].status == "ok"


def test_jars__that_are_not_there__are_named(tmp_path: Path) -> None:
    found = checked({**CATALOG, "spark.jars": "/github/workspace/jars/i.jar"}, tmp_path)["jars"]
    assert found.status == "fail"
    assert "/github/workspace/jars/i.jar" in found.message


@pytest.mark.parametrize(
    "more",
    [
        {"spark.jars.packages": "org.apache.iceberg:iceberg:1"},
        {"spark.jars": "s3a://jars/i.jar", "spark.hadoop.fs.s3a.access.key": "k"},
        {"spark.driver.extraClassPath": "/opt/jars/*"},
    ],
)
def test_jars__from_elsewhere__are_left_to_the_session(
    tmp_path: Path, more: dict[str, str]
) -> None:
    assert checked({**CATALOG, **more}, tmp_path)["jars"].status == "ok"


STORES = {
    "s3a://lake/w": ("AWS", "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    "abfss://c@account.dfs.core.windows.net/w": (
        "Azure",
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
    ),
    "gs://lake/w": ("Google Cloud", "CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"),
}


@pytest.mark.parametrize("place", STORES)
def test_credentials__of_a_store(tmp_path: Path, place: str) -> None:
    cloud, variable, file = STORES[place]
    settings = {"spark.sql.catalog.lake.warehouse": place}
    name = f"credentials of {cloud}"
    assert checked(settings, tmp_path)[name].status == "warn"
    assert checked(settings, tmp_path, {variable: "x"})[name].status == "ok"
    gone = checked(settings, tmp_path, {file: str(tmp_path / "token")})[name]
    assert (gone.status, file in gone.message) == ("fail", True)
    (tmp_path / "token").touch()
    assert checked(settings, tmp_path, {file: str(tmp_path / "token")})[name].status == "ok"


def test_credentials__by_a_setting__are_never_shown(tmp_path: Path) -> None:
    settings = {"spark.sql.warehouse.dir": "s3a://lake", "spark.hadoop.fs.s3a.access.key": "AKIA1"}
    found = checked(settings, tmp_path)["credentials of AWS"]
    assert found.status == "ok"
    assert "fs.s3a.access.key" in found.message
    assert "AKIA1" not in found.message
