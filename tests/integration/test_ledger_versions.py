"""Ledgers of other versions, on the databases that teams have them in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlmesh.core.config.connection import DuckDBConnectionConfig

import ci_bot
from ci_bot.errors import EXIT_BAD_INPUT, BadInput
from ci_bot.protocol.cost import Counters
from ci_bot.worker.cost.plan_estimate import list_past_runs_for_cost
from ci_bot.worker.state_store.cost_ledger import ApplyRow, CostLedger, ProdRunRow, RunRow
from ci_bot.worker.state_store.ledger import Ledger
from ci_bot.worker.state_store.ledger_schema import LEDGER_VERSION, SCHEMA
from tests.integration.test_lease import database
from tests.lease_process import connection

__all__ = ["database"]

# What 0.1.0 has written, to the letter.
TABLES_OF_0_1_0 = (
    f"CREATE SCHEMA {SCHEMA}",
    f"CREATE TABLE {SCHEMA}._environments "
    "(name TEXT PRIMARY KEY, owner TEXT, phase TEXT, document TEXT)",
    f'CREATE TABLE {SCHEMA}._runs (model TEXT, "at" TEXT, document TEXT)',
    f'CREATE TABLE {SCHEMA}._acceptances (about TEXT, item TEXT, "at" TEXT, document TEXT)',
)
ENVIRONMENT_OF_0_1_0 = (
    '{"version":1,"environment":"pr_7","owner":"octo/shop","pr_number":7,"head_sha":null,'
    '"plan_id":null,"phase":"applied","gateway":"spark","catalog":"spark_catalog",'
    '"suffix_target":"schema","snapshots":[],"objects":[],'
    '"created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z"}'
)
RUN_OF_0_1_0 = (
    '{"environment":"pr_7","model":"shop.orders","version":"12","intervals":4,"batches":2,'
    '"seconds":8.0,"executor_seconds":16.0,"rows":10,"at":"2026-11-20T10:00:00Z"}'
)


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def adapter(request: pytest.FixtureRequest) -> Iterator[Any]:
    config: Any = DuckDBConnectionConfig(database=":memory:")
    if request.param == "postgres":
        config = connection(request.getfixturevalue("database"))
    made = config.create_engine_adapter()
    made.drop_schema(SCHEMA, ignore_if_not_exists=True, cascade=True)
    yield made
    made.close()


@pytest.fixture
def old(adapter: Any) -> Any:
    """A state in which 0.1.0 has worked."""
    for statement in TABLES_OF_0_1_0:
        adapter.execute(statement)
    adapter.execute(
        f"INSERT INTO {SCHEMA}._environments VALUES "
        f"('pr_7', 'octo/shop', 'applied', '{ENVIRONMENT_OF_0_1_0}')"
    )
    adapter.execute(
        f"INSERT INTO {SCHEMA}._runs VALUES "
        f"('shop.orders', '2026-11-20T10:00:00Z', '{RUN_OF_0_1_0}')"
    )
    return adapter


def run(**more: Any) -> RunRow:
    return RunRow.model_validate_json(RUN_OF_0_1_0).model_copy(update=more)


def tables(adapter: Any) -> set[str]:
    rows = adapter.fetchall(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{SCHEMA}'"
    )
    return {row[0] for row in rows}


def test_old_ledger__is_read_as_it_is_and_nothing_is_written(old: Any) -> None:
    before = tables(old)
    row = Ledger(old).read_row("pr_7")
    assert row is not None
    assert row.phase == "applied"
    (found,) = CostLedger(old).list_runs()
    assert (found.executor_seconds, found.source, found.counters) == (16.0, "clock", None)
    assert CostLedger(old).list_applies(newest=5) == []
    assert CostLedger(old).list_prod_runs(["sqlmesh__shop.shop__orders__12"]) == []
    assert tables(old) == before


def test_old_ledger__becomes_a_new_one_with_the_first_write_and_loses_no_row(old: Any) -> None:
    Ledger(old).prepare_tables()
    Ledger(old).prepare_tables()
    costs = CostLedger(old)
    new = run(
        at="2026-11-22T10:00:00Z",
        source="counters",
        counters=Counters(input_bytes=2**60, used_seconds=1.5),
    )
    costs.add_runs([new], forget_before="2026-01-01")
    assert costs.list_runs() == [new, run()]
    assert [item.seconds for item in list_past_runs_for_cost(costs.list_runs())["shop.orders"]] == [
        16.0
    ]
    assert [row.environment for row in Ledger(old).list_rows()] == ["pr_7"]
    stamps = old.fetchall(f"SELECT version, written_by FROM {SCHEMA}._ledger_versions")
    assert stamps == [(LEDGER_VERSION, ci_bot.__version__)]


def test_newer_ledger__is_bad_input_that_names_both_versions(old: Any) -> None:
    Ledger(old).prepare_tables()
    old.execute(
        f"INSERT INTO {SCHEMA}._ledger_versions VALUES (7, '4.5.6', '2030-01-01T00:00:00Z')"
    )
    for look in (
        lambda: Ledger(old).read_row("pr_7"),
        lambda: Ledger(old).prepare_tables(),
        lambda: CostLedger(old).list_runs(),
        lambda: CostLedger(old).list_applies(newest=1),
    ):
        with pytest.raises(BadInput) as raised:
            look()
        assert raised.value.exit_code == EXIT_BAD_INPUT
        assert "version 7, written by ci-bot 4.5.6" in raised.value.message
        assert f"ci-bot {ci_bot.__version__}" in raised.value.message
    assert tables(old) >= {"_runs", "_environments"}


def test_applies_and_prod_runs__come_back_as_they_were(adapter: Any) -> None:
    costs = CostLedger(adapter)
    costs.prepare_tables()
    apply = ApplyRow(
        environment="pr_7",
        plan_id=None,
        at="2026-11-22T10:00:00Z",
        outcome="failed",
        expected_hours=None,
        allocated_hours=0.5,
    )
    costs.add_apply(apply, forget_before="2026-01-01")
    assert costs.list_applies(newest=3) == [apply]
    write = ProdRunRow(
        source="app-1",
        table="sqlmesh__shop.shop__orders__12",
        at="2026-11-22T10:00:00Z",
        seconds=3.0,
        executor_seconds=6.0,
        counters=Counters(),
    )
    for _ in range(2):  # a log that is read again
        costs.replace_prod_runs("app-1", [write], forget_before="2026-01-01")
    assert costs.list_prod_runs([write.table]) == [write]
    assert costs.list_prod_runs(["another.table"]) == []
    assert costs.list_sources() == {"app-1"}
