"""Each activity on a MariaDB, or the MySQL that CI_BOT_TEST_MYSQL names, with exactly the rights that
docs/state.md gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pymysql  # type: ignore[import-untyped]
import pytest

from ci_bot.worker.doctor.state_checks import check_ledger_is_readable
from ci_bot.worker.state_store.ledger_schema import SCHEMA, LedgerTables
from tests.conftest import PROD_UNTIL, REPOSITORY, run_python
from tests.integration.test_grants import of_sqlmesh, script_of
from tests.integration.test_postgres_state import DUCKDB
from tests.integration.test_review import ADD_ORDERS
from tests.integration.test_state_servers import (
    check_leases,
    connect_mysql,
    duck_on,
    maria,
    mysql_connection,
    on_maria,
    state_on,
)
from tests.projects import CONFIG, write_shop
from tests.projects.duck import run_prod
from tests.worker import client

__all__ = ["maria"]
REVIEW, APPLY = "sqlmesh_review", "sqlmesh_apply"
PROD = "sqlmesh_prod"
PASSWORDS = {REVIEW: "change-me", APPLY: "change-me-too"}
# Whoever runs the page's script has this one already, with a password of their own.
_PROD_PASSWORD = "change-me-as-well"


@pytest.fixture
def server(maria: str) -> Iterator[str]:
    """A server without a state; what the page's script makes goes with the test."""
    yield maria
    with closing(connect_mysql(maria)) as connection, connection.cursor() as cursor:
        for schema in ("sqlmesh", SCHEMA):
            cursor.execute(f"DROP DATABASE IF EXISTS {schema}")
        for user in (*PASSWORDS, PROD):
            cursor.execute(f"DROP USER IF EXISTS '{user}'@'%'")


def run_as_user(url: str, user: str) -> str:
    """The server's URL with that account, and the database that the page names."""
    place = urlsplit(url).netloc.rpartition("@")[2]
    return f"mysql://{user}:{PASSWORDS.get(user, _PROD_PASSWORD)}@{place}/sqlmesh"


def grant(url: str) -> None:
    page = (REPOSITORY / "docs" / "state.md").read_text("utf-8")
    with closing(connect_mysql(url)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS sqlmesh")
        cursor.execute(f"CREATE USER '{PROD}'@'%' IDENTIFIED BY '{_PROD_PASSWORD}'")
        cursor.execute(f"GRANT ALL ON sqlmesh.* TO '{PROD}'@'%'")
        for statement in script_of("test_grants_mysql.py", page).split(";"):
            lines = [line for line in statement.splitlines() if not line.startswith("--")]
            if any(lines):
                cursor.execute("\n".join(lines))


def refused(url: str, user: str, *statements: str) -> None:
    with (
        closing(connect_mysql(run_as_user(url, user))) as connection,
        connection.cursor() as cursor,
    ):
        for statement in statements:
            with pytest.raises(pymysql.err.OperationalError, match="denied"):
                cursor.execute(statement)


def check_what_is_left_out(url: str) -> None:
    refused(url, REVIEW, "DELETE FROM sqlmesh._environments", f"DELETE FROM {SCHEMA}._environments")
    for user in PASSWORDS:
        refused(
            url,
            user,
            "CREATE DATABASE another",
            "CREATE TABLE sqlmesh.another (a INT)",
            "DROP TABLE sqlmesh._snapshots",
        )


def test_ledger__that_the_account_may_not_read__is_never_taken_for_an_empty_one(
    server: str, tmp_path: Path
) -> None:
    """MySQL shows such tables to nobody, and refuses to read them."""
    shop = duck_on(tmp_path, server)
    run_prod(shop, "2024-01-10")
    grant(server)
    config = (shop.project / "config.yaml").read_text("utf-8")
    shop.write("config.yaml", config.replace(state_on(server), state_on(run_as_user(server, PROD))))
    deployment = {"restated_by": (7,)}
    before = client(shop).review("pr_0", **deployment)
    assert before.failure is None, "without a ledger there is nothing to know"
    assert before.baseline == "state"
    applier = mysql_connection(run_as_user(server, APPLY))
    LedgerTables(applier.create_engine_adapter()).prepare_tables()
    readable = client(shop).review("pr_0", **deployment)
    assert readable.failure is None, readable.failure
    refused(server, PROD, f"DELETE FROM {SCHEMA}._restatements")

    with closing(connect_mysql(server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"REVOKE SELECT ON {SCHEMA}.* FROM '{PROD}'@'%'")
    deployed = client(shop).review("pr_0", **deployment).failure
    assert deployed is not None
    assert deployed.reason_code == "ledger_hidden"
    assert "`sqlmesh_ci_bot._restatements`" in deployed.message
    reviewed = client(shop).review("pr_7")
    assert reviewed.failure is None
    assert [note for note in reviewed.notes if "`sqlmesh_ci_bot._restatements`" in note]
    with of_sqlmesh(shop) as context:
        looked = check_ledger_is_readable(context.state_sync)
    assert looked is not None
    assert (looked.status, "`sqlmesh_ci_bot._restatements`" in looked.message) == ("warn", True)


@pytest.mark.night
def test_state__is_read_by_one_account_and_written_by_the_other(
    server: str, tmp_path: Path
) -> None:
    """Prod, an environment and its end by SQLMesh itself; leases and ledger are ours."""
    shop = duck_on(tmp_path, server)
    prod = (shop.project / "config.yaml").read_text("utf-8")

    def become(user: str) -> None:
        own, other = state_on(server), state_on(run_as_user(server, user))
        assert own in prod
        shop.write("config.yaml", prod.replace(own, other))

    run_prod(shop, "2024-01-10")
    grant(server)
    applier = run_as_user(server, APPLY)
    check_leases(on_maria(applier), on_maria(applier))
    LedgerTables(mysql_connection(applier).create_engine_adapter()).prepare_tables()
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")
    become(REVIEW)
    first = client(shop).review("pr_6")
    assert first.failure is None
    assert first.baseline == "state"
    become(APPLY)
    with of_sqlmesh(shop) as context:
        context.apply(context.plan_builder("pr_6", skip_tests=True).build())
    become(REVIEW)
    assert client(shop).review("pr_6").plan_id == first.plan_id
    become(APPLY)
    with of_sqlmesh(shop) as context:
        context.invalidate_environment("pr_6", sync=True)
        assert context.state_reader.get_environment("pr_6") is None
    check_what_is_left_out(server)


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_life__with_exactly_the_rights_of_the_page(server: str, tmp_path: Path, java: None) -> None:
    shop = write_shop(tmp_path, config=CONFIG.replace(DUCKDB, state_on(server)))
    prod = (shop.project / "config.yaml").read_text("utf-8")
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    grant(server)
    worker = client(shop)

    def become(user: str) -> None:
        shop.write(
            "config.yaml", prod.replace(state_on(server), state_on(run_as_user(server, user)))
        )

    shop.edit("models/revenue.sql", *ADD_ORDERS)
    become(REVIEW)
    first = worker.review("pr_6")
    become(APPLY)
    applied = worker.apply("pr_6", plan_id=first.plan_id)
    become(REVIEW)
    again = worker.review("pr_6")
    become(APPLY)
    removed = worker.cleanup("pr_6", merged=False, reclaim="always")

    answers = (first, applied, again, removed)
    assert [answer.failure for answer in answers] == [None] * 4
    assert (applied.result, removed.result) == ("applied", "removed")
    assert again.plan_id == first.plan_id, "a reader reads the ledger, too"
    assert removed.tables_reclaimed
    check_what_is_left_out(server)
