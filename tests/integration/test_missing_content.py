"""A checkout without the content of some files: Git LFS, submodules, sparse checkouts.

What is missing there is no change of the pull request, and what stands in its place is no data.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.protocol.review_report import Report
from tests.github_standin.local_git import LocalGit
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


def review(
    repository: Repository, commits: RequestedReviewCommits, baseline: str = "base-branch"
) -> Report:
    client = Client(repository.root, projects=("project",))
    return client.review("pr_1", commits=commits, baseline=baseline)


def weights(report: Report, rule: str) -> list[tuple[str, str | None]]:
    return [(risk.severity, risk.path) for risk in report.risks if risk.rule == rule]


POINTED = [("blocker", "project/seeds/flags.csv")]


@pytest.mark.by_day(1)
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


@pytest.mark.night
def test_base__has_what_lfs_has_fetched(tmp_path: Path) -> None:
    """Git holds the pointer on both sides; with `lfs: true` the checkout has the content."""
    oid = hashlib.sha256(ROWS.encode()).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(ROWS)}\n"
    repository = write_shop(tmp_path, UNTYPED, pointer)
    commits = repository.change(README)
    # What git-lfs does on a checkout.
    store = tmp_path / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    store.parent.mkdir(parents=True)
    store.write_text(ROWS)
    (tmp_path / "project/seeds/flags.csv").write_text(ROWS)

    report = review(repository, commits)

    assert report.changes == []
    assert weights(report, "lfs-pointer") == []

    store.unlink()
    report = review(repository, commits)
    assert [change.model for change in report.changes if change.change == "direct"] == [
        "shop.flags"
    ]
    assert any("is in Git LFS and not in this checkout" in note for note in report.notes)


MODEL = "MODEL (name shop.sub_one, kind VIEW);\nSELECT 1 AS id\n"


def with_submodule(tmp_path: Path) -> tuple[Repository, LocalGit]:
    """The shop with a submodule of models, checked out."""
    (tmp_path / "sub").mkdir()
    sub = LocalGit(tmp_path / "sub")
    (tmp_path / "sub/one.sql").write_text(MODEL)
    sub("add", ".")
    sub("commit", "-q", "-m", "One model")
    (tmp_path / "shop").mkdir()
    repository = write_repository(tmp_path / "shop")
    allow = ("-c", "protocol.file.allow=always")
    repository.git(*allow, "submodule", "add", "-q", str(tmp_path / "sub"), "project/models/shared")
    repository.git("commit", "-q", "-m", "With a submodule")
    return repository, LocalGit(tmp_path / "shop/project/models/shared")


def test_submodule__at_the_same_commit__is_no_change(tmp_path: Path) -> None:
    repository, _ = with_submodule(tmp_path)

    report = review(repository, repository.change(README))

    assert report.changes == []
    assert weights(report, "checkout-incomplete") == []


@pytest.mark.night
def test_submodule__at_another_commit_that_is_not_here__is_said(tmp_path: Path) -> None:
    repository, sub = with_submodule(tmp_path)
    base = repository.git("rev-parse", "HEAD")
    # As a checkout of depth 1 leaves it: a repository that knows the new commit only.
    sub("checkout", "-q", "--orphan", "anew")
    (sub.root / "two.sql").write_text(MODEL.replace("sub_one", "sub_two"))
    sub("add", ".")
    sub("commit", "-q", "-m", "Two models")
    for name in sub("for-each-ref", "--format=%(refname)").split():
        if not name.endswith("/anew"):
            sub("update-ref", "-d", name)
    sub("reflog", "expire", "--expire=now", "--all")
    sub("gc", "-q", "--prune=now")
    head = repository.commit({}, "A newer submodule")

    report = review(repository, RequestedReviewCommits(base=base, head=head))

    assert any("the submodule `project/models/shared` at commit" in note for note in report.notes)


def test_submodule__that_nobody_checked_out__is_a_finding(tmp_path: Path) -> None:
    repository, _ = with_submodule(tmp_path)
    run_prod(repository.shop, "2024-01-11")
    commits = repository.change(README)
    repository.git("submodule", "deinit", "-q", "-f", "project/models/shared")

    report = review(repository, commits, "state")

    (told,) = (risk for risk in report.risks if risk.rule == "checkout-incomplete")
    assert told.severity == "high"
    assert "project/models/shared" in told.evidence
    assert "`submodules: true`" in told.clears_when


def test_sparse_checkout__of_a_models_file__blocks(tmp_path: Path) -> None:
    repository = write_repository(
        tmp_path, {"project/docs/a.png": "x", "project/models/x.sql": MODEL}
    )
    run_prod(repository.shop, "2024-01-11")
    commits = repository.change(README)
    repository.git("sparse-checkout", "set", "--no-cone", "/*", "!/project/docs/")
    assert weights(review(repository, commits, "state"), "checkout-incomplete") == []
    repository.git("sparse-checkout", "set", "--no-cone", "/*", "!/project/models/x.sql")

    report = review(repository, commits, "state")

    assert weights(report, "checkout-incomplete") == [("blocker", None)]
    assert report.decision == "no_go"
