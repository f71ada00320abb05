"""`ci-bot exposures` from the terminal to the state and back, on logs that are made by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.conftest import PROD_UNTIL
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.unit.cost.event_logs import line, log, statement

SCAN = "FileScan parquet spark_catalog.sqlmesh__shop.shop__orders__1234567{0}[id#1,amount#2L] x"


def begin(name: str) -> list[str]:
    return [
        line("SparkListenerLogStart", **{"Spark Version": "3.5.9"}),
        line("SparkListenerApplicationStart", **{"App Name": name, "User": "etl"}),
    ]


def reads(text: str) -> list[str]:
    at = time.time() - 60
    return statement(1, at, at + 1, node="Scan parquet ", text=text, plan="")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    made = write_duck_shop(tmp_path_factory.mktemp("exposed-duck"))
    logs = made.root / "event-logs"
    logs.mkdir()
    (logs / "one").write_bytes(log(begin("/opt/jobs/export.py"), reads(SCAN.format(""))))
    (logs / "preview").write_bytes(log(begin("preview"), reads(SCAN.format("__dev"))))
    (logs / "broken").write_bytes(b"\x00\xff{" * 1_000)
    return made


def ask(shop: Shop, *more: str, logs: str = "event-logs") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ci_bot", "exposures", "project", "--event-logs", logs, *more],
        check=False,
        cwd=shop.root,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.night
def test_project__without_prod_ends_with_one_sentence(shop: Shop) -> None:
    done = ask(shop)
    assert done.returncode == 2
    assert "There is no prod yet, so nobody can have read it. Build prod first." in " ".join(
        done.stderr.replace("→", "").split()
    )


@pytest.mark.night
def test_readers__of_prods_tables_are_listed(shop: Shop) -> None:
    run_prod(shop, PROD_UNTIL)
    done = ask(shop)
    assert done.returncode == 0, done.stderr
    (found,) = YAML(typ="safe").load(done.stdout)["exposures"]
    assert (found["name"], found["owner"]) == ("export.py", {"name": "etl"})
    assert found["depends_on"] == ["shop.orders"]
    assert found["meta"]["columns"] == {"shop.orders": ["amount", "id"]}
    assert "Found 1 reader in 1 event log of 3" in done.stderr
    assert "1 log not readable" in done.stderr
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
    done = ask(shop, logs="nowhere")
    assert done.returncode == 2
    assert "The event logs in nowhere cannot be read: it is not there." in done.stderr
