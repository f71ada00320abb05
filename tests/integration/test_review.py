"""A review of a real project against a real state, in the real worker process."""

from __future__ import annotations

import hashlib
import threading
from importlib import metadata
from pathlib import Path

import duckdb
import pytest

from tests.projects import Shop, write_shop
from tests.worker import client, java_processes

pytestmark = pytest.mark.spark

REVENUE = "SUM(o.amount) AS BIGINT) AS revenue"
ADD_ORDERS = (REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS orders")


def digest(path: Path) -> str:
    """The content of every file below `path`, in one number."""
    found = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            found.update(str(file.relative_to(path.parent)).encode())
            found.update(file.read_bytes())
    return found.hexdigest()


def state_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of a state database."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
        ).fetchall()
        return {
            f"{schema}.{table}": connection.execute(
                f'SELECT * FROM "{schema}"."{table}" ORDER BY ALL'
            ).fetchall()
            for schema, table in tables
        }


def test_review__of_a_change__describes_the_plan(shop: Shop) -> None:
    # A column of this test's own: what another test has applied is no new snapshot any more.
    shop.edit("models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS reviewed")
    shop.edit("tests/test_revenue.yaml", "revenue: 15}", "revenue: 15, reviewed: 2}")

    report = client(shop).review("pr_1")

    assert report.failure is None
    assert {(c.model, c.change, c.category) for c in report.changes} == {
        ("shop.revenue", "direct", "non_breaking"),
        ("shop.top_customers", "indirect", "indirect_non_breaking"),
    }
    revenue = next(change for change in report.changes if change.model == "shop.revenue")
    assert revenue.path == "models/revenue.sql"
    assert revenue.diff is not None
    assert "+  CAST(COUNT(*) AS BIGINT) AS reviewed" in revenue.diff
    built = {item.model: item for item in report.backfill}
    assert built["shop.revenue"].reused_in_prod
    assert built["shop.top_customers"].preview
    assert not built["shop.top_customers"].reused_in_prod
    assert report.checks.tests.status == "passed"
    assert report.checks.lint.status == "passed"
    assert report.checks.audits.status == "not_run"
    assert [stage.stage for stage in report.stages] == [
        "create_snapshot_records",
        "physical_layer_schema_creation",
        "backfill",
        "environment_record_update",
        "virtual_layer_update",
        "finalize_environment",
    ]
    assert report.versions.sqlmesh == metadata.version("sqlmesh")
    assert report.appliable


def test_review__of_an_incremental_model__counts_intervals_and_batches(shop: Shop) -> None:
    shop.edit("models/orders.sql", "customer_id * 10 AS INT", "customer_id * 20 AS INT")

    report = client(shop).review("pr_1")

    orders = next(item for item in report.backfill if item.model == "shop.orders")
    assert (orders.intervals, orders.batches) == (10, 2)
    assert (orders.start, orders.end) == ("2024-01-01T00:00:00Z", "2024-01-11T00:00:00Z")
    assert orders.action == "incremental"


def test_review__changes_nothing_in_state_or_warehouse(shop: Shop) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    rows, bytes_before = state_rows(shop.state), digest(shop.state)
    warehouse, metastore = digest(shop.warehouse), digest(shop.root / "metastore")
    project = digest(shop.project)  # with SQLMesh's own .cache, which is neither read nor written

    client(shop).review("pr_1")

    assert digest(shop.state) == bytes_before
    assert state_rows(shop.state) == rows
    assert digest(shop.warehouse) == warehouse
    assert digest(shop.root / "metastore") == metastore
    assert digest(shop.project) == project


def test_review__never_starts_a_jvm(shop: Shop) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    seen: set[int] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            seen.update(java_processes())

    before = java_processes()
    watcher = threading.Thread(target=watch)
    watcher.start()
    reviewer = client(shop)
    try:
        reviewer.review("pr_1")
    finally:
        done.set()
        watcher.join()

    assert seen <= before
    assert "spark" not in reviewer.heard.phases


def test_review__without_a_change__says_no_changes(shop: Shop) -> None:
    report = client(shop).review("pr_1")

    assert report.decision == "no_changes"
    assert report.changes == []
    assert not report.appliable


def test_review__with_an_absent_state__creates_none_and_calls_everything_new(
    tmp_path: Path,
) -> None:
    shop = write_shop(tmp_path)

    report = client(shop).review("pr_1")

    assert not shop.state.exists()
    assert report.baseline == "empty"
    assert {change.change for change in report.changes} == {"added"}
    assert any("No prod was found" in note for note in report.notes)
    assert not report.appliable


@pytest.mark.parametrize(
    ("path", "text", "exit_code", "says"),
    [
        ("config.yaml", "gateways: [", 2, "config.yaml"),
        ("models/revenue.sql", "MODEL (name shop.revenue); SELEC 1", 1, "revenue.sql"),
        ("models/revenue.sql", "MODEL (name shop.revenue, kind FULLY); SELECT 1 AS a", 1, "FULLY"),
    ],
)
def test_review__of_a_broken_project__is_a_failure_with_a_place(
    shop: Shop, path: str, text: str, exit_code: int, says: str
) -> None:
    shop.write(path, text)

    report = client(shop).review("pr_1")

    assert report.decision == "no_go"
    assert report.failure is not None
    assert report.failure.exit_code == exit_code
    assert says in f"{report.failure.path} {report.failure.message}"
    assert "Traceback" not in report.failure.message
    assert str(shop.root) not in report.failure.message


def test_review__with_an_unknown_gateway__names_the_known_ones(shop: Shop) -> None:
    report = client(shop, gateway="sparkle").review("pr_1")

    assert report.failure is not None
    assert report.failure.reason_code == "unknown_gateway"
    assert report.failure.exit_code == 2
    assert "spark" in (report.failure.hint or "")


def test_review__of_a_state_of_another_version__names_who_must_act(
    shop: Shop, tmp_path: Path
) -> None:
    older = tmp_path / "older.duckdb"
    older.write_bytes(shop.state.read_bytes())
    with duckdb.connect(str(older)) as connection:
        connection.execute("UPDATE sqlmesh._versions SET schema_version = 1")
    shop.edit("config.yaml", str(shop.state), str(older))

    report = client(shop).review("pr_1")

    assert report.failure is not None
    assert report.failure.reason_code == "state_version"
    assert report.failure.exit_code == 2
    assert "sqlmesh migrate" in (report.failure.hint or "")


def test_review__of_a_locked_state__is_refused_with_the_holder(shop: Shop) -> None:
    holder = duckdb.connect(str(shop.state))
    try:
        report = client(shop).review("pr_1")
    finally:
        holder.close()

    assert report.failure is not None
    assert report.failure.reason_code == "state_locked"
    assert report.failure.exit_code == 3


def test_review__with_the_dates_swapped__says_so(shop: Shop) -> None:
    shop.edit("models/revenue.sql", *ADD_ORDERS)

    report = client(shop).review("pr_1", start="2024-01-09", end="2024-01-02")

    assert report.failure is not None
    assert report.failure.reason_code == "bad_window"
    assert report.failure.exit_code == 2
