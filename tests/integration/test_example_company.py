"""The company of the installation guide, from its files: SQLMesh builds prod, then a whole life.

PostgreSQL holds the state, a standalone cluster of two processes computes, tables are Iceberg's in
a Hive metastore service; only addresses and accounts come from here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.host import make_process_machine
from ci_bot.worker.runtime.java import find_java_environment
from tests.conftest import REPOSITORY, missing
from tests.github_standin.local_git import LocalGit
from tests.integration.test_postgres_state import own_database, server
from tests.maven import ICEBERG, JarMissingError, jar
from tests.servers import free_port, hive_metastore, spark_cluster
from tests.worker import Client

pytestmark = [pytest.mark.own_jvm, pytest.mark.night]

__all__ = ["server"]
PROJECT = REPOSITORY / "examples" / "company"


@dataclass(frozen=True)
class Company:
    """A checkout of the project, and what its workflows set: for a review, and for the others."""

    checkout: Path
    of_a_review: Mapping[str, str]
    of_an_apply: Mapping[str, str]
    applications: Path

    def worker(self, variables: Mapping[str, str]) -> Client:
        here = make_process_machine()
        return Client(self.checkout, around=replace(here, environ={**here.environ, **variables}))

    def sqlmesh(self, *arguments: str) -> None:
        """SQLMesh's own command line, as deploy.yml runs it."""
        program = (sys.executable, "-c", "from sqlmesh.cli.main import cli; cli()")
        environment = {**os.environ, **self.of_an_apply, "SQLMESH_DEBUG": ""}
        environment |= find_java_environment(environment, python=sys.executable)
        done = subprocess.run(
            [*program, "-p", str(self.checkout), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture
def company(server: str, tmp_path: Path, java: None) -> Iterator[Company]:
    try:
        iceberg = jar(ICEBERG, os.environ)
    except JarMissingError as error:
        missing(str(error))
        raise
    with (
        own_database(server, "company") as (database, _),
        hive_metastore(tmp_path / "service") as metastore,
        spark_cluster(tmp_path / "spark") as cluster,
    ):
        parts = urlsplit(server)
        state = {
            "STATE_HOST": str(parts.hostname),
            "STATE_PORT": str(parts.port),
            "STATE_USER": str(parts.username),
            "STATE_PASSWORD": str(parts.password),
            "STATE_DATABASE": database,
            "STATE_SSLMODE": "disable",  # a server on loopback, without a certificate
        }
        warehouse = {
            "WAREHOUSE_SPARK_MASTER": cluster.address,
            "WAREHOUSE_DRIVER_HOST": "127.0.0.1",
            "WAREHOUSE_BIND_ADDRESS": "127.0.0.1",
            "WAREHOUSE_DRIVER_PORT": str(free_port()),
            "WAREHOUSE_BLOCK_MANAGER_PORT": str(free_port()),
            "WAREHOUSE_ICEBERG_JAR": str(iceberg),
            "WAREHOUSE_METASTORE": metastore,
            "WAREHOUSE_DIR": str(tmp_path / "service" / "warehouse"),
            "WAREHOUSE_HIVE_LOCKS": "false",
        }
        checkout = tmp_path / "checkout"
        shutil.copytree(PROJECT, checkout)
        yield Company(checkout, state, {**state, **warehouse}, cluster.work)


@contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    yield
    path.write_text(text, "utf-8")


@contextmanager
def a_new_column(checkout: Path) -> Iterator[None]:
    """The pull request: one more column of one model, and of its unit test."""
    total = "CAST(SUM(orders.amount) AS BIGINT) AS revenue"
    test = checkout / "tests" / "test_revenue.yaml"
    with (
        edited(
            checkout / "models" / "revenue.sql",
            total,
            f"{total},\n  CAST(COUNT(*) AS BIGINT) AS orders",
        ),
        edited(test, "revenue: 15}", "revenue: 15, orders: 2}"),
        edited(test, "revenue: 20}", "revenue: 20, orders: 1}"),
    ):
        yield


def test_company__is_reviewed_against_its_base_branch_without_any_right(tmp_path: Path) -> None:
    """The first step of the guide: no account, no address, no Spark."""
    checkout = tmp_path / "checkout"
    shutil.copytree(PROJECT, checkout)
    git = LocalGit(checkout)
    git.commit({}, "The company")
    base = git("rev-parse", "HEAD")
    with a_new_column(checkout):
        git.commit({}, "Count the orders")
        commits = RequestedReviewCommits(base=base, head=git("rev-parse", "HEAD"))
        report = Client(checkout).review("pr_7", commits=commits, baseline="base-branch")
    assert report.failure is None
    assert (report.baseline, report.decision) == ("base-branch", "go")
    assert report.checks.lint.status == report.checks.tests.status == "passed"


@pytest.mark.postgres
@pytest.mark.metastore
@pytest.mark.iceberg
@pytest.mark.spark
@pytest.mark.slow
def test_company__from_its_files(company: Company) -> None:
    company.sqlmesh("plan", "prod", "--no-prompts", "--auto-apply", "--execution-time=2024-01-11")
    assert list(company.applications.glob("app-*")), "prod was not built on the cluster"
    with a_new_column(company.checkout):
        # As in review.yml, no variable of the warehouse is there.
        review = company.worker(company.of_a_review)
        report = review.review("pr_7")
        assert report.failure is None
        assert (report.baseline, report.decision) == ("state", "go")
        assert report.prod_plan is not None
        assert report.prod_plan.plan_id
        assert "spark" not in review.heard.phases
        assert report.identity is not None

        worker = company.worker(company.of_an_apply)
        applied = worker.apply("pr_7", plan_id=report.plan_id, window=report.identity.window)
        assert applied.failure is None
        assert applied.result == "applied"
        assert {model.model: model.rows for model in applied.models} == {"sales.revenue": 2}
        (diff,) = applied.table_diff
        assert (diff.compared, diff.matched, diff.only_prod, diff.only_pr) == (True, 2, 0, 0)

        removed = worker.cleanup("pr_7", merged=True)
        assert removed.failure is None
        assert removed.result == "removed"
        assert removed.schemas_dropped == ["sales__pr_7"]

        # Merged: what was reviewed is what deploy.yml deploys.
        company.sqlmesh(
            "plan", "prod", "--no-prompts", "--auto-apply", "--execution-time=2024-01-11"
        )
        after = company.worker(company.of_a_review).review("pr_8")
        assert after.decision == "no_changes"
