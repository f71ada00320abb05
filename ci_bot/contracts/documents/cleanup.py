"""cleanup.json: what existed, what was removed, and what is left."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import (
    SCHEMA_VERSION,
    Bytes,
    Compared,
    Contract,
    Failure,
    Line,
    Name,
    Seconds,
    Timestamp,
    Timings,
    Versions,
)


class ReclaimedTable(Contract):
    table: Name
    bytes: Bytes | None = Field(description="What its files freed; null: could not be asked.")


class KeptTable(Contract):
    table: Name
    why: Line
    until: Timestamp | None = Field(
        description="When the sweep reclaims it, or else SQLMesh's janitor may take it; null: not "
        "known, or not while somebody uses it."
    )


class Leftover(Contract):
    object: Name
    why: Line


class CleanupDocument(Contract):
    """cleanup.json."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["cleanup"] = "cleanup"
    environment: Compared
    existed: bool
    result: Literal["removed", "nothing_to_do", "incomplete", "refused"]
    views_dropped: list[Name] = Field(default_factory=list)
    schemas_dropped: list[Name] = Field(default_factory=list)
    tables_reclaimed: list[ReclaimedTable] = Field(default_factory=list)
    tables_kept: list[KeptTable] = Field(default_factory=list)
    leftovers: list[Leftover] = Field(default_factory=list)
    foreign: list[Name] = Field(
        default_factory=list,
        description="Objects in our schemas that the environment did not make.",
    )
    state_record_removed: bool
    state_record_left: bool | None = Field(
        default=None,
        description="Whether SQLMesh's state still has a record of the environment; null: nobody "
        "looked.",
    )
    seconds: Seconds
    timings: Timings = Field(default_factory=dict)
    versions: Versions
    failure: Failure | None = None

    @property
    def bytes_reclaimed(self) -> int | None:
        """What the reclaimed tables freed together; None where one of them could not be asked."""
        sizes = [table.bytes for table in self.tables_reclaimed]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None
