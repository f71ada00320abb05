"""What is guessed of a project's Spark is what SQLMesh starts it with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci_bot.worker.runtime.java_process import guess_spark_options_for_java
from ci_bot.yaml_reader import read_yaml_or_none
from tests.projects import write_shop

pytestmark = [pytest.mark.own_jvm, pytest.mark.cold_worker]

ROOT = Path(__file__).parent.parent.parent
# No JVM starts: only what it would be started with is asked for.
ASKED = """
import json, os, pyspark.context, sys
from pathlib import Path
from sqlmesh.core.config import Config, load_configs

before = dict(os.environ)
def told(conf):
    json.dump({"options": dict(conf.getAll()), "same": dict(os.environ) == before}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)
pyspark.context.launch_gateway = told
(config,) = load_configs(None, Config, [Path(sys.argv[1])]).values()
config.get_connection()._connection_factory_with_kwargs()
"""


def test_guess__is_what_sqlmesh_asks_pyspark_for(tmp_path: Path) -> None:
    shop = write_shop(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(shop.project)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "options": guess_spark_options_for_java(shop.project, None, read_yaml_or_none),
        "same": True,
    }
