"""`ci-bot witness` makes a unit test that SQLMesh passes with the change and fails without it."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.cli.compared_queries import make_witness_test_on_laptop
from ci_bot.bot.cli.local_review import LaptopReview
from ci_bot.errors import BadInput, RequestRefused
from ci_bot.host import make_process_machine
from tests.github_standin.local_git import LocalGit
from tests.projects.repository import Repository, write_repository

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"
MODEL = "marts.daily_carrier_performance"
ASKED = LaptopReview(projects=("project",), base_ref="main")


def witness(directory: Path, model: str, *, write: bool = False) -> str:
    out, log = io.StringIO(), io.StringIO()
    around = replace(make_process_machine(), directory=directory, out=out, log=log)
    try:
        assert make_witness_test_on_laptop(around, ASKED, model=model, write=write) == 0
    finally:  # there is no prod in the state, and the project is reviewed once all the same
        assert log.getvalue().count("load: loading the project") == 1
    return out.getvalue()


def sqlmesh_test(project: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("sqlmesh")), "test", f"tests/{name}"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.spark  # SQLMesh's own command asks it for the catalog
@pytest.mark.own_jvm  # in a process of its own
@pytest.mark.slow
def test_flights__example_is_a_test_that_the_change_passes_and_the_base_fails(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    shutil.copytree(FLIGHTS / "project", project)
    git = LocalGit(tmp_path)
    (tmp_path / ".gitignore").write_text("*.db\n.cache/\nlogs/\n")
    git("add", ".")
    git("commit", "-q", "-m", "Flights")
    git("checkout", "-q", "-b", "change")
    shutil.copytree(FLIGHTS / "change", project, dirs_exist_ok=True)
    git("add", ".")
    git("commit", "-q", "-m", "Change it")

    told = witness(tmp_path, MODEL.title(), write=True)

    name = "test_daily_carrier_performance_late_arrivals.yaml"
    file = project / "tests" / name
    assert told == f"Written: {file}\n"
    head = sqlmesh_test(project, name)
    assert head.returncode == 0, head.stdout
    assert "Successfully Ran `1` Tests" in head.stdout

    with pytest.raises(BadInput, match="is there already, and nothing is overwritten"):
        witness(tmp_path, MODEL, write=True)

    git("checkout", "-q", "main")
    base = sqlmesh_test(project, name)
    assert base.returncode != 0
    assert "late_arrivals" in base.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Repository:
    made = write_repository(tmp_path)
    made.git("branch", "-M", "main")
    made.git("checkout", "-q", "-b", "change")
    return made


@pytest.mark.night
def test_model_without_an_example__is_refused_with_the_reason(shop: Repository) -> None:
    path = "project/models/revenue.sql"
    text = shop.read(path)
    shop.commit({path: text.replace("SUM(", "0 + SUM(", 1)})
    assert shop.read(path) != text
    with pytest.raises(RequestRefused) as caught:
        witness(shop.root, "`Shop`.REVENUE")
    assert "There is no unit test that tells both versions of `shop.revenue` apart: " in (
        caught.value.message
    )
    with pytest.raises(BadInput, match=r"edits no query of a model 'shop\.customers'"):
        witness(shop.root, "shop.customers")
