"""Apply and cleanup of a real project on embedded Spark, in the real worker process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.protocol.plan_identity import GivenFlags
from tests.conftest import run_python
from tests.factories import make_context
from tests.integration.test_review import ADD_ORDERS, REVENUE, state_rows
from tests.projects import Shop, write_shop
from tests.worker import Client, client

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def sql(shop: Shop, *statements: str) -> list[list[list[str]]]:
    """Rows of each statement, asked in a JVM of its own."""
    out = run_python("tests.projects.spark_sql", str(shop.project), *statements)
    rows: list[list[list[str]]] = json.loads(out.strip().splitlines()[-1])
    return rows


def prod_intervals(shop: Shop) -> list[tuple[object, ...]]:
    """Every interval that is recorded for a table version that prod references."""
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        return connection.execute(
            "SELECT i.name, i.version, i.start_ts, i.end_ts, i.is_dev FROM sqlmesh._intervals i "
            "JOIN sqlmesh._snapshots s ON s.name = i.name AND s.version = i.version "
            "WHERE s.unpaused_ts IS NOT NULL AND NOT i.is_dev ORDER BY ALL"
        ).fetchall()


@pytest.fixture
def worker(shop: Shop) -> Iterator[Client]:
    """A client whose environments are gone after the test."""
    used = client(shop)
    yield used
    for name in sorted(shop.not_cleaned_up()):
        used.cleanup(name)


@pytest.mark.night
def test_views_of_all_models__can_be_built_without_a_change(shop: Shop, worker: Client) -> None:
    flags = GivenFlags(include_unmodified=True)
    report = worker.review("pr_9", flags=flags)
    assert (report.decision, report.appliable) == ("no_changes", True)
    text = render_review_comment(report, make_context(phase="no_changes", environment="pr_9")).text
    assert "because `include-unmodified` asks for it" in text
    assert "/sqlmesh apply" in text

    applied = worker.apply(
        "pr_9",
        plan_id=report.plan_id,
        window=report.identity and report.identity.window,
        flags=flags,
    )

    assert (applied.failure, applied.result) == (None, "applied")
    assert len(applied.views) == report.project.models


def test_life__review_apply_review_cleanup_twice(shop: Shop, worker: Client) -> None:
    # A column of this test's own: what another test has applied is built already.
    shop.edit("models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS lived")
    before = prod_intervals(shop)
    first = worker.review("pr_1")

    applied = worker.apply(
        "pr_1", plan_id=first.plan_id, window=first.identity and first.identity.window
    )

    assert applied.failure is None
    assert applied.result == "applied"
    assert applied.plan_id == first.plan_id
    assert {view.view: view.resolves for view in applied.views} == {
        "shop__pr_1.revenue": True,
        "shop__pr_1.top_customers": True,
    }
    assert {model.model: model.rows for model in applied.models} == {
        "shop.revenue": 3,
        "shop.top_customers": 2,
    }
    assert applied.audits.passed == 1
    assert applied.audits.failed == 0
    assert prod_intervals(shop) == before
    assert sql(shop, "SELECT SUM(lived) FROM shop__pr_1.revenue", "SHOW VIEWS IN shop__pr_1")[
        0
    ] == [["30"]]

    # SQLMesh by itself would now compare with the PR environment and say "no changes".
    second = worker.review("pr_1")
    assert second.plan_id == first.plan_id
    assert second.changes == first.changes
    assert second.backfill == first.backfill
    assert second.work == []
    assert first.work != []
    assert "already holds" in (second.environment_now or "")
    assert (first.environment_holds_plan, second.environment_holds_plan) == (False, True)
    assert not second.work
    context = make_context(phase="planned", environment="pr_1")
    # A unit test of the shop knows nothing of the new column, and a No-Go asks for no apply.
    passing = {"decision": "go", "risks": [], "findings": []}
    texts = [
        render_review_comment(report.model_copy(update=passing), context).text
        for report in (first, second)
    ]
    assert ["/sqlmesh apply" in text for text in texts] == [True, False]

    again = worker.apply(
        "pr_1", plan_id=first.plan_id, window=first.identity and first.identity.window
    )
    assert again.result == "nothing_to_apply"

    removed = worker.cleanup("pr_1")
    assert removed.failure is None
    assert removed.result == "removed"
    assert removed.views_dropped == ["shop__pr_1.revenue", "shop__pr_1.top_customers"]
    assert removed.schemas_dropped == ["shop__pr_1"]
    assert removed.leftovers == []
    assert removed.state_record_removed
    namespaces = [row[0] for row in sql(shop, "SHOW NAMESPACES")[0]]
    assert "shop__pr_1" not in namespaces
    assert "shop" in namespaces

    quiet = worker.cleanup("pr_1")
    assert quiet.result == "nothing_to_do"
    assert not quiet.existed
    assert "spark" not in worker.heard.phases


def test_apply__of_another_plan__is_refused_and_touches_nothing(shop: Shop, worker: Client) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    reviewed = worker.review("pr_2")
    shop.edit("models/revenue.sql", "AS orders", "AS order_count")
    rows = state_rows(shop.state)

    document = worker.apply(
        "pr_2",
        plan_id=reviewed.plan_id,
        reviewed=reviewed.identity,
        window=reviewed.identity and reviewed.identity.window,
    )

    assert document.result == "refused"
    assert document.reason_code == "plan_changed"
    assert document.failure is not None
    assert document.failure.exit_code == 3
    assert document.difference is not None
    assert any("revenue" in name for name in document.difference.snapshots_changed)
    assert state_rows(shop.state) == rows
    assert "spark" not in worker.heard.phases


def test_apply__to_a_catalog_without_views__is_refused_before_anything_is_built(
    shop: Shop, worker: Client
) -> None:
    # The pull request moves the project to a catalog of tables in another database.
    moved = "\n        ".join(
        [
            "spark.sql.defaultCatalog: plain",
            "spark.sql.catalog.plain: "
            "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
            "spark.sql.catalog.plain.url: jdbc:derby:memory:plain;create=true",
            "spark.sql.catalog.plain.driver: org.apache.derby.jdbc.EmbeddedDriver",
            "spark.app.name: shop",
        ]
    )
    shop.edit("config.yaml", "spark.app.name: shop", moved)
    before = state_rows(shop.state)

    document = worker.apply("pr_1", start="2024-01-01")

    assert document.failure is not None
    assert (document.failure.reason_code, document.failure.exit_code) == ("no_views", 2)
    assert "The catalog plain does not hold views" in document.failure.message
    assert state_rows(shop.state) == before


@pytest.mark.night
def test_apply__with_end_beyond_prod__is_capped_at_prods_frontier(
    shop: Shop, worker: Client
) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    before = prod_intervals(shop)

    document = worker.apply("pr_3", end="2024-03-01")

    assert document.result == "applied", document.failure
    assert prod_intervals(shop) == before


@pytest.mark.night
def test_apply__including_unmodified__creates_views_only(shop: Shop, worker: Client) -> None:
    shop.edit(
        "models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(MIN(o.amount) AS INT) AS smallest"
    )
    before = prod_intervals(shop)

    document = worker.apply("pr_4", flags=GivenFlags(include_unmodified=True), end="2024-03-01")
    shop.edit("models/revenue.sql", "AS smallest", "AS smallest_amount")
    next_time = worker.review("pr_4").cost

    assert document.result == "applied", document.failure
    assert {view.view for view in document.views} >= {"shop__pr_4.orders", "shop__pr_4.customers"}
    assert {model.model for model in document.models} == {"shop.revenue", "shop.top_customers"}
    assert prod_intervals(shop) == before
    # What it took is the estimate of the next plan: one local executor for a few seconds.
    assert document.executor_hours is not None
    assert next_time.confidence in ("medium", "high")
    assert 0 < (next_time.executor_hours_mid or 0) < 0.1


@pytest.fixture
def gap(shop: Shop) -> Iterator[tuple[int, int]]:
    """A day that prod's orders lack although later days are there; filled again afterwards."""
    day = 86_400_000
    start = 1704067200000 + 3 * day
    with duckdb.connect(str(shop.state)) as connection:
        rows = connection.execute(
            "SELECT * FROM sqlmesh._intervals WHERE name LIKE '%orders%'"
        ).fetchall()
        connection.execute(
            "INSERT INTO sqlmesh._intervals BY NAME SELECT 'gap' AS id, created_ts + 1 AS created_ts, "
            "name, identifier, version, dev_version, ? AS start_ts, ? AS end_ts, is_dev, "
            "TRUE AS is_removed, FALSE AS is_compacted, is_pending_restatement, last_altered_ts "
            "FROM sqlmesh._intervals WHERE name LIKE '%orders%' ORDER BY created_ts DESC LIMIT 1",
            [start, start + day],
        )
    yield start, start + day
    with duckdb.connect(str(shop.state)) as connection:
        connection.execute("DELETE FROM sqlmesh._intervals WHERE id = 'gap'")
    assert rows


def test_apply__over_a_gap_in_prod__is_refused_with_model_and_interval(
    shop: Shop, worker: Client, gap: tuple[int, int]
) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    rows = state_rows(shop.state)

    document = worker.apply("pr_3")

    assert document.failure is not None
    assert document.failure.reason_code == "would_write_prod"
    assert document.failure.exit_code == 3
    assert "shop.orders" in document.failure.message
    assert "2024-01-04" in document.failure.message
    assert state_rows(shop.state) == rows


def test_apply__with_start_before_prod__is_refused(shop: Shop, worker: Client) -> None:
    # A start is metadata to SQLMesh: the new version shares prod's table, and would fill it.
    shop.edit("models/orders.sql", "start '2024-01-01'", "start '2023-12-30'")
    rows = state_rows(shop.state)

    document = worker.apply("pr_3")

    assert document.failure is not None
    assert document.failure.reason_code == "would_write_prod"
    assert "shop.orders" in document.failure.message
    assert "2023-12-30" in document.failure.message
    assert state_rows(shop.state) == rows


def test_apply__without_prod__says_build_prod_first(tmp_path: Path, java: None) -> None:
    shop = write_shop(tmp_path)
    document = client(shop).apply("pr_1")

    assert document.failure is not None
    assert document.failure.reason_code == "no_prod"
    assert document.failure.exit_code == 2
    assert not shop.state.exists()


def test_cleanup__keeps_what_the_environment_did_not_make(shop: Shop, worker: Client) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    assert worker.apply("pr_2").result == "applied"
    sql(shop, "CREATE TABLE shop__pr_2.notes USING parquet AS SELECT 1 AS a")

    document = worker.cleanup("pr_2")

    assert document.result == "incomplete"
    assert document.foreign == ["shop__pr_2.notes"]
    assert document.views_dropped == ["shop__pr_2.revenue", "shop__pr_2.top_customers"]
    assert document.schemas_dropped == []
    assert document.state_record_removed, "an expired record would let the janitor cascade"
    assert document.failure is not None
    assert document.failure.exit_code == 4
    assert sql(shop, "SELECT a FROM shop__pr_2.notes")[0] == [["1"]]

    sql(shop, "DROP TABLE shop__pr_2.notes")
    finished = worker.cleanup("pr_2")
    assert finished.result == "removed"
    assert finished.schemas_dropped == ["shop__pr_2"]


@pytest.mark.parametrize("name", ["prod", "pr", "pr_", "pr_1x", "main", "dev", "pr_1; drop"])
def test_cleanup__of_a_name_that_is_no_pr_environment__is_refused(shop: Shop, name: str) -> None:
    document = client(shop).cleanup(name)

    assert document.result == "refused"
    assert document.failure is not None
    assert document.failure.exit_code == 3


@pytest.mark.night
def test_cleanup__with_models_that_no_longer_parse__works(shop: Shop, worker: Client) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    assert worker.apply("pr_1").result == "applied"
    shop.write("models/revenue.sql", "this is not SQL (")
    shop.write("macros/broken.py", "def broken(:\n")

    document = worker.cleanup("pr_1")

    assert document.result == "removed"
