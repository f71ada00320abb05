"""`ci-bot doctor` on real parts: what is well, what is not, and that nothing is changed."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ci_bot.bot.cli.surveys import run_doctor_on_laptop
from tests.in_process import RunnerMachine
from tests.integration.test_review import state_rows
from tests.projects import Shop, write_shop

pytestmark = pytest.mark.own_jvm

EXPECTED = [
    "versions",
    "configuration",
    "directories",
    "connection",
    "state",
    "models",
    "merges",
    "lint",
    "format",
    "unit tests",
    "prod",
    "gaps",
    "state size",
    "environments",
    "estimates",
    "java",
    "spark",
    "catalogs",
    "views",
    "listing",
    "rights",
]


def examine(project: Path, home: Path, **variables: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the checks by name, and what a terminal shows."""
    machine = RunnerMachine(api_url="", repository="", token="", home=home)
    around, out = machine.surroundings(variables)
    options: dict[str, Any] = {"projects": (str(project),), "gateway": None, "worker_env": ""}
    options = {"python_path": (), "timeout_minutes": 5, **options}
    code = run_doctor_on_laptop(around, form="json", **options)
    document = json.loads(out.getvalue())
    checks = {check["name"]: check for check in document["checks"]}
    assert all(check["fix"] for check in checks.values() if check["status"] != "ok")
    shown = json.dumps(document)
    assert "Traceback" not in shown
    return code, checks, shown


def fingerprint(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        # Derby writes logs of its own whenever somebody looks.
        if path.is_file() and not {"metastore", "derby.log"} & set(path.relative_to(root).parts)
    }


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_doctor__of_a_healthy_shop_names_every_part_and_changes_none(
    shop: Shop, tmp_path: Path
) -> None:
    state, files = state_rows(shop.state), fingerprint(shop.root)
    code, checks, _ = examine(shop.project, tmp_path)

    assert code == 0
    assert list(checks) == EXPECTED
    assert {name for name, check in checks.items() if check["status"] != "ok"} == {
        "format",
        "state",
    }
    assert "sqlmesh format" in checks["format"]["fix"], "the shop's models are written by hand"
    assert "PostgreSQL" in checks["state"]["fix"], "DuckDB is for one run at a time"
    assert "4 models" in checks["prod"]["message"]
    assert "Spark 3.5" in checks["spark"]["message"]
    assert "spark_catalog" in checks["catalogs"]["message"]
    assert "4 of 4 views of prod can be read" in checks["rights"]["message"]
    assert state_rows(shop.state) == state
    assert fingerprint(shop.root) == files


@pytest.fixture
def worn(shop: Shop) -> Iterator[Shop]:
    """A gap in prod's orders, an old environment of somebody else's, and a view that is gone."""
    rename = (
        "UPDATE sqlmesh._environments SET snapshots = replace(snapshots, '{}', '{}') "
        "WHERE name = 'prod'"
    )
    names = ("top_customers", "gone_customers")
    with duckdb.connect(str(shop.state)) as connection:
        connection.execute(
            "INSERT INTO sqlmesh._intervals SELECT * REPLACE ('gap' AS id, created_ts + 1 AS "
            "created_ts, 1704326400000 AS start_ts, 1704412800000 AS end_ts, TRUE AS is_removed) "
            "FROM sqlmesh._intervals WHERE name LIKE '%orders%' ORDER BY created_ts DESC LIMIT 1"
        )
        connection.execute(
            "INSERT INTO sqlmesh._environments SELECT * REPLACE ('pr_77' AS name, 1 AS "
            "expiration_ts) FROM sqlmesh._environments WHERE name = 'prod'"
        )
        connection.execute(rename.format(*names))
    yield shop
    with duckdb.connect(str(shop.state)) as connection:
        connection.execute("DELETE FROM sqlmesh._intervals WHERE id = 'gap'")
        connection.execute("DELETE FROM sqlmesh._environments WHERE name = 'pr_77'")
        connection.execute(rename.format(*reversed(names)))


@pytest.mark.spark
@pytest.mark.slow
def test_doctor__names_what_is_worn_and_how_to_mend_it(worn: Shop, tmp_path: Path) -> None:
    code, checks, _ = examine(worn.project, tmp_path)
    assert code == 1
    assert {name for name, check in checks.items() if check["status"] == "fail"} == {"rights"}
    assert "3 of 4 views of prod can be read; shop.gone_customers" in checks["rights"]["message"]
    assert checks["gaps"]["status"] == "warn"
    assert "shop.orders from 2024-01-04" in checks["gaps"]["message"]
    assert checks["state size"]["status"] == "warn"
    assert "1 environments expired" in checks["state size"]["message"]
    assert "1 of them not made by this action" in checks["environments"]["message"]


def test_doctor__with_a_broken_configuration_still_looks_at_the_rest(
    tmp_path: Path, java: None
) -> None:
    shop = write_shop(tmp_path / "shop")
    shop.write("config.yaml", "gateways: [")
    code, checks, _ = examine(shop.project, tmp_path)
    assert code == 2
    assert list(checks) == ["versions", "configuration", "java"]
    assert checks["configuration"]["status"] == "fail"
    assert "config.yaml" in checks["configuration"]["message"]


def test_doctor__of_a_project_that_is_not_there(tmp_path: Path, java: None) -> None:
    (tmp_path / "empty").mkdir()
    code, checks, _ = examine(tmp_path / "empty", tmp_path)
    assert code == 2
    assert "no SQLMesh configuration" in checks["configuration"]["message"]


def test_doctor__without_java_says_how_to_get_it(tmp_path: Path) -> None:
    shop = write_shop(tmp_path / "shop")
    nowhere = str(tmp_path / "no-java-here")
    code, checks, _ = examine(shop.project, tmp_path, JAVA_HOME=nowhere)
    assert code == 1
    assert checks["java"]["status"] == "fail"
    assert "spark" not in checks
    assert "Java 17" in checks["java"]["fix"]
    assert checks["state"]["status"] == "warn"
    assert not shop.state.exists(), "looking at an absent state must not create it"


def test_doctor__of_another_engine_says_what_it_is_for(tmp_path: Path, java: None) -> None:
    shop = write_shop(tmp_path / "shop")
    shop.write(
        "config.yaml",
        "gateways:\n  local:\n    connection:\n      type: duckdb\n      database: "
        f"{tmp_path / 'warehouse.db'}\nmodel_defaults:\n  dialect: duckdb\n",
    )
    code, checks, _ = examine(shop.project, tmp_path)
    assert code == 1
    assert "duckdb" in checks["connection"]["message"]
    assert "spark" not in checks


def test_doctor__with_a_suffix_target_that_spark_cannot_do(tmp_path: Path) -> None:
    shop = write_shop(tmp_path / "shop")
    config = (shop.project / "config.yaml").read_text()
    shop.write("config.yaml", f"{config}\nenvironment_suffix_target: catalog\n")
    code, checks, _ = examine(shop.project, tmp_path, JAVA_HOME=str(tmp_path / "none"))
    assert code == 1
    assert checks["suffix target"]["status"] == "fail"


def test_doctor__shows_no_password_of_the_environment(tmp_path: Path) -> None:
    shop = write_shop(tmp_path / "shop")
    config = (shop.project / "config.yaml").read_text()
    before, _, after = config.partition("    state_connection:\n")
    broken = (
        "    state_connection:\n      type: postgres\n      host: 127.0.0.1\n      port: 1\n"
        "      user: ada\n      password: {{ env_var('STATE_PASSWORD') }}\n      database: state\n"
    )
    rest = after.split("\n", 2)[2]
    shop.write("config.yaml", before + broken + rest)
    machine = RunnerMachine(api_url="", repository="", token="", home=tmp_path)
    around, out = machine.surroundings(
        {"STATE_PASSWORD": "hunter2-and-more", "JAVA_HOME": str(tmp_path / "none")}
    )
    code = run_doctor_on_laptop(
        around,
        projects=(str(shop.project),),
        gateway=None,
        python_path=(),
        worker_env="STATE_PASSWORD",
        timeout_minutes=5,
        form="terminal",
    )
    shown = out.getvalue()
    log = around.log
    assert isinstance(log, io.StringIO)
    assert code == 1
    assert "fail state:" in shown
    assert "→" in shown
    assert "hunter2-and-more" not in shown + log.getvalue()
