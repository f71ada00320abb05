"""The two records of an environment, read while another run makes or removes it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

import pytest
from sqlmesh.core.config.connection import DuckDBConnectionConfig
from sqlmesh.core.environment import Environment
from sqlmesh.core.state_sync import EngineAdapterStateSync

from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import Owner
from ci_bot.worker.state_store.ledger import (
    Ledger,
    LedgerRow,
    find_refusal_by_ledger,
    read_environment_records_of_ledger,
)
from tests.conftest import missing
from tests.integration.test_postgres_state import connect
from tests.lease_process import connection

NAME, OWNER = EnvironmentName("pr_7"), Owner(name="octo/shop")
# With the state read before the ledger, one or two of these were called somebody else's in two of
# three tries.
READS = 300
FAR = 4_102_444_800_000


@dataclass
class TwoRuns:
    """One state and one ledger, and what another run does to them."""

    state: Any
    ledger: Ledger
    seconds: Iterator[int] = field(default_factory=count)

    def write_row(self, phase: Literal["applying", "cleaning", "removed"]) -> None:
        self.ledger.write_row(
            LedgerRow(
                environment=NAME,
                owner=OWNER.name,
                pr_number=7,
                head_sha=None,
                plan_id=None,
                phase=phase,
                gateway="spark",
                catalog="spark_catalog",
                suffix_target="schema",
                created_at="2026-11-20T10:00:00Z",
                updated_at=f"2026-11-20T10:00:00.{next(self.seconds):06}Z",
            )
        )

    def begin_apply(self) -> None:
        self.write_row("applying")

    def promote(self) -> None:
        self.state.environment_state.update_environment(
            Environment(
                name=NAME,
                snapshots=[],
                start_at="2024-01-01",
                plan_id="plan",
                suffix_target="schema",
                expiration_ts=FAR,
            )
        )

    def delete_state_record(self) -> None:
        self.state.engine_adapter.delete_from(
            self.state.environment_state.environments_table, where="TRUE"
        )

    def end_cleanup(self) -> None:
        self.delete_state_record()
        self.write_row("removed")


def open_records(adapter: Any) -> TwoRuns:
    state = EngineAdapterStateSync(adapter, "sqlmesh")
    state.migrate()
    ledger = Ledger(adapter)
    ledger.prepare_tables()
    return TwoRuns(state, ledger)


@pytest.fixture
def runs() -> Iterator[TwoRuns]:
    adapter = DuckDBConnectionConfig(database=":memory:").create_engine_adapter()
    yield open_records(adapter)
    adapter.close()


@pytest.fixture
def on_postgres() -> Iterator[Callable[[], TwoRuns]]:
    """Opens the records of one new database, by a connection of its own each time."""
    url = os.environ.get("CI_BOT_TEST_POSTGRES")
    if not url:
        missing("CI_BOT_TEST_POSTGRES names no PostgreSQL server")
    name = f"records_{os.getpid()}"
    admin = connect(str(url), "postgres")
    with admin.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    opened: list[Any] = []

    def open_one() -> TwoRuns:
        opened.append(connection(f"{str(url).rpartition('/')[0]}/{name}").create_engine_adapter())
        return open_records(opened[-1])

    yield open_one
    for adapter in opened:
        adapter.close()
    with admin.cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    admin.close()


@dataclass
class ReaderWithOthers:
    """SQLMesh's state; what happens just before and just after it is read for the first time."""

    state: Any
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None

    def get_environment(self, name: str) -> Any:
        before, self.before = self.before, lambda: None
        before()
        found = self.state.get_environment(name)
        after, self.after = self.after, lambda: None
        after()
        return found


def check_ours(runs: TwoRuns, reader: ReaderWithOthers) -> tuple[Any, LedgerRow | None]:
    stored, row = read_environment_records_of_ledger(reader, runs.ledger, NAME)
    assert find_refusal_by_ledger(NAME, OWNER, row, stored) is None
    return stored, row


def test_records__of_a_cleanup_that_ends_after_the_state_was_read(runs: TwoRuns) -> None:
    runs.begin_apply()
    runs.promote()

    stored, row = check_ours(runs, ReaderWithOthers(runs.state, after=runs.end_cleanup))

    assert stored is None
    assert row is not None
    assert row.phase == "removed"


def test_records__of_a_cleanup_that_ends_before_the_state_is_read(runs: TwoRuns) -> None:
    runs.begin_apply()
    runs.promote()

    stored, row = check_ours(runs, ReaderWithOthers(runs.state, before=runs.end_cleanup))

    assert stored is None
    assert row is not None
    assert row.phase == "removed"


def test_records__of_an_apply_that_promotes_before_the_state_is_read(runs: TwoRuns) -> None:
    def apply() -> None:
        runs.begin_apply()
        runs.promote()

    stored, row = check_ours(runs, ReaderWithOthers(runs.state, before=apply))

    assert stored is not None
    assert row is not None
    assert row.phase == "applying"


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.postgres
def test_records__while_another_run_makes_and_removes_it_again_and_again(
    on_postgres: Callable[[], TwoRuns],
) -> None:
    """Nothing is staged: two connections, one state, and whichever of them the machine lets run."""
    runs, others = on_postgres(), on_postgres()
    stop, failures = threading.Event(), list[BaseException]()

    def live() -> None:
        try:
            while not stop.is_set():
                others.begin_apply()
                others.promote()
                others.end_cleanup()
        except BaseException as error:
            failures.append(error)

    other = threading.Thread(target=live)
    runs.begin_apply()
    other.start()
    try:
        refused = [
            find_refusal_by_ledger(NAME, OWNER, row, stored)
            for stored, row in (
                read_environment_records_of_ledger(runs.state, runs.ledger, NAME)
                for _ in range(READS)
            )
        ]
    finally:
        stop.set()
        other.join()

    assert failures == []
    assert [one for one in refused if one is not None] == []


def test_records__of_an_environment_of_others(runs: TwoRuns) -> None:
    runs.promote()

    stored, row = read_environment_records_of_ledger(runs.state, runs.ledger, NAME)

    assert row is None
    refused = find_refusal_by_ledger(NAME, OWNER, row, stored)
    assert refused is not None
    assert refused.reason_code == "not_ours"
