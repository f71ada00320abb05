"""The company of the installation guide, from its files, as the guide's first step has it."""

from __future__ import annotations

import shutil
from pathlib import Path

from ci_bot.bot.worker_calls.review.review_options import Commits
from tests.conftest import REPOSITORY
from tests.github_standin.local_git import LocalGit
from tests.worker import Client

PROJECT = REPOSITORY / "examples" / "company"
REVENUE = "CAST(SUM(orders.amount) AS BIGINT) AS revenue"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_company__is_reviewed_against_its_base_branch_without_any_right(tmp_path: Path) -> None:
    """No account, no address, no Spark: none of the variables that its configuration names is set."""
    checkout = tmp_path / "checkout"
    shutil.copytree(PROJECT, checkout)
    git = LocalGit(checkout)
    git.commit({}, "The company")
    base = git("rev-parse", "HEAD")
    orders = f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS orders"
    replace(checkout / "models" / "revenue.sql", REVENUE, orders)
    test = checkout / "tests" / "test_revenue.yaml"
    replace(test, "revenue: 15}", "revenue: 15, orders: 2}")
    replace(test, "revenue: 20}", "revenue: 20, orders: 1}")
    git.commit({}, "Count the orders")

    worker = Client(checkout)
    report = worker.review(
        "pr_7",
        commits=Commits(base=base, head=git("rev-parse", "HEAD")),
        baseline="base-branch",
    )

    assert report.failure is None
    assert (report.baseline, report.decision) == ("base-branch", "go")
    assert report.project.gateway == "cluster"
    assert report.checks.lint.status == report.checks.tests.status == "passed"
    assert "spark" not in worker.heard.phases
