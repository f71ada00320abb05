"""Reclaiming the physical tables of a removed environment.

Who uses what is read again in the transaction that deletes the state rows, under the project-wide
lease that no apply of ours overlaps. In the same transaction the ledger learns which tables go, so
that a run that dies right after it leaves nothing that nobody knows of. The tables go afterwards,
one by one, and each is checked once more before: a plan that is no run of ours knows no lease.
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
from ci_bot.worker.cleanup.reclaim_facts import facts_of, recorded_tables, state_rows, table_names
from ci_bot.worker.cleanup.reclaim_rules import TableFate
from ci_bot.worker.messages import headline_with_cause, names_and_times
from ci_bot.worker.runtime import (
    AdapterFiles,
    FilesPort,
    ObjectKind,
    Relation,
    SparkCatalog,
    TableStorage,
    spark_catalog,
)
from ci_bot.worker.state_store import REMOVED, Lease, LeaseBook, Ledger, LedgerPhase, LedgerRow

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter

_LATE = (
    "it is not there; the apply that was to make it never said that it ended, so it may come late: "
    "each cleanup and sweep until then looks again"
)

PHASES = ("reclaimable", "reclaiming")


@dataclass
class ReclaimedTables:
    """What became of the tables."""

    reclaimed: list[ReclaimedTable] = field(default_factory=list)
    kept: list[KeptTable] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)


def due_at(row: LedgerRow) -> int:
    """When (ms) the tables of a row in one of `PHASES` may go.

    What is decided is done: where only the drops are missing there is nothing to wait for.
    """
    cleaned = names_and_times.to_milliseconds(row.updated_at)
    return cleaned + (0 if row.phase == "reclaiming" else reclaim_rules.GRACE_MS)


def is_due(row: LedgerRow) -> bool:
    """Whether the grace period has passed."""
    return due_at(row) <= names_and_times.now_milliseconds()


def owns_anything(row: LedgerRow) -> bool:
    """Whether there is anything that a reclaim could ever take."""
    return any(item.ours for item in row.snapshots) and bool(recorded_tables(row))


def clear_ledger_schemas(row: LedgerRow) -> LedgerRow:
    """The row of an environment whose last apply has ended.

    From its cleanup on a row names schemas only if an apply was cut off: no lease keeps a write
    of Spark's from coming late, from a machine that slept or lost its network.
    """
    tables = [item for item in row.objects if item.kind != "schema"]
    return row.model_copy(update={"objects": tables})


def may_be_written_late(row: LedgerRow) -> bool:
    """Whether an apply that was cut off may still write a table of a row that is cleaned up."""
    return any(item.kind == "schema" for item in row.objects)


def drop_foreign_snapshots(row: LedgerRow, context: Context) -> LedgerRow:
    """The row without what somebody else has touched since our own apply ended.

    Called before anything changes the row's `updated_at`. Where an apply died, that is from before
    its own push, and says nothing.
    """
    if row.phase == "applying":
        return row
    ended = names_and_times.to_milliseconds(row.updated_at)
    touched = {item.snapshot_key for item in state_rows(row, context) if item.updated > ended}
    snapshots = [
        item.model_copy(update={"ours": False}) if (item.name, item.identifier) in touched else item
        for item in row.snapshots
    ]
    return row.model_copy(update={"snapshots": snapshots})


def kept_until_ttl(
    row: LedgerRow, context: Context, ledger: Ledger, *, why: str, why_preview: str
) -> list[KeptTable]:
    """Every recorded table, with the end of its TTL. Spark is not asked.

    Args:
        why: Why those stay that prod reads, or could.
        why_preview: Why previews stay.
    """
    facts, _ = facts_of(row, context, ledger)
    return [
        _make_kept_table(
            table,
            why_preview if reclaim_rules.is_preview(table, row, facts) else why,
            reclaim_rules.find_expiry(table, row, facts),
        )
        for table in facts.recorded
    ]


def kept_until_due(row: LedgerRow, *, unmerged: bool) -> list[KeptTable]:
    """Every recorded table, with the end of the grace period. Spark is not asked.

    Args:
        unmerged: It is known that the pull request was closed without a merge.
    """
    why = (
        "the pull request was closed without a merge: the sweep reclaims it after a day, unless "
        "somebody uses it by then"
        if unmerged
        else "the sweep reclaims it only once the pull request is closed without a merge"
    )
    return [_make_kept_table(table, why, due_at(row)) for table in table_names(row)]


class TableReclaim:
    """One reclaim of the tables of one environment, whose views are gone."""

    def __init__(
        self,
        context: Context,
        ledger: Ledger,
        catalog: SparkCatalog,
        files: FilesPort,
        owner: Owner,
        progress: Callable[[str, str, int | None, int | None], None],
    ) -> None:
        self._context = context
        self._ledger = ledger
        self._catalog = catalog
        self._files = files
        self._owner = owner
        self._progress = progress
        self._done = ReclaimedTables()

    def reclaim_tables(self, row: LedgerRow) -> ReclaimedTables:
        """Drops what may go and says what stays. The ledger's row is gone once nothing is left.

        Where another run is at work on the project, everything stays as it is: the next sweep
        comes by again.
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
                _make_kept_table(table, f"it could not be reclaimed yet: {error.message}", None)
                for table in table_names(row)
            ]
        except Exception as error:
            # What was decided stands in the ledger, so the next run goes on from there.
            tables = f"physical tables of {row.environment}"
            self._done.leftovers.append(Leftover(object=tables, why=first_line(error)))
        finally:
            leases.close_connections()
        return self._done

    @property
    def _state_adapter(self) -> EngineAdapter:
        return sqlmesh_compat.state_adapter(self._context)

    def _decide_table_fates(self, row: LedgerRow) -> LedgerRow:
        """Deletes the state rows of what goes and writes down which tables follow them."""
        with self._state_adapter.transaction():
            sqlmesh_compat.lock_environments(self._context)
            before = names_and_times.to_milliseconds(row.updated_at)
            facts, snapshots = facts_of(row, self._context, self._ledger)
            decision: TableFate = reclaim_rules.decide_table_fates(row, facts, before)
            sqlmesh_compat.forget_snapshots(
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
                            and Relation(item.catalog, item.db, item.name).shown_name in drop
                        )
                    ],
                }
            )
            self._ledger.write_row(row)
        self._done.kept += [
            _make_kept_table(item.table, item.why, item.until) for item in decision.keep
        ]
        return row

    def _hand_over_tables(self, row: LedgerRow, decision: TableFate) -> None:
        """Whoever uses what stays is its maker from now on, so that the last one takes it."""
        kept = {item.table for item in decision.keep}
        for other in self._ledger.list_rows():
            if other.environment == row.environment or other.phase in REMOVED:
                continue
            # A cleanup may be at work on it: what it has written by now counts.
            heir = self._ledger.read_row(other.environment, lock=True)
            changed = reclaim_rules.inherit_tables(heir, row, kept) if heir is not None else None
            if changed is not None:
                self._ledger.write_row(changed)

    def _drop_all(self, row: LedgerRow, lease: Lease) -> None:
        """Drops the tables of a row in phase `reclaiming`; the row goes with the last of them."""
        tables = recorded_tables(row)
        present = self._list_present_tables(tables)
        wanted = [table for table in tables if table in present]
        # Views first: they read the tables.
        wanted.sort(key=lambda table: (present[table] == "table", table))
        dropped: dict[Relation, tuple[str | None, int | None]] = {}
        known, _ = facts_of(row, self._context, self._ledger)
        for number, table in enumerate(wanted, start=1):
            if lease.end_reason is not None:
                why = "The lease was lost while tables were dropped."
                self._done.leftovers.append(Leftover(object=table.shown_name, why=why))
                continue
            # Nobody can use a snapshot without its row, so the rows say what is new.
            facts = replace(known, rows=state_rows(row, self._context))
            taken = reclaim_rules.find_new_claim(table.shown_name, row, facts)
            if taken is not None:
                until = reclaim_rules.find_expiry(table.shown_name, row, facts)
                self._done.kept.append(_make_kept_table(table.shown_name, taken, until))
                continue
            self._progress("reclaim", f"table {table.shown_name}", number, len(wanted))
            try:
                dropped[table] = self._drop_table(table, present[table])
            except Exception as error:
                self._done.leftovers.append(
                    Leftover(object=table.shown_name, why=first_line(error))
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
        ends = names_and_times.to_milliseconds(row.updated_at) + reclaim_rules.GRACE_MS
        if may_be_written_late(row) and tables and ends > names_and_times.now_milliseconds():
            # The row is all that knows of them. Each later cleanup and sweep looks again.
            stays = {kept.table for kept in self._done.kept}
            self._done.kept += [
                _make_kept_table(table.shown_name, _LATE, ends)
                for table in tables
                if table.shown_name not in stays
            ]
        else:
            self._ledger.delete_row(row.environment)

    def _list_present_tables(self, tables: Iterable[Relation]) -> dict[Relation, ObjectKind]:
        """Those of the tables that Spark has, asked schema by schema."""
        wanted = list(tables)
        found: dict[Relation, ObjectKind] = {}
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

    def _drop_table(self, table: Relation, kind: ObjectKind) -> tuple[str | None, int | None]:
        """Drops one; gives its location and its size, as far as they could be asked."""
        if kind == "view":
            self._catalog.drop_view(table)
            return None, 0
        stored, size = TableStorage(), None
        try:
            stored = self._catalog.read_storage(table)
            size = self._files.measure_size(stored.location) if stored.location else None
        except Exception as error:
            # A table whose metadata is broken can still be dropped, or the drop says why not.
            self._progress(
                "reclaim", f"no size of {table.shown_name}: {first_line(error)}", None, None
            )
        self._catalog.drop_table(table, purge=stored.provider == "iceberg")
        return stored.location, size

    def _measure_freed(self, location: str | None, size: int | None) -> int | None:
        """What is really gone: some catalogs drop a table and leave its files."""
        if size is None or location is None:
            return size
        left = self._files.measure_size(location)
        return None if left is None else max(size - left, 0)


def _make_kept_table(table: str, why: str, until: int | None) -> KeptTable:
    return KeptTable(
        table=table, why=why, until=None if until is None else names_and_times.format_iso(until)
    )


def first_line(error: BaseException) -> str:
    """What went wrong, and what that came from, in one line."""
    return shorten_redacted(headline_with_cause(error), 4_000)


# The physical tables of an environment that a cleanup has removed: kept, kept for a day, or gone.
#
# Keeping them asks nothing of Spark.


# When that is stands in `until`; nowhere, where an environment uses a snapshot that shares it.
# One table or several: the sentences fit both.
_JANITOR = "removed by SQLMesh's janitor with the last snapshot that shares the data"


class CleanupTables:
    """What becomes of them, and of the ledger's row, which lives as long as something is to come.

    `reclaimed`, `kept` and `leftovers` say it.
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
        """The row as the cleanup has to go on with it; call it before anything is changed."""
        if self._reclaim_mode(row) != "never":
            row = drop_foreign_snapshots(row, self._context)
        # One that was cut off stays known as such, whatever becomes of this cleanup.
        known = row.phase in ("applying", "cleaning", "leftover")
        return row if known else clear_ledger_schemas(row)

    def asks_spark(self, row: LedgerRow) -> bool:
        """Whether `settle` may have to ask Spark."""
        return self._reclaim_mode(row) == "now"

    def settle_tables(self, row: LedgerRow, *, complete: bool) -> None:
        """Once the environment is gone. Where something of it is left, its views may still read the
        tables, and the next run comes by here again."""
        if not complete:
            why = "the cleanup is not complete"
            self._report_kept(row, why, why)
            return
        mode = self._reclaim_mode(row)
        if mode == "now":
            self._reclaim_now(write_phase(self._ledger, row, "reclaimable"))
        elif mode == "later":
            self._reclaim_later(write_phase(self._ledger, row, "reclaimable"))
        else:
            self._leave_tables(row)

    def settle_later(self, row: LedgerRow) -> None:
        """When an earlier cleanup has removed the environment, and left the tables."""
        mode = self._reclaim_mode(row)
        due = self._ask.merged is False and is_due(row)
        # SQLMesh does not know the tables of a row in `reclaiming` any more: no janitor takes them.
        if row.phase == "reclaiming" or mode == "now" or (mode == "later" and due):
            self._reclaim_now(row)
        elif mode == "later":
            self._reclaim_later(row)
        else:
            self._leave_tables(row)

    def _reclaim_mode(self, row: LedgerRow) -> Literal["never", "later", "now"]:
        """What `reclaim` means for this environment.

        After a merge prod uses the tables. If nobody said how the pull request ended, because it
        is open or GitHub was not asked, the sweep finds out.
        """
        request = self._ask
        if request.merged or request.reclaim == "never" or not owns_anything(row):
            return "never"
        if request.reclaim == "always":
            return "now"
        known = request.merged is False or request.owner.pr_number is not None
        return "later" if known else "never"

    def _reclaim_now(self, row: LedgerRow) -> None:
        files = AdapterFiles(self._context.engine_adapter)
        done = TableReclaim(
            self._context, self._ledger, self._catalog, files, self._ask.owner, self._progress
        ).reclaim_tables(row)
        self.reclaimed, self.kept, self.leftovers = done.reclaimed, done.kept, done.leftovers

    def _reclaim_later(self, row: LedgerRow) -> None:
        self.kept = kept_until_due(row, unmerged=self._ask.merged is False)

    def _leave_tables(self, row: LedgerRow) -> None:
        preview = f"a preview, which prod never reads; {_JANITOR}"
        if self._ask.merged:
            why = f"read by prod once the merge is planned there, else {_JANITOR}"
        elif self._ask.reclaim == "never":
            why = f"`reclaim` is `never`; {_JANITOR}"
            preview = f"`reclaim` is `never`, and {preview}"
        else:
            why = _JANITOR
        self._report_kept(row, why, preview)
        self._ledger.delete_row(row.environment)

    def _report_kept(self, row: LedgerRow, why: str, why_preview: str) -> None:
        self.kept = kept_until_ttl(
            row, self._context, self._ledger, why=why, why_preview=why_preview
        )


def write_phase(ledger: Ledger, row: LedgerRow, phase: LedgerPhase) -> LedgerRow:
    """Writes the row as of now, in another phase; gives it back."""
    now = names_and_times.format_iso(names_and_times.now_milliseconds())
    written = row.model_copy(update={"phase": phase, "updated_at": now})
    ledger.write_row(written)
    return written
