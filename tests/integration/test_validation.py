"""The project validation of a review, asked of the real worker on a DuckDB project."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci_bot.bot.report.model.advice import list_recommendations
from ci_bot.protocol.review_report import Report
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.worker import Client

PARTS = ["versions", "configuration", "directories", "connection", "state"]


@pytest.fixture
def duck(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path)


def part(report: Report, name: str) -> tuple[str, str]:
    check = next(item for item in report.checks.project if item.name == name)
    assert check.fix or check.status in ("ok", "not_run")
    return check.status, check.message


def test_validation__names_each_part_and_the_files_to_format(duck: Shop) -> None:
    run_prod(duck, "2024-01-04")
    (duck.project / "models" / "revenue.sql").write_text(
        "MODEL (name shop.revenue, kind FULL, grain customer_id);\n"
        "select o.customer_id, sum(o.amount) as revenue from shop.orders as o group by 1\n"
    )

    report = Client(duck.project).review("pr_1")

    assert [check.name for check in report.checks.project] == PARTS
    assert part(report, "versions")[0] == "ok"
    assert part(report, "connection") == (
        "fail",
        "The gateway's engine is duckdb, and plans are applied on Spark here.",
    )
    status, message = part(report, "state")
    assert status == "warn"
    assert "one run at a time" in message
    status, message = part(report, "directories")
    assert status == "ok"
    assert "models/ 4 files" in message
    assert "nothing in audits/, macros/" in message
    assert report.checks.formatting.status == "needs_format"
    assert report.checks.formatting.files == ["models/revenue.sql"], "and no file of the estate"
    advice = list_recommendations(report)
    assert "type: spark" in advice[0], "what fails comes first"
    assert any("sqlmesh format" in item for item in advice)


def test_validation__says_what_is_not_there_yet(duck: Shop) -> None:
    shutil.rmtree(duck.project / "tests")

    report = Client(duck.project).review("pr_1")

    assert part(report, "state") == ("warn", "There is no SQLMesh state (duckdb) yet.")
    status, message = part(report, "directories")
    assert status == "warn"
    assert "tests/" in message
    assert report.checks.tests.status == "none"
