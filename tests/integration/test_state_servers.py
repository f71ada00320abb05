"""States on other servers than a plain PostgreSQL: behind a pooler, on MariaDB, on one never tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pymysql  # type: ignore[import-untyped]
import pytest
from sqlmesh.core.config.connection import MSSQLConnectionConfig, MySQLConnectionConfig

from ci_bot.errors import BadInput
from ci_bot.worker.state_store.lease_rows import HeldByAnother, LeaseHolder
from ci_bot.worker.state_store.leases import LeaseBook
from ci_bot.worker.state_store.ledger_schema import TABLES, LedgerTable
from tests import databases
from tests.conftest import PROD_UNTIL, missing, run_python
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.integration.test_postgres_state import DUCKDB, own_database, server
from tests.integration.test_review import ADD_ORDERS
from tests.integration.test_sweep import FIRST, Night
from tests.lease_process import FAST, leases
from tests.projects import CONFIG as SPARK
from tests.projects import Shop, write_shop
from tests.projects.duck import CONFIG as DUCK
from tests.projects.duck import run_prod, write_duck_shop
from tests.worker import client

__all__ = ["server"]
APPLY = LeaseHolder(activity="apply", who="octo/shop#7, run 11")
OTHER = LeaseHolder(activity="apply", who="octo/shop#7, run 12")


@pytest.fixture(scope="module")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a MariaDB with an empty database, or of the MySQL that CI_BOT_TEST_MYSQL names."""
    if given := os.environ.get("CI_BOT_TEST_MYSQL"):
        yield given
        return
    program = databases.installed("mariadbd")
    if program is None:
        missing("there is no mariadbd on this machine")
        raise AssertionError("unreachable")
    with databases.mariadb(program, tmp_path_factory.mktemp("mariadb") / "server") as url:
        yield url


@pytest.fixture
def pooled(server: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of its own, through a pooler in transaction mode."""
    program = databases.installed("pgbouncer")
    if program is None:
        missing("there is no pgbouncer on this machine")
        raise AssertionError("unreachable")
    with (
        own_database(server, "pooled") as (name, _),
        databases.pgbouncer(program, tmp_path / "pgbouncer", server) as url,
    ):
        yield f"{url.rpartition('/')[0]}/{name}"


def state_on(url: str) -> str:
    """The part of a configuration that puts the state there."""
    parts = urlsplit(url)
    kind = "postgres" if parts.scheme == "postgresql" else parts.scheme
    return f"""\
    state_connection:
      type: {kind}
      host: {parts.hostname}
      port: {parts.port}
      user: {parts.username}
      password: "{parts.password}"
      database: {parts.path.strip("/")}
"""


# --- behind a pooler ------------------------------------------------------------------------------


def duck_on(root: Path, url: str) -> Shop:
    shop = write_duck_shop(root)
    config = (shop.project / "config.yaml").read_text("utf-8")
    own = DUCK[DUCK.index("    state_connection:") : DUCK.index("default_gateway")]
    own = own.format(state=shop.state)
    assert own in config
    shop.write("config.yaml", config.replace(own, state_on(url) + "\n"))
    return shop


def test_review__behind_a_pooler__reads_and_leaves_its_connections_as_they_were(
    pooled: str, tmp_path: Path
) -> None:
    shop = duck_on(tmp_path / "shop", pooled)
    run_prod(shop, "2024-01-10")
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")

    report = client(shop).review("pr_6")

    assert report.failure is None
    assert report.baseline == "state"
    with psycopg2.connect(pooled) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW default_transaction_read_only")
        assert cursor.fetchone() == ("off",)


def test_review__behind_a_pooler__cannot_write(pooled: str, tmp_path: Path) -> None:
    """The worker's own opening, in a process that then tries to write through it."""
    shop = duck_on(tmp_path / "shop", pooled)
    run_prod(shop, "2024-01-10")
    told = run_python("tests.projects.write_to_state", str(shop.project))
    assert "cannot execute" in told
    assert "in a read-only transaction" in told


def test_leases__behind_a_pooler__one_run_at_a_time(pooled: str) -> None:
    check_leases(leases(pooled), leases(pooled))


def check_leases(first: LeaseBook, second: LeaseBook) -> None:
    try:
        with first.acquire_lease("pr_7", APPLY) as lease:
            with pytest.raises(HeldByAnother, match="run 11"):
                second.acquire_lease("pr_7", OTHER)
            before = lease.fencing
        with second.acquire_lease("pr_7", OTHER) as lease:
            assert lease.fencing > before
        assert first.list_live() == []
    finally:
        first.close_connections()
        second.close_connections()


# --- MariaDB --------------------------------------------------------------------------------------


def mysql_connection(url: str) -> MySQLConnectionConfig:
    """SQLMesh's configuration of a state in that database."""
    parts = urlsplit(url)
    return MySQLConnectionConfig(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=parts.password,
        database=parts.path.strip("/"),
    )


def on_maria(url: str) -> LeaseBook:
    return LeaseBook(mysql_connection(url).create_engine_adapter(concurrent_tasks=2), timing=FAST)


def test_leases__on_mariadb__one_run_at_a_time(maria: str) -> None:
    check_leases(on_maria(maria), on_maria(maria))


def test_leases__on_mariadb__of_many_takers_one_is_inside(maria: str) -> None:
    inside: list[int] = []
    most = 0

    def take(_: int) -> None:
        nonlocal most
        known = on_maria(maria)
        try:
            with known.wait_for("pr_8", APPLY, seconds=60, progress=lambda *_: None):
                inside.append(1)
                most = max(most, len(inside))
                inside.pop()
        finally:
            known.close_connections()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take, range(12)))
    assert most == 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.standin
@pytest.mark.night
@pytest.mark.own_jvm
def test_life__with_state_on_mariadb(
    maria: str, github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path, java: None
) -> None:
    """Review, apply and cleanup of one pull request, and a sweep that finds another's."""
    shop = write_shop(tmp_path / "shop", config=SPARK.replace(DUCKDB, state_on(maria)))
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    worker = client(shop)

    report = worker.review("pr_6")
    assert report.failure is None
    assert report.versions.state_engine == "mysql"
    applied = worker.apply("pr_6", plan_id=report.plan_id)
    assert applied.failure is None
    assert applied.result == "applied"
    removed = worker.cleanup("pr_6")
    assert removed.failure is None
    assert (removed.result, removed.schemas_dropped) == ("removed", ["shop__pr_6"])
    assert removed.state_record_removed

    night = Night(github_standin, github_repo, shop, tmp_path / "runner")
    night.apply(FIRST, FIRST + 1)
    night.pulls[FIRST].close()
    ran = night.sweep()
    assert ran.exit_code == 0, ran.stdout
    assert environments(maria) == {"prod", f"pr_{FIRST + 1}"}


def connect_mysql(url: str) -> Any:
    """A connection of its own to the server, in no database."""
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "",
        port=parts.port or 0,
        user=parts.username,
        password=parts.password or "",
        autocommit=True,
    )


def environments(url: str) -> set[str]:
    """What SQLMesh's state on this server records."""
    with closing(connect_mysql(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlmesh._environments")
        return {str(name) for (name,) in cursor.fetchall()}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_ledger__on_mysql_a_key_has_a_length_and_a_document_none(table: LedgerTable) -> None:
    types = {name: kind.sql("mysql") for name, kind in table.types_on("mysql").items()}
    assert {types[name] for name in table.key or ()} <= {"VARCHAR(250)"}
    assert {types[name] for name in table.numbers} <= {"INT"}
    rest = types.keys() - {*(table.key or ()), *table.numbers}
    assert {types[name] for name in rest} == {"LONGTEXT"}


# --- never tried ----------------------------------------------------------------------------------


def test_leases__on_a_server_that_nobody_tried__are_refused_before_it_is_asked() -> None:
    connection = MSSQLConnectionConfig.model_construct(
        type_="mssql", host="127.0.0.1", concurrent_tasks=1
    )
    config = SimpleNamespace(
        get_state_connection=lambda gateway: connection, get_connection=lambda gateway: None
    )
    with pytest.raises(BadInput, match="of the type `mssql`") as caught:
        LeaseBook.from_context(SimpleNamespace(config=config, gateway=None))
    assert (caught.value.exit_code, caught.value.reason_code) == (2, "state_untried")
