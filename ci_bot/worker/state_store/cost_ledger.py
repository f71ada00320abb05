"""The ledger's rows on the cost of models and applies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import ConfigDict
from sqlglot import exp

from ci_bot.protocol.base import Contract, Count, Name, PlanId, Seconds, Timestamp
from ci_bot.protocol.cost import Counters
from ci_bot.worker.state_store.ledger_schema import (
    APPLIES,
    PROD_RUNS,
    RUNS,
    LedgerTable,
    LedgerTables,
)

if TYPE_CHECKING:
    from sqlmesh.core.engine_adapter import EngineAdapter

# `probed`: only the newest batch of models was built, on purpose. It counts as a run of these
# models, but not for the accuracy of an apply's estimate.
Outcome = Literal["applied", "probed", "failed", "cancelled"]


class RunRow(Contract):
    """The cost of one model's backfill; later estimates are made from these rows.

    `intervals` and `batches` are the completed ones, and the other figures are about them;
    `lost_seconds` is executor time of batches that failed or were stopped.
    """

    # Rows of older versions also have a plan id and a number of bytes.
    model_config = ConfigDict(extra="ignore")

    environment: Name
    model: Name
    version: Name
    intervals: Count
    batches: Count
    seconds: float
    executor_seconds: float
    rows: Count | None
    at: Timestamp
    # Rows of 0.1.0 have none of these: their cost is wall time times the executors at the end.
    source: Literal["counters", "clock"] = "clock"
    outcome: Outcome = "applied"
    counters: Counters | None = None
    lost_seconds: Seconds = 0.0


class ApplyRow(Contract):
    """One apply or probe: its expected and its actual cost, in executor-hours.

    `expected_hours` is null if a model was unknown: an estimate of a part cannot be checked.
    """

    model_config = ConfigDict(extra="ignore")

    environment: Name
    plan_id: PlanId | None
    at: Timestamp
    outcome: Outcome
    expected_hours: Seconds | None
    allocated_hours: Seconds
    core_hours: Seconds | None = None
    used_hours: Seconds | None = None


class ProdRunRow(Contract):
    """One write of prod itself into a physical table, as Spark's event log reports it.

    `intervals` is null if the log does not say which range was written. `source` names the
    application and the attempt, so that a log that is read twice counts once.
    """

    model_config = ConfigDict(extra="ignore")

    source: Name
    table: Name
    at: Timestamp
    seconds: Seconds
    executor_seconds: Seconds
    start: Timestamp | None = None
    end: Timestamp | None = None
    counters: Counters


class CostLedger:
    """Reads and writes the ledger's rows on cost. Reading accepts rows of older versions.

    Every method raises BadInput if a newer version of ci-bot has written the ledger.
    """

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter
        self._tables = LedgerTables(adapter)

    def prepare_tables(self) -> None:
        """Creates the ledger's tables if they do not exist."""
        self._tables.prepare_tables()

    def list_runs(
        self, models: Collection[str] | None = None, *, newest: int = 5_000
    ) -> list[RunRow]:
        """Lists the newest cost rows of these models, or of all if None, newest first."""
        if models is not None and not models:
            return []
        where = None if models is None else exp.column("model").isin(*sorted(models))
        return [RunRow.model_validate_json(text) for text in self._read_newest(RUNS, where, newest)]

    def add_runs(self, runs: Sequence[RunRow], *, forget_before: str) -> None:
        """Appends cost rows, and deletes those older than `forget_before`."""
        rows = [{"model": run.model, "at": run.at, "document": run.to_json()} for run in runs]
        self._append_rows(RUNS, rows, forget_before)

    def list_applies(self, *, newest: int) -> list[ApplyRow]:
        """Lists the newest applies, newest first."""
        found = self._read_newest(APPLIES, None, newest)
        return [ApplyRow.model_validate_json(text) for text in found]

    def add_apply(self, row: ApplyRow, *, forget_before: str) -> None:
        """Adds an apply, and deletes those older than `forget_before`."""
        rows = [{"environment": row.environment, "at": row.at, "document": row.to_json()}]
        self._append_rows(APPLIES, rows, forget_before)

    def list_prod_runs(self, tables: Collection[str], *, newest: int = 5_000) -> list[ProdRunRow]:
        """Lists prod's newest writes into these physical tables, newest first."""
        if not tables:
            return []
        where = exp.column("table_name").isin(*sorted(tables))
        found = self._read_newest(PROD_RUNS, where, newest)
        return [ProdRunRow.model_validate_json(text) for text in found]

    @property
    def knows_prod(self) -> bool:
        """Whether the table of prod's runs exists; each writer of this version makes it."""
        return self._tables.table_exists(PROD_RUNS)

    def list_sources(self) -> set[str]:
        """Lists the applications whose logs were read completely."""
        if not self._tables.table_exists(PROD_RUNS):
            return set()
        query = exp.select("source").distinct().from_(PROD_RUNS.table_expression)
        return {str(row[0]) for row in self._adapter.fetchall(query)}

    def remember_source(self, source: str, at: str) -> None:
        """Records that an application's log was read and has no write."""
        self._append_rows(
            PROD_RUNS, [{"source": source, "table_name": "", "at": at, "document": ""}], ""
        )

    def replace_prod_runs(
        self, source: str, rows: Sequence[ProdRunRow], *, forget_before: str
    ) -> None:
        """Replaces the recorded writes of one application."""
        found = [
            {"source": source, "table_name": row.table, "at": row.at, "document": row.to_json()}
            for row in rows
        ]
        with self._adapter.transaction():
            self._adapter.delete_from(
                PROD_RUNS.table_expression, exp.column("source").eq(exp.Literal.string(source))
            )
            self._append_rows(PROD_RUNS, found, forget_before)

    def _read_newest(
        self, table: LedgerTable, where: exp.Expression | None, newest: int
    ) -> list[str]:
        if not self._tables.table_exists(table):
            return []
        query = exp.select("document").from_(table.table_expression)
        if where is not None:
            query = query.where(where)
        at = exp.column("at", quoted=True)
        rows = self._adapter.fetchall(query.order_by(at.desc()).limit(newest))
        return [row[0] for row in rows]

    def _append_rows(
        self, table: LedgerTable, rows: Sequence[dict[str, str]], forget_before: str
    ) -> None:
        import pandas as pd

        if not rows:
            return
        self._adapter.delete_from(
            table.table_expression,
            exp.column("at", quoted=True) < exp.Literal.string(forget_before),
        )
        self._adapter.insert_append(
            table.table_expression,
            pd.DataFrame(rows),
            target_columns_to_types=table.types_on(self._adapter.dialect),
            track_rows_processed=False,
        )
