"""Which physical tables of a removed environment may go. Pure: facts in, a decision out.

A table goes only where everything speaks for it: the ledger says that this environment made it and
the snapshot version behind it, nobody else refers to that version or to that table, and nobody has
pushed the snapshot again since. Everything else stays, and SQLMesh's janitor takes it after its TTL
(DESIGN 7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ci_bot.worker.ledger import LedgerRow, LedgerSnapshot

GRACE_MS = 24 * 60 * 60 * 1000
SnapshotKey = tuple[str, str]

NOT_OURS = "another environment made its version first"
SHARED = "another snapshot of the model shares it"
PUSHED_AGAIN = "its snapshot was pushed again after this environment did"


@dataclass(frozen=True)
class SnapshotFact:
    """A snapshot as SQLMesh's state, an environment, or another ledger row has it."""

    name: str
    identifier: str
    version: str
    dev_version: str

    @property
    def key(self) -> SnapshotKey:
        return self.name, self.identifier

    @property
    def table(self) -> tuple[str, str]:
        """Equal for snapshots that share the table that prod would read."""
        return self.name, self.version

    @property
    def preview(self) -> tuple[str, str]:
        """Equal for snapshots that share a `__dev` preview table."""
        return self.name, self.dev_version


@dataclass(frozen=True)
class StateRow(SnapshotFact):
    """A row of the state's snapshots: when it was written, and when its TTL ends (both in ms)."""

    updated: int
    expires: int


@dataclass(frozen=True)
class TableNames:
    """The names of a snapshot's two tables, as people read them (`schema.name`)."""

    table: str
    preview: str


@dataclass(frozen=True)
class Facts:
    """What is known at the moment of the decision.

    Args:
        recorded: The tables that the ledger says were not there before the environment.
        rows: Every row that the state has of the recorded models, whoever made it.
        names: Of the recorded snapshots that are in the state.
        references: Who uses which snapshots: environments, and other rows of the ledger.
        used: Tables that those mention by name, and who does.
    """

    recorded: Collection[str]
    rows: Collection[StateRow] = ()
    names: Mapping[SnapshotKey, TableNames] = field(default_factory=dict)
    references: Mapping[str, Collection[SnapshotFact]] = field(default_factory=dict)
    used: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """A table that stays; `until` in milliseconds, None where nothing is known to take it."""

    table: str
    why: str
    until: int | None


@dataclass(frozen=True)
class Decision:
    """What to do.

    Args:
        forget: Snapshots whose state rows go. True: so does all that is known of their version.
            False: others share the version, and only the preview goes.
        drop: Tables that go.
        keep: Tables that stay.
    """

    forget: dict[SnapshotKey, bool] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    keep: list[Kept] = field(default_factory=list)


def decide(row: LedgerRow, facts: Facts, pushed_before: int) -> Decision:
    """What of a removed environment goes now.

    Args:
        pushed_before: A snapshot whose row is newer than this (ms) is somebody else's by now.
    """
    ours = {(item.name, item.identifier) for item in row.snapshots if item.ours}
    used = {fact.key for group in facts.references.values() for fact in group}
    used_previews = {fact.preview for group in facts.references.values() for fact in group}
    stays: dict[SnapshotKey, str] = {}
    for item in facts.rows:
        if item.key not in ours:
            stays[item.key] = SHARED
        elif item.updated > pushed_before:
            stays[item.key] = PUSHED_AGAIN
        elif item.key in used or item.preview in used_previews or item.key not in facts.names:
            stays[item.key] = SHARED
    while more := _sharing_a_preview(facts.rows, stays):
        # SQLMesh's janitor holds on to such rows too: the preview outlives its maker.
        stays |= dict.fromkeys(more, SHARED)
    claims = _Claims.of([item for item in facts.rows if item.key in stays], facts, stays)
    decision = Decision(
        forget={
            item.key: item.table not in claims.tables
            for item in facts.rows
            if item.key not in stays
        }
    )
    for table in sorted(facts.recorded):
        owners = _owners(table, row, facts)
        why = claims.on(table, owners)
        if why is None and not any(owner.ours for owner, _ in owners):
            why = NOT_OURS
        if why is None:
            decision.drop.append(table)
        else:
            used_by_somebody = table in facts.used
            until = None if used_by_somebody else expires(table, row, facts)
            decision.keep.append(Kept(table, why, until))
    return decision


def claimed(table: str, row: LedgerRow, facts: Facts) -> str | None:
    """Who has taken up a table since it was decided to drop it, None where nobody has.

    Its state rows are gone since then, so a row that is there is somebody's new push.
    """
    claims = _Claims.of(facts.rows, facts, dict.fromkeys((i.key for i in facts.rows), PUSHED_AGAIN))
    owners = _owners(table, row, facts)
    # A name that does not tell its snapshot may belong to any of them.
    return claims.on(
        table, owners or [(item, preview) for item in row.snapshots for preview in (False, True)]
    )


def expires(table: str, row: LedgerRow, facts: Facts) -> int | None:
    """When SQLMesh's janitor may take a table; None where that is not known."""
    found: list[int] = []
    for owner, preview in _owners(table, row, facts):
        fact = SnapshotFact(owner.name, owner.identifier, owner.version, owner.dev_version)
        found += [
            item.expires
            for item in facts.rows
            if (item.preview == fact.preview if preview else item.table == fact.table)
        ]
    return max(found, default=None)


@dataclass(frozen=True)
class _Claims:
    """Why tables stay: by what snapshots share, and by name.

    A snapshot that was pushed again can have another version than the ledger recorded.
    """

    tables: Mapping[tuple[str, str], str]
    previews: Mapping[tuple[str, str], str]
    named: Mapping[str, str]

    @classmethod
    def of(cls, rows: Iterable[StateRow], facts: Facts, why: Mapping[SnapshotKey, str]) -> _Claims:
        tables: dict[tuple[str, str], str] = {}
        previews: dict[tuple[str, str], str] = {}
        named: dict[str, str] = {}
        for item in rows:
            tables[item.table] = previews[item.preview] = why[item.key]
            names = facts.names.get(item.key)
            if names is not None:
                named[names.table] = named[names.preview] = why[item.key]
        for who, group in facts.references.items():
            for fact in group:
                tables[fact.table] = previews[fact.preview] = f"{who} uses its version"
        named |= {name: f"{who} uses its version" for name, who in facts.used.items()}
        return cls(tables, previews, named)

    def on(self, table: str, owners: Iterable[tuple[LedgerSnapshot, bool]]) -> str | None:
        """Why a table of these snapshots stays (True: it is their preview); None: it may go."""
        for owner, preview in owners:
            why = (
                self.previews.get((owner.name, owner.dev_version))
                if preview
                else self.tables.get((owner.name, owner.version))
            )
            if why is not None:
                return why
        return self.named.get(table)


def _sharing_a_preview(
    rows: Collection[StateRow], stays: Mapping[SnapshotKey, str]
) -> set[SnapshotKey]:
    kept = {item.preview for item in rows if item.key in stays}
    return {item.key for item in rows if item.key not in stays and item.preview in kept}


def _owners(table: str, row: LedgerRow, facts: Facts) -> list[tuple[LedgerSnapshot, bool]]:
    """The recorded snapshots that a table belongs to, and whether it is their preview.

    SQLMesh says so for snapshots that are in the state; for the others its default naming does
    (`table_name`: `<model>__<version>`, and `__dev` behind it for a preview).
    """
    found = []
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
    return found
