"""What was learned from Spark's event logs about the cost of prod's own runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ci_bot.contracts.base import SCHEMA_VERSION, Contract, Count, Line, Name, Seconds, Versions


class LearnDocument(Contract):
    """How many logs there were, what became of each, and what they told."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["learn"] = "learn"
    directory: Name
    logs: Count
    read: Count = Field(description="Logs that tell of tables of SQLMesh.")
    known: Count = Field(description="Logs that were read before.")
    foreign: Count = Field(description="Logs of applications that write no table of SQLMesh.")
    other_version: Count = Field(description="Logs of a Spark whose logs are not known here.")
    cut: Count = Field(description="Logs without an end; what is whole in them was read.")
    unreadable: Count = Field(description="Logs that could not be opened.")
    old: Count = Field(default=0, description="Logs that are older than the ledger remembers.")
    writes: Count
    tables: Count
    seconds: Seconds
    remark: Line | None = Field(default=None, description="Why a log could not be opened.")
    versions: Versions
