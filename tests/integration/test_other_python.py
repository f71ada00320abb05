"""A prod that another version of Python has built: its code is written otherwise, and the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_doctor import examine
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.worker import Client

REPOSITORY = Path(__file__).parents[2]
MODEL = """\
import pandas as pd
from sqlmesh import model


def named(row):
    return f"{row['id']} of {row['shop']}"


@model("shop.labels", kind="FULL", columns={"label": "text"})
def execute(context, **kwargs):
    return pd.DataFrame([{"label": named({"id": 1, "shop": "ours"})}])
"""
# Python 3.12 writes the same quotes around and inside; older ones cannot even read that. So no data
# is built here, and only the text that the state keeps is as 3.12 would have made it.
BUILD = """
import sys
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

set_console(NoopConsole())
context = Context(paths=[sys.argv[1]])
((name, model),) = [item for item in context._models.items() if "labels" in item[0]]
code = model.python_env["named"]
text = code.payload.replace('f"{row', "f'{row").replace("]}\\"", "]}'")
assert text != code.payload
code = code.copy(update={"payload": text})
copy = model.copy(update={"python_env": {**model.python_env, "named": code}})
context._models.update({name: copy})
options = {"execution_time": "2024-01-11", "skip_tests": True, "skip_backfill": True}
context.apply(context.plan_builder("prod", **options).build())
context.close()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = write_duck_shop(tmp_path)
    made.write("models/labels.py", MODEL)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, made.project],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return made


@pytest.mark.night
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads what 3.12 writes")
def test_review__of_a_prod_by_another_python__says_so_and_calls_nothing_breaking(
    shop: Shop,
) -> None:
    report = Client(shop.project).review("pr_1")

    assert report.failure is None
    assert [(change.model, change.from_base) for change in report.changes] == [
        ("shop.labels", True)
    ]
    assert any("another version of Python" in note for note in report.notes)
    assert "R06-breaking-rebuild" not in [risk.rule for risk in report.risks]


@pytest.mark.night
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads what 3.12 writes")
def test_doctor__of_a_prod_by_another_python__says_so(shop: Shop, tmp_path: Path) -> None:
    checks = examine(shop.project, tmp_path)[1]

    assert checks["python"]["status"] == "warn"
    assert "shop.labels" in checks["python"]["message"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads what 3.12 writes")
@pytest.mark.night
def test_review__of_a_change_beside__still_tells_it(shop: Shop) -> None:
    shop.edit("models/labels.py", " of ", " in ")

    report = Client(shop.project).review("pr_1")

    assert report.failure is None
    assert [(change.model, change.from_base) for change in report.changes] == [
        ("shop.labels", False)
    ]
    assert not any("another version of Python" in note for note in report.notes)
    assert "R06-breaking-rebuild" in [risk.rule for risk in report.risks]
