"""Facts from state and ledger on the tables of a removed environment, and on their readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.protocol.environment import PROD
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup.reclaim_rules import SnapshotUse, StateRow, TableFacts, TableNames
from ci_bot.worker.runtime import Relation
from ci_bot.worker.state_store import REMOVED, Ledger, LedgerRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.snapshot import Snapshot


def list_recorded_tables(row: LedgerRow) -> list[Relation]:
    """Lists the tables that did not exist before the environment's first apply."""
    return sorted(
        Relation(item.catalog, item.db, item.name)
        for item in row.objects
        if item.kind == "table" and not item.existed
    )


def collect_table_facts(
    row: LedgerRow, context: Context, ledger: Ledger
) -> tuple[TableFacts, dict[tuple[str, str], Snapshot]]:
    """Collects the facts on a row's tables, and the row's snapshots that the state still has."""
    default = str(context.default_catalog)

    def show_name(name: str) -> str:
        return Relation.parse_name(name, default).shown_name

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
    references: dict[str, list[SnapshotUse]] = {}
    used: dict[str, str] = {}
    for environment, infos in found.items():
        recorded = others.get(environment)
        for info in infos:
            preview = show_name(info.table_name(False))
            key = (str(info.name), str(info.identifier))
            reads = environment != PROD and _may_read(preview, key, in_prod, recorded)
            references.setdefault(environment, []).append(
                SnapshotUse(*key, str(info.version), str(info.dev_version), reads_preview=reads)
            )
            used[show_name(info.table_name(True))] = environment
            if reads:
                used[preview] = environment
    for environment, other in others.items():
        # The ledger adds what an apply in flight, or a dead one, uses: the state does not have it
        # yet.
        tables = _name_row_tables(other)
        references.setdefault(environment, []).extend(
            SnapshotUse(
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
    facts = TableFacts(
        recorded=list_shown_tables(row),
        rows=list_state_rows(row, context),
        names={
            key: TableNames(show_name(item.table_name(True)), show_name(item.table_name(False)))
            for key, item in snapshots.items()
            if item.is_model and not item.is_symbolic and item.version
        },
        references=references,
        used=used,
    )
    return facts, snapshots


def _may_read(
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
    return preview in _name_row_tables(recorded)


def _name_row_tables(row: LedgerRow) -> set[str]:
    return {
        Relation(item.catalog, item.db, item.name).shown_name
        for item in row.objects
        if item.kind == "table"
    }


def list_state_rows(row: LedgerRow, context: Context) -> list[StateRow]:
    """Lists every row that the state has of the models in `row`, whoever made it."""
    return [
        StateRow(
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


def list_shown_tables(row: LedgerRow) -> list[str]:
    """Lists the recorded tables by the names that people read."""
    return [table.shown_name for table in list_recorded_tables(row)]
