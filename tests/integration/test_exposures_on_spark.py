"""Who has read prod's views, by the event logs that a real Spark has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.conftest import PROD_UNTIL
from tests.one_jvm import one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# A dashboard, an export whose name has a run's number, and a notebook that reads all and counts.
READERS = """\
import json, sys
from pyspark.sql import SparkSession

settings, applications = map(json.loads, sys.argv[1:])
for name, statements in applications.items():
    builder = SparkSession.builder.appName(name).enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for statement in statements:
        spark.sql(statement).collect()
    spark.stop()
"""
COMMAND = (
    *(sys.executable, "-m", "ci_bot", "exposures", "project"),
    *("--event-logs", "event-logs"),
)
APPLICATIONS = {
    "Revenue dashboard": ["SELECT SUM(amount) FROM shop.orders WHERE order_date > '2024-01-02'"],
    "/opt/jobs/export-1.py": ["SELECT name FROM shop.customers"],
    "/opt/jobs/export-2.py": ["SELECT name, segment FROM shop.customers"],
    "a` @org/team <b>": ["SELECT COUNT(*) FROM shop.customers", "SELECT 1"],
    "idle": ["SELECT 1"],
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, java: None) -> Shop:
    """Prod is built, and has been read by other applications since."""
    made = write_shop(tmp_path_factory.mktemp("exposed-shop"))
    with one_jvm(made, prod_until=PROD_UNTIL, alone_there=False):
        pass
    logs = made.root / "event-logs"
    logs.mkdir()
    config = YAML(typ="safe").load(made.project / "config.yaml")
    spark = config["gateways"]["spark"]["connection"]["config"]
    spark |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": logs.as_uri()}
    del spark["spark.app.name"]
    # One JVM, and one application after the other in it.
    done = subprocess.run(
        [sys.executable, "-c", READERS, json.dumps(spark), json.dumps(APPLICATIONS)],
        check=False,
        cwd=made.root,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    # What somebody else has left there.
    (logs / "broken").write_bytes(b"\x00\xff{" * 1_000)
    return made


def ask(shop: Shop, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *more],
        check=False,
        cwd=shop.root,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.night
def test_readers__of_prods_views_are_listed_with_their_columns(shop: Shop) -> None:
    done = ask(shop)
    assert done.returncode == 0, done.stderr
    document = YAML(typ="safe").load(done.stdout)
    found = {
        item["name"]: (item["depends_on"], item["meta"].get("columns"))
        for item in document["exposures"]
    }
    assert found == {
        "Revenue dashboard": (["shop.orders"], {"shop.orders": ["amount", "order_date"]}),
        "export-*.py": (["shop.customers"], {"shop.customers": ["name", "segment"]}),
        "team <b>": (["shop.customers"], {"shop.customers": []}),
    }
    assert "Found 3 readers in 4 event logs of 6" in done.stderr
    assert str(shop.root) not in done.stdout
    assert "event-logs" not in done.stdout


@pytest.mark.night
def test_file__is_written_over_its_own_kind_alone(shop: Shop) -> None:
    file: Path = shop.root / "exposures.yml"
    file.write_text("exposures: []\n")
    done = ask(shop, "--output", file.name)
    assert done.returncode == 2
    assert "is there already, and `ci-bot exposures` has not written it" in done.stderr
    assert file.read_text() == "exposures: []\n"
    file.unlink()
    for _ in range(2):
        assert ask(shop, "--output", file.name).returncode == 0
    assert file.read_text().startswith("# Written by `ci-bot exposures` from Spark's event logs")
    done = ask(shop, "--event-logs", "nowhere")
    assert done.returncode == 2
    assert "The event logs in nowhere cannot be read: it is not there." in done.stderr
