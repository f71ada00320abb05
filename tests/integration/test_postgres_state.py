"""State on PostgreSQL, as teams have it: read-only reviews, the ledger, and a whole life."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest

from ci_bot.bot.worker_client import cleanup
from ci_bot.worker.state_store.ledger_schema import SCHEMA
from tests.conftest import PROD_UNTIL, missing, run_python
from tests.integration.test_review import ADD_ORDERS, REVENUE
from tests.projects import CONFIG, Shop, write_shop
from tests.worker import built, client

pytestmark = [pytest.mark.postgres, pytest.mark.spark, pytest.mark.slow]

DUCKDB = """\
    state_connection:
      type: duckdb
      database: {state}
"""


@pytest.fixture(scope="module")
def server() -> str:
    """The URL of a PostgreSQL server that tests may create databases on."""
    url = os.environ.get("CI_BOT_TEST_POSTGRES")
    if not url:
        missing("CI_BOT_TEST_POSTGRES names no PostgreSQL server")
    return str(url)


def connect(url: str, database: str) -> Any:
    parts = urlsplit(url)
    connection = psycopg2.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=parts.password,
        dbname=database,
    )
    connection.autocommit = True
    return connection


@contextmanager
def own_database(url: str, prefix: str) -> Iterator[tuple[str, str]]:
    """A database of the test's own: its name, and a configuration that has the state in it."""
    name = f"{prefix}_{os.getpid()}"
    admin = connect(url, "postgres")
    with admin.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    parts = urlsplit(url)
    state = f"""\
    state_connection:
      type: postgres
      host: {parts.hostname}
      port: {parts.port}
      user: {parts.username}
      password: "{parts.password}"
      database: {name}
"""
    try:
        yield name, CONFIG.replace(DUCKDB, state)
    finally:
        with admin.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        admin.close()


@pytest.fixture(scope="module")
def team_shop(
    server: str, tmp_path_factory: pytest.TempPathFactory, java: None
) -> Iterator[tuple[Shop, str]]:
    """The shop with its state in a database of its own, and prod built."""
    with own_database(server, "shop") as (name, config):
        shop = write_shop(tmp_path_factory.mktemp("team-shop"), config=config)
        run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
        yield shop, name


def state_rows(server: str, database: str) -> dict[str, list[Any]]:
    """Every row of every table outside the system's schemas."""
    connection = connect(server, database)
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables "
                "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
            )
            found = {}
            for schema, table in cursor.fetchall():
                cursor.execute(f'SELECT t::text FROM "{schema}"."{table}" t ORDER BY 1')
                found[f"{schema}.{table}"] = cursor.fetchall()
            return found
    finally:
        connection.close()


@pytest.mark.night
def test_life__with_state_on_postgresql(team_shop: tuple[Shop, str], server: str) -> None:
    shop, database = team_shop
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    worker = client(shop)
    before = state_rows(server, database)

    report = worker.review("pr_6")

    assert report.failure is None
    assert report.versions.state_engine == "postgres"
    assert state_rows(server, database) == before

    applied = worker.apply("pr_6", plan_id=report.plan_id)

    assert applied.result == "applied"
    assert f"{SCHEMA}._environments" in state_rows(server, database)

    removed = worker.cleanup("pr_6")

    assert removed.result == "removed"
    after = state_rows(server, database)
    assert after[f"{SCHEMA}._environments"] == []
    assert not any("pr_6" in str(row) for row in after["sqlmesh._environments"])


@pytest.mark.night
def test_review__with_the_server_out_of_reach__says_what_to_check(
    team_shop: tuple[Shop, str], tmp_path: Path
) -> None:
    shop, database = team_shop
    other = write_shop(tmp_path, config=(shop.project / "config.yaml").read_text("utf-8"))
    other.edit("config.yaml", f"database: {database}", "database: no_such_database")

    report = client(other).review("pr_6")

    assert report.failure is not None
    assert report.failure.reason_code == "state_unreachable"
    assert report.failure.exit_code == 2
    assert "Check the `database`" in (report.failure.hint or "")


@pytest.mark.night
def test_cleanup__with_the_state_gone_after_the_drops__is_exit_4_and_the_next_run_finishes(
    team_shop: tuple[Shop, str], server: str
) -> None:
    shop, database = team_shop
    shop.edit(
        "models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS state_gone"
    )
    worker = client(shop)
    assert worker.apply("pr_7").result == "applied"
    with ThreadPoolExecutor(1) as pool, closing(connect(server, "postgres")) as admin:
        cut_off = pool.submit(worker.cleanup, "pr_7", merged=False)
        while "drop" not in worker.heard.phases and not cut_off.done():
            time.sleep(0.01)
        # The views are being dropped, and the state is asked again only when Spark is done.
        with admin.cursor() as cursor:
            cursor.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (database,),
            )
            document = cut_off.result()
            cursor.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')

    assert document.result == "incomplete"
    assert cleanup.choose_exit_code_of_worker_cleanup(document) == 4
    assert document.views_dropped == ["shop__pr_7.revenue", "shop__pr_7.top_customers"]
    assert document.schemas_dropped == ["shop__pr_7"]
    assert not document.state_record_removed
    assert [item.object for item in document.leftovers] == ["records of pr_7 in the state database"]

    # The lease that could not be given back expires in a minute; that is tried elsewhere.
    with closing(connect(server, database)) as state, state.cursor() as cursor:
        cursor.execute(f"DELETE FROM {SCHEMA}._leases WHERE name = 'pr_7'")
    finished = worker.cleanup("pr_7", merged=False)

    assert finished.result == "removed"
    assert finished.state_record_removed
    after = state_rows(server, database)
    assert not any("pr_7" in str(row) for row in after["sqlmesh._environments"])
    assert len(finished.tables_kept) == 2, "what the first run could not write down is not lost"
    gone = worker.cleanup("pr_7", merged=False, reclaim="always")
    assert len(gone.tables_reclaimed) == 2
    assert state_rows(server, database)[f"{SCHEMA}._environments"] == []


@pytest.mark.night
def test_probe__with_state_on_postgresql_is_reused(
    team_shop: tuple[Shop, str], server: str
) -> None:
    shop, database = team_shop
    amount = "CAST(customer_id * 10 AS INT) AS amount"
    worker = client(shop)
    with shop.kept():
        shop.edit("models/orders.sql", amount, amount.replace("10", "17"))

        probed = worker.apply("pr_17", probe=True)

        assert (probed.result, probed.reason_code) == ("probed", "probed"), probed.failure
        ledger = state_rows(server, database)[f"{SCHEMA}._environments"]
        assert any("pr_17" in row and "probed" in row for (row,) in ledger)
        # Ten days are two batches, of which the probe has built one.
        assert built(probed) == {"shop.orders": (5, 1)}
        applied = worker.apply("pr_17", plan_id=probed.plan_id)
        assert applied.result == "applied", applied.failure
        assert built(applied)["shop.orders"] == (5, 1)
    removed = worker.cleanup("pr_17")
    assert removed.result == "removed", removed.failure
