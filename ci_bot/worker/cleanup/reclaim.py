"""Reclaiming the physical tables of a removed environment.

Who uses what is read again in the transaction that deletes the state rows, under the project-wide
lease that no apply of ours overlaps. In the same transaction the ledger is told which tables go, so
that a run that dies right after it leaves nothing that nobody knows of. The tables go afterwards,
one by one, and each is looked at once more before: a plan that is no run of ours knows no lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ci_bot.errors import Refused
from ci_bot.protocol.cleanup_report import KeptTable, Leftover, ReclaimedTable
from ci_bot.protocol.messages import CleanupRequest, Owner
from ci_bot.redaction import shortened
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup import reclaim_rules
from ci_bot.worker.cleanup.reclaim_facts import facts_of, recorded_tables, state_rows, table_names
from ci_bot.worker.cleanup.reclaim_rules import TableFate
from ci_bot.worker.messages import headline_with_cause, names_and_times
from ci_bot.worker.runtime import AdapterFiles, Catalog, FilesPort, ObjectKind, Relation, Storage
from ci_bot.worker.state_store import REMOVED, Lease, Leases, Ledger, LedgerPhase, LedgerRow

_LATE = (
    "it is not there; the apply that was to make it never said that it ended, so it may come late: "
    "each cleanup and sweep until then looks again"
)

PHASES = ("reclaimable", "reclaiming")


@dataclass
class Reclaimed:
    """What became of the tables."""

    reclaimed: list[ReclaimedTable] = field(default_factory=list)
    kept: list[KeptTable] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)


def due_at(row: LedgerRow) -> int:
    """When (ms) the tables of a row in one of `PHASES` may go.

    What is decided is done: where only the drops are missing there is nothing to wait for.
    """
    cleaned = names_and_times.milliseconds(row.updated_at)
    return cleaned + (0 if row.phase == "reclaiming" else reclaim_rules.GRACE_MS)


def is_due(row: LedgerRow) -> bool:
    """Whether the grace period has passed."""
    return due_at(row) <= names_and_times.now_milliseconds()


def owns_anything(row: LedgerRow) -> bool:
    """Whether there is anything that a reclaim could ever take."""
    return any(item.ours for item in row.snapshots) and bool(recorded_tables(row))


def without_schemas(row: LedgerRow) -> LedgerRow:
    """The row of an environment whose last apply has ended.

    From its cleanup on a row names schemas only where an apply was cut off: no lease keeps a write
    of Spark's from coming late, from a machine that slept or lost its network.
    """
    tables = [item for item in row.objects if item.kind != "schema"]
    return row.model_copy(update={"objects": tables})


def may_be_written_late(row: LedgerRow) -> bool:
    """Whether an apply that was cut off may still write a table of a row that is cleaned up."""
    return any(item.kind == "schema" for item in row.objects)


def disowned(row: LedgerRow, context: Any) -> LedgerRow:
    """The row without what somebody else has touched since our own apply ended.

    Called before anything changes the row's `updated_at`. Where an apply died, that is from before
    its own push, and says nothing.
    """
    if row.phase == "applying":
        return row
    ended = names_and_times.milliseconds(row.updated_at)
    touched = {item.key for item in state_rows(row, context) if item.updated > ended}
    snapshots = [
        item.model_copy(update={"ours": False}) if (item.name, item.identifier) in touched else item
        for item in row.snapshots
    ]
    return row.model_copy(update={"snapshots": snapshots})


def kept_until_ttl(
    row: LedgerRow, context: Any, ledger: Ledger, *, why: str, why_preview: str
) -> list[KeptTable]:
    """Every recorded table, with the end of its TTL. Spark is not asked.

    Args:
        why: Why those stay that prod reads, or could.
        why_preview: Why previews stay.
    """
    facts, _ = facts_of(row, context, ledger)
    return [
        _kept(
            table,
            why_preview if reclaim_rules.is_preview(table, row, facts) else why,
            reclaim_rules.expires(table, row, facts),
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
    return [_kept(table, why, due_at(row)) for table in table_names(row)]


class Reclaim:
    """One reclaim of the tables of one environment, whose views are gone."""

    def __init__(
        self,
        context: Any,
        ledger: Ledger,
        catalog: Catalog,
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
        self._done = Reclaimed()

    def run(self, row: LedgerRow) -> Reclaimed:
        """Drops what may go and says what stays. The ledger's row is gone once nothing is left.

        Where another run is at work on the project, everything stays as it is: the next sweep
        comes by again.
        """
        leases = Leases.of(self._context)
        try:
            with leases.exclusive(self._owner) as lease:
                if row.phase != "reclaiming":
                    with lease.fence(self._adapter):
                        row = self._decide(row)
                self._drop_all(row, lease)
        except Refused as error:
            self._done.kept += [
                _kept(table, f"it could not be reclaimed yet: {error.message}", None)
                for table in table_names(row)
            ]
        except Exception as error:
            # What was decided stands in the ledger, so the next run goes on from there.
            tables = f"physical tables of {row.environment}"
            self._done.leftovers.append(Leftover(object=tables, why=first_line(error)))
        finally:
            leases.close()
        return self._done

    @property
    def _adapter(self) -> Any:
        return sqlmesh_compat.state_adapter(self._context)

    def _decide(self, row: LedgerRow) -> LedgerRow:
        """Deletes the state rows of what goes and writes down which tables follow them."""
        with self._adapter.transaction():
            sqlmesh_compat.lock_environments(self._context)
            before = names_and_times.milliseconds(row.updated_at)
            facts, snapshots = facts_of(row, self._context, self._ledger)
            decision: TableFate = reclaim_rules.decide(row, facts, before)
            sqlmesh_compat.forget_snapshots(
                self._context, [(snapshots[key], part) for key, part in decision.forget.items()]
            )
            self._bequeath(row, decision)
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
                            and Relation(item.catalog, item.db, item.name).shown in drop
                        )
                    ],
                }
            )
            self._ledger.put(row)
        self._done.kept += [_kept(item.table, item.why, item.until) for item in decision.keep]
        return row

    def _bequeath(self, row: LedgerRow, decision: TableFate) -> None:
        """Whoever uses what stays is its maker from now on, so that the last one takes it."""
        kept = {item.table for item in decision.keep}
        for other in self._ledger.all():
            if other.environment == row.environment or other.phase in REMOVED:
                continue
            # A cleanup may be at work on it: what it has written by now counts.
            heir = self._ledger.get(other.environment, lock=True)
            changed = reclaim_rules.inherited(heir, row, kept) if heir is not None else None
            if changed is not None:
                self._ledger.put(changed)

    def _drop_all(self, row: LedgerRow, lease: Lease) -> None:
        """Drops the tables of a row in phase `reclaiming`; the row goes with the last of them."""
        tables = recorded_tables(row)
        present = self._present(tables)
        wanted = [table for table in tables if table in present]
        # Views first: they read the tables.
        wanted.sort(key=lambda table: (present[table] == "table", table))
        dropped: dict[Relation, tuple[str | None, int | None]] = {}
        known, _ = facts_of(row, self._context, self._ledger)
        for number, table in enumerate(wanted, start=1):
            if lease.reason is not None:
                why = "The lease was lost while tables were dropped."
                self._done.leftovers.append(Leftover(object=table.shown, why=why))
                continue
            # Nobody can use a snapshot without its row, so the rows say what is new.
            facts = replace(known, rows=state_rows(row, self._context))
            taken = reclaim_rules.claimed(table.shown, row, facts)
            if taken is not None:
                until = reclaim_rules.expires(table.shown, row, facts)
                self._done.kept.append(_kept(table.shown, taken, until))
                continue
            self._progress("reclaim", f"table {table.shown}", number, len(wanted))
            try:
                dropped[table] = self._drop(table, present[table])
            except Exception as error:
                self._done.leftovers.append(Leftover(object=table.shown, why=first_line(error)))
        left = self._present(dropped)
        for table, (location, size) in sorted(dropped.items()):
            if table in left:
                why = "Spark still shows it after the drop."
                self._done.leftovers.append(Leftover(object=table.shown, why=why))
            else:
                freed = self._freed(location, size)
                self._done.reclaimed.append(ReclaimedTable(table=table.shown, bytes=freed))
        if self._done.leftovers:
            return
        ends = names_and_times.milliseconds(row.updated_at) + reclaim_rules.GRACE_MS
        if may_be_written_late(row) and tables and ends > names_and_times.now_milliseconds():
            # The row is all that knows of them. Each later cleanup and sweep looks again.
            stays = {kept.table for kept in self._done.kept}
            self._done.kept += [
                _kept(table.shown, _LATE, ends) for table in tables if table.shown not in stays
            ]
        else:
            self._ledger.delete(row.environment)

    def _present(self, tables: Iterable[Relation]) -> dict[Relation, ObjectKind]:
        """Those of the tables that Spark has, asked schema by schema."""
        wanted = list(tables)
        found: dict[Relation, ObjectKind] = {}
        for catalog, schema in sorted({(table.catalog, table.schema) for table in wanted}):
            kinds = {
                name.lower(): kind for name, kind in self._catalog.objects(catalog, schema).items()
            }
            for table in wanted:
                kind = kinds.get(table.name.lower())
                if (table.catalog, table.schema) == (catalog, schema) and kind is not None:
                    found[table] = kind
        return found

    def _drop(self, table: Relation, kind: ObjectKind) -> tuple[str | None, int | None]:
        """Drops one; gives its location and its size, as far as they could be asked."""
        if kind == "view":
            self._catalog.drop_view(table)
            return None, 0
        stored, size = Storage(), None
        try:
            stored = self._catalog.storage(table)
            size = self._files.size(stored.location) if stored.location else None
        except Exception as error:
            # A table whose metadata is broken can still be dropped, or the drop says why not.
            self._progress("reclaim", f"no size of {table.shown}: {first_line(error)}", None, None)
        self._catalog.drop_table(table, purge=stored.provider == "iceberg")
        return stored.location, size

    def _freed(self, location: str | None, size: int | None) -> int | None:
        """What is really gone: some catalogs drop a table and leave its files."""
        if size is None or location is None:
            return size
        left = self._files.size(location)
        return None if left is None else max(size - left, 0)


def _kept(table: str, why: str, until: int | None) -> KeptTable:
    return KeptTable(
        table=table, why=why, until=None if until is None else names_and_times.iso(until)
    )


def first_line(error: BaseException) -> str:
    """What went wrong, and what that came from, in one line."""
    return shortened(headline_with_cause(error), 4_000)


# The physical tables of an environment that a cleanup has removed: kept, kept for a day, or gone.
#
# Keeping them asks nothing of Spark.


# When that is stands in `until`; nowhere, where an environment uses a snapshot that shares it.
# One table or several: the sentences fit both.
_JANITOR = "removed by SQLMesh's janitor with the last snapshot that shares the data"


class Tables:
    """What becomes of them, and of the ledger's row, which lives as long as something is to come.

    `reclaimed`, `kept` and `leftovers` say it.
    """

    def __init__(
        self,
        request: CleanupRequest,
        context: Any,
        ledger: Ledger,
        catalog: Catalog,
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

    def before(self, row: LedgerRow) -> LedgerRow:
        """The row as the cleanup has to go on with it; call it before anything is changed."""
        if self._mode(row) != "never":
            row = disowned(row, self._context)
        # One that was cut off stays known as such, whatever becomes of this cleanup.
        known = row.phase in ("applying", "cleaning", "leftover")
        return row if known else without_schemas(row)

    def asks_spark(self, row: LedgerRow) -> bool:
        """Whether `settle` may have to ask Spark."""
        return self._mode(row) == "now"

    def settle(self, row: LedgerRow, *, complete: bool) -> None:
        """Once the environment is gone. Where something of it is left, its views may still read the
        tables, and the next run comes by here again."""
        if not complete:
            why = "the cleanup is not complete"
            self._keep(row, why, why)
            return
        mode = self._mode(row)
        if mode == "now":
            self._reclaim(record(self._ledger, row, "reclaimable"))
        elif mode == "later":
            self._wait(record(self._ledger, row, "reclaimable"))
        else:
            self._leave(row)

    def settle_later(self, row: LedgerRow) -> None:
        """When an earlier cleanup has removed the environment, and left the tables."""
        mode = self._mode(row)
        due = self._ask.merged is False and is_due(row)
        # SQLMesh does not know the tables of a row in `reclaiming` any more: no janitor takes them.
        if row.phase == "reclaiming" or mode == "now" or (mode == "later" and due):
            self._reclaim(row)
        elif mode == "later":
            self._wait(row)
        else:
            self._leave(row)

    def _mode(self, row: LedgerRow) -> Literal["never", "later", "now"]:
        """What `reclaim` means for this environment.

        After a merge prod uses the tables. Where nobody said how the pull request ended, because it
        is open or GitHub was not asked, the sweep finds out.
        """
        request = self._ask
        if request.merged or request.reclaim == "never" or not owns_anything(row):
            return "never"
        if request.reclaim == "always":
            return "now"
        known = request.merged is False or request.owner.pr_number is not None
        return "later" if known else "never"

    def _reclaim(self, row: LedgerRow) -> None:
        files = AdapterFiles(self._context.engine_adapter)
        done = Reclaim(
            self._context, self._ledger, self._catalog, files, self._ask.owner, self._progress
        ).run(row)
        self.reclaimed, self.kept, self.leftovers = done.reclaimed, done.kept, done.leftovers

    def _wait(self, row: LedgerRow) -> None:
        self.kept = kept_until_due(row, unmerged=self._ask.merged is False)

    def _leave(self, row: LedgerRow) -> None:
        preview = f"a preview, which prod never reads; {_JANITOR}"
        if self._ask.merged:
            why = f"read by prod once the merge is planned there, else {_JANITOR}"
        elif self._ask.reclaim == "never":
            why = f"`reclaim` is `never`; {_JANITOR}"
            preview = f"`reclaim` is `never`, and {preview}"
        else:
            why = _JANITOR
        self._keep(row, why, preview)
        self._ledger.delete(row.environment)

    def _keep(self, row: LedgerRow, why: str, why_preview: str) -> None:
        self.kept = kept_until_ttl(
            row, self._context, self._ledger, why=why, why_preview=why_preview
        )


def record(ledger: Ledger, row: LedgerRow, phase: LedgerPhase) -> LedgerRow:
    """Writes the row as of now, in another phase; gives it back."""
    now = names_and_times.iso(names_and_times.now_milliseconds())
    written = row.model_copy(update={"phase": phase, "updated_at": now})
    ledger.put(written)
    return written
