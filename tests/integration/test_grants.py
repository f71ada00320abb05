"""Each activity in the state, with exactly the rights that docs/state.md gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.worker.doctor.state_checks import check_ledger_is_readable
from ci_bot.worker.state_store.lease_rows import LeaseHolder
from ci_bot.worker.state_store.ledger_schema import SCHEMA, LedgerTables
from tests.conftest import PROD_UNTIL, REPOSITORY, run_python
from tests.integration.test_postgres_state import connect, own_database, server
from tests.integration.test_review import ADD_ORDERS
from tests.integration.test_state_servers import duck_on
from tests.lease_process import connection, leases
from tests.projects import Shop, write_shop
from tests.projects.duck import run_prod
from tests.worker import client

pytestmark = pytest.mark.postgres

__all__ = ["server"]
ROLES = ("sqlmesh_prod", "sqlmesh_review", "sqlmesh_apply")
PASSWORD = "of-a-test"


def script_of(test: str, page: str) -> str:
    """The script that the page has for a test."""
    mark = re.escape(f"<!-- run by tests/integration/{test} -->")
    (sql,) = re.findall(rf"^{mark}\n```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(sql)


def script(database: str) -> str:
    """The page's script, with accounts of this test's own: they are the server's, not a database's."""
    page = (REPOSITORY / "docs" / "state.md").read_text("utf-8")
    sql = script_of("test_grants.py", page)
    sql = re.sub(r"PASSWORD '[\w-]+'", f"PASSWORD '{PASSWORD}'", sql)
    for role in ROLES:
        assert role in sql
        sql = sql.replace(role, f"{database}_{role}")
    return sql


def as_role(config: str, url: str, database: str, role: str) -> str:
    """The configuration with the state under that account."""
    user = urlsplit(url).username
    assert f"user: {user}\n" in config
    config = config.replace(f"user: {user}\n", f"user: {database}_{role}\n")
    return re.sub(r'password: ".*"', f'password: "{PASSWORD}"', config)


@pytest.fixture
def database(server: str) -> Iterator[tuple[str, str, Any]]:
    """A database with an account of prod's: its name, SQLMesh's configuration, an administrator."""
    with (
        own_database(server, "grants") as (name, config),
        closing(connect(server, name)) as admin,
        admin.cursor() as cursor,
    ):
        try:
            cursor.execute(f"CREATE ROLE {name}_sqlmesh_prod LOGIN PASSWORD '{PASSWORD}'")
            cursor.execute(f'GRANT CREATE ON DATABASE "{name}" TO {name}_sqlmesh_prod')
            yield name, config, cursor
        finally:
            for role in ROLES:
                who = f"{name}_{role}"
                cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (who,))
                if cursor.fetchone():
                    cursor.execute(f"DROP OWNED BY {who} CASCADE")
                    cursor.execute(f"DROP ROLE {who}")


def refused(url: str, database: str, role: str, statement: str) -> None:
    parts = urlsplit(url)
    connection = psycopg2.connect(
        host=parts.hostname,
        port=parts.port,
        user=f"{database}_{role}",
        password=PASSWORD,
        dbname=database,
    )
    with (
        closing(connection),
        connection.cursor() as cursor,
        pytest.raises(psycopg2.errors.InsufficientPrivilege),
    ):
        cursor.execute(statement)


def test_ledger_and_leases__need_no_right_to_make_schemas(
    database: tuple[str, str, Any], server: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, _, cursor = database
    cursor.execute(f"CREATE SCHEMA sqlmesh AUTHORIZATION {name}_sqlmesh_prod")
    cursor.execute(script(name))
    place = server.rpartition("@")[2].rpartition("/")[0]
    url = f"postgresql://{name}_sqlmesh_apply:{PASSWORD}@{place}/{name}"
    known = leases(url)
    try:
        LedgerTables(connection(url).create_engine_adapter()).prepare_tables()
        with known.acquire_lease(
            "pr_7", LeaseHolder(activity="apply", who="octo/shop#7, run 11")
        ) as lease:
            assert lease.fencing
    finally:
        known.close_connections()
    assert "permission denied" not in caplog.text


@pytest.mark.night
def test_state__is_read_by_one_account_and_written_by_the_other(
    database: tuple[str, str, Any], server: str, tmp_path: Path
) -> None:
    """Prod, an environment and its end by SQLMesh itself, so that no Spark has to start."""
    name, _, cursor = database
    parts = urlsplit(server)
    shop = duck_on(
        tmp_path,
        f"postgresql://{name}_sqlmesh_prod:{PASSWORD}@{parts.netloc.rpartition('@')[2]}/{name}",
    )
    config = (shop.project / "config.yaml").read_text("utf-8")

    def become(role: str) -> None:
        shop.write("config.yaml", config.replace(f"{name}_sqlmesh_prod", f"{name}_{role}"))

    run_prod(shop, "2024-01-10")
    cursor.execute(script(name))
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")
    become("sqlmesh_review")
    first = client(shop).review("pr_6")
    assert first.failure is None
    assert first.baseline == "state"
    become("sqlmesh_apply")
    with of_sqlmesh(shop) as context:
        context.apply(context.plan_builder("pr_6", skip_tests=True).build())
    become("sqlmesh_review")
    assert client(shop).review("pr_6").plan_id == first.plan_id
    become("sqlmesh_apply")
    with of_sqlmesh(shop) as context:
        context.invalidate_environment("pr_6", sync=True)
        assert context.state_reader.get_environment("pr_6") is None

    for schema, table in (("sqlmesh", "_environments"), ("sqlmesh", "_snapshots")):
        refused(server, name, "sqlmesh_review", f"DELETE FROM {schema}.{table}")
    for role in ("sqlmesh_review", "sqlmesh_apply"):
        refused(server, name, role, "CREATE SCHEMA another")
        refused(server, name, role, "CREATE TABLE sqlmesh.another (a INT)")
        refused(server, name, role, "DROP TABLE sqlmesh._snapshots")


def test_ledger__that_the_account_may_not_read__is_never_taken_for_an_empty_one(
    database: tuple[str, str, Any], server: str, tmp_path: Path
) -> None:
    """PostgreSQL shows such tables to nobody, so an owner's restatement would be left out."""
    name, _, cursor = database
    place = server.rpartition("@")[2].rpartition("/")[0]
    as_prod, as_apply = (
        f"postgresql://{name}_{role}:{PASSWORD}@{place}/{name}"
        for role in ("sqlmesh_prod", "sqlmesh_apply")
    )
    shop = duck_on(tmp_path, as_prod)
    run_prod(shop, "2024-01-10")
    cursor.execute(script(name))
    LedgerTables(connection(as_apply).create_engine_adapter()).prepare_tables()
    deployment = {"restated_by": (7,)}
    assert client(shop).review("pr_0", **deployment).failure is None

    cursor.execute(f"REVOKE ALL ON {SCHEMA}._restatements FROM {name}_sqlmesh_prod")
    deployed = client(shop).review("pr_0", **deployment).failure
    assert deployed is not None
    assert deployed.reason_code == "ledger_hidden"
    assert deployed.message == (
        "The account of the state may not read `sqlmesh_ci_bot._restatements`, so nobody knows "
        "what owners let prod build again."
    )
    reviewed = client(shop).review("pr_7")
    assert reviewed.failure is None
    assert [note for note in reviewed.notes if "`sqlmesh_ci_bot._restatements`" in note]
    with of_sqlmesh(shop) as context:
        looked = check_ledger_is_readable(context.state_sync)
    assert looked is not None
    assert (looked.status, "`sqlmesh_ci_bot._restatements`" in looked.message) == ("warn", True)


@contextmanager
def of_sqlmesh(shop: Shop) -> Iterator[Context]:
    set_console(NoopConsole())
    context = Context(paths=[str(shop.project)])
    try:
        yield context
    finally:
        context.close()


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_life__with_exactly_the_rights_of_the_page(
    database: tuple[str, str, Any], server: str, tmp_path: Path, java: None
) -> None:
    name, config, cursor = database
    shop = write_shop(tmp_path, config=as_role(config, server, name, "sqlmesh_prod"))
    prod = (shop.project / "config.yaml").read_text("utf-8")
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    cursor.execute(script(name))
    worker = client(shop)

    def become(role: str) -> None:
        shop.write("config.yaml", prod.replace(f"{name}_sqlmesh_prod", f"{name}_{role}"))

    shop.edit("models/revenue.sql", *ADD_ORDERS)
    become("sqlmesh_review")
    first = worker.review("pr_6")
    assert first.failure is None
    assert first.baseline == "state"
    become("sqlmesh_apply")
    applied = worker.apply("pr_6", plan_id=first.plan_id)
    assert applied.failure is None
    assert applied.result == "applied"
    become("sqlmesh_review")
    again = worker.review("pr_6")
    assert again.failure is None
    assert again.plan_id == first.plan_id, "a reader reads the ledger, too"
    become("sqlmesh_apply")
    removed = worker.cleanup("pr_6", merged=False, reclaim="always")
    assert removed.failure is None
    assert removed.result == "removed"
    assert removed.tables_reclaimed

    for schema, table in (("sqlmesh", "_environments"), (SCHEMA, "_environments")):
        refused(server, name, "sqlmesh_review", f"DELETE FROM {schema}.{table}")
    for role in ("sqlmesh_review", "sqlmesh_apply"):
        refused(server, name, role, "CREATE SCHEMA another")
        refused(server, name, role, "CREATE TABLE sqlmesh.another (a INT)")
        refused(server, name, role, "DROP TABLE sqlmesh._snapshots")
