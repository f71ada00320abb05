"""The scripts of deploy.yml, run as they stand: after a merge, with another plan, without a review.

SQLMesh's and our own command line are the real ones; `gh` is a stand-in that serves one report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.github_programs import REPORTS, install
from tests.integration.test_prod_plan import change_amount, restated, reviewed, writes_metadata
from tests.projects.duck import run_prod
from tests.projects.in_prod import query_in_prod
from tests.projects.repository import Repository, write_repository

pytestmark = pytest.mark.slow

DEPLOY = REPOSITORY / ".github" / "examples" / "deploy.yml"
HEAD = "b1" * 20
MERGED = "c2" * 20


@pytest.fixture
def merged(tmp_path: Path) -> Repository:
    """A pull request that was reviewed and merged; its report lies beside the repository."""
    repository = write_repository(tmp_path / "repository")
    run_prod(repository.shop, "2024-01-10")
    repository.git("checkout", "-q", "-b", "work")
    change_amount(repository)
    (tmp_path / "report.json").write_text(reviewed(repository, environment="pr_7").to_json())
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "work")
    return repository


def run(
    repository: Repository, *, known: bool = True, plan: str = "", numbers: str = ""
) -> tuple[int, str]:
    """The workflow's scripts one after the other, as a runner starts them; the last exit code.

    Args:
        numbers: What a person writes into `pull-requests`, beside `plan`.
    """
    programs = install(REPORTS, repository.root.parent / "programs").parent
    python = f"#!/bin/sh\nexec {sys.executable}"
    (programs / "ci-bot").write_text(f'{python} -m ci_bot "$@"\n')
    cli = "from sqlmesh.cli.main import cli; cli()"
    (programs / "sqlmesh").write_text(f'{python} -c "{cli}" "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    outputs = repository.root.parent / "outputs"
    outputs.write_text("")
    environment = {
        **os.environ,
        "GITHUB_OUTPUT": str(outputs),
        "PULL_REQUESTS": numbers,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "GH_HEAD": HEAD,
        "GH_MERGED": MERGED if known else "another",
        "GH_REPORT": str(repository.root.parent / "report.json"),
        "GITHUB_REPOSITORY": "octo/shop",
        "GITHUB_SHA": MERGED,
        "PLAN": plan,
    }
    code, told = 0, ""
    for step in scripts(asked=bool(plan)):
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=repository.shop.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        code, told = done.returncode, told + done.stdout + done.stderr
        number = outputs.read_text().strip().removeprefix("number=")
        environment["PULL_REQUESTS"] = number if not plan else numbers
        if code:
            break
    return code, told


def scripts(*, asked: bool) -> list[Any]:
    (job,) = YAML(typ="safe").load(DEPLOY.read_text("utf-8"))["jobs"].values()
    found = [step for step in job["steps"] if "run" in step]
    install, fetch, deploy = found
    assert deploy["env"]["PULL_REQUESTS"] == (
        "${{ inputs.plan == '' && steps.merged.outputs.number || inputs.pull-requests }}"
    )
    assert fetch["id"] == "merged"
    assert install["run"].startswith("pip install")
    assert fetch["if"] == "${{ inputs.plan == '' }}"
    return [deploy] if asked else [fetch, deploy]


def amounts_in_prod(repository: Repository) -> str:
    """How prod computes the amount."""
    return query_in_prod(repository.shop.project, "orders")


def test_deploy__after_a_merge__deploys_what_was_reviewed(merged: Repository) -> None:
    code, told = run(merged)
    assert code == 0, told
    assert "* 20" in amounts_in_prod(merged)


def test_deploy__of_anything_else__is_refused_and_prod_stays(merged: Repository) -> None:
    merged.shop.edit("models/orders.sql", "customer_id * 20", "customer_id * 30")
    code, told = run(merged)
    assert code == 3, told
    assert "The plan for prod is" in told
    assert "* 10" in amounts_in_prod(merged)


def edited_rows(repository: Repository) -> list[str]:
    """The days of prod's table that were built since somebody edited it by hand."""
    query = "SELECT order_date::TEXT FROM shop.orders WHERE order_id > 0 ORDER BY 1"
    with duckdb.connect(str(repository.root / "warehouse.duckdb")) as connection:
        return sorted({day for (day,) in connection.execute(query).fetchall()})


def forget_rows(repository: Repository) -> None:
    """Prod's rows of the orders are wrong from here on, as those of a source can be."""
    with duckdb.connect(str(repository.root / "warehouse.duckdb")) as connection:
        (table,) = connection.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_name LIKE 'shop__orders%'"
        ).fetchall()[0]
        connection.execute(f"UPDATE {table} SET order_id = -1")


@pytest.fixture
def restating(tmp_path: Path) -> Repository:
    """A pull request that changes a description, and for which an owner has recorded one day."""
    repository = write_repository(tmp_path / "repository")
    run_prod(repository.shop, "2024-01-10")
    writes_metadata(repository)
    repository.commit({}, "Say what it is")
    (tmp_path / "report.json").write_text(reviewed(repository, environment="pr_7").to_json())
    restated(repository, "shop.orders", "2024-01-03", "2024-01-03")
    forget_rows(repository)
    return repository


@pytest.mark.night
def test_deploy__carries_out_what_is_recorded_and_nothing_else(restating: Repository) -> None:
    code, told = run(restating)
    assert code == 0, told
    assert edited_rows(restating) == ["2024-01-03"]
    # Once it is deployed a person can ask for the same again, by the numbers of pull requests.
    forget_rows(restating)
    assert run(restating, plan="none", numbers="8")[0] == 0
    assert edited_rows(restating) == []
    code, told = run(restating, plan="none", numbers="8 7")
    assert code == 0, told
    assert edited_rows(restating) == ["2024-01-03"]


@pytest.mark.night
def test_deploy__of_a_restatement_that_does_not_hold__touches_nothing(
    restating: Repository,
) -> None:
    restating.shop.write(
        "models/more.sql", "MODEL (name shop.more, kind FULL); SELECT order_id FROM shop.orders"
    )
    (restating.root.parent / "report.json").write_text(
        reviewed(restating, environment="pr_7").to_json()
    )
    code, told = run(restating)
    assert code == 3, told
    assert "It would also build `shop.more` again" in told
    assert edited_rows(restating) == []
    with duckdb.connect(str(restating.root / "warehouse.duckdb")) as connection:
        made = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%more%'"
        )
        assert made.fetchall() == [], "nothing was deployed"


@pytest.mark.night
def test_deploy__without_a_review__says_how_to_go_on(merged: Repository) -> None:
    code, told = run(merged, known=False)
    assert code == 1
    assert "::error::No review of" in told
    assert "* 10" in amounts_in_prod(merged)


@pytest.mark.night
def test_deploy__by_hand__takes_the_id_that_a_person_gives(merged: Repository) -> None:
    merged.shop.edit("models/orders.sql", "customer_id * 20", "customer_id * 30")
    assert run(merged, plan="0123456789ab")[0] == 3
    shown = reviewed(merged).prod_plan
    assert shown is not None
    code, told = run(merged, plan=str(shown.plan_id)[:12])
    assert code == 0, told
    assert "* 30" in amounts_in_prod(merged)
