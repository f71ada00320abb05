"""Forward-only changes of kinds that keep no history: what prod's next run makes of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from sqlmesh.core.context import Context

from ci_bot.bot.report.model.build_table import list_build_row_views
from ci_bot.bot.report.model.headline import make_headline_view
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from tests import nights
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
    return f"{make_headline_view(report).sentence} {evidence}"


@pytest.mark.night
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
    assert make_headline_view(report).sentence.startswith("Past numbers change")


def test_incremental__keeps_its_history_and_its_full_reader_does_not(shop: Shop) -> None:
    shop.edit("models/orders.sql", "* 10 AS", "* 20 AS")

    report = Client(shop.project).review("pr_1", flags=FORWARD)

    assert report.prod_plan is not None
    assert {item.model for item in report.prod_plan.next_run} >= {"shop.totals", "shop.seen"}
    (rebuild,) = (risk for risk in report.risks if risk.rule == "R06-breaking-rebuild")
    assert "history stays" in rebuild.evidence
    assert "history stays in" not in rebuild.evidence


@pytest.mark.night
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


MODELS = {
    "by_time": (
        "INCREMENTAL_BY_TIME_RANGE (time_column day)",
        "",
        "WHERE day BETWEEN @start_ds AND @end_ds",
    ),
    "appended": ("INCREMENTAL_UNMANAGED", "", "WHERE day BETWEEN @start_ds AND @end_ds"),
    "overwritten": (
        "INCREMENTAL_UNMANAGED (insert_overwrite true)",
        ", partitioned_by [part]",
        "WHERE part IN (SELECT part FROM raw.t WHERE day BETWEEN @start_ds AND @end_ds)",
    ),
    "by_key": (
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
        "",
        "WHERE day BETWEEN @start_ds AND @end_ds",
    ),
    "by_partition": (
        "INCREMENTAL_BY_PARTITION",
        ", partitioned_by [part]",
        "WHERE part IN (SELECT part FROM raw.t WHERE day BETWEEN @start_ds AND @end_ds)",
    ),
    "by_column": ("SCD_TYPE_2_BY_COLUMN (unique_key id, columns [amount])", "", ""),
    "by_update": ("SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name day)", "", ""),
}
# What is in prod's table after the next run: amounts were 10, 20 and 30 (ids 1 to 3, the first two
# of partition a); then id 1 comes again with 10, in partition a for `by_key`, and id 4 comes with 40
# in partition b.
EXPECTED = {
    "by_time": {(1, 10), (2, 20), (3, 30), (4, 80)},
    "appended": {(1, 10), (2, 20), (3, 30), (4, 80)},
    "overwritten": {(1, 10), (2, 20), (3, 60), (4, 80)},
    "by_key": {(1, 20), (2, 20), (3, 30), (4, 80)},
    "by_partition": {(1, 10), (2, 20), (3, 60), (4, 80)},
    "by_column": {(1, 10), (1, 20), (2, 20), (2, 40), (3, 30), (3, 60), (4, 80)},
    "by_update": {(1, 10), (2, 20), (3, 30), (4, 80)},
}
KEEPS = {"by_time", "appended"}
# One kind that keeps old rows, one that merges, one that writes history.
BY_DAY = ["by_time", "by_key", "by_update"]


def write_kind(shop: Shop, kind: str) -> Path:
    """A project with a table outside of it and one model of a kind; returns the warehouse."""
    declared, more, where = MODELS[kind]
    cast = "CAST(day AS TIMESTAMP)" if kind == "by_update" else "CAST(day AS DATE)"
    shop.write(
        "models/m.sql",
        f"MODEL (name shop.m, kind {declared}, start '2024-01-01', cron '@daily'{more});\n\n"
        "SELECT CAST(id AS INT) AS id, CAST(amount * 1 AS INT) AS amount, "
        f"{cast} AS day, CAST(part AS TEXT) AS part FROM raw.t {where}\n",
    )
    file = next(
        line.split(":", 1)[1].strip()
        for line in (shop.project / "config.yaml").read_text().splitlines()
        if "database:" in line
    )
    with duckdb.connect(file) as connection:
        connection.execute("CREATE SCHEMA raw")
        connection.execute(
            "CREATE TABLE raw.t AS SELECT * FROM (VALUES (1, 10, DATE '2024-01-03', 'a'), "
            "(2, 20, DATE '2024-01-05', 'a'), (3, 30, DATE '2024-01-06', 'b')) "
            "AS v(id, amount, day, part)"
        )
    return Path(file)


@pytest.fixture
def empty_shop(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path)


@pytest.mark.night
@pytest.mark.parametrize("kind", nights.cases(MODELS.keys(), by_day=BY_DAY))
def test_sqlmesh__old_rows_after_a_forward_only_change(empty_shop: Shop, kind: str) -> None:
    """The facts behind `describe_old_rows_of_kind`: SQLMesh itself, followed through prod's next run."""
    file = write_kind(empty_shop, kind)
    run_prod(empty_shop, "2024-01-08")
    empty_shop.edit("models/m.sql", "amount * 1", "amount * 2")
    context = Context(paths=[str(empty_shop.project)])
    context.plan(
        "prod",
        forward_only=True,
        auto_apply=True,
        no_prompts=True,
        skip_tests=True,
        allow_destructive_models=["shop.m"],
        execution_time="2024-01-08",
    )
    context.close()
    with duckdb.connect(str(file)) as connection:
        connection.execute("INSERT INTO raw.t VALUES (4, 40, DATE '2024-01-08', 'b')")
        if kind == "by_key":
            connection.execute("UPDATE raw.t SET day = DATE '2024-01-08' WHERE id = 1")
    run_prod(empty_shop, "2024-01-10")

    with duckdb.connect(str(file)) as connection:
        rows = connection.execute("SELECT id, amount FROM shop.m").fetchall()
    assert set(rows) == EXPECTED[kind]


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "mode", nights.cases(["forward_only", "dev_only"], by_day=["forward_only"])
)
@pytest.mark.parametrize("kind", nights.cases(MODELS.keys(), by_day=BY_DAY))
def test_old_rows__are_said_to_stay_only_where_they_do(
    empty_shop: Shop, kind: str, mode: str
) -> None:
    write_kind(empty_shop, kind)
    if mode == "dev_only":
        config = empty_shop.project / "config.yaml"
        config.write_text(f"{config.read_text()}\nvirtual_environment_mode: dev_only\n")
    run_prod(empty_shop, "2024-01-08")
    empty_shop.edit("models/m.sql", "amount * 1", "amount * 2")
    flags = GivenFlags(
        forward_only=True if mode == "forward_only" else None, allow_destructive=["shop.m"]
    )

    report = Client(empty_shop.project).review("pr_1", flags=flags)

    assert report.failure is None
    said = texts(report)
    table = [str(row.later) for row in list_build_row_views(report)]
    if kind in KEEPS:
        assert "history keeps the old numbers" in said
        assert "history stays" in said
        assert "history stays" in table
    else:
        assert make_headline_view(report).sentence.startswith(
            "Past numbers may change: `amount` in `shop.m`"
        )
        assert "history stays" not in said
        assert "prod's next run" in said
        assert "old rows can change" in table


PYTHON = """\
from sqlmesh import model


@model("shop.counted", kind="FULL", columns={"total": "int"}, depends_on=["shop.orders"])
def execute(context, start, end, execution_time, **kwargs):
    table = context.resolve_table("shop.orders")
    return context.fetchdf(f"SELECT CAST(SUM(amount) AS INT) AS total FROM {table}")
"""


@pytest.mark.night
@pytest.mark.parametrize("mode", nights.cases(["forward_only", "dev_only"], by_day=["dev_only"]))
def test_python_full__is_computed_whole_by_prods_next_run(shop: Shop, mode: str) -> None:
    if mode == "dev_only":
        config = shop.project / "config.yaml"
        config.write_text(f"{config.read_text()}\nvirtual_environment_mode: dev_only\n")
    shop.write("models/counted.py", PYTHON)
    run_prod(shop, "2024-01-10")
    context = Context(paths=[str(shop.project)])
    context.plan(auto_apply=True, no_prompts=True, skip_tests=True, execution_time="2024-01-10")
    context.close()
    shop.edit("models/counted.py", "SUM(amount) AS", "SUM(amount) * 2 AS")

    report = Client(shop.project).review(
        "pr_1", flags=GivenFlags(forward_only=True if mode == "forward_only" else None)
    )

    assert report.prod_plan is not None
    assert report.prod_plan.full_backfill == []
    assert [item.model for item in report.prod_plan.next_run] == ["shop.counted"]
    assert report.prod_plan.cost is not None
    assert (report.prod_plan.cost.tables, report.prod_plan.cost.intervals) == (1, 1)
    assert "prod's next run computes the whole table again" in texts(report)
    assert "history stays" not in texts(report)
