"""The bot's own record of every environment, beside SQLMesh's state.

It is written before the first write of an apply, because an apply that dies leaves snapshots and
tables but no environment record in SQLMesh's state; then only this row knows what to remove.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Literal

from pydantic import ConfigDict, Field
from sqlglot import exp

from ci_bot.contracts.base import Contract, Count, Name, Timestamp
from ci_bot.contracts.documents.policy import Acceptance
from ci_bot.worker.warehouse.catalog import Catalog, Relation

SCHEMA = "sqlmesh_ci_bot"
LedgerPhase = Literal[
    "applying",
    "promoted",  # built and promoted; views or data have not been looked at, or not to the end
    "applied",  # and its evidence was finished
    "failed",
    "cleaning",
    "leftover",
    "removed",
    "reclaimable",  # cleaned up at `updated_at`; its physical tables go after a grace period
    "reclaiming",  # its state rows are gone, and `objects` are the tables that still have to go
]

# Rows in these phases are about an environment that is gone.
REMOVED = ("removed", "reclaimable", "reclaiming")


class LedgerSnapshot(Contract):
    """A snapshot of the environment; `ours` where this environment recorded it first."""

    name: Name
    identifier: Name
    version: Name
    dev_version: Name
    ours: bool


class LedgerObject(Contract):
    """A schema, view or physical table, and whether it was there before the apply."""

    kind: Literal["schema", "view", "table"]
    catalog: Name
    db: Name
    name: str = ""
    existed: bool


class LedgerRow(Contract):
    version: Literal[1] = 1
    environment: Name
    owner: Name
    pr_number: Count | None
    head_sha: Name | None
    plan_id: Name | None
    phase: LedgerPhase
    gateway: Name
    catalog: Name
    suffix_target: Name
    snapshots: list[LedgerSnapshot] = Field(default_factory=list)
    objects: list[LedgerObject] = Field(default_factory=list)
    created_at: Timestamp
    updated_at: Timestamp


class RunRow(Contract):
    """What one model's backfill took; the history that later estimates are made from."""

    # Earlier rows also say of which plan they are, and how many bytes.
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


class Ledger:
    """Rows in a small schema of our own, through SQLMesh's engine adapter for its state."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self._environments = exp.table_("_environments", db=SCHEMA)
        self._runs = exp.table_("_runs", db=SCHEMA)
        self._acceptances = exp.table_("_acceptances", db=SCHEMA)
        text = exp.DataType.build("text")
        self._environment_columns = {"name": text, "owner": text, "phase": text, "document": text}
        self._run_columns = {"model": text, "at": text, "document": text}
        self._acceptance_columns = {"about": text, "item": text, "at": text, "document": text}

    def exists(self) -> bool:
        """Whether any run of ours has recorded anything in this state database."""
        return bool(self._adapter.table_exists(self._environments))

    def prepare(self) -> None:
        """Creates the ledger's schema and tables where they are not there yet."""
        tables = {
            self._environments: (self._environment_columns, ("name",)),
            self._runs: (self._run_columns, None),
            self._acceptances: (self._acceptance_columns, None),
        }
        missing = [table for table in tables if not self._adapter.table_exists(table)]
        if missing:
            self._adapter.create_schema(SCHEMA)
        for table in missing:
            columns, key = tables[table]
            self._adapter.create_state_table(table, columns, primary_key=key)

    def get(self, environment: str, *, lock: bool = False) -> LedgerRow | None:
        """The row of an environment, None where there is none.

        Args:
            lock: Nobody else changes it until the transaction ends that this is called in. DuckDB
                has no such lock and needs none.
        """
        if not self.exists():
            return None
        query = (
            exp.select("document")
            .from_(self._environments)
            .where(exp.column("name").eq(exp.Literal.string(environment)))
        )
        found = self._adapter.fetchone(query.lock() if lock else query)
        return LedgerRow.model_validate_json(found[0]) if found else None

    def all(self) -> list[LedgerRow]:
        """Every environment that the ledger knows, by name."""
        if not self.exists():
            return []
        rows = self._adapter.fetchall(exp.select("document").from_(self._environments))
        return sorted(
            (LedgerRow.model_validate_json(row[0]) for row in rows), key=lambda row: row.environment
        )

    def of_owner(self, owner: str) -> list[LedgerRow]:
        """The environments of a repository that are not removed, by name."""
        if not self.exists():
            return []
        rows = self._adapter.fetchall(
            exp.select("document")
            .from_(self._environments)
            .where(exp.column("owner").eq(exp.Literal.string(owner)))
            .where(exp.column("phase").isin(*REMOVED).not_())
            .order_by("name")
        )
        return [LedgerRow.model_validate_json(row[0]) for row in rows]

    def put(self, row: LedgerRow) -> None:
        """Writes the row of an environment, replacing an older one."""
        import pandas as pd

        with self._adapter.transaction():
            self._delete(row.environment)
            self._adapter.insert_append(
                self._environments,
                pd.DataFrame(
                    [
                        {
                            "name": row.environment,
                            "owner": row.owner,
                            "phase": row.phase,
                            "document": row.to_json(),
                        }
                    ]
                ),
                target_columns_to_types=self._environment_columns,
                track_rows_processed=False,
            )

    def delete(self, environment: str) -> None:
        """Forgets an environment; nothing happens where there is no row."""
        if self.exists():
            self._delete(environment)

    def _delete(self, environment: str) -> None:
        self._adapter.delete_from(
            self._environments, exp.column("name").eq(exp.Literal.string(environment))
        )

    def runs(self, models: Collection[str] | None = None, *, newest: int = 5_000) -> list[RunRow]:
        """The newest rows of what these models cost, or all models, newest first."""
        if (models is not None and not models) or not self._adapter.table_exists(self._runs):
            return []
        query = exp.select("document").from_(self._runs)
        if models is not None:
            query = query.where(exp.column("model").isin(*sorted(models)))
        rows = self._adapter.fetchall(
            query.order_by(exp.column("at", quoted=True).desc()).limit(newest)
        )
        return [RunRow.model_validate_json(row[0]) for row in rows]

    def add_runs(self, runs: list[RunRow], *, forget_before: str) -> None:
        """Appends to the history of what models cost, and forgets what is older than that."""
        import pandas as pd

        if not runs:
            return
        self._adapter.delete_from(
            self._runs, exp.column("at", quoted=True) < exp.Literal.string(forget_before)
        )
        self._adapter.insert_append(
            self._runs,
            pd.DataFrame(
                [{"model": run.model, "at": run.at, "document": run.to_json()} for run in runs]
            ),
            target_columns_to_types=self._run_columns,
            track_rows_processed=False,
        )

    def acceptances(self, repository: str, pull_request: int) -> list[Acceptance]:
        """What was accepted in a pull request, oldest first."""
        if not self._adapter.table_exists(self._acceptances):
            return []
        query = (
            exp.select("document")
            .from_(self._acceptances)
            .where(exp.column("about").eq(_about(repository, pull_request)))
            .order_by(exp.column("at", quoted=True))
        )
        return [Acceptance.model_validate_json(row[0]) for row in self._adapter.fetchall(query)]

    def accept(
        self, repository: str, pull_request: int, item: Acceptance, *, forget_before: str
    ) -> None:
        """Writes an acceptance, in the place of an earlier one of the same rule on the model."""
        import pandas as pd

        about, key = _about(repository, pull_request), json.dumps([item.rule, item.model])
        with self._adapter.transaction():
            self._adapter.delete_from(
                self._acceptances,
                exp.or_(
                    exp.and_(
                        exp.column("about").eq(about),
                        exp.column("item").eq(exp.Literal.string(key)),
                    ),
                    exp.column("at", quoted=True) < exp.Literal.string(forget_before),
                ),
            )
            row = {"about": about.this, "item": key, "at": item.at, "document": item.to_json()}
            self._adapter.insert_append(
                self._acceptances,
                pd.DataFrame([row]),
                target_columns_to_types=self._acceptance_columns,
                track_rows_processed=False,
            )


def _about(repository: str, pull_request: int) -> exp.Literal:
    return exp.Literal.string(f"{repository}#{pull_request}")


def ledger_objects(
    views: Iterable[Relation], tables: Iterable[Relation], catalog: Catalog
) -> list[LedgerObject]:
    """Every object of an apply with whether it is there now, asked schema by schema."""
    views, tables = list(views), list(tables)
    schemas = sorted({(relation.catalog, relation.schema) for relation in [*views, *tables]})
    present: dict[tuple[str, str], set[str]] = {}
    found: list[LedgerObject] = []
    for where in schemas:
        names = catalog.names(*where)
        present[where] = {name.lower() for name in names or ()}
        found.append(
            LedgerObject(kind="schema", catalog=where[0], db=where[1], existed=names is not None)
        )
    groups: tuple[tuple[Literal["view", "table"], list[Relation]], ...] = (
        ("view", views),
        ("table", tables),
    )
    for kind, relations in groups:
        for relation in relations:
            found.append(
                LedgerObject(
                    kind=kind,
                    catalog=relation.catalog,
                    db=relation.schema,
                    name=relation.name,
                    existed=relation.name.lower() in present[(relation.catalog, relation.schema)],
                )
            )
    return found
