"""A checkout without the content of some files: Git LFS, submodules, sparse checkouts.

What is missing there is no change of the pull request, and what stands in its place is no data.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.worker_calls.review.review_options import Commits
from ci_bot.contracts.documents.report import Report
from tests.projects.duck import run_prod
from tests.projects.repository import Files, Repository, write_repository
from tests.unit.rules.test_lfs_pointers import POINTER
from tests.worker import Client

UNTYPED = "MODEL (name shop.flags, kind SEED (path '../seeds/flags.csv'));\n"
TYPED = (
    "MODEL (name shop.flags, kind SEED (path '../seeds/flags.csv'), columns (id INT, flag TEXT));\n"
)
ROWS = "id,flag\n1,a\n2,b\n"
README: Files = {"README.md": "# Shop\n\nMore words.\n"}


def write_shop(root: Path, model: str, rows: str) -> Repository:
    files = {"project/models/flags.sql": model, "project/seeds/flags.csv": rows}
    return write_repository(root, files)


def review(repository: Repository, commits: Commits, baseline: str = "base-branch") -> Report:
    client = Client(repository.root, projects=("project",))
    return client.review("pr_1", commits=commits, baseline=baseline)


def weights(report: Report, rule: str) -> list[tuple[str, str | None]]:
    return [(risk.severity, risk.path) for risk in report.risks if risk.rule == rule]


POINTED = [("blocker", "project/seeds/flags.csv")]


@pytest.mark.parametrize("model", [UNTYPED, TYPED], ids=["untyped", "typed"])
def test_pointer__of_a_seed_that_nobody_changes__against_prods_state(
    tmp_path: Path, model: str
) -> None:
    repository = write_shop(tmp_path, model, ROWS)
    run_prod(repository.shop, "2024-01-11")
    repository.commit({"project/seeds/flags.csv": POINTER}, "As a checkout without lfs has it")

    report = review(repository, repository.change(README), "state")

    assert weights(report, "lfs-pointer") == POINTED
    assert report.decision == "no_go"


def test_pointer__against_the_base_branch_that_holds_the_same(tmp_path: Path) -> None:
    repository = write_shop(tmp_path, UNTYPED, POINTER)

    report = review(repository, repository.change(README))

    assert weights(report, "lfs-pointer") == POINTED
    assert report.decision == "no_go"
    (told,) = (risk for risk in report.risks if risk.rule == "lfs-pointer")
    assert told.model == "shop.flags"
    assert "`lfs: true`" in told.clears_when


def test_content_that_is_here__says_nothing_of_lfs(tmp_path: Path) -> None:
    repository = write_shop(tmp_path, UNTYPED, ROWS)
    repository.commit({"docs/lineage.png": POINTER}, "A picture that nobody reads")

    report = review(repository, repository.change(README))

    assert weights(report, "lfs-pointer") == []
    assert report.decision == "no_changes"
