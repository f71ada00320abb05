"""Forward-only changes of kinds that keep no history: what prod's next run makes of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from sqlmesh.core.context import Context

from ci_bot.bot.report.model.headline import headline
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.worker import Client

TOTALS = "MODEL (name shop.totals, kind FULL);\n\nSELECT SUM(amount) AS total FROM shop.orders\n"
VIEW = "MODEL (name shop.seen, kind VIEW);\n\nSELECT total FROM shop.totals\n"
FORWARD = GivenFlags(forward_only=True)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = write_duck_shop(tmp_path)
    shop.write("models/totals.sql", TOTALS)
    shop.write("models/seen.sql", VIEW)
    run_prod(shop, "2024-01-10")
    return shop


def texts(report: Report) -> str:
    evidence = " ".join(risk.evidence for risk in report.risks)
    return f"{headline(report).sentence} {evidence}"


def test_full__past_numbers_change_with_the_next_run(shop: Shop) -> None:
    shop.edit("models/totals.sql", "SUM(amount)", "SUM(amount) * 2")

    report = Client(shop.project).review("pr_1", flags=FORWARD)

    assert report.prod_plan is not None
    assert report.prod_plan.full_backfill == []
    assert {item.model for item in report.prod_plan.next_run} == {"shop.totals", "shop.seen"}
    assert report.prod_plan.cost is not None
    assert report.prod_plan.cost.tables >= 1
    assert "history stays" not in texts(report)
    assert "new data only" not in texts(report)
    assert "prod's next run computes the whole table again" in texts(report)
    assert headline(report).sentence.startswith("Past numbers change")


def test_incremental__keeps_its_history_and_its_full_reader_does_not(shop: Shop) -> None:
    shop.edit("models/orders.sql", "* 10 AS", "* 20 AS")

    report = Client(shop.project).review("pr_1", flags=FORWARD)

    assert report.prod_plan is not None
    assert {item.model for item in report.prod_plan.next_run} >= {"shop.totals", "shop.seen"}
    (rebuild,) = (risk for risk in report.risks if risk.rule == "R06-breaking-rebuild")
    assert "history stays" in rebuild.evidence
    assert "history stays in" not in rebuild.evidence


def test_sqlmesh__computes_a_forward_only_full_model_whole_with_its_next_run(shop: Shop) -> None:
    """What the report says, held to SQLMesh itself."""

    def total() -> object:
        file = shop.project / "config.yaml"
        lines = file.read_text().splitlines()
        line = next(each for each in lines if "database:" in each)
        with duckdb.connect(line.split(":", 1)[1].strip()) as connection:
            found = connection.execute("SELECT total FROM shop.seen").fetchone()
        return found and found[0]

    before = total()
    shop.edit("models/totals.sql", "SUM(amount)", "SUM(amount) * 2")
    context = Context(paths=[str(shop.project)])
    context.plan(
        "prod",
        forward_only=True,
        auto_apply=True,
        no_prompts=True,
        skip_tests=True,
        execution_time="2024-01-10",
    )
    context.run("prod", execution_time="2024-01-12")
    context.close()

    assert before is not None
    assert total() != before
