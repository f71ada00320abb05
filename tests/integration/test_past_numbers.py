"""What a change does to existing rows, from the files of a pull request to decision and headline."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.report.model.headline import make_headline_view
from ci_bot.protocol.review_report import Report
from tests.projects.history import Repository
from tests.worker import reviewed_on_base

CONFIG = """gateways:
  spark:
    connection: {type: spark}
    state_connection: {type: duckdb, database: state.db}
default_gateway: spark
model_defaults: {dialect: spark, start: 2024-01-01}
"""
TOTALS = """MODEL (name shop.totals, kind FULL, grain id);
SELECT o.id, o.amount, o.amount * 2 AS twice FROM shop.orders AS o"""
READER = """MODEL (name shop.reader, kind FULL, grain id);
SELECT t.id, t.amount FROM shop.totals AS t"""
ORDERS = "MODEL (name shop.orders, kind SEED (path '../seeds/orders.csv'));"
ROWS = "id,amount\n1,10\n2,20\n"
BASE = {
    "config.yaml": CONFIG,
    "models/orders.sql": ORDERS,
    "models/totals.sql": TOTALS,
    "models/reader.sql": READER,
    "seeds/orders.csv": ROWS,
}


def review(path: Path, head: dict[str, str | None]) -> Report:
    return reviewed_on_base(Repository(path / "checkout"), BASE, head)


def rules(report: Report) -> set[str]:
    return {risk.rule for risk in report.risks}


@pytest.mark.parametrize(
    "statement",
    [
        "ANALYZE TABLE @this_model COMPUTE STATISTICS",
        "COMMENT ON TABLE @this_model IS 'orders'",
        "REFRESH TABLE @this_model",
        "ALTER TABLE @this_model SET TBLPROPERTIES ('a' = 'b')",
    ],
)
@pytest.mark.by_day(2)
def test_statement__that_writes_no_row_is_go_and_says_so(tmp_path: Path, statement: str) -> None:
    report = review(tmp_path, {"models/totals.sql": f"{TOTALS};\n{statement};\n"})
    assert report.past_numbers is not None
    assert not report.past_numbers.changed
    assert "R06-past-numbers" not in rules(report)
    assert report.decision == "go"
    assert make_headline_view(report).sentence == (
        "`shop.totals` is built again; no column or row is defined differently."
    )


def test_statement__that_writes_rows_asks_what_its_headline_says(tmp_path: Path) -> None:
    gone = f"{TOTALS};\nDELETE FROM @this_model WHERE id = 1;\n"
    report = review(tmp_path, {"models/totals.sql": gone})
    assert "R06-past-numbers" in rules(report)
    assert report.decision == "review"
    assert make_headline_view(report).sentence == (
        "Past numbers change: `shop.totals` gets other rows; 1 other model reads what changes, and "
        "no other model is rebuilt."
    )


def test_column__that_nobody_reads_still_rebuilds_what_is_below(tmp_path: Path) -> None:
    report = review(tmp_path, {"models/totals.sql": TOTALS.replace("* 2", "* 3")})
    assert make_headline_view(report).sentence == (
        "Past numbers change: `twice` in `shop.totals` is computed differently; no other model "
        "reads what changes, and 1 model is rebuilt anyway."
    )


def test_seed__that_gets_a_row_says_so(tmp_path: Path) -> None:
    report = review(tmp_path, {"seeds/orders.csv": f"{ROWS}3,30\n"})
    assert make_headline_view(report).sentence == (
        "Past numbers change: `shop.orders` gets 1 more row; 2 other models read what changes."
    )


def test_seed__of_which_one_value_is_mended_names_its_column(tmp_path: Path) -> None:
    report = review(tmp_path, {"seeds/orders.csv": ROWS.replace("20", "21")})
    assert make_headline_view(report).sentence.startswith(
        "Past numbers change: `amount` in `shop.orders` holds other values; 2 other models read"
    )


def test_query__that_only_a_run_renders_otherwise_is_not_go(tmp_path: Path) -> None:
    """SQLMesh calls it metadata and builds nothing; the next run of prod computes other rows."""
    in_runs = TOTALS.replace("* 2", "* @IF(@runtime_stage = 'loading', 2, 3)")
    base = {**BASE, "models/totals.sql": in_runs}
    head: dict[str, str | None] = {"models/totals.sql": in_runs.replace("2, 3", "2, 4")}
    report = reviewed_on_base(Repository(tmp_path / "checkout"), base, head)
    assert {change.model: change.change for change in report.changes}["shop.totals"] == "metadata"
    assert report.decision == "review"
    assert "changed-in-runs" in rules(report)
    assert "metadata-only" not in rules(report)
    assert make_headline_view(report).sentence == (
        "The next runs of `shop.totals` may compute other rows; nothing is built again."
    )


TAXED = TOTALS.replace("AS twice", "AS twice, o.amount / 5 AS tax")
STARS = {
    "distinct rows": ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM shop.totals) AS t", True),
    "a union of stars": (
        "SELECT t.id FROM (SELECT * FROM shop.totals UNION SELECT * FROM shop.totals) AS t",
        True,
    ),
    "a key of whole rows": ("SELECT MD5(TO_JSON(STRUCT(t.*))) AS k FROM shop.totals AS t", True),
    "a star at the end": ("SELECT t.* FROM shop.totals AS t", False),
    "rows counted": ("SELECT COUNT(*) AS n FROM (SELECT * FROM shop.totals) AS t", False),
}


@pytest.mark.parametrize(("query", "takes_in"), STARS.values(), ids=STARS)
@pytest.mark.by_day(2)
def test_new_column__behind_a_star_changes_old_numbers_or_is_passed_on(
    tmp_path: Path, query: str, takes_in: bool
) -> None:
    """SQLMesh calls each of these changes non-breaking, and builds no reader again."""
    reader = f"MODEL (name shop.reader, kind FULL);\n{query}"
    base = {**BASE, "models/reader.sql": reader}
    report = reviewed_on_base(Repository(tmp_path / "c"), base, {"models/totals.sql": TAXED})
    assert ("R06-past-numbers" in rules(report)) == takes_in
    assert report.decision == ("review" if takes_in else "go")
    assert make_headline_view(report).sentence.startswith("Past numbers change") == takes_in
