"""The base branch as the baseline, where nothing of prod can be read: what a review says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.protocol.review_report import Report
from tests.projects.forward import FILES
from tests.projects.history import CONFIG, Repository
from tests.worker import reviewed_on_base

BASE = {**FILES, "config.yaml": CONFIG, ".gitignore": ".cache/\n"}
FORWARD = "models/country_sales.sql"
# Another project on the same state: what it has is no model of the first.
SECOND = {
    "one/config.yaml": f"project: one\n{CONFIG}",
    "two/config.yaml": f"project: two\n{CONFIG}",
    "one/models/a.sql": "MODEL (name shop.a, kind FULL);\nSELECT 1 AS item\n",
    "two/models/b.sql": "MODEL (name shop.b, kind FULL);\nSELECT item FROM shop.a\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "checkout")


def changed(report: Report) -> dict[str, tuple[str, str | None]]:
    return {change.model: (change.change, change.category) for change in report.changes}


def test_base_branch__of_a_note__says_no_changes(repository: Repository) -> None:
    report = reviewed_on_base(repository, BASE, {"README.md": "The shop.\n"})

    assert (report.decision, changed(report)) == ("no_changes", {})


def test_base_branch__of_a_forward_only_change__previews_it(repository: Repository) -> None:
    head = BASE[FORWARD].replace("SUM(amount)", "SUM(amount + 1)")

    report = reviewed_on_base(repository, BASE, {FORWARD: head})

    assert changed(report) == {"shop.country_sales": ("direct", "breaking")}
    (backfill,) = report.backfill
    assert (backfill.model, backfill.preview) == ("shop.country_sales", True)


@pytest.mark.night
def test_base_branch__of_an_edit_and_a_removal__tells_both(repository: Repository) -> None:
    edited = BASE["models/customers.sql"].replace("SUM(amount)", "SUM(amount + 1)")

    report = reviewed_on_base(
        repository, BASE, {"models/customers.sql": edited, "models/top_customers.sql": None}
    )

    found = {model: change for model, (change, _) in changed(report).items()}
    assert found == {
        "shop.customers": "direct",
        "shop.segments": "indirect",
        "shop.top_customers": "removed",
    }


def test_base_branch__of_projects_with_keys__has_each_model_once(repository: Repository) -> None:
    head = {"one/models/a.sql": SECOND["one/models/a.sql"].replace("1 AS", "2 AS")}

    report = reviewed_on_base(repository, SECOND, head, projects=("one", "two"))

    found = {model: change for model, (change, _) in changed(report).items()}
    assert found == {"shop.a": "direct", "shop.b": "indirect"}
    assert changed(reviewed_on_base(repository, {}, {"README.md": "."}, projects=("one",))) == {}
