"""Which part of where Spark runs is missing, by settings and by what a network answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ci_bot.protocol.plan import ProjectCheck
from ci_bot.worker.doctor import spark_network
from ci_bot.worker.doctor.spark_network import NetworkFacts

EVERYWHERE = "0.0.0.0"  # noqa: S104 a value of Spark's; nobody listens
OWN = (EVERYWHERE, "127.0.0.1", "10.0.0.7")
NAMES = {"localhost": ["127.0.0.1"], "runner": ["10.0.0.7"]}


def network(*up: str) -> NetworkFacts:
    return NetworkFacts(
        reach=lambda host, port: None if f"{host}:{port}" in up else "Connection refused",
        addresses=lambda host: NAMES.get(host, [host] if host[0].isdigit() else []),
        listen=lambda host: None if host in OWN else "Cannot assign requested address",
    )


def checked(
    settings: Mapping[str, str], *up: str, environ: Mapping[str, str] | None = None
) -> dict[str, ProjectCheck]:
    found = list(spark_network.check_spark_network(settings, environ or {}, network(*up)))
    assert all(check.fix for check in found if check.status != "ok")
    return {check.name: check for check in found}


FAR = {"spark.master": "spark://m:7077", "spark.driver.host": "10.0.0.7"}


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*, 3]", "local-cluster[1,1,1024]"])
def test_checks__of_a_spark_in_this_process__ask_nothing(master: str) -> None:
    assert checked({"spark.master": master, "spark.driver.host": "127.0.0.1"}) == {}
    assert checked({}) == {}


@pytest.mark.parametrize(
    ("master", "up"),
    [
        ("spark://m:7077", "m:7077"),
        ("spark://m", "m:7077"),
        ("spark://m:7077,n:7078", "n:7078"),
        ("k8s://https://api:6443", "api:6443"),
        ("k8s://api", "api:443"),
    ],
)
def test_master__is_asked_at_each_of_its_addresses(master: str, up: str) -> None:
    settings = {**FAR, "spark.master": master}
    assert checked(settings, up)["master"].status == "ok"
    silent = checked(settings, "other:1")["master"]
    assert silent.status == "fail"
    assert f"{up} (Connection refused)" in silent.message


def test_master__that_names_no_server__is_a_warning() -> None:
    assert checked({**FAR, "spark.master": "mesos"})["master"].status == "warn"


def test_master__of_yarn__is_in_its_configuration(tmp_path: Path) -> None:
    settings = {**FAR, "spark.master": "yarn"}
    assert "neither HADOOP_CONF_DIR" in checked(settings)["master"].message
    environ = {"HADOOP_CONF_DIR": str(tmp_path)}
    assert "no yarn-site.xml" in checked(settings, environ=environ)["master"].message
    (tmp_path / "yarn-site.xml").touch()
    assert checked(settings, environ=environ)["master"].status == "ok"


@pytest.mark.parametrize(
    ("host", "bind", "says"),
    [
        ("127.0.0.1", "", "on their own machine"),
        ("localhost", EVERYWHERE, "on their own machine"),
        ("nowhere", "", "nobody here knows that name"),
        ("runner", "127.0.0.1", "hears this machine only"),
        ("runner", "10.9.9.9", "cannot listen there: Cannot assign"),
    ],
)
def test_driver__that_executors_cannot_reach__fails(host: str, bind: str, says: str) -> None:
    settings = {**FAR, "spark.driver.host": host, "spark.driver.bindAddress": bind}
    found = checked(settings, "m:7077")["driver address"]
    assert found.status == "fail"
    assert says in found.message


def test_driver__beside_its_executors__may_have_a_loopback_address() -> None:
    settings = {"spark.master": "spark://127.0.0.1:7077", "spark.driver.host": "127.0.0.1"}
    assert checked(settings, "127.0.0.1:7077")["driver address"].status == "ok"
    far = {**FAR, "spark.driver.host": "runner", "spark.driver.bindAddress": EVERYWHERE}
    assert checked(far, "m:7077")["driver address"].status == "ok"


def test_driver__without_an_address__is_a_warning() -> None:
    found = checked({"spark.master": "spark://m:7077"}, "m:7077")["driver address"]
    assert (found.status, "is not set" in found.message) == ("warn", True)


def test_services__of_metastore_and_catalogs__each_have_a_line() -> None:
    settings = {
        "spark.hadoop.hive.metastore.uris": "thrift://a:9083, thrift://b:9083",
        "spark.sql.catalog.lake.uri": "http://rest:8181/v1",
        "spark.sql.catalog.books.uri": "jdbc:postgresql://db/iceberg?user=x",
        "spark.sql.catalog.files.uri": "jdbc:sqlite:/data/x.db",
    }
    up = checked(settings, "b:9083", "rest:8181", "db:5432")
    assert {name: check.status for name, check in up.items()} == dict.fromkeys(
        ("metastore", "catalog lake", "catalog books"), "ok"
    )
    down = checked(settings)
    assert {check.status for check in down.values()} == {"fail"}
    assert "a:9083 (Connection refused), b:9083" in down["metastore"].message
    assert "rest:8181" in down["catalog lake"].message


def test_services__whose_address_cannot_be_read__fail() -> None:
    found = checked({"spark.hadoop.hive.metastore.uris": "metastore"})["metastore"]
    assert "no address could be read" in found.message
