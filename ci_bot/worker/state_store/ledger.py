"""The bot's own record of every environment, beside SQLMesh's state.

Only this ledger proves who owns an environment.

A row is written before the first write of an apply. If an apply dies, it leaves snapshots and
tables but no environment record in SQLMesh's state; then only this row says what to remove.

An environment without a row is someone else's. A comment is no proof: a review writes one, too, and
everybody with write access can edit it. A name is no proof either, because people choose any name
for their own environments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field
from sqlglot import exp

from ci_bot.errors import RequestRefused
from ci_bot.protocol.base import Contract, Count, Name, Timestamp
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import CleanupRequest, Owner
from ci_bot.protocol.review_inputs import RecordedRestatement
from ci_bot.protocol.review_report import Acceptance
from ci_bot.worker.messages import report_times
from ci_bot.worker.runtime import SparkCatalog, SparkRelation, spark_catalog
from ci_bot.worker.state_store.ledger_schema import (
    ACCEPTANCES,
    ENVIRONMENTS,
    RESTATEMENTS,
    SCHEMA,
    LedgerTable,
    LedgerTables,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter
    from sqlmesh.core.environment import Environment
    from sqlmesh.core.state_sync import StateReader

LedgerPhase = Literal[
    "applying",
    "promoted",  # built and promoted; its views or data are not checked yet, or not completely
    "applied",  # promoted, and its evidence is complete
    "probed",  # batches of its models are built, no view; there may be no environment
    "failed",
    "cleaning",
    "leftover",
    "removed",
    "reclaimable",  # cleaned up at `updated_at`; its physical tables go after a grace period
    "reclaiming",  # its state rows are deleted; `objects` are the tables still to be dropped
]

HIDDEN_TABLES_HINT = (
    "Give it the rights of `docs/state.md`: USAGE on the schema, SELECT on its tables."
)

# In these phases the environment is already gone.
REMOVED = ("removed", "reclaimable", "reclaiming")


class LedgerSnapshot(Contract):
    """A snapshot of the environment; `ours` is whether this environment recorded it first."""

    name: Name
    identifier: Name
    version: Name
    dev_version: Name
    ours: bool


class LedgerObject(Contract):
    """A schema, view or physical table, and whether it existed before the apply."""

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


class Ledger:
    """Reads and writes the ledger's rows, through SQLMesh's engine adapter for its state."""

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter
        self._tables = LedgerTables(adapter)

    def has_ledger(self) -> bool:
        """Whether any run of this bot has recorded anything in this state database.

        Raises:
            BadInput: a newer version of ci-bot has written this ledger; only that version can read
                it.
        """
        return self._tables.table_exists(ENVIRONMENTS)

    def describe_hidden_tables(self) -> str | None:
        """Names the ledger's tables that this account may not read; None if it may read all."""
        hidden = self._tables.list_hidden_tables()
        shown = ", ".join(f"`{SCHEMA}.{name}`" for name in hidden)
        return f"The account of the state may not read {shown}" if hidden else None

    def prepare_tables(self) -> None:
        """Creates the ledger's schema and tables if they do not exist.

        Raises:
            BadInput: see `has_ledger`.
        """
        self._tables.prepare_tables()

    def read_row(self, environment: str, *, lock: bool = False) -> LedgerRow | None:
        """Reads the row of an environment; None if there is none.

        Args:
            lock: Locks the row until the end of the current transaction. DuckDB has no such lock
                and needs none.
        """
        if not self.has_ledger():
            return None
        query = (
            exp.select("document")
            .from_(ENVIRONMENTS.table_expression)
            .where(exp.column("name").eq(exp.Literal.string(environment)))
        )
        found = self._adapter.fetchone(query.lock() if lock else query)
        return LedgerRow.model_validate_json(found[0]) if found else None

    def list_rows(self) -> list[LedgerRow]:
        """Lists every environment of the ledger, by name."""
        if not self.has_ledger():
            return []
        rows = self._adapter.fetchall(exp.select("document").from_(ENVIRONMENTS.table_expression))
        return sorted(
            (LedgerRow.model_validate_json(row[0]) for row in rows), key=lambda row: row.environment
        )

    def list_rows_of_owner(self, owner: str) -> list[LedgerRow]:
        """Lists the environments of a repository that are not removed, by name."""
        if not self.has_ledger():
            return []
        rows = self._adapter.fetchall(
            exp.select("document")
            .from_(ENVIRONMENTS.table_expression)
            .where(exp.column("owner").eq(exp.Literal.string(owner)))
            .where(exp.column("phase").isin(*REMOVED).not_())
            .order_by("name")
        )
        return [LedgerRow.model_validate_json(row[0]) for row in rows]

    def write_row(self, row: LedgerRow) -> None:
        """Writes the row of an environment, replacing an older one."""
        import pandas as pd

        with self._adapter.transaction():
            self._delete_rows(row.environment)
            self._adapter.insert_append(
                ENVIRONMENTS.table_expression,
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
                target_columns_to_types=ENVIRONMENTS.types_on(self._adapter.dialect),
                track_rows_processed=False,
            )

    def delete_row(self, environment: str) -> None:
        """Deletes the row of an environment, if there is one."""
        if self.has_ledger():
            self._delete_rows(environment)

    def _delete_rows(self, environment: str) -> None:
        self._adapter.delete_from(
            ENVIRONMENTS.table_expression, exp.column("name").eq(exp.Literal.string(environment))
        )

    def list_acceptances(self, repository: str, pull_request: int) -> list[Acceptance]:
        """Lists what was accepted in a pull request, the oldest first."""
        return [
            Acceptance.model_validate_json(text)
            for text in self._list_documents(ACCEPTANCES, repository, pull_request)
        ]

    def write_acceptance(
        self, repository: str, pull_request: int, item: Acceptance, *, forget_before: str
    ) -> None:
        """Writes an acceptance; it replaces this person's earlier one for the same rule and model.

        Another owner's acceptance stays, because it may be about another reader of the model.
        """
        key = json.dumps([item.rule, item.model, item.by])
        row = _PullRequestRow(repository, pull_request, key)
        self._replace_document(ACCEPTANCES, row, (item.at, item.to_json()), forget_before)

    def list_restatements(self, repository: str, pull_request: int) -> list[RecordedRestatement]:
        """Lists what prod builds again after a pull request is merged, the oldest first."""
        return [
            RecordedRestatement.model_validate_json(text)
            for text in self._list_documents(RESTATEMENTS, repository, pull_request)
        ]

    def write_restatement(
        self, repository: str, pull_request: int, item: RecordedRestatement, *, forget_before: str
    ) -> None:
        """Writes a restatement; it replaces an earlier one of the same model."""
        row = _PullRequestRow(repository, pull_request, item.model)
        self._replace_document(RESTATEMENTS, row, (item.at, item.to_json()), forget_before)

    def delete_restatement(self, repository: str, pull_request: int, model: str) -> None:
        """Deletes the restatement of a model, if there is one."""
        row = _PullRequestRow(repository, pull_request, model)
        self._replace_document(RESTATEMENTS, row, None, "")

    def _list_documents(self, table: LedgerTable, repository: str, pull_request: int) -> list[str]:
        if not self._tables.table_exists(table):
            return []
        query = (
            exp.select("document")
            .from_(table.table_expression)
            .where(exp.column("about").eq(_make_key_of_pull_request(repository, pull_request)))
            .order_by(exp.column("at", quoted=True))
        )
        return [str(row[0]) for row in self._adapter.fetchall(query)]

    def _replace_document(
        self,
        table: LedgerTable,
        row: _PullRequestRow,
        written: tuple[str, str] | None,
        forget_before: str,
    ) -> None:
        """Replaces the document of an item by one with its time, or deletes it.

        Args:
            forget_before: Older rows of every pull request are deleted, too.
        """
        import pandas as pd

        about = _make_key_of_pull_request(row.repository, row.pull_request)
        with self._adapter.transaction():
            self._adapter.delete_from(
                table.table_expression,
                exp.or_(
                    exp.and_(
                        exp.column("about").eq(about),
                        exp.column("item").eq(exp.Literal.string(row.item)),
                    ),
                    exp.column("at", quoted=True) < exp.Literal.string(forget_before),
                ),
            )
            if written is None:
                return
            at, document = written
            content = {"about": about.this, "item": row.item, "at": at, "document": document}
            self._adapter.insert_append(
                table.table_expression,
                pd.DataFrame([content]),
                target_columns_to_types=table.types_on(self._adapter.dialect),
                track_rows_processed=False,
            )


@dataclass(frozen=True)
class _PullRequestRow:
    """The key of a row: the pull request, and what it is about."""

    repository: str
    pull_request: int
    item: str


def _make_key_of_pull_request(repository: str, pull_request: int) -> exp.Literal:
    return exp.Literal.string(f"{repository}#{pull_request}")


def list_ledger_objects(
    views: Iterable[SparkRelation], tables: Iterable[SparkRelation], catalog: SparkCatalog
) -> list[LedgerObject]:
    """Lists every object of an apply, and whether it exists now, schema by schema."""
    views, tables = list(views), list(tables)
    schemas = sorted({(relation.catalog, relation.schema) for relation in [*views, *tables]})
    present: dict[tuple[str, str], set[str]] = {}
    found: list[LedgerObject] = []
    for where in schemas:
        names = catalog.list_names(*where)
        present[where] = {name.lower() for name in names or ()}
        found.append(
            LedgerObject(kind="schema", catalog=where[0], db=where[1], existed=names is not None)
        )
    groups: tuple[tuple[Literal["view", "table"], list[SparkRelation]], ...] = (
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


_TWO_PREFIXES = (
    "Two repositories on one state need different values of the input `environment-prefix`."
)


def does_ledger_describe_stored_environment(row: LedgerRow | None, expires: int | None) -> bool:
    """Whether the ledger's row describes the environment that is in SQLMesh's state now.

    It does not if we removed that environment, and somebody made one with its name later.

    Args:
        expires: When the environment in the state expires, in milliseconds; None: never.
    """
    if row is None or row.phase in REMOVED:
        return False
    if row.phase == "leftover":
        # The cleanup that wrote the row has deleted SQLMesh's record. An older version of ci-bot
        # may have kept the record, but it made it expire first.
        return expires is not None and expires <= report_times.to_milliseconds(row.updated_at)
    return True


def read_environment_records_of_ledger(
    state_reader: StateReader, ledger: Ledger, environment: EnvironmentName
) -> tuple[Environment | None, LedgerRow | None]:
    """Reads SQLMesh's record and the ledger's row of an environment, as of one moment.

    Another run may make or remove it between two reads: an apply writes the row first and a cleanup
    last, so the first read may be outdated. If the row is the same before and after a read of the
    record, both are of one moment.

    Returns:
        SQLMesh's record and the ledger's row, each None if there is none.
    """
    row = ledger.read_row(environment)
    while True:
        stored = state_reader.get_environment(environment)
        before, row = row, ledger.read_row(environment)
        if row == before:
            return stored, row


def find_refusal_by_ledger(
    environment: EnvironmentName, owner: Owner, row: LedgerRow | None, stored: Environment | None
) -> RequestRefused | None:
    """Finds why this owner may not change an environment; None if the owner may.

    Args:
        stored: SQLMesh's record of it, from the same moment as `row`: see
            `read_environment_records_of_ledger`.
    """
    claim = (
        "If it is this repository's, a person with rights on the state database can say so: "
        f"`ci-bot cleanup --project . --environment {environment} --claim` removes it, and "
        "`ci-bot apply` with `--claim` takes it over."
    )
    if row is not None and row.owner != owner.name:
        return RequestRefused(
            f"{environment} belongs to {row.owner}, not to {owner.name}.",
            hint=f"{_TWO_PREFIXES} {claim}",
            reason_code="other_owner",
        )
    if stored is not None and not does_ledger_describe_stored_environment(
        row, stored.expiration_ts
    ):
        return RequestRefused(
            f"{environment} is in SQLMesh's state, and nothing proves that this repository made "
            "it: no apply of it is recorded.",
            hint=f"{claim} {_TWO_PREFIXES}",
            reason_code="not_ours",
        )
    return None


def check_ownership_in_ledger(
    environment: EnvironmentName,
    owner: Owner,
    row: LedgerRow | None,
    stored: Environment | None,
    *,
    claim: bool,
) -> None:
    """Raises the refusal of `find_refusal_by_ledger`, unless a person claims the environment.

    Args:
        claim: Whether a person claims the environment.

    Raises:
        RequestRefused: `other_owner` or `not_ours`.
    """
    found = find_refusal_by_ledger(environment, owner, row, stored)
    if found is not None and not claim:
        raise found


def claim_environment_in_ledger(
    request: CleanupRequest,
    context: Context,
    ledger: Ledger,
    row: LedgerRow | None,
    stored: Environment | None,
) -> LedgerRow | None:
    """Writes and returns the row of an environment that a person claims; None if none exists.

    With the row, a cleanup that is cut off can continue.

    Only its views count as made by us; physical tables stay.
    """
    now = report_times.format_iso_in_message(report_times.read_milliseconds_now())
    if row is not None:
        taken = row.model_copy(update={"owner": request.owner.name})
    elif stored is not None:
        taken = LedgerRow(
            environment=request.environment,
            owner=request.owner.name,
            pr_number=request.environment.pull_request_number(request.environment_prefix),
            head_sha=None,
            plan_id=None,
            phase="cleaning",
            gateway=context.selected_gateway,
            catalog=str(context.default_catalog),
            suffix_target=str(stored.suffix_target.value),
            objects=[
                LedgerObject(
                    kind="view", catalog=view.catalog, db=view.schema, name=view.name, existed=True
                )
                for view in spark_catalog.list_spark_views_of_environment(context, stored).values()
            ],
            created_at=now,
            updated_at=now,
        )
    else:
        return None
    ledger.prepare_tables()
    ledger.write_row(taken)
    return taken
