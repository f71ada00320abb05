"""Which physical tables of a removed environment may be dropped. Pure: facts in, a decision out.

A snapshot has two tables: the one that prod reads or would read, named by its version, and a
preview (`__dev`), named by its dev version. They are shared separately: the reader of a changed
model has the version and the dev version of prod's own snapshot, and prod still never reads its
preview.

A table is dropped only if all of this is true: the ledger says that this environment made it and
its snapshot, nobody else reads it or may return to it, and nobody has pushed the snapshot again.
Everything else stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ci_bot.worker.state_store import LedgerRow, LedgerSnapshot

GRACE_MS = 24 * 60 * 60 * 1000
SnapshotKey = tuple[str, str]
# The records that are deleted with a snapshot's row in the state: "version": all of its version;
# "preview": those of its preview only, because others share the version; "row": none, because
# others share both.
Forget = Literal["version", "preview", "row"]

NOT_OURS = "another environment made its version first"
SHARED = "another snapshot of the model shares it"
IN_USE = "its snapshot is in use elsewhere by now"
PUSHED_AGAIN = "its snapshot was pushed again after this environment did"


@dataclass(frozen=True)
class ReclaimSnapshotFact:
    """A snapshot as SQLMesh's state, an environment, or another ledger row has it."""

    name: str
    identifier: str
    version: str
    dev_version: str

    @property
    def snapshot_key(self) -> SnapshotKey:
        return self.name, self.identifier

    @property
    def table_key(self) -> tuple[str, str]:
        """Equal for snapshots that share the table that prod would read."""
        return self.name, self.version

    @property
    def preview_key(self) -> tuple[str, str]:
        """Equal for snapshots that share a `__dev` preview table."""
        return self.name, self.dev_version


@dataclass(frozen=True)
class ReclaimSnapshotUse(ReclaimSnapshotFact):
    """A snapshot that somebody uses, and whether this user reads its preview."""

    reads_preview: bool


@dataclass(frozen=True)
class ReclaimStateRow(ReclaimSnapshotFact):
    """A row of the state's snapshots: when it was written, and when its TTL ends (both in ms)."""

    updated: int
    expires: int


@dataclass(frozen=True)
class ReclaimTableNames:
    """The names of a snapshot's two tables as people read them (`schema.name`)."""

    table: str
    preview: str


@dataclass(frozen=True)
class ReclaimTableFacts:
    """The facts at the moment of the decision.

    Attributes:
        recorded: The tables that, by the ledger, did not exist before the environment.
        rows: Every row that the state has of the recorded models, whoever made it.
        names: The table names of the recorded snapshots that are in the state.
        references: Who uses which snapshots: environments, and other rows of the ledger.
        used: By table name, one of these users that reads the table.
    """

    recorded: Collection[str]
    rows: Collection[ReclaimStateRow] = ()
    names: Mapping[SnapshotKey, ReclaimTableNames] = field(default_factory=dict)
    references: Mapping[str, Collection[ReclaimSnapshotUse]] = field(default_factory=dict)
    used: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_uses(self) -> list[ReclaimSnapshotUse]:
        return [use for group in self.references.values() for use in group]


@dataclass(frozen=True)
class ReclaimTableToKeep:
    """A table that stays; `until` in milliseconds, None if it is not known when it is dropped."""

    table: str
    why: str
    until: int | None


@dataclass(frozen=True)
class ReclaimTableFate:
    """The decision on a removed environment's tables.

    Attributes:
        forget: Snapshots whose state rows are deleted, and what is deleted with them.
        drop: Tables that are dropped.
        keep: Tables that stay.
    """

    forget: dict[SnapshotKey, Forget] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    keep: list[ReclaimTableToKeep] = field(default_factory=list)


def decide_which_tables_to_reclaim(
    row: LedgerRow, facts: ReclaimTableFacts, pushed_before: int
) -> ReclaimTableFate:
    """Decides which tables of a removed environment are dropped now.

    Args:
        pushed_before: A snapshot whose row is newer than this (ms) belongs to someone else now.
    """
    ours = {(item.name, item.identifier) for item in row.snapshots if item.ours}
    used = {use.snapshot_key for use in facts.all_uses}
    stays: dict[SnapshotKey, str] = {}
    for item in facts.rows:
        if item.snapshot_key not in ours:
            stays[item.snapshot_key] = SHARED
        elif item.updated > pushed_before:
            stays[item.snapshot_key] = PUSHED_AGAIN
        elif item.snapshot_key in used:
            stays[item.snapshot_key] = IN_USE
        elif item.snapshot_key not in facts.names:
            stays[item.snapshot_key] = SHARED
    claims = _ReclaimTableClaims.from_facts(stays, facts, ours)
    while more := _list_holders_of_reclaimed_preview(facts.rows, stays, claims):
        # The state's record of their version is also the record of the preview that others read.
        stays |= dict.fromkeys(more, SHARED)
        claims = _ReclaimTableClaims.from_facts(stays, facts, ours)
    decision = ReclaimTableFate(
        forget={
            item.snapshot_key: claims.choose_records_to_forget(item)
            for item in facts.rows
            if item.snapshot_key not in stays
        }
    )
    for table in sorted(facts.recorded):
        owners = _list_owners_of_reclaimed_table(table, row, facts)
        why = claims.find_claim_on(table, owners)
        if why is None and not any(owner.ours for owner, _ in owners):
            why = NOT_OURS
        if why is None:
            decision.drop.append(table)
        else:
            decision.keep.append(
                ReclaimTableToKeep(table, why, find_expiry_of_reclaimed_table(table, row, facts))
            )
    return decision


def find_claim_on_reclaimed_table(
    table: str, row: LedgerRow, facts: ReclaimTableFacts
) -> str | None:
    """Finds why a table stays, if somebody uses it since the decision to drop it; else None.

    The decision deleted its state rows, so a row that exists is a new push, unless it shares the
    preview's name and is known not to read it.
    """
    claims = _ReclaimTableClaims.from_facts(
        dict.fromkeys((item.snapshot_key for item in facts.rows), PUSHED_AGAIN), facts
    )
    owners = _list_owners_of_reclaimed_table(table, row, facts)
    # A name without its snapshot's version may belong to any of them.
    return claims.find_claim_on(
        table, owners or [(item, preview) for item in row.snapshots for preview in (False, True)]
    )


def find_expiry_of_reclaimed_table(
    table: str, row: LedgerRow, facts: ReclaimTableFacts
) -> int | None:
    """Finds when (ms) SQLMesh's janitor may drop a table; None if that is not known.

    It drops a table with the last snapshot that shares it. A snapshot in an environment never
    expires, whichever of its two tables is read there.
    """
    found: list[int] = []
    for owner, preview in _list_owners_of_reclaimed_table(table, row, facts):
        fact = ReclaimSnapshotFact(owner.name, owner.identifier, owner.version, owner.dev_version)
        if any(_share_table_to_reclaim(fact, use, preview=preview) for use in facts.all_uses):
            return None
        found += [
            item.expires
            for item in facts.rows
            if _share_table_to_reclaim(fact, item, preview=preview)
        ]
    return max(found, default=None)


def is_reclaimed_preview(table: str, row: LedgerRow, facts: ReclaimTableFacts) -> bool:
    """Whether a recorded table is a preview, which no prod ever reads."""
    owners = _list_owners_of_reclaimed_table(table, row, facts)
    return bool(owners) and all(preview for _, preview in owners)


def inherit_tables_of_removed_environment(
    heir: LedgerRow, row: LedgerRow, kept: Collection[str]
) -> LedgerRow | None:
    """Returns another environment's row, marked as maker of this one's tables; None if it uses
    none.

    Otherwise the last of several environments that share a table would leave it, because the table
    existed before it.

    Args:
        kept: Tables that this environment made, and that stay.
    """
    given = {(item.name, item.identifier) for item in row.snapshots if item.ours}
    snapshots = [
        item.model_copy(update={"ours": True}) if (item.name, item.identifier) in given else item
        for item in heir.snapshots
    ]
    objects = [
        item.model_copy(update={"existed": False})
        if item.kind == "table" and f"{item.db}.{item.name}" in kept
        else item
        for item in heir.objects
    ]
    changed = heir.model_copy(update={"snapshots": snapshots, "objects": objects})
    return None if changed == heir else changed


@dataclass(frozen=True)
class _ReclaimTableClaims:
    """The reasons why tables stay, by snapshot version and by table name.

    A snapshot that was pushed again can have another version than the ledger recorded.
    """

    tables: Mapping[tuple[str, str], str]
    previews: Mapping[tuple[str, str], str]
    named: Mapping[str, str]

    @classmethod
    def from_facts(
        cls,
        stays: Mapping[SnapshotKey, str],
        facts: ReclaimTableFacts,
        ours: Collection[SnapshotKey] = (),
    ) -> _ReclaimTableClaims:
        """Collects the reasons.

        Args:
            stays: The snapshots whose rows stay, with the reason.
            ours: Those that the environment made. Their previews stay with them, because only a row
                could say that they are gone.
        """
        elsewhere = {use.snapshot_key for use in facts.all_uses}
        tables: dict[tuple[str, str], str] = {}
        previews: dict[tuple[str, str], str] = {}
        named: dict[str, str] = {}
        for item in facts.rows:
            why = stays.get(item.snapshot_key)
            if why is None:
                continue
            names = facts.names.get(item.snapshot_key)
            tables[item.table_key] = why
            if names is not None:
                named[names.table] = why
            # For a snapshot in use it is known which of its tables is read.
            if item.snapshot_key in ours or item.snapshot_key not in elsewhere:
                previews[item.preview_key] = why
                if names is not None:
                    named[names.preview] = why
        for who, group in facts.references.items():
            for use in group:
                tables[use.table_key] = f"{who} uses its version"
                if use.reads_preview:
                    previews[use.preview_key] = f"{who} reads it"
        named |= {name: f"{who} uses it" for name, who in facts.used.items()}
        return cls(tables, previews, named)

    def choose_records_to_forget(self, item: ReclaimSnapshotFact) -> Forget:
        """Returns the records that are deleted with the row of a snapshot."""
        if item.table_key not in self.tables:
            return "version"
        return "row" if item.preview_key in self.previews else "preview"

    def find_claim_on(
        self, table: str, owners: Iterable[tuple[LedgerSnapshot, bool]]
    ) -> str | None:
        """Finds why a table of these snapshots stays (True: it is their preview); None if it may be
        dropped.
        """
        for owner, preview in owners:
            why = (
                self.previews.get((owner.name, owner.dev_version))
                if preview
                else self.tables.get((owner.name, owner.version))
            )
            if why is not None:
                return why
        return self.named.get(table)


def _list_holders_of_reclaimed_preview(
    rows: Collection[ReclaimStateRow], stays: Mapping[SnapshotKey, str], claims: _ReclaimTableClaims
) -> set[SnapshotKey]:
    """Lists snapshots that share their preview with another snapshot, but not their version."""
    return {
        item.snapshot_key
        for item in rows
        if item.snapshot_key not in stays
        and item.table_key not in claims.tables
        and item.preview_key in claims.previews
    }


def _share_table_to_reclaim(
    one: ReclaimSnapshotFact, other: ReclaimSnapshotFact, *, preview: bool
) -> bool:
    return one.preview_key == other.preview_key if preview else one.table_key == other.table_key


def _list_owners_of_reclaimed_table(
    table: str, row: LedgerRow, facts: ReclaimTableFacts
) -> list[tuple[LedgerSnapshot, bool]]:
    """Lists the recorded snapshots that a table belongs to, and whether it is their preview.

    SQLMesh gives the names of snapshots in the state; for the others its default naming decides
    (`table_name`: `<model>__<version>`, followed by `__dev` for a preview). A snapshot that was
    pushed again with other versions appears with both.
    """
    found = []
    pushed = {item.snapshot_key: item for item in facts.rows}
    for item in row.snapshots:
        names = facts.names.get((item.name, item.identifier))
        if names is not None:
            preview, own = table == names.preview, table == names.table
        else:
            model = item.name.rpartition(".")[2].strip('"`')
            preview = table.endswith(f"{model}__{item.dev_version}__dev")
            own = table.endswith(f"{model}__{item.version}")
        if preview or own:
            found.append((item, preview))
            now = pushed.get((item.name, item.identifier))
            if now is not None and (now.version, now.dev_version) != (
                item.version,
                item.dev_version,
            ):
                versions = {"version": now.version, "dev_version": now.dev_version}
                found.append((item.model_copy(update=versions), preview))
    return found
