"""Standalone audits in whole reviews: one that cannot run stops the pull request that brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.protocol.review_report import Report, Risk
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.worker import Client

AUDIT = "AUDIT (name assert_totals, standalone true);\n\nSELECT * FROM shop.revenue AS r WHERE {column} < 0\n"
PATH = "audits/assert_totals.sql"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path)


def about_audits(report: Report) -> list[Risk]:
    return [risk for risk in report.risks if risk.rule == "missing-key-column"]


def test_audit__that_cannot_run_is_a_blocker(shop: Shop) -> None:
    run_prod(shop, "2024-01-10")
    shop.write(PATH, AUDIT.format(column="r.revenu"))

    report = Client(shop.project).review("pr_1")

    assert report.decision == "no_go"
    (risk,) = about_audits(report)
    assert risk.severity == "blocker"
    assert "The standalone audit `assert_totals`" in risk.evidence
    assert "`revenu`, which `shop.revenue` does not have" in risk.evidence
    assert (risk.path or "").endswith(PATH)
    assert risk.line == 3


def test_audit__that_runs_is_no_finding(shop: Shop) -> None:
    run_prod(shop, "2024-01-10")
    shop.write(PATH, AUDIT.format(column="r.revenue"))

    report = Client(shop.project).review("pr_1")

    assert about_audits(report) == []
    assert report.decision != "no_go"


def test_audit__of_prod_that_loses_its_column(shop: Shop) -> None:
    shop.write(PATH, AUDIT.format(column="r.revenue"))
    run_prod(shop, "2024-01-10")
    text = (shop.project / "models/revenue.sql").read_text("utf-8")
    assert "AS revenue" in text
    shop.edit("models/revenue.sql", "AS revenue", "AS income")

    report = Client(shop.project).review("pr_1")

    assert report.decision == "no_go"
    found = [risk for risk in about_audits(report) if "assert_totals" in risk.evidence]
    assert [risk.severity for risk in found] == ["blocker"]
    assert "reads `revenue`" in found[0].evidence
