"""Leases on PostgreSQL: one run at a time, whoever dies, sleeps or loses its connection."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlglot import exp

from ci_bot.protocol.messages import Owner
from ci_bot.worker.state_store.lease_rows import RECLAIM, HeldByAnother, LeaseHolder
from ci_bot.worker.state_store.leases import LeaseBook, LeaseLostError, LeaseReason, LeaseTiming
from ci_bot.worker.state_store.ledger_schema import SCHEMA
from tests.conftest import REPOSITORY, missing
from tests.integration.test_postgres_state import connect
from tests.lease_process import FAST, connection, leases

pytestmark = pytest.mark.postgres

APPLY = LeaseHolder(activity="apply", who="octo/shop#7, run 11")
OTHER = LeaseHolder(activity="apply", who="octo/shop#7, run 12")
CLEANUP = LeaseHolder(activity="cleanup", who="octo/shop#7, run 13")
OWNER = Owner(name="octo/shop", pr_number=7, run="14")
ROUNDS = 15
PATIENCE = 30.0


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of a database of its own, in which no lease was ever taken."""
    url = os.environ.get("CI_BOT_TEST_POSTGRES")
    if not url:
        missing("CI_BOT_TEST_POSTGRES names no PostgreSQL server")
    name = f"lease_{os.getpid()}"
    admin = connect(str(url), "postgres")
    with admin.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield f"{str(url).rpartition('/')[0]}/{name}"
    with admin.cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    admin.close()


@pytest.fixture
def two(database: str) -> Iterator[tuple[LeaseBook, LeaseBook]]:
    """Two runs on one state."""
    known = leases(database), leases(database)
    yield known
    for each in known:
        each.close_connections()


@contextmanager
def processes(database: str, *commands: tuple[str, ...]) -> Iterator[list[subprocess.Popen[str]]]:
    """Runs of ours that are ready and wait for a line."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.lease_process", database, *command],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    try:
        for each in started:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        yield started
    finally:
        for each in started:
            each.kill()
            each.communicate()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def sql(database: str, text: str) -> None:
    """On a connection to the server's own database, as its administrator."""
    admin = connect(database, "postgres")
    with admin.cursor() as cursor:
        cursor.execute(text)
    admin.close()


def drop_connections(database: str) -> None:
    name = database.rpartition("/")[2]
    sql(database, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{name}'")


def test_race__of_two_processes__lets_one_in_at_a_time(database: str) -> None:
    adapter: Any = connection(database).create_engine_adapter()
    adapter.execute("CREATE TABLE inside AS SELECT 0 AS holders")
    adapter.close()
    command = ("pr_7", "apply", "rounds", str(ROUNDS))
    with processes(database, command, command) as racing:
        # Both also make the table, which is not there yet.
        for each in racing:
            go(each)
        told = [each.communicate(timeout=60)[0].split("\n")[:-1] for each in racing]

    assert [each.returncode for each in racing] == [0, 0]
    lines = [tuple(map(int, line.split())) for each in told for line in each]
    assert len(lines) == 2 * ROUNDS
    assert {inside for _, inside in lines} == {1}
    numbers = [number for number, _ in lines]
    assert len(set(numbers)) == 2 * ROUNDS, "a fencing number was given twice"
    for printed in told:
        own = [int(line.split()[0]) for line in printed]
        assert own == sorted(own)


def test_lease__of_a_killed_process__expires_and_not_before(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    with processes(database, ("pr_8", "apply", "hold")) as (holder,):
        go(holder)
        assert holder.stdout is not None
        number = int(holder.stdout.readline())
        with pytest.raises(HeldByAnother) as refused:
            two[0].acquire_lease("pr_8", APPLY)
        holder.kill()
        holder.wait()

    assert refused.value.exit_code == 3
    assert refused.value.reason_code == "held"
    assert "pr_8 is held by an apply (octo/shop#7, run apply) since 20" in refused.value.message
    assert "Nothing was touched" in (refused.value.hint or "")
    last = two[0].list_live()[0]
    lease = two[0].wait_for("pr_8", APPLY, seconds=PATIENCE, progress=lambda *_: None)
    with lease:
        taken = two[1].list_live()[0]
    assert taken.acquired_at >= last.expires_at
    assert lease.fencing > number


def test_lease__of_a_process_that_is_asked_to_end__is_free_at_once(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    with processes(database, ("pr_9", "apply", "hold")) as (holder,):
        go(holder)
        assert holder.stdout is not None
        holder.stdout.readline()
        held = two[0].list_live()[0]
        holder.send_signal(signal.SIGTERM)

        assert holder.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    lease = two[0].acquire_lease("pr_9", APPLY)
    with lease:
        assert two[0].list_live()[0].acquired_at < held.expires_at + FAST.expiry * 1_000


def test_lease__outlives_its_expiry_while_the_state_is_busy(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    state: Any = connection(database).create_engine_adapter()
    with two[0].acquire_lease("pr_7", APPLY) as lease:
        first = two[1].list_live()[0]
        # A long transaction of the work, on the state's own connection and in the main thread.
        with state.transaction():
            state.execute("SELECT 1")
            until(lambda: two[1].list_live()[0].heartbeat_at > first.expires_at)

        assert lease.end_reason is None
        with pytest.raises(HeldByAnother):
            two[1].acquire_lease("pr_7", OTHER)
    state.close()
    assert two[1].list_live() == []


def test_lease__survives_dropped_connections(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    with two[0].acquire_lease("pr_7", APPLY) as lease:
        drop_connections(database)
        dropped = time.monotonic()

        until(lambda: lease._renewed > dropped)

        assert lease.end_reason is None
        assert [held.fencing for held in two[1].list_live()] == [lease.fencing]
    assert two[1].list_live() == []


def test_lease__is_lost_where_no_sign_of_life_reaches_the_server(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    name = database.rpartition("/")[2]
    ended: list[LeaseReason] = []
    lease = two[0].acquire_lease("pr_7", APPLY, on_end=ended.append)
    sql(database, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        drop_connections(database)

        until(lambda: ended)
    finally:
        sql(database, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')

    assert lease.end_reason == "lease_lost"
    # It stays lost, although the server is there again and nobody has taken it.
    with two[1].wait_for("pr_7", OTHER, seconds=PATIENCE, progress=lambda *_: None) as next_one:
        assert next_one.fencing > lease.fencing
        assert lease.end_reason == "lease_lost"
        lease.release_lease()
        assert [held.who for held in two[1].list_live()] == [OTHER.who], "it released another's"


def test_lease__that_was_taken_away__stops_the_work_and_its_writes(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    state: Any = connection(database).create_engine_adapter()
    state.execute("CREATE TABLE IF NOT EXISTS environments AS SELECT 'before' AS plan")
    ended: list[LeaseReason] = []
    # Its heart stands still, as that of a paused machine does.
    paused = leases(database, LeaseTiming(heartbeat=3_600, expiry=0.2, poll=0.01))
    asleep = paused.acquire_lease("pr_7", APPLY, on_end=ended.append)
    asleep._timing = LeaseTiming(expiry=3_600)  # and its clock, too

    with two[1].wait_for("pr_7", OTHER, seconds=PATIENCE, progress=lambda *_: None):
        assert asleep.end_reason is None, "nothing in the process itself could tell"
        with pytest.raises(LeaseLostError), asleep.fence_transaction(state):
            state.execute("UPDATE environments SET plan = 'of the paused run'")

    assert state.fetchone("SELECT plan FROM environments") == ("before",)
    assert ended == []
    asleep.release_lease()
    paused.close_connections()
    state.close()


def test_fence__nobody_takes_the_lease_while_something_is_written(
    database: str, two: tuple[LeaseBook, LeaseBook]
) -> None:
    state: Any = connection(database).create_engine_adapter()
    state.execute("CREATE TABLE IF NOT EXISTS promotions AS SELECT 0 AS plan")
    slow = leases(database, LeaseTiming(heartbeat=3_600, expiry=0.3, poll=0.01))
    lease = slow.acquire_lease("pr_7", APPLY)
    seen: list[Any] = []

    def take() -> None:
        with two[1].wait_for("pr_7", OTHER, seconds=PATIENCE, progress=lambda *_: None):
            other: Any = connection(database).create_engine_adapter()
            seen.append(other.fetchone("SELECT plan FROM promotions"))
            other.close()

    taker = threading.Thread(target=take)
    with lease.fence_transaction(state):
        state.execute("UPDATE promotions SET plan = 1")
        taker.start()
        expired = slow.list_live
        until(lambda: expired() == [])
        taker.join(timeout=0.3)
        assert taker.is_alive(), "it was taken in the middle of the write"
    taker.join(timeout=PATIENCE)

    assert seen == [(1,)]
    lease.release_lease()
    slow.close_connections()
    state.close()


def test_stop__is_asked_of_an_apply_and_seen_with_the_next_heartbeat(
    two: tuple[LeaseBook, LeaseBook],
) -> None:
    ended: list[LeaseReason] = []
    told: list[str] = []
    apply = two[0].acquire_lease("pr_7", APPLY, on_end=ended.append)

    def obey() -> None:
        until(lambda: len(ended) > 1)
        apply.release_lease()

    obedient = threading.Thread(target=obey)
    obedient.start()
    with two[1].wait_for(
        "pr_7",
        CLEANUP,
        seconds=PATIENCE,
        progress=lambda _phase, message, *_: told.append(message),
        stop_applies=True,
    ) as cleanup:
        assert set(ended) == {"stop_requested"}
        assert cleanup.end_reason is None
        # A second cleanup waits for the first, and does not stop it.
        with pytest.raises(HeldByAnother, match=r"held by a cleanup \(octo/shop#7, run 13\)"):
            two[0].wait_for(
                "pr_7", CLEANUP, seconds=0.3, progress=lambda *_: None, stop_applies=True
            )
        time.sleep(2 * FAST.heartbeat)
        assert cleanup.end_reason is None
    obedient.join()
    assert len(told) == 1
    assert "waiting: pr_7 is held by an apply (octo/shop#7, run 11)" in told[0]


def test_reclaim__never_overlaps_with_an_apply(two: tuple[LeaseBook, LeaseBook]) -> None:
    with (
        two[0].acquire_lease("pr_7", APPLY),
        two[0].acquire_lease("pr_8", OTHER),
        pytest.raises(HeldByAnother, match=r"No physical table is reclaimed now: pr_7 is held"),
    ):
        two[1].acquire_exclusive(OWNER)
    # A cleanup holds its environment while it reclaims.
    with two[1].acquire_lease("pr_7", CLEANUP), two[1].acquire_exclusive(OWNER) as reclaim:
        assert reclaim.name == RECLAIM
        with pytest.raises(HeldByAnother, match=r"pr_8 cannot start now: .* reserved by a reclaim"):
            two[0].acquire_lease("pr_8", OTHER)
        with pytest.raises(HeldByAnother), two[0].acquire_exclusive(OWNER):
            pass
        with two[0].acquire_lease("pr_9", CLEANUP):
            pass
    with two[0].acquire_lease("pr_8", OTHER):
        assert [held.name for held in two[1].list_live()] == ["pr_8"]


def test_number__tells_whether_somebody_was_there_in_between(
    two: tuple[LeaseBook, LeaseBook],
) -> None:
    number = two[0].read_last_fencing_number()
    with two[0].acquire_lease("pr_7", APPLY) as lease:
        assert lease.fencing == number + 1
        with pytest.raises(HeldByAnother):
            two[1].acquire_lease("pr_7", OTHER)
        assert two[0].read_last_fencing_number() == number + 1, "whoever was refused was not there"
    with two[1].acquire_exclusive(OWNER):
        pass
    assert two[0].read_last_fencing_number() == number + 2


def test_names__are_text_and_nothing_else(two: tuple[LeaseBook, LeaseBook]) -> None:
    name = "pr'); DROP TABLE x; --"
    with two[0].acquire_lease(name, LeaseHolder(activity="apply", who="o'hara % {} \\")):
        assert [held.name for held in two[1].list_live()] == [name]
        assert two[1].list_live()[0].who == "o'hara % {} \\"
    assert two[1].list_live() == []


def test_times__are_the_servers(database: str, two: tuple[LeaseBook, LeaseBook]) -> None:
    adapter: Any = connection(database).create_engine_adapter()
    with two[0].acquire_lease("pr_7", APPLY):
        held = two[1].list_live()[0]
        table = exp.table_("_leases", db=SCHEMA)
        # Whatever a runner's clock says: a row that the server finds expired is free.
        adapter.execute(exp.update(table, {"expires_at": held.heartbeat_at}, where="name = 'pr_7'"))
        with two[1].acquire_lease("pr_7", OTHER) as taken:
            assert taken.fencing > held.fencing
    adapter.close()
