"""Two runs, two JVMs, one metastore service, one state: an apply and who comes in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ci_bot.protocol.messages import Owner
from ci_bot.worker.state_store.ledger_schema import SCHEMA
from tests.conftest import PROD_UNTIL, REPOSITORY, missing, run_python
from tests.integration.test_apply_and_cleanup import sql
from tests.integration.test_cancel import family
from tests.integration.test_postgres_state import connect, own_database, state_rows
from tests.lease_process import leases
from tests.projects import Shop, write_shop
from tests.servers import hive_metastore

pytestmark = [
    pytest.mark.metastore,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.own_jvm,
]

PATIENCE = 180.0
# A heartbeat, a cancelled job, and the start of the cleanup on a busy machine.
STOP_SECONDS = 90.0
# Hours of work for one task, which Spark can cancel. It begins when all else is built: Spark has one
# core here, which it keeps.
ENDLESS = """\
MODEL (name shop.endless, kind FULL);

SELECT CAST(COUNT(*) AS BIGINT) AS n
FROM shop.top_customers
CROSS JOIN (SELECT EXPLODE(SEQUENCE(1, 1000000)) AS a) AS x
CROSS JOIN (SELECT EXPLODE(SEQUENCE(1, 1000000)) AS b) AS y
WHERE SHA2(CAST(x.a * y.b AS STRING), 512) = 'never'
"""
FROZEN = "SUM(o.amount) AS BIGINT) AS revenue,\n  CAST(COUNT(*) AS BIGINT) AS orders_when_frozen"
# Half a minute of work for one task.
SLOW = ENDLESS.replace("shop.endless", "shop.slow").replace("1000000", "6000")


@pytest.fixture(scope="module")
def team_shop(
    tmp_path_factory: pytest.TempPathFactory, java: None
) -> Iterator[tuple[Shop, str, str]]:
    """The shop with prod built, on a metastore service and with its state on PostgreSQL."""
    server = os.environ.get("CI_BOT_TEST_POSTGRES")
    if not server:
        missing("CI_BOT_TEST_POSTGRES names no PostgreSQL server")
    server = str(server)
    root = tmp_path_factory.mktemp("lease-shop")
    with (
        own_database(server, "lease_shop") as (name, config),
        hive_metastore(root / "service") as address,
    ):
        lines = [line for line in config.splitlines() if "datanucleus" not in line]
        start = next(i for i, line in enumerate(lines) if "ConnectionURL" in line)
        lines[start : start + 2] = [f"        spark.hadoop.hive.metastore.uris: {address}"]
        shop = write_shop(root, config="\n".join(lines) + "\n")
        run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
        yield shop, server, name


class Run:
    """`ci-bot` in a process of its own, as on two machines: each watches over its own children."""

    def __init__(self, shop: Shop, command: str, *options: str) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ci_bot", command, "--format", "json"),
                *("--project", str(shop.project), "--environment", "pr_5"),
                *options,
            ],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)

    def until(self, text: str) -> None:
        """Waits until it has said something about `text`."""
        deadline = time.monotonic() + PATIENCE
        while not any(text in line for line in self.lines):
            assert self.running, "".join(self.lines)
            assert time.monotonic() < deadline, "".join(self.lines)
            time.sleep(0.1)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def list_processes(self) -> list[int]:
        """The bot, its worker and their JVM."""
        return [self._process.pid, *(pid for pid, _ in family(self._process.pid))]

    def end(self) -> tuple[int, dict[str, Any]]:
        """Its exit code and its document."""
        assert self._process.stdout is not None
        document: dict[str, Any] = json.loads(self._process.stdout.read())
        return self._process.wait(timeout=PATIENCE), document

    def stop(self) -> None:
        if self.running:
            self._process.terminate()
        self._process.wait(timeout=PATIENCE)


def promote(server: str, database: str) -> None:
    """What any promotion of prod changes in the state."""
    connection = connect(server, database)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sqlmesh._environments SET plan_id = 'another' WHERE name = 'prod'")
        assert cursor.rowcount == 1
    connection.close()


def leases_of(server: str, database: str) -> list[Any]:
    rows = state_rows(server, database)[f"{SCHEMA}._leases"]
    return [row for row in rows if "*fencing*" not in str(row)]


@pytest.mark.night
def test_apply_in_flight__a_second_is_refused_and_a_cleanup_stops_it(
    team_shop: tuple[Shop, str, str],
) -> None:
    shop, server, database = team_shop
    shop.write("models/endless.sql", ENDLESS)
    shop.edit(
        "models/revenue.sql",
        "SUM(o.amount) AS BIGINT) AS revenue",
        "SUM(o.amount) AS BIGINT) AS revenue,\n  CAST(COUNT(*) AS BIGINT) AS orders_in_flight",
    )
    known = leases(f"{server.rpartition('/')[0]}/{database}")
    with known.acquire_exclusive(Owner(name="octo/shop", run="1")):
        # Nothing is built while tables are reclaimed, and somebody promotes prod meanwhile.
        apply = Run(shop, "apply")
        apply.until("waiting: pr_5 cannot start now: the project's physical tables are reserved")
        promote(server, database)
    known.close_connections()
    try:
        apply.until("shop.top_customers in")
        plans = [line for line in apply.lines if "planning again" in line]
        assert len(plans) == 2, "what it compared was no longer so when it could begin"
        before = state_rows(server, database)

        second = Run(shop, "apply")
        code, refused = second.end()

        assert (code, refused["result"], refused["reason_code"]) == (3, "refused", "held")
        assert "pr_5 is held by an apply (" in refused["failure"]["message"]
        assert not any("starting Spark" in line for line in second.lines)
        after = state_rows(server, database)
        beats = f"{SCHEMA}._leases"
        assert {**after, beats: None} == {**before, beats: None}
        assert apply.running

        asked_at = time.monotonic()
        cleanup = Run(shop, "cleanup")
        code, stopped = apply.end()
        seconds = time.monotonic() - asked_at
        done, removed = cleanup.end()
    finally:
        apply.stop()

    assert (code, stopped["result"], stopped["reason_code"]) == (130, "cancelled", "stop_requested")
    assert "pr_5 is being removed" in stopped["failure"]["message"]
    assert "The cleanup that asked for the stop removes it" in stopped["partial"][0]
    assert "shop.revenue" in [model["model"] for model in stopped["models"]]
    assert seconds < STOP_SECONDS, "somebody waited for the endless model"
    assert any("waiting: pr_5 is held by an apply" in line for line in cleanup.lines)
    assert (done, removed["result"], removed["leftovers"]) == (0, "removed", [])
    rows = state_rows(server, database)
    assert not any("pr_5" in str(row) for row in rows["sqlmesh._environments"])
    assert leases_of(server, database) == []
    schemas = [row[0] for row in sql(shop, "SHOW NAMESPACES")[0]]
    assert "shop__pr_5" not in schemas


def tables_of(shop: Shop) -> set[str]:
    (rows,) = sql(shop, "SHOW TABLES IN sqlmesh__shop")
    return {row[1] for row in rows}


@pytest.mark.night
def test_apply_frozen_past_its_lease__leaves_nothing_that_the_next_cleanup_does_not_take(
    team_shop: tuple[Shop, str, str],
) -> None:
    """A laptop that sleeps, a machine that is moved: a cleanup elsewhere comes in between."""
    shop, server, database = team_shop
    (shop.project / "models/endless.sql").unlink(missing_ok=True)
    shop.write("models/slow.sql", SLOW)
    shop.edit("models/revenue.sql", "SUM(o.amount) AS BIGINT) AS revenue", FROZEN)
    prod = tables_of(shop)
    before = state_rows(server, database)
    apply = Run(shop, "apply")
    frozen: list[int] = []
    try:
        apply.until("shop.top_customers in")
        time.sleep(3)
        frozen = apply.list_processes()
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        assert len(frozen) >= 3
        cleanup = Run(shop, "cleanup", "--unmerged", "--reclaim", "always")
        done, removed = cleanup.end()
        assert (done, removed["result"]) == (0, "removed"), removed
        assert tables_of(shop) == prod
        cleaned = state_rows(server, database)
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        frozen = []
        code, ended = apply.end()
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        apply.stop()

    assert (code, ended["reason_code"]) == (4, "lease_lost")
    after = state_rows(server, database)
    for name in ("_snapshots", "_intervals", "_environments"):
        assert after[f"sqlmesh.{name}"] == cleaned[f"sqlmesh.{name}"], name
    assert after["sqlmesh._environments"] == before["sqlmesh._environments"]
    assert leases_of(server, database) == []

    code, last = Run(shop, "cleanup", "--unmerged", "--reclaim", "always").end()

    assert (code, last["leftovers"]) == (0, []), last
    assert tables_of(shop) == prod
