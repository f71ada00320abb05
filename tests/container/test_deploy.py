"""deploy.yml as a whole, run by act: a reviewed pull request is merged, and prod is deployed on Spark.

`gh` is a stand-in that answers what the workflow asks; the packages of requirements.txt are those of
the image. The same scripts on DuckDB, and what they refuse: tests/integration/test_deploy_workflow.py.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pip
import pytest

from ci_bot import __version__
from tests.act.machine import ActMachine, Images, WorkflowRun
from tests.conftest import PROD_UNTIL, run_python
from tests.container.engine import Engine
from tests.container.test_life import open_up
from tests.e2e.scene import PROJECT, Change, Scene, add_orders
from tests.github_programs import REPORTS, install
from tests.github_standin.standin import GitHubStandin
from tests.projects import write_shop
from tests.projects.in_prod import query_in_prod

pytestmark = [
    pytest.mark.standin,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.night,
    pytest.mark.skipif(os.geteuid() != 0, reason="a workspace of another owner needs root"),
]


@pytest.fixture
def scene(github_standin: GitHubStandin, java: None, tmp_path: Path) -> Scene:
    """A repository with a warehouse of its own, because prod is written here."""
    shop = write_shop(tmp_path / "own")
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    found = Scene(github_standin, shop, tmp_path)
    needed = {name: version(name) for name in ("sqlmesh", "pyspark")}
    needed["sqlmesh-plan-review"] = __version__
    lines = "".join(f"{name}=={its}\n" for name, its in needed.items())
    found.git.commit({f"{PROJECT}/requirements.txt": lines.encode()}, "What deploy.yml installs")
    found.push("main")
    return found


@pytest.fixture
def deployer(
    scene: Scene, engine: Engine, image: str, act_program: Path, tmp_path: Path
) -> ActMachine:
    """The team's machine; what it asks GitHub is answered with the report in `reviewed`."""
    (tmp_path / "reviewed").mkdir()
    gh = install(REPORTS, tmp_path / "programs")
    directory = f"    defaults: {{run: {{working-directory: {PROJECT}}}}}\n"
    return ActMachine(
        program=act_program,
        images=Images(full=image, review=image),
        engine=engine.host,
        api_url=scene.standin.url,
        repository=scene.repo.full_name,
        origin=scene.git.root,
        mounts=[scene.shop.root],
        edits={"    runs-on: ubuntu-24.04\n": "    runs-on: ubuntu-24.04\n" + directory},
        home=tmp_path,
        volumes=[
            f"{gh}:/usr/local/bin/gh:ro",
            f"{tmp_path / 'reviewed'}:/reviewed:ro",
            f"{Path(pip.__file__).parent}:/pip/pip:ro",
        ],
    )


def deployed(scene: Scene, change: Change, deployer: ActMachine) -> WorkflowRun:
    """What the push of the merge starts."""
    open_up(scene.shop.root)
    asked = {
        "GH_HEAD": scene.git("rev-parse", change.branch),
        "GH_MERGED": scene.main_sha,
        "GH_REPORT": "/reviewed/report.json",
    }
    return replace(deployer, environment=asked).run(
        "deploy.yml",
        "push",
        {"ref": "refs/heads/main", "after": scene.main_sha},
        token=scene.token,
        sha=scene.main_sha,
        run_id=scene.new_run("main", "push").id,
        variables={"STATE_HOST": "nowhere", "STATE_WRITER": "writer"},
        secrets={"STATE_WRITER_PASSWORD": "unused-0123456789", "PROD_WAREHOUSE_TOKEN": "unused-98"},
        timeout=600,
    )


def test_deploy_workflow__deploys_what_was_reviewed_and_refuses_what_was_not(
    scene: Scene, deployer: ActMachine, tmp_path: Path
) -> None:
    change = scene.open("to-be-deployed", add_orders)
    reviewed = change.review(keep=False)
    assert reviewed.exit_code == 0, reviewed.stdout[-3000:]
    report = reviewed.report_files()["report.json"]
    (tmp_path / "reviewed" / "report.json").write_bytes(report)
    change.merge()

    ran = deployed(scene, change, deployer)

    assert ran.exit_code == 0, ran.printed[-9000:]
    assert 'AS "orders"' in query_in_prod(scene.files.project, "revenue")
    assert json.loads(report)["prod_plan"]["plan_id"][:12] in ran.printed

    # Somebody pushes past the reviews; the report of the pull request is of another plan.
    later = scene.open(
        "unseen", lambda shop: shop.edit("models/revenue.sql", "COUNT(*)", "COUNT(1) + 1")
    )
    later.merge()
    again = deployed(scene, later, deployer)

    assert again.exit_code == 1
    assert "The plan for prod is" in again.printed
    assert "COUNT(1)" not in query_in_prod(scene.files.project, "revenue")
