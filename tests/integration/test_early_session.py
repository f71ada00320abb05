"""A session that is started early is the one that SQLMesh gets, and opens no catalog before that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.projects import write_shop

pytestmark = [pytest.mark.spark, pytest.mark.own_jvm, pytest.mark.cold_worker]

# The catalog and the number of partitions depend on the thread that asks, as long as it has no
# session of its own.
OPTIONS = """spark.app.name: shop
        spark.sql.defaultCatalog: plain
        spark.sql.catalog.plain.url: jdbc:derby:memory:plain;create=true
        spark.sql.catalog.plain.driver: org.apache.derby.jdbc.EmbeddedDriver
        spark.sql.catalog.plain: """
CATALOG = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"

PROGRAM = """
import json, os, sys
from pathlib import Path
from ci_bot.worker.runtime import early_session, java
from ci_bot.yaml_reader import read_yaml_or_none

project, metastore, changed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
found = {}

def prepare():
    os.environ.update(java.find_java_environment(os.environ, python=sys.executable))

early_session.start_session_early(project, None, prepare, read_yaml_or_none)
waiting = early_session._STARTER._early
assert waiting._started.wait(120), "no session"
early_session._parse_statements(waiting._session)
found["early"] = waiting._session.sparkContext._gateway.proc.pid
found["opened early"] = metastore.exists()
found["waits"] = early_session.has_unclaimed_session()
if changed:
    os.environ["CHANGED"] = changed

from sqlmesh.core.config import Config, load_configs
from ci_bot.worker import sqlmesh_compat

configs = load_configs(None, Config, [project])
sqlmesh_compat.let_sqlmesh_start_spark_late(configs, lambda: None)
(config,) = configs.values()
connection = config.get_connection()._connection_factory_with_kwargs()
session = connection.spark
found["catalog"] = connection.get_current_catalog()
found["option"] = session._jvm.org.apache.spark.sql.internal.SQLConf.get().getConfString(
    "spark.sql.shuffle.partitions"
)
found["claimed"] = session.sparkContext._gateway.proc.pid
found["rows"] = session.range(3).count()
session.sql("SHOW TABLES IN spark_catalog.default").collect()
found["opened"] = metastore.exists()
found["early lives"] = Path("/proc", str(found["early"])).exists()
found["waits after"] = early_session.has_unclaimed_session()
print(json.dumps(found), flush=True)
session.stop()
os._exit(0)
"""


def run_program(tmp_path: Path, changed: str) -> dict[str, Any]:
    """Starts a session early, and connects as SQLMesh does; `changed` changes the environment
    between.
    """
    shop = write_shop(tmp_path)
    shop.edit("config.yaml", "spark.app.name: shop", OPTIONS + CATALOG)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(shop.project), str(shop.root / "metastore"), changed],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_early_session__is_what_sqlmesh_gets(tmp_path: Path) -> None:
    found = run_program(tmp_path, "")
    assert found["claimed"] == found["early"]
    assert found["waits"]
    assert not found["waits after"]
    assert not found["opened early"], "nobody has checked yet whose environment it is"
    assert found["opened"]
    assert found["rows"] == 3
    assert (found["catalog"], found["option"]) == ("plain", "1")


def test_early_session__gives_way_to_another_environment(tmp_path: Path) -> None:
    found = run_program(tmp_path, "value")
    assert found["claimed"] != found["early"]
    assert not found["early lives"]
    assert found["opened"]
    assert found["rows"] == 3
    assert (found["catalog"], found["option"]) == ("plain", "1")
