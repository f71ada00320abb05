"""Facts from state and ledger on the tables of a removed environment, and on their readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.protocol.environment import PROD
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup.reclaim_rules import (
    ReclaimSnapshotUse,
    ReclaimStateRow,
    ReclaimTableFacts,
    ReclaimTableNames,
)
from ci_bot.worker.runtime import SparkRelation
from ci_bot.worker.state_store import REMOVED, Ledger, LedgerRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.snapshot import Snapshot


def list_tables_recorded_for_cleanup(row: LedgerRow) -> list[SparkRelation]:
    """Lists the tables that did not exist before the environment's first apply."""
    return sorted(
        SparkRelation(item.catalog, item.db, item.name)
        for item in row.objects
        if item.kind == "table" and not item.existed
    )


def collect_table_facts_for_cleanup(
    row: LedgerRow, context: Context, ledger: Ledger
) -> tuple[ReclaimTableFacts, dict[tuple[str, str], Snapshot]]:
    """Collects the facts on a row's tables, and the row's snapshots that the state still has."""
    default = str(context.default_catalog)

    def show_name(name: str) -> str:
        return SparkRelation.parse_name(name, default).shown_name

    snapshots = sqlmesh_compat.read_full_sqlmesh_snapshots(
        context, [(item.name, item.identifier) for item in row.snapshots]
    )
    models_of_ours = {item.name for item in row.snapshots}
    found = {
        environment: [
            info
            for info in infos
            if info.name in models_of_ours and info.is_model and not info.is_symbolic
        ]
        for environment, infos in sqlmesh_compat.list_sqlmesh_environment_snapshots(context).items()
    }
    in_prod = {(str(info.name), str(info.identifier)) for info in found.get(PROD, ())}
    others = {
        other.environment: other
        for other in ledger.list_rows()
        if other.environment != row.environment and other.phase not in REMOVED
    }
    references: dict[str, list[ReclaimSnapshotUse]] = {}
    used: dict[str, str] = {}
    for environment, infos in found.items():
        recorded = others.get(environment)
        for info in infos:
            preview = show_name(info.table_name(False))
            key = (str(info.name), str(info.identifier))
            reads = environment != PROD and _may_environment_read_reclaimed_preview(
                preview, key, in_prod, recorded
            )
            references.setdefault(environment, []).append(
                ReclaimSnapshotUse(
                    *key, str(info.version), str(info.dev_version), reads_preview=reads
                )
            )
            used[show_name(info.table_name(True))] = environment
            if reads:
                used[preview] = environment
    for environment, other in others.items():
        # The ledger adds what a running or a dead apply uses: the state does not have it yet.
        tables = _name_tables_to_reclaim(other)
        references.setdefault(environment, []).extend(
            ReclaimSnapshotUse(
                item.name,
                item.identifier,
                item.version,
                item.dev_version,
                reads_preview=any(table.endswith(f"__{item.dev_version}__dev") for table in tables),
            )
            for item in other.snapshots
        )
        for table in tables:
            used.setdefault(table, environment)
    facts = ReclaimTableFacts(
        recorded=list_tables_shown_by_cleanup(row),
        rows=list_state_rows_for_cleanup(row, context),
        names={
            key: ReclaimTableNames(
                show_name(item.table_name(True)), show_name(item.table_name(False))
            )
            for key, item in snapshots.items()
            if item.is_model and not item.is_symbolic and item.version
        },
        references=references,
        used=used,
    )
    return facts, snapshots


def _may_environment_read_reclaimed_preview(
    preview: str, key: tuple[str, str], in_prod: set[tuple[str, str]], recorded: LedgerRow | None
) -> bool:
    """Whether an environment other than prod may read the preview of one of its snapshots.

    If prod has the snapshot, every environment reads prod's table
    (`DeployabilityIndex.is_representative`). If an apply of ours built it, the ledger says which
    table it is. In all other cases it is not known, so it may.
    """
    if key in in_prod:
        return False
    if recorded is None or key not in {(s.name, s.identifier) for s in recorded.snapshots}:
        return True
    return preview in _name_tables_to_reclaim(recorded)


def _name_tables_to_reclaim(row: LedgerRow) -> set[str]:
    return {
        SparkRelation(item.catalog, item.db, item.name).shown_name
        for item in row.objects
        if item.kind == "table"
    }


def list_state_rows_for_cleanup(row: LedgerRow, context: Context) -> list[ReclaimStateRow]:
    """Lists every row that the state has of the models in `row`, whoever made it."""
    return [
        ReclaimStateRow(
            item.name,
            item.identifier,
            item.version,
            item.dev_version,
            updated=item.updated_ts,
            expires=item.updated_ts + item.ttl_ms,
        )
        for item in sqlmesh_compat.list_stored_sqlmesh_snapshots(
            context, [item.name for item in row.snapshots]
        )
    ]


def list_tables_shown_by_cleanup(row: LedgerRow) -> list[str]:
    """Lists the recorded tables by the names that people read."""
    return [table.shown_name for table in list_tables_recorded_for_cleanup(row)]
