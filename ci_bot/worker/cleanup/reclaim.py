"""Reclaims the physical tables of a removed environment.

The transaction that deletes the state rows reads again who uses which table, under the project-wide
lease that no apply of ours overlaps. It also records in the ledger which tables will be dropped, so
a run that dies right after it leaves no unknown table. The tables are dropped afterwards, one by
one, and each is checked again before its drop, because a plan from elsewhere takes no lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ci_bot.errors import RequestRefused
from ci_bot.protocol.cleanup_report import KeptTable, Leftover, ReclaimedTable
from ci_bot.protocol.messages import CleanupRequest, Owner
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup import reclaim_rules
from ci_bot.worker.cleanup.reclaim_facts import (
    collect_table_facts_for_cleanup,
    list_state_rows_for_cleanup,
    list_tables_recorded_for_cleanup,
    list_tables_shown_by_cleanup,
)
from ci_bot.worker.cleanup.reclaim_rules import ReclaimTableFate
from ci_bot.worker.messages import extract_headline_of_error_with_cause, report_times
from ci_bot.worker.runtime import (
    ObjectKind,
    SparkCatalog,
    SparkCatalogAdapterFiles,
    SparkCatalogFilesPort,
    SparkRelation,
    SparkTableStorage,
    spark_catalog,
)
from ci_bot.worker.state_store import REMOVED, Lease, LeaseBook, Ledger, LedgerPhase, LedgerRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter

_LATE = (
    "it is not there; the apply that was to make it never reported its end, so it may come late: "
    "each cleanup and sweep until then checks again"
)

PHASES = ("reclaimable", "reclaiming")


@dataclass
class TablesReclaimedByCleanup:
    """The tables that were dropped, kept, and left over."""

    reclaimed: list[ReclaimedTable] = field(default_factory=list)
    kept: list[KeptTable] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)


def get_time_when_reclaim_is_due(row: LedgerRow) -> int:
    """Returns when (ms) the tables of a row in one of `PHASES` may be dropped.

    If the decision is made and only the drops are missing, there is no grace period.
    """
    cleaned = report_times.to_milliseconds(row.updated_at)
    return cleaned + (0 if row.phase == "reclaiming" else reclaim_rules.GRACE_MS)


def is_reclaim_due(row: LedgerRow) -> bool:
    """Whether the grace period has passed."""
    return get_time_when_reclaim_is_due(row) <= report_times.read_milliseconds_now()


def has_tables_to_reclaim(row: LedgerRow) -> bool:
    """Whether the row has any table that a reclaim could drop."""
    return any(item.ours for item in row.snapshots) and bool(list_tables_recorded_for_cleanup(row))


def clear_schemas_after_cleanup(row: LedgerRow) -> LedgerRow:
    """Removes the schemas from the row of an environment whose last apply has ended.

    After the cleanup a row names schemas only if an apply was cut off. No lease stops a late write
    of Spark, from a machine that slept or lost its network.
    """
    tables = [item for item in row.objects if item.kind != "schema"]
    return row.model_copy(update={"objects": tables})


def may_be_written_after_cleanup(row: LedgerRow) -> bool:
    """Whether an apply that was cut off may still write a table of a row that is cleaned up."""
    return any(item.kind == "schema" for item in row.objects)


def drop_foreign_snapshots_in_cleanup(row: LedgerRow, context: Context) -> LedgerRow:
    """Removes the snapshots that someone else has pushed since our own apply ended.

    Call it before anything changes the row's `updated_at`. If an apply died, that time is from
    before its own push, and proves nothing.
    """
    if row.phase == "applying":
        return row
    ended = report_times.to_milliseconds(row.updated_at)
    touched = {
        item.snapshot_key
        for item in list_state_rows_for_cleanup(row, context)
        if item.updated > ended
    }
    snapshots = [
        item.model_copy(update={"ours": False}) if (item.name, item.identifier) in touched else item
        for item in row.snapshots
    ]
    return row.model_copy(update={"snapshots": snapshots})


def list_tables_kept_by_cleanup_until_ttl(
    row: LedgerRow, context: Context, ledger: Ledger, *, why: str, why_preview: str
) -> list[KeptTable]:
    """Lists every recorded table, with the end of its TTL. Reads the state only.

    Args:
        why: Reason for the tables that prod reads, or could read.
        why_preview: Reason for previews.
    """
    facts, _ = collect_table_facts_for_cleanup(row, context, ledger)
    return [
        _make_table_kept_by_cleanup(
            table,
            why_preview if reclaim_rules.is_reclaimed_preview(table, row, facts) else why,
            reclaim_rules.find_expiry_of_reclaimed_table(table, row, facts),
        )
        for table in facts.recorded
    ]


def list_tables_kept_by_cleanup_until_due(row: LedgerRow, *, unmerged: bool) -> list[KeptTable]:
    """Lists every recorded table, with the end of the grace period, from the row alone.

    Args:
        unmerged: Whether the pull request is known to be closed without a merge.
    """
    why = (
        "the pull request was closed without a merge: the sweep reclaims it after a day, unless "
        "somebody uses it by then"
        if unmerged
        else "the sweep reclaims it only once the pull request is closed without a merge"
    )
    return [
        _make_table_kept_by_cleanup(table, why, get_time_when_reclaim_is_due(row))
        for table in list_tables_shown_by_cleanup(row)
    ]


class CleanupTableReclaim:
    """One reclaim of the tables of one environment, whose views are gone."""

    def __init__(
        self,
        context: Context,
        ledger: Ledger,
        catalog: SparkCatalog,
        files: SparkCatalogFilesPort,
        owner: Owner,
        progress: Callable[[str, str, int | None, int | None], None],
    ) -> None:
        self._context = context
        self._ledger = ledger
        self._catalog = catalog
        self._files = files
        self._owner = owner
        self._progress = progress
        self._done = TablesReclaimedByCleanup()

    def reclaim_tables(self, row: LedgerRow) -> TablesReclaimedByCleanup:
        """Drops the tables that nobody reads, and lists those that stay. Deletes the ledger's row
        when none is left.

        If another run works on the project, everything stays as it is: the next sweep tries again.
        """
        leases = LeaseBook.from_context(self._context)
        try:
            with leases.acquire_exclusive(self._owner) as lease:
                if row.phase != "reclaiming":
                    with lease.fence_transaction(self._state_adapter):
                        row = self._decide_table_fates(row)
                self._drop_all(row, lease)
        except RequestRefused as error:
            self._done.kept += [
                _make_table_kept_by_cleanup(
                    table, f"it could not be reclaimed yet: {error.message}", None
                )
                for table in list_tables_shown_by_cleanup(row)
            ]
        except Exception as error:
            # The decision is in the ledger, so the next run continues from there.
            tables = f"physical tables of {row.environment}"
            self._done.leftovers.append(
                Leftover(object=tables, why=describe_cleanup_error_in_line(error))
            )
        finally:
            leases.close_connections()
        return self._done

    @property
    def _state_adapter(self) -> EngineAdapter:
        return sqlmesh_compat.get_sqlmesh_state_adapter(self._context)

    def _decide_table_fates(self, row: LedgerRow) -> LedgerRow:
        """Deletes the state rows of snapshots that are not kept, and records the tables to drop."""
        with self._state_adapter.transaction():
            sqlmesh_compat.lock_sqlmesh_environments(self._context)
            before = report_times.to_milliseconds(row.updated_at)
            facts, snapshots = collect_table_facts_for_cleanup(row, self._context, self._ledger)
            decision: ReclaimTableFate = reclaim_rules.decide_which_tables_to_reclaim(
                row, facts, before
            )
            sqlmesh_compat.delete_sqlmesh_snapshots(
                self._context, [(snapshots[key], part) for key, part in decision.forget.items()]
            )
            self._hand_over_tables(row, decision)
            drop = set(decision.drop)
            row = row.model_copy(
                update={
                    "phase": "reclaiming",
                    "objects": [
                        item
                        for item in row.objects
                        if item.kind == "schema"
                        or (
                            item.kind == "table"
                            and not item.existed
                            and SparkRelation(item.catalog, item.db, item.name).shown_name in drop
                        )
                    ],
                }
            )
            self._ledger.write_row(row)
        self._done.kept += [
            _make_table_kept_by_cleanup(item.table, item.why, item.until) for item in decision.keep
        ]
        return row

    def _hand_over_tables(self, row: LedgerRow, decision: ReclaimTableFate) -> None:
        """Makes the other users of kept tables their makers, so that the last one drops them."""
        kept = {item.table for item in decision.keep}
        for other in self._ledger.list_rows():
            if other.environment == row.environment or other.phase in REMOVED:
                continue
            # A cleanup may be changing this row: read its current content.
            heir = self._ledger.read_row(other.environment, lock=True)
            changed = (
                reclaim_rules.inherit_tables_of_removed_environment(heir, row, kept)
                if heir is not None
                else None
            )
            if changed is not None:
                self._ledger.write_row(changed)

    def _drop_all(self, row: LedgerRow, lease: Lease) -> None:
        """Drops the tables of a row in phase `reclaiming`; deletes the row with the last one."""
        tables = list_tables_recorded_for_cleanup(row)
        present = self._list_present_tables(tables)
        wanted = [table for table in tables if table in present]
        # Views first: they read the tables.
        wanted.sort(key=lambda table: (present[table] == "table", table))
        dropped: dict[SparkRelation, tuple[str | None, int | None]] = {}
        known, _ = collect_table_facts_for_cleanup(row, self._context, self._ledger)
        for number, table in enumerate(wanted, start=1):
            if lease.end_reason is not None:
                why = "The lease was lost while tables were dropped."
                self._done.leftovers.append(Leftover(object=table.shown_name, why=why))
                continue
            # Nobody can use a snapshot without its row, so new rows show new users.
            facts = replace(known, rows=list_state_rows_for_cleanup(row, self._context))
            taken = reclaim_rules.find_claim_on_reclaimed_table(table.shown_name, row, facts)
            if taken is not None:
                until = reclaim_rules.find_expiry_of_reclaimed_table(table.shown_name, row, facts)
                self._done.kept.append(_make_table_kept_by_cleanup(table.shown_name, taken, until))
                continue
            self._progress("reclaim", f"table {table.shown_name}", number, len(wanted))
            try:
                dropped[table] = self._drop_table(table, present[table])
            except Exception as error:
                self._done.leftovers.append(
                    Leftover(object=table.shown_name, why=describe_cleanup_error_in_line(error))
                )
        left = self._list_present_tables(dropped)
        for table, (location, size) in sorted(dropped.items()):
            if table in left:
                why = spark_catalog.STILL_THERE
                self._done.leftovers.append(Leftover(object=table.shown_name, why=why))
            else:
                freed = self._measure_freed(location, size)
                self._done.reclaimed.append(ReclaimedTable(table=table.shown_name, bytes=freed))
        if self._done.leftovers:
            return
        ends = report_times.to_milliseconds(row.updated_at) + reclaim_rules.GRACE_MS
        if (
            may_be_written_after_cleanup(row)
            and tables
            and ends > report_times.read_milliseconds_now()
        ):
            # Only this row lists them. Each later cleanup and sweep checks them again.
            stays = {kept.table for kept in self._done.kept}
            self._done.kept += [
                _make_table_kept_by_cleanup(table.shown_name, _LATE, ends)
                for table in tables
                if table.shown_name not in stays
            ]
        else:
            self._ledger.delete_row(row.environment)

    def _list_present_tables(
        self, tables: Iterable[SparkRelation]
    ) -> dict[SparkRelation, ObjectKind]:
        """Lists the tables that Spark has, with their kinds, schema by schema."""
        wanted = list(tables)
        found: dict[SparkRelation, ObjectKind] = {}
        for catalog, schema in sorted({(table.catalog, table.schema) for table in wanted}):
            kinds = {
                name.lower(): kind
                for name, kind in self._catalog.list_objects(catalog, schema).items()
            }
            for table in wanted:
                kind = kinds.get(table.name.lower())
                if (table.catalog, table.schema) == (catalog, schema) and kind is not None:
                    found[table] = kind
        return found

    def _drop_table(self, table: SparkRelation, kind: ObjectKind) -> tuple[str | None, int | None]:
        """Drops a table; returns its location and size in bytes, None if not known."""
        if kind == "view":
            self._catalog.drop_view(table)
            return None, 0
        stored, size = SparkTableStorage(), None
        try:
            stored = self._catalog.read_storage(table)
            size = self._files.measure_size(stored.location) if stored.location else None
        except Exception as error:
            # A table with broken metadata can still be dropped, or the drop gives the reason.
            self._progress(
                "reclaim",
                f"no size of {table.shown_name}: {describe_cleanup_error_in_line(error)}",
                None,
                None,
            )
        self._catalog.drop_table(table, purge=stored.provider == "iceberg")
        return stored.location, size

    def _measure_freed(self, location: str | None, size: int | None) -> int | None:
        """Returns the bytes that are really free: some catalogs drop a table and leave its
        files.
        """
        if size is None or location is None:
            return size
        left = self._files.measure_size(location)
        return None if left is None else max(size - left, 0)


def _make_table_kept_by_cleanup(table: str, why: str, until: int | None) -> KeptTable:
    return KeptTable(
        table=table,
        why=why,
        until=None if until is None else report_times.format_iso_in_message(until),
    )


def describe_cleanup_error_in_line(error: BaseException) -> str:
    """Describes an error and its cause in one line."""
    return shorten_redacted(extract_headline_of_error_with_cause(error), 4_000)


# The physical tables of an environment that a cleanup has removed: kept, kept for a day, or
# dropped.
#
# Keeping them needs no Spark.


# `until` has the time; it is None if an environment uses a snapshot that shares the table. The
# sentences fit one table and several tables.
_JANITOR = "SQLMesh's janitor removes the data with the last snapshot that shares it"


class CleanupTables:
    """The decision on these tables, and on the ledger's row, which stays until all are settled.

    `reclaimed`, `kept` and `leftovers` hold the result.
    """

    def __init__(
        self,
        request: CleanupRequest,
        context: Context,
        ledger: Ledger,
        catalog: SparkCatalog,
        progress: Callable[[str, str, int | None, int | None], None],
    ) -> None:
        self._ask = request
        self._context = context
        self._ledger = ledger
        self._catalog = catalog
        self._progress = progress
        self.reclaimed: list[ReclaimedTable] = []
        self.kept: list[KeptTable] = []
        self.leftovers: list[Leftover] = []

    def prepare_row(self, row: LedgerRow) -> LedgerRow:
        """Returns the row that the cleanup continues with; call it before anything is changed."""
        if self._choose_reclaim_mode(row) != "never":
            row = drop_foreign_snapshots_in_cleanup(row, self._context)
        # The mark of an apply that was cut off stays, whatever the result of this cleanup.
        known = row.phase in ("applying", "cleaning", "leftover")
        return row if known else clear_schemas_after_cleanup(row)

    def needs_spark(self, row: LedgerRow) -> bool:
        """Whether `settle_tables` may need Spark."""
        return self._choose_reclaim_mode(row) == "now"

    def settle_tables(self, row: LedgerRow, *, complete: bool) -> None:
        """Settles the tables after the environment is removed. If a part of it is left, its views
        may still read the tables, and the next run tries again.
        """
        if not complete:
            why = "the cleanup is not complete"
            self._report_kept(row, why, why)
            return
        mode = self._choose_reclaim_mode(row)
        if mode == "now":
            self._reclaim_now(write_phase_of_cleanup(self._ledger, row, "reclaimable"))
        elif mode == "later":
            self._reclaim_later(write_phase_of_cleanup(self._ledger, row, "reclaimable"))
        else:
            self._leave_tables(row)

    def settle_removed_row(self, row: LedgerRow) -> None:
        """Settles the tables if an earlier cleanup removed the environment and left them."""
        mode = self._choose_reclaim_mode(row)
        due = self._ask.merged is False and is_reclaim_due(row)
        # SQLMesh has no record of the tables of a row in `reclaiming`: its janitor never drops
        # them.
        if row.phase == "reclaiming" or mode == "now" or (mode == "later" and due):
            self._reclaim_now(row)
        elif mode == "later":
            self._reclaim_later(row)
        else:
            self._leave_tables(row)

    def _choose_reclaim_mode(self, row: LedgerRow) -> Literal["never", "later", "now"]:
        """Returns the effect of the input `reclaim` for this environment.

        After a merge prod uses the tables. If the end of the pull request is not known, because it
        is open or GitHub was not asked, the sweep decides later.
        """
        request = self._ask
        if request.merged or request.reclaim == "never" or not has_tables_to_reclaim(row):
            return "never"
        if request.reclaim == "always":
            return "now"
        known = request.merged is False or request.owner.pr_number is not None
        return "later" if known else "never"

    def _reclaim_now(self, row: LedgerRow) -> None:
        files = SparkCatalogAdapterFiles(self._context.engine_adapter)
        done = CleanupTableReclaim(
            self._context, self._ledger, self._catalog, files, self._ask.owner, self._progress
        ).reclaim_tables(row)
        self.reclaimed, self.kept, self.leftovers = done.reclaimed, done.kept, done.leftovers

    def _reclaim_later(self, row: LedgerRow) -> None:
        self.kept = list_tables_kept_by_cleanup_until_due(row, unmerged=self._ask.merged is False)

    def _leave_tables(self, row: LedgerRow) -> None:
        preview = f"a preview, which prod never reads. {_JANITOR}"
        if self._ask.merged:
            why = (
                "kept for prod, which reads the data once the merge is deployed. If prod does not, "
                f"{_JANITOR}"
            )
        elif self._ask.reclaim == "never":
            why = f"`reclaim` is `never`. {_JANITOR}"
            preview = f"`reclaim` is `never`, and {preview}"
        else:
            why = _JANITOR
        self._report_kept(row, why, preview)
        self._ledger.delete_row(row.environment)

    def _report_kept(self, row: LedgerRow, why: str, why_preview: str) -> None:
        self.kept = list_tables_kept_by_cleanup_until_ttl(
            row, self._context, self._ledger, why=why, why_preview=why_preview
        )


def write_phase_of_cleanup(ledger: Ledger, row: LedgerRow, phase: LedgerPhase) -> LedgerRow:
    """Writes the row with another phase and the current time; returns it."""
    now = report_times.format_iso_in_message(report_times.read_milliseconds_now())
    written = row.model_copy(update={"phase": phase, "updated_at": now})
    ledger.write_row(written)
    return written
