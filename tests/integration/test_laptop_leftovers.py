"""What a run on a laptop leaves behind: nothing in the project, and nothing in temporary places."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import nights
from tests.checkout import Repository
from tests.conftest import REPOSITORY
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

pytestmark = [pytest.mark.own_jvm, pytest.mark.cold_worker]

# As people have it who let Spark keep its catalog where it is started: no place of its own for the
# warehouse, the metastore, Derby, or temporary files.
CONFIG = """\
gateways:
  spark:
    connection:
      type: spark
      config:
        spark.master: local[1]
        spark.driver.host: 127.0.0.1
        spark.driver.bindAddress: 127.0.0.1
        spark.ui.enabled: "false"
        spark.log.level: ERROR
        spark.hadoop.datanucleus.schema.autoCreateAll: "true"
    state_connection:
      type: duckdb
      database: {state}

default_gateway: spark

model_defaults:
  dialect: spark
  start: 2024-01-01
"""


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def with_python(shop: Shop) -> Shop:
    """Modules of every kind that a project loads."""
    shop.write("macros/__init__.py", "")
    shop.write(
        "macros/ours.py",
        "from sqlmesh import macro\nfrom helpers.deep import ONE\n\n\n"
        "@macro()\ndef one(evaluator):\n    return ONE\n",
    )
    shop.write("helpers/deep/__init__.py", "ONE = 1\n")
    shop.write(
        "models/in_python.py",
        textwrap.dedent(
            """\
            import pandas as pd
            from sqlmesh import model
            from helpers.deep import ONE


            @model("shop.in_python", kind="FULL", columns={"one": "int"})
            def execute(context, **kwargs):
                return pd.DataFrame({"one": [ONE]})
            """
        ),
    )
    return shop


def ci_bot(*arguments: str, shop: Shop, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ci_bot", *arguments],
        cwd=shop.project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    path = tmp_path / "temporary"
    path.mkdir()
    return path


@pytest.mark.night
def test_review__leaves_the_checkout_as_it_was(tmp_path: Path, temporary: Path) -> None:
    shop = with_python(write_duck_shop(tmp_path))
    before = files(shop.project)
    done = ci_bot("review", "--full", "--project", ".", shop=shop, temporary=temporary)
    assert done.returncode in (0, 1), done.stderr
    assert "in_python" in done.stdout, "its modules were loaded"
    assert files(shop.project) == before
    assert files(temporary) == set()


COMMANDS = {
    "review": "review --environment pr_7 --baseline base-branch",
    "doctor": "doctor",
    "apply": "apply --environment pr_7",
    "cleanup": "cleanup --environment pr_7",
    "policy": "policy explain shop.in_python",
    "rule": "explain select-star",
}


@pytest.mark.by_day(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", nights.cases(COMMANDS.keys(), by_day=["review", "apply", "rule"]))
def test_command__leaves_the_repository_as_it_was(
    tmp_path: Path, temporary: Path, name: str
) -> None:
    """Its files and those of git, content and times; also where the command is refused."""
    shop = with_python(write_duck_shop(tmp_path))
    Repository(shop.project, new=False).commit()
    shop.write("models/new.sql", "MODEL (name shop.new); SELECT 1 AS one")
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in all_of(shop)}
    done = ci_bot(*COMMANDS[name].split(), shop=shop, temporary=temporary)
    assert "Traceback" not in done.stderr
    assert {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in all_of(shop)} == (
        before
    )
    assert files(temporary) == set()


def all_of(shop: Shop) -> list[Path]:
    return sorted(shop.project.rglob("*"))


@pytest.mark.night
def test_byte_code__that_is_there__stays_as_it_is(tmp_path: Path, temporary: Path) -> None:
    shop = with_python(write_duck_shop(tmp_path))
    cached = shop.write("helpers/deep/__pycache__/other.cpython-311.pyc", "old")
    before = files(shop.project)
    assert ci_bot("review", "--project", ".", shop=shop, temporary=temporary).returncode in (0, 1)
    assert files(shop.project) == before
    assert cached.read_text() == "old"


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_doctor__that_starts_spark__leaves_the_checkout_as_it_was(
    tmp_path: Path, temporary: Path, java: None
) -> None:
    """No log of Derby's, no empty metastore where there was none, no files of Hive's or Spark's."""
    shop = with_python(write_duck_shop(tmp_path))
    shop.write("config.yaml", CONFIG.format(state=shop.state))
    before = files(shop.project)
    done = ci_bot("doctor", "--project", ".", shop=shop, temporary=temporary)
    assert "Spark 3.5" in done.stdout, f"Spark was started: {done.stdout}\n{done.stderr}"
    assert files(shop.project) == before
    assert files(temporary) == set()


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_doctor__of_an_embedded_metastore__looks_into_that_one(
    tmp_path: Path, temporary: Path, java: None
) -> None:
    """Where the team keeps its metastore beside the project, a private one would show no views."""
    shop = write_duck_shop(tmp_path)
    shop.write("config.yaml", CONFIG.format(state=shop.state))
    (shop.project / "metastore_db").mkdir()
    done = ci_bot("doctor", "--project", ".", shop=shop, temporary=temporary)
    assert "metastore_db" in done.stdout + done.stderr, "an empty directory is no metastore"
