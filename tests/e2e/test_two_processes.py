"""The wall between the bot and the worker: what each imports, and what the project's code can see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.imports import imported
from tests.e2e.job import RUNTIME_TOKEN
from tests.e2e.scene import Scene, add_orders
from tests.projects import Shop

pytestmark = pytest.mark.spark

PASSWORD = "s3cret-of-the-warehouse"
OF_THE_WORKER = {"sqlmesh", "sqlglot", "pyspark", "py4j", "pandas", "duckdb"}
# What the worker always has: its own few, and what SQLMesh, Spark, Java and Hadoop read.
OURS = {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "PYTHONUTF8", "NO_COLOR", "TERM", "COLUMNS"}
PREFIXES = ("SQLMESH_", "SPARK_", "PYSPARK_", "JAVA_", "HADOOP_", "WAREHOUSE_")
# Set by SQLMesh and by the worker itself, after it was started.
LATER = {"MAX_FORK_WORKERS", "PGOPTIONS", "PYTHONDONTWRITEBYTECODE"}

PROBE = """\
import json
import os
import sys
import typing as t
from pathlib import Path

from sqlmesh import ExecutionContext, model

seen = dict(environ=dict(os.environ), arguments=sys.orig_argv, parent=os.getppid())
Path({file!r}).write_text(json.dumps(seen))
print("the password is", os.environ["WAREHOUSE_PASSWORD"])
print("::set-output name=decision::go")


@model("shop.probe", kind="FULL", columns={{"a": "int"}})
def execute(context: ExecutionContext, **kwargs: t.Any) -> t.Any:
    return None
"""


def test_review__the_bot_imports_no_sqlmesh_and_the_project_sees_no_token(
    scene: Scene, tmp_path: Path
) -> None:
    file = tmp_path / "probe.json"

    def probe(shop: Shop) -> None:
        add_orders(shop)
        shop.write("models/probe.py", PROBE.format(file=str(file)))

    change = scene.open("probe", probe)

    outcome = change.review(
        "opened",
        python=("-X", "importtime"),
        inputs={"worker-env": "WAREHOUSE_*"},
        variables={
            "WAREHOUSE_PASSWORD": PASSWORD,
            "WAREHOUSE_HOST": "warehouse.example",
            "DEPLOY_KEY": "another-secret-that-nobody-asked-for",
            "SPARK_WITH_TOKEN": f"Bearer {scene.token}",
        },
    )

    # The bot's side.
    assert outcome.exit_code == 0, outcome.stdout
    found = imported(outcome.stderr)
    assert "ci_bot.bot.sandbox.worker_run" in found, (
        "the list of imports is not what this test takes it for"
    )
    assert {name.partition(".")[0] for name in found} & OF_THE_WORKER == set()
    assert not any(name.startswith("ci_bot.worker") for name in found)

    # The worker's side.
    seen = json.loads(file.read_text("utf-8"))
    environ: dict[str, str] = seen["environ"]
    everything = json.dumps(seen)
    assert scene.token not in everything
    assert RUNTIME_TOKEN not in everything
    assert "another-secret" not in everything
    assert environ["WAREHOUSE_PASSWORD"] == PASSWORD
    assert environ["WAREHOUSE_HOST"] == "warehouse.example"
    unexpected = {
        name for name in environ if name not in OURS | LATER and not name.startswith(PREFIXES)
    }
    assert unexpected == set()
    assert not any(name.startswith(("GITHUB_", "ACTIONS_", "CI_BOT_")) for name in environ)

    # What the project prints is shown without its password, and where no command is obeyed.
    assert "the password is ***" in outcome.stdout
    assert PASSWORD not in outcome.readable
    assert PASSWORD not in change.sticky()
    assert outcome.log.named("set-output") == []
    assert any("set-output" in line for line in outcome.log.output)


def test_review__of_a_model_that_raises_a_password__shows_it_nowhere(scene: Scene) -> None:
    text = "import os\nraise ValueError('cannot log in with ' + os.environ['WAREHOUSE_PASSWORD'])\n"
    change = scene.open("leak", lambda shop: shop.write("models/leak.py", text))

    outcome = change.review(
        "opened",
        inputs={"worker-env": "WAREHOUSE_PASSWORD"},
        variables={"WAREHOUSE_PASSWORD": PASSWORD},
    )

    assert outcome.exit_code == 1, outcome.stdout
    assert "cannot log in with ***" in outcome.errors[0]
    assert "cannot log in with" in change.sticky()
    assert PASSWORD not in outcome.readable
    assert PASSWORD not in change.sticky()
