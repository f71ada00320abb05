"""Physical tables after a cleanup: what stays, what goes, and when."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest

from ci_bot.bot.github.port import PullState
from ci_bot.bot.worker_client import cleanup
from ci_bot.bot.worker_client.cleanup import WorkerSweepOptions
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.worker.cleanup.reclaim_rules import PUSHED_AGAIN
from tests.conftest import PROD_UNTIL
from tests.factories import on_terminal
from tests.integration.test_apply_and_cleanup import prod_intervals
from tests.integration.test_review import REVENUE
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

REVENUE_FILE = "models/revenue.sql"
CUSTOMERS_FILE = "models/top_customers.sql"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    """A shop of this module's own, because prod changes here, with prod built."""
    with one_jvm(
        write_shop(tmp_path_factory.mktemp("reclaim-shop")), prod_until=PROD_UNTIL
    ) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    with jvm.shop.kept():
        yield jvm.shop


def query(shop: Shop, statement: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        return connection.execute(statement).fetchall()


def execute(shop: Shop, statement: str) -> None:
    with duckdb.connect(str(shop.state)) as connection:
        connection.execute(statement)


def apply(jvm: OneJvm, environment: str, column: str) -> None:
    """Builds an environment whose revenue has a new column, so that it is a version of its own."""
    text = (jvm.shop.project / REVENUE_FILE).read_text("utf-8")
    if column not in text:
        added = f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {column}"
        jvm.shop.edit(REVENUE_FILE, REVENUE, added)
    document = jvm.apply(environment)
    assert document.result == "applied", document.failure


def tables(jvm: OneJvm) -> set[str]:
    """Physical tables and views on Spark."""
    (rows,) = jvm.sql("SHOW TABLES IN sqlmesh__shop")
    return {f"{row[0]}.{row[1]}" for row in rows}


def ledger_phase(shop: Shop, environment: str) -> str | None:
    rows = query(
        shop, f"SELECT phase FROM sqlmesh_ci_bot._environments WHERE name = '{environment}'"
    )
    return str(rows[0][0]) if rows else None


def pass_a_day(shop: Shop, environment: str) -> None:
    """Everything that is recorded becomes a day older."""
    where = f"WHERE name = '{environment}'"
    ((text,),) = query(shop, f"SELECT document FROM sqlmesh_ci_bot._environments {where}")
    row = json.loads(text)
    then = datetime.fromisoformat(row["updated_at"]) - timedelta(days=1)
    row["updated_at"] = then.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with duckdb.connect(str(shop.state)) as connection:
        connection.execute(
            f"UPDATE sqlmesh_ci_bot._environments SET document = ? {where}", [json.dumps(row)]
        )
        connection.execute("UPDATE sqlmesh._snapshots SET updated_ts = updated_ts - 86400000")


def leave_in_flight(shop: Shop, environment: str) -> None:
    """The row is what an apply leaves that never says how it ended."""
    where = f"WHERE name = '{environment}'"
    applying = 'replace(document, \'"phase":"applied"\', \'"phase":"applying"\')'
    execute(
        shop,
        f"UPDATE sqlmesh_ci_bot._environments SET phase = 'applying', document = {applying} {where}",
    )


def snapshot_rows(shop: Shop, column: str) -> list[tuple[Any, ...]]:
    """Rows of the state that the version with this column has."""
    return query(
        shop,
        "SELECT s.name, s.identifier, i.start_ts FROM sqlmesh._snapshots s LEFT JOIN "
        "sqlmesh._intervals i ON i.name = s.name AND i.version = s.version "
        f"WHERE s.snapshot LIKE '% AS {column}%'",
    )


def sweep(
    jvm: OneJvm, states: Mapping[int, PullState], **options: Any
) -> cleanup.WorkerSweepOutcome:
    def ask_states(numbers: Collection[int]) -> Mapping[int, PullState]:
        return {number: states[number] for number in numbers}

    return cleanup.request_sweep_from_worker(
        jvm, WorkerSweepOptions(owner=OWNER, **options), ask_states
    )


def kept(document: CleanupDocument) -> dict[str, str]:
    return {item.table: item.why for item in document.tables_kept}


CLOSED = PullState(state="closed", merged=False)


@pytest.mark.night
def test_reclaim__after_a_merge_tables_stay_until_their_ttl(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_1", "merged_rows")
    built = tables(jvm)
    expires = {
        row[0]
        for row in query(
            shop,
            "SELECT updated_ts + ttl_ms FROM sqlmesh._snapshots "
            "WHERE snapshot LIKE '% AS merged_rows%'",
        )
    }

    document = jvm.cleanup("pr_1", merged=True, reclaim="always")

    assert document.result == "removed"
    assert document.tables_reclaimed == []
    assert len(document.tables_kept) == 2
    (revenue,) = [item for item in document.tables_kept if "__revenue__" in item.table]
    assert "kept for prod, which reads the data once the merge is deployed" in revenue.why
    # A view's reader of a column more is a preview; the merge makes a view of prod's own.
    (customers,) = [item for item in document.tables_kept if "__top_customers__" in item.table]
    assert "which prod never reads" in customers.why
    assert revenue.until is not None
    assert {datetime.fromisoformat(revenue.until).timestamp() * 1000} == expires
    assert not any(line.startswith("reclaim") for line in jvm.progress)
    assert tables(jvm) == built
    assert ledger_phase(shop, "pr_1") is None


def test_reclaim__after_a_close_the_sweep_takes_them_a_day_later(jvm: OneJvm, shop: Shop) -> None:
    before, prod = tables(jvm), prod_intervals(shop)
    apply(jvm, "pr_2", "closed_rows")
    ours = tables(jvm) - before

    document = jvm.cleanup("pr_2", merged=False)

    assert document.result == "removed"
    assert kept(document).keys() == ours
    assert {"the sweep reclaims it after a day" in why for why in kept(document).values()} == {True}
    assert all(item.until for item in document.tables_kept)
    assert not any(line.startswith("reclaim") for line in jvm.progress)
    assert ledger_phase(shop, "pr_2") == "reclaimable"
    again = jvm.cleanup("pr_2", merged=False)
    assert (again.result, again.tables_kept) == ("nothing_to_do", document.tables_kept)
    assert not any(line.startswith("spark") for line in jvm.progress)

    early = sweep(jvm, {})
    assert [(row.environment, row.standing) for row in early.rows] == [("pr_2", "grace")]
    pass_a_day(shop, "pr_2")
    looked = sweep(jvm, {2: CLOSED}, dry_run=True)
    assert [(row.environment, row.standing) for row in looked.rows] == [("pr_2", "tables")]
    assert re.search(r"pr_2 .* would be reclaimed", on_terminal(looked.make_report()))
    reopened = sweep(jvm, {2: PullState(state="open", merged=False)})
    assert [(row.environment, row.standing) for row in reopened.rows] == [("pr_2", "open")]
    waiting = sweep(jvm, {2: CLOSED}, max_deletions=0)
    assert cleanup.choose_exit_code_of_worker_sweep(waiting) == 4
    assert tables(jvm) == before | ours

    swept = sweep(jvm, {2: CLOSED})

    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0
    assert swept.missed_environments == ()
    (row,) = swept.make_report().rows
    assert (row.tables_reclaimed, row.tables_kept) == (2, 0)
    assert row.bytes_reclaimed is not None
    assert row.bytes_reclaimed > 0
    assert re.search(r"2 tables reclaimed.* 1.1 kB", on_terminal(swept.make_report()))
    assert tables(jvm) == before
    assert snapshot_rows(shop, "closed_rows") == []
    assert prod_intervals(shop) == prod
    assert jvm.sql("SELECT COUNT(*), SUM(revenue) FROM shop.revenue") == [[["3", "600"]]]
    assert ledger_phase(shop, "pr_2") is None
    assert sweep(jvm, {}).rows == ()

    # The same pull request again: what is gone is built anew, and goes at once if that is wanted.
    apply(jvm, "pr_2", "closed_rows")
    assert tables(jvm) == before | ours
    assert jvm.sql("SELECT SUM(closed_rows) FROM shop__pr_2.revenue") == [[["30"]]]
    gone = jvm.cleanup("pr_2", merged=False, reclaim="always")
    assert gone.result == "removed"
    assert {item.table for item in gone.tables_reclaimed} == ours
    assert tables(jvm) == before
    assert ledger_phase(shop, "pr_2") is None
    quiet = jvm.cleanup("pr_2", merged=False, reclaim="always")
    assert (quiet.result, quiet.existed, quiet.tables_reclaimed) == ("nothing_to_do", False, [])


@pytest.mark.night
def test_reclaim__applied_again_before_it_is_due_is_one_environment(
    jvm: OneJvm, shop: Shop
) -> None:
    before = tables(jvm)
    apply(jvm, "pr_3", "reopened_rows")
    jvm.cleanup("pr_3", merged=False)
    pass_a_day(shop, "pr_3")

    # Reopened, and another commit is applied.
    shop.edit(REVENUE_FILE, "reopened_rows", "later_rows")
    apply(jvm, "pr_3", "later_rows")

    assert ledger_phase(shop, "pr_3") == "applied"
    assert [row.standing for row in sweep(jvm, {3: PullState(state="open")}).rows] == ["open"]
    assert jvm.sql("SELECT SUM(later_rows) FROM shop__pr_3.revenue") == [[["30"]]]
    # It is still known who made the tables of both commits.
    gone = jvm.cleanup("pr_3", merged=False, reclaim="always")
    assert len(gone.tables_reclaimed) == 4
    assert tables(jvm) == before


@pytest.mark.night
def test_reclaim__never_leaves_them_to_the_janitor(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_4", "never_rows")
    document = jvm.cleanup("pr_4", merged=False, reclaim="never")
    assert len(document.tables_kept) == 2
    assert all("janitor" in item.why and item.until for item in document.tables_kept)
    assert ledger_phase(shop, "pr_4") is None


@pytest.mark.night
def test_reclaim__what_a_stacked_pull_request_uses_stays(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_5", "stacked_rows")
    shop.edit(CUSTOMERS_FILE, "r.revenue > 100", "r.revenue > 150")
    before = tables(jvm)
    apply(jvm, "pr_6", "stacked_rows")
    stacked = tables(jvm) - before

    lower = jvm.cleanup("pr_5", merged=False, reclaim="always")

    assert lower.result == "removed"
    ((table, why),) = kept(lower).items()
    assert "__revenue__" in table
    assert why == "pr_6 uses its version"
    assert ["top_customers" in item.table for item in lower.tables_reclaimed] == [True]
    assert jvm.sql("SELECT COUNT(*) FROM shop__pr_6.top_customers") == [[["2"]]]
    assert snapshot_rows(shop, "stacked_rows") != []

    upper = jvm.cleanup("pr_6", merged=False, reclaim="always")

    assert {item.table for item in upper.tables_reclaimed} == stacked | {table}, "its last user"
    assert table not in tables(jvm)


@pytest.mark.night
def test_reclaim__what_an_apply_in_flight_has_recorded_stays(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_7", "flying_rows")
    # Of an apply that is under way the state knows nothing yet, and the ledger does.
    execute(
        shop,
        "INSERT INTO sqlmesh_ci_bot._environments SELECT 'pr_8', owner, 'applying', replace("
        'replace(document, \'"pr_7"\', \'"pr_8"\'), \'"phase":"applied"\', \'"phase":'
        "\"applying\"') FROM sqlmesh_ci_bot._environments WHERE name = 'pr_7'",
    )
    document = jvm.cleanup("pr_7", merged=False, reclaim="always")
    assert document.tables_reclaimed == []
    assert set(kept(document).values()) == {"pr_8 uses its version", "pr_8 reads it"}

    # It died. Its cleanup finds everything through the ledger alone, tables included.
    died = jvm.cleanup("pr_8", merged=False, reclaim="always")
    assert died.result == "removed"
    assert len(died.tables_reclaimed) == 2
    assert snapshot_rows(shop, "flying_rows") == []
    pass_a_day(shop, "pr_8")
    jvm.cleanup("pr_8", merged=False)
    assert ledger_phase(shop, "pr_8") is None


@pytest.mark.night
def test_reclaim__a_table_that_an_apply_makes_after_its_cleanup__is_found(
    jvm: OneJvm, shop: Shop
) -> None:
    """The apply slept past its lease: no fence holds back what Spark was writing already."""
    before = tables(jvm)
    apply(jvm, "pr_13", "late_rows")
    leave_in_flight(shop, "pr_13")

    first = jvm.cleanup("pr_13", merged=False, reclaim="always")

    made = {item.table for item in first.tables_reclaimed}
    assert (first.result, len(made)) == ("removed", 2)
    assert kept(first).keys() == made, "where somebody may still write is said"
    assert all("may come late" in why for why in kept(first).values())
    assert tables(jvm) == before
    (late,) = [table for table in made if "__revenue__" in table]
    jvm.sql(f"CREATE TABLE {late} USING parquet AS SELECT 1 AS customer_id")

    second = jvm.cleanup("pr_13", merged=False)

    assert [item.table for item in second.tables_reclaimed] == [late]
    assert tables(jvm) == before
    assert jvm.cleanup("pr_13", merged=False).result == "nothing_to_do"
    jvm.sql(f"CREATE TABLE {late} USING parquet AS SELECT 1 AS customer_id")
    pass_a_day(shop, "pr_13")
    (row,) = [row for row in sweep(jvm, {13: CLOSED}).rows if row.environment == "pr_13"]
    assert row.document is not None
    assert [item.table for item in row.document.tables_reclaimed] == [late]
    assert tables(jvm) == before
    assert ledger_phase(shop, "pr_13") is None, "nobody waits for it for ever"


@pytest.mark.night
def test_reclaim__a_prod_plan_in_flight_finds_what_it_was_planned_with(
    jvm: OneJvm, shop: Shop
) -> None:
    apply(jvm, "pr_9", "planned_rows")
    jvm.cleanup("pr_9", merged=False)
    jvm.plan_prod(PROD_UNTIL)

    # A sweep whose clock is ahead asks for it while the plan is open.
    swept = jvm.cleanup("pr_9", merged=False)
    jvm.apply_prod()

    assert (swept.result, len(swept.tables_kept)) == ("nothing_to_do", 2)
    assert jvm.sql("SELECT SUM(planned_rows) FROM shop.revenue") == [[["30"]]]
    pass_a_day(shop, "pr_9")
    (row,) = [row for row in sweep(jvm, {9: CLOSED}).rows if row.environment == "pr_9"]
    assert row.document is not None
    assert row.document.tables_reclaimed == []
    assert set(kept(row.document).values()) == {"prod uses its version", PUSHED_AGAIN}
    assert jvm.sql("SELECT SUM(planned_rows) FROM shop.revenue") == [[["30"]]]


@pytest.mark.night
def test_reclaim__what_was_pushed_again_stays(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_10", "pushed_rows")
    jvm.cleanup("pr_10", merged=False)
    # A plan that pushes the snapshot anew is all that the state tells of a prod plan in flight.
    execute(
        shop,
        "UPDATE sqlmesh._snapshots SET updated_ts = updated_ts + 60000 "
        "WHERE snapshot LIKE '% AS pushed_rows%'",
    )
    before = tables(jvm)

    document = jvm.cleanup("pr_10", merged=False, reclaim="always")

    assert [item.table for item in document.tables_reclaimed if "revenue" in item.table] == []
    (why,) = [why for table, why in kept(document).items() if "revenue" in table]
    assert why == PUSHED_AGAIN
    assert {table for table in before if "__revenue__" in table} <= tables(jvm)


@pytest.mark.night
def test_reclaim__a_table_that_was_there_before_is_never_dropped(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_11", "foreign_rows")
    first = jvm.cleanup("pr_11", merged=False, reclaim="always")
    (name,) = [item.table for item in first.tables_reclaimed if "revenue" in item.table]
    columns = "customer_id INT, revenue BIGINT, foreign_rows BIGINT"
    jvm.sql(f"CREATE TABLE {name} ({columns}) USING parquet")

    apply(jvm, "pr_11", "foreign_rows")
    document = jvm.cleanup("pr_11", merged=False, reclaim="always")

    assert document.result == "removed"
    assert name not in {item.table for item in document.tables_reclaimed}
    assert name in tables(jvm)


@pytest.mark.night
def test_reclaim__a_drop_that_fails_is_exit_4_and_the_next_run_finishes(
    jvm: OneJvm, shop: Shop
) -> None:
    before = tables(jvm)
    apply(jvm, "pr_12", "stuck_rows")
    (name,) = [table for table in tables(jvm) - before if "__revenue__" in table]
    # Metadata that Spark cannot read: it neither describes nor drops such a table.
    jvm.hive_sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('spark.sql.sources.schema'='broken')")

    document = jvm.cleanup("pr_12", merged=False, reclaim="always")

    assert document.result == "incomplete"
    assert cleanup.choose_exit_code_of_worker_cleanup(document) == 4
    assert document.state_record_removed
    assert [item.object for item in document.leftovers] == [name]
    assert document.leftovers[0].why
    assert len(document.tables_reclaimed) == 1
    assert ledger_phase(shop, "pr_12") == "reclaiming"

    jvm.hive_sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('spark.sql.sources.schema')")
    # No day has to pass: it is decided, and only the drop is missing.
    swept = sweep(jvm, {12: CLOSED})
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0
    (row,) = swept.rows
    assert row.document is not None
    assert [item.table for item in row.document.tables_reclaimed] == [name]
    assert tables(jvm) == before
    assert jvm.cleanup("pr_12", merged=False).result == "nothing_to_do"
