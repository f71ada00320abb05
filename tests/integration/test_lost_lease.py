"""An apply whose lease is gone, because its machine slept: what it writes after that.

The state is on PostgreSQL; the models are built by DuckDB, since what is tried is SQLMesh's order of
writes and not Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.protocol.messages import Owner
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply.recorder import ApplyRecorder
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.state_store.lease_guard import LeaseHold
from ci_bot.worker.state_store.ledger_schema import SCHEMA
from tests.integration.test_postgres_state import DUCKDB, connect, own_database, server
from tests.projects import Shop, duck

__all__ = ["server"]

pytestmark = pytest.mark.postgres


@pytest.fixture
def built(server: str, tmp_path: Path) -> Iterator[tuple[Shop, Callable[[str], list[Any]]]]:
    """The shop with prod built, and what asks its state."""
    with own_database(server, "lost_lease") as (name, config):
        there = config[config.index("    state_connection:\n") :]
        there = there[: there.index(f"database: {name}\n") + len(f"database: {name}\n")]
        assert DUCKDB in duck.CONFIG
        shop = duck.write_duck_shop(tmp_path)
        local = duck.CONFIG.format(warehouse=shop.warehouse, state=shop.state)
        state = DUCKDB.format(state=shop.state)
        assert state in local
        shop.write("config.yaml", local.replace(state, there))
        duck.run_prod(shop, "2024-01-11")

        def ask(statement: str) -> list[Any]:
            with closing(connect(server, name)) as connection, connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []

        yield shop, ask


class Build:
    """A build of the shop's changed orders, in three batches, under a lease."""

    def __init__(self, shop: Shop, lose: Callable[[], object], *, at_batch: int) -> None:
        shop.edit("models/orders.sql", "c.customer_id * 10", "c.customer_id * 20")
        set_console(NoopConsole())
        self.context = Context(paths=[str(shop.project)])
        self.begun: list[str] = []
        self._lose = lose
        self._at_batch = at_batch
        self.hold = LeaseHold(
            self.context, "pr_7", Owner(name="octo/shop", pr_number=7), stopped=lambda: False
        )

    def run(self) -> None:
        """Raises what SQLMesh raises."""
        plan = self.context.plan_builder(
            "pr_7", execution_time="2024-01-11", skip_tests=True
        ).build()
        names = MessageNames(self.context.default_catalog, self.context.default_dialect)
        recorder = ApplyRecorder(names, lambda *_: None)
        self.hold.take_lease(lambda *_: None)
        if self._at_batch == 0:
            self._lose()
        try:
            sqlmesh_compat.make_sqlmesh_evaluator(
                self.context,
                recorder,
                recorder.on_audits,
                max_workers=1,
                promotion=self.hold.fence_promotion,
                fence=self.hold.fence_write,
                check=self.hold.check_lease,
                around_batch=self._around,
            ).evaluate(plan.to_evaluatable(), circuit_breaker=self.hold.confirm_must_stop)
        finally:
            self.hold.end_lease()
            self.context.close()

    def _around(self, snapshot: Any, _span: Any) -> AbstractContextManager[None]:
        self.begun.append(snapshot.name)
        if len(self.begun) == self._at_batch:
            self._lose()
        return nullcontext()


@pytest.mark.parametrize("at_batch", [0, 1, 2, None])
@pytest.mark.by_day(2)
def test_apply__writes_no_state_once_its_lease_is_gone(
    built: tuple[Shop, Callable[[str], list[Any]]], at_batch: int | None
) -> None:
    shop, ask = built
    rows = {
        table: f"SELECT COUNT(*) FROM sqlmesh.{table}"
        for table in ("_snapshots", "_intervals", "_environments")
    }
    before = {table: ask(query)[0][0] for table, query in rows.items()}

    def lose() -> None:
        # As the next taker does with a lease that has expired.
        ask(f"DELETE FROM {SCHEMA}._leases WHERE name = 'pr_7'")

    build = Build(shop, lose, at_batch=-1 if at_batch is None else at_batch)
    if at_batch is None:
        build.run()
    else:
        with pytest.raises(Exception):  # noqa: B017 - SQLMesh's own, of several kinds
            build.run()
        assert build.hold.end_reason == "lease_lost"

    after = {table: ask(query)[0][0] for table, query in rows.items()}
    if at_batch is None:
        assert len(build.begun) > 2, "the next batches are what the others lack"
        assert all(after[table] > before[table] for table in rows)
    elif at_batch == 0:
        assert build.begun == []
        assert after == before
    else:
        # The batch that was under way ends on the engine; it is not recorded, and none follows.
        assert len(build.begun) == at_batch
        assert after["_intervals"] == before["_intervals"] + at_batch - 1
        assert after["_environments"] == before["_environments"]
