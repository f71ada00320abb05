"""Lives on Iceberg tables: through Hive's catalog, and through a catalog of Iceberg's own.

The second keeps views as well, refuses DROP SCHEMA ... CASCADE, and lists tables and views apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ci_bot.protocol.apply_report import ApplyDocument, TableDiff
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from tests.conftest import PROD_UNTIL, missing, run_python
from tests.integration.test_apply_and_cleanup import sql
from tests.integration.test_doctor import examine
from tests.maven import ICEBERG, SQLITE, JarMissingError, jar
from tests.projects import Shop
from tests.projects.by_time import by_time
from tests.projects.lake import write_lake
from tests.worker import Client, built, client

pytestmark = [pytest.mark.iceberg, pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

EXTENSIONS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
}
# SQLMesh reads the type of valid_from and valid_to back from state as another one, so every change
# of an SCD type 2 model on Spark counts as destructive.
FLAGS = GivenFlags(allow_destructive=["lake.past"])
BY_DAY = by_time(
    "lake.by_day",
    """\
SELECT d.day, COUNT(*) AS people
FROM lake.latest
CROSS JOIN (
  SELECT EXPLODE(SEQUENCE(CAST(@start_ds AS DATE), CAST(@end_ds AS DATE))) AS day
) AS d
WHERE d.day BETWEEN @start_date AND @end_date
GROUP BY d.day""",
    column="day",
    start="2024-01-06",
)
MODELS = {"lake.past", "lake.latest", "lake.rich", "lake.totals"}
VIEWS = {"lake__pr_1.past", "lake__pr_1.latest", "lake__pr_1.rich", "lake__pr_1.totals"}


@pytest.fixture(scope="module")
def jars(java: None) -> dict[str, Path]:
    """Iceberg's and SQLite's jars by name."""
    try:
        return {artifact.name: jar(artifact, os.environ) for artifact in (ICEBERG, SQLITE)}
    except JarMissingError as error:
        missing(str(error))
        raise


@pytest.fixture(scope="module")
def built_on_hive(tmp_path_factory: pytest.TempPathFactory, jars: dict[str, Path]) -> Shop:
    """Prod on Iceberg tables in Spark's own catalog, over an embedded Hive metastore."""
    shop = write_lake(
        tmp_path_factory.mktemp("iceberg-hive"),
        {
            **EXTENSIONS,
            "spark.jars": str(jars[ICEBERG.name]),
            "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
            "spark.sql.catalog.spark_catalog.type": "hive",
            # A metastore whose schema DataNucleus created has no tables for locks: a commit would
            # try for minutes to get one. And it has no version, which Spark's client overlooks and
            # Iceberg's does not.
            "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
            "spark.hadoop.hive.metastore.schema.verification": "false",
        },
    )
    run_python("tests.projects.lake", str(shop.project), PROD_UNTIL)
    return shop


@pytest.fixture(scope="module")
def built_on_jdbc(tmp_path_factory: pytest.TempPathFactory, jars: dict[str, Path]) -> Shop:
    """Prod in an Iceberg catalog that lies in a SQLite file and is Spark's default."""
    root = tmp_path_factory.mktemp("iceberg-jdbc")
    catalog = "spark.sql.catalog.warehouse"
    shop = write_lake(
        root,
        {
            **EXTENSIONS,
            "spark.jars": ",".join(str(path) for path in jars.values()),
            "spark.sql.defaultCatalog": "warehouse",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "jdbc",
            f"{catalog}.uri": f"jdbc:sqlite:{root / 'catalog.sqlite'}",
            # From this version on the catalog keeps views.
            f"{catalog}.jdbc.schema-version": "V1",
            # SQLite has one writer: a second connection would be told that the file is locked.
            f"{catalog}.clients": "1",
            f"{catalog}.warehouse": str(root / "lake"),
        },
    )
    run_python("tests.projects.lake", str(shop.project), PROD_UNTIL)
    return shop


@pytest.fixture
def on_hive(built_on_hive: Shop) -> Shop:
    return changed(built_on_hive)


@pytest.fixture
def on_jdbc(built_on_jdbc: Shop) -> Iterator[Shop]:
    yield changed(built_on_jdbc)


def changed(shop: Shop) -> Shop:
    """The pull request: every model but the seed is another one."""
    credit = "CAST(p.id * 10 AS INT) AS credit"
    shop.edit(
        "models/latest.sql",
        credit,
        "CAST(p.id * 11 AS INT) AS credit,\n  CAST(p.segment AS STRING) AS segment",
    )
    segment = "CAST(p.segment AS STRING) AS segment"
    shop.edit("models/past.sql", segment, f"{segment},\n  CAST(p.name AS STRING) AS name")
    total = "CAST(SUM(l.credit) AS BIGINT) AS credit"
    shop.edit("models/totals.sql", total, f"{total},\n  CAST(COUNT(*) AS BIGINT) AS people")
    shop.edit("models/rich.sql", "t.credit > 20", "t.credit > 10")
    return shop


def reviewed_and_applied(worker: Client, environment: str) -> tuple[Report, ApplyDocument]:
    report = worker.review(environment, flags=FLAGS)
    assert report.failure is None
    assert report.identity is not None
    applied = worker.apply(
        environment, plan_id=report.plan_id, window=report.identity.window, flags=FLAGS
    )
    assert applied.failure is None
    return report, applied


def check_evidence(applied: ApplyDocument) -> None:
    """Rows, views and audits, and a diff that saw the changes of all four models."""
    assert applied.result == "applied"
    assert {view.view for view in applied.views if view.resolves} == VIEWS
    assert {model.model: model.rows for model in applied.models} == {
        "lake.past": 3,
        "lake.latest": 3,
        "lake.rich": 2,
        "lake.totals": 2,
    }
    assert (applied.audits.passed, applied.audits.failed) == (1, 0)
    diffs = {diff.model: diff for diff in applied.table_diff}
    assert set(diffs) == MODELS
    assert counts(diffs["lake.latest"]) == (3, 3, 3, 0, 0)
    assert rates(diffs["lake.latest"]) == {"name": 1.0, "credit": 0.0}
    assert diffs["lake.latest"].schema_.added == ["segment"]
    assert counts(diffs["lake.past"]) == (3, 3, 3, 0, 0)
    assert rates(diffs["lake.past"]) == {"segment": 1.0, "valid_from": 1.0, "valid_to": 1.0}
    assert counts(diffs["lake.totals"]) == (2, 2, 2, 0, 0)
    assert rates(diffs["lake.totals"]) == {"credit": 0.0}
    assert counts(diffs["lake.rich"]) == (1, 2, 1, 0, 1)


def counts(diff: TableDiff) -> tuple[int | None, ...]:
    assert diff.compared, diff.skipped_because
    return (diff.rows_prod, diff.rows_pr, diff.matched, diff.only_prod, diff.only_pr)


def rates(diff: TableDiff) -> dict[str, float | None]:
    return {column.name: column.match_rate for column in diff.columns}


def check_removal(worker: Client) -> None:
    removed = worker.cleanup("pr_1")
    assert removed.failure is None
    assert removed.result == "removed"
    assert set(removed.views_dropped) == VIEWS
    assert removed.schemas_dropped == ["lake__pr_1"]
    assert removed.state_record_removed

    again = worker.cleanup("pr_1")
    assert again.result == "nothing_to_do"
    assert "spark" not in worker.heard.phases


@pytest.mark.night
def test_life__on_iceberg_through_hives_catalog(on_hive: Shop) -> None:
    worker = client(on_hive)
    report, applied = reviewed_and_applied(worker, "pr_1")
    assert {change.model for change in report.changes} == MODELS
    check_evidence(applied)

    check_removal(worker)

    schemas, prod = sql(on_hive, "SHOW NAMESPACES", "SELECT SUM(credit) FROM lake.latest")
    assert ["lake__pr_1"] not in schemas
    assert ["lake"] in schemas
    assert prod == [["60"]]


@pytest.mark.night
def test_life__in_icebergs_own_catalog(on_jdbc: Shop) -> None:
    """Then once more where an apply died: its tables and views are there, but nobody knows."""
    worker = client(on_jdbc)
    report, applied = reviewed_and_applied(worker, "pr_1")
    assert report.identity is not None
    check_evidence(applied)

    check_removal(worker)

    schemas, views, prod, *_ = sql(
        on_jdbc,
        "SHOW NAMESPACES IN warehouse",
        "SHOW VIEWS IN warehouse.sqlmesh__lake",
        "SELECT SUM(credit) FROM warehouse.lake.latest",
        "CREATE SCHEMA warehouse.lake__pr_2",
        "CREATE TABLE warehouse.lake__pr_2.notes USING iceberg AS SELECT 1 AS a",
        "CREATE VIEW warehouse.lake__pr_2.reading AS SELECT * FROM warehouse.lake__pr_2.notes",
    )
    assert schemas == [["lake"], ["sqlmesh__lake"]]
    assert len(views) == 2, "the physical view of the changed model stays, as its tables do"
    assert prod == [["60"]]

    forget_what_was_built(on_jdbc)
    _, repeated = reviewed_and_applied(worker, "pr_2")
    assert repeated.result == "applied"
    assert [attempt.result for attempt in repeated.attempts] == ["succeeded"]
    assert {model.rows for model in repeated.models} == {2, 3}

    kept = worker.cleanup("pr_2")
    assert kept.result == "incomplete"
    assert kept.foreign == ["lake__pr_2.notes", "lake__pr_2.reading"]
    assert len(kept.views_dropped) == len(VIEWS)
    assert kept.schemas_dropped == []
    assert kept.state_record_removed, "an expired record would let the janitor try"


@pytest.mark.night
def test_probe__in_icebergs_own_catalog_is_reused_and_cleaned_up(built_on_jdbc: Shop) -> None:
    worker = client(built_on_jdbc)
    file = built_on_jdbc.write("models/by_day.sql", BY_DAY)
    try:
        probed = worker.apply("pr_4", probe=True, flags=FLAGS)
        assert (probed.result, probed.reason_code) == ("probed", "probed"), probed.failure
        ((name, (days_probed, batches)),) = built(probed).items()
        assert (name, batches) == ("lake.by_day", 1)
        assert probed.estimate is not None

        applied = worker.apply("pr_4", plan_id=probed.plan_id, flags=FLAGS)
        assert applied.result == "applied", applied.failure
        days_left, batches = built(applied)["lake.by_day"]
        assert batches > 1
        days, *_ = sql(built_on_jdbc, "SELECT COUNT(*), COUNT(DISTINCT day) FROM lake__pr_4.by_day")
        assert days == [[str(days_probed + days_left)] * 2]
        removed = worker.cleanup("pr_4")
        assert removed.result == "removed", removed.failure
    finally:
        file.unlink()


@pytest.mark.night
def test_apply__to_a_catalog_of_tables_only__is_refused_before_anything_is_built(
    built_on_jdbc: Shop,
) -> None:
    """Iceberg's Hadoop catalog, to which the pull request moves the project."""
    config = (built_on_jdbc.project / "config.yaml").read_text("utf-8")
    catalog = "spark.sql.catalog.plain"
    moved = "\n        ".join(
        [
            'spark.sql.defaultCatalog: "plain"',
            f"{catalog}: org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type: hadoop",
            f"{catalog}.warehouse: {built_on_jdbc.root / 'plain'}",
        ]
    )
    built_on_jdbc.edit("config.yaml", 'spark.sql.defaultCatalog: "warehouse"', moved)

    document = client(built_on_jdbc).apply("pr_3", start="2024-01-01")

    built_on_jdbc.write("config.yaml", config)
    assert document.failure is not None
    assert (document.failure.reason_code, document.failure.exit_code) == ("no_views", 2)
    assert not (built_on_jdbc.root / "plain").exists()


@pytest.mark.night
def test_doctor__says_that_sqlmesh_cannot_list_icebergs_own_catalog(
    built_on_jdbc: Shop, tmp_path: Path
) -> None:
    _, checks, _ = examine(built_on_jdbc.project, tmp_path)

    assert checks["listing"]["status"] == "warn"
    assert "cannot list what warehouse holds" in checks["listing"]["message"]
    assert {checks[name]["status"] for name in ("catalogs", "views", "rights")} == {"ok"}


def forget_what_was_built(shop: Shop) -> None:
    """Takes the pull request's snapshots out of the state, as if nothing had been recorded."""
    with duckdb.connect(str(shop.state)) as connection:
        ours = "SELECT name, identifier FROM sqlmesh._snapshots WHERE unpaused_ts IS NULL"
        for table in ("_intervals", "_snapshots"):
            connection.execute(f"DELETE FROM sqlmesh.{table} WHERE (name, identifier) IN ({ours})")
