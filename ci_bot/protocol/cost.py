"""What work on Spark has cost, how good its estimates were, and how people read a duration.

Durations are written in seconds, minutes and hours; never in decimals of hours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from ci_bot.protocol.base import (
    SCHEMA_VERSION,
    Bytes,
    Contract,
    Count,
    Line,
    Name,
    Seconds,
    Timestamp,
    Versions,
)

# Where a model's figure comes from, the best first: the probe of this plan, its own applies, what
# prod's runs of it have left in Spark's event logs, the size of what it will read.
CostLayer = Literal["probe", "ledger", "event_logs", "input_size"]

# Each of them, as the end of "estimated from".
COST_SOURCES: Mapping[CostLayer, str] = {
    "probe": "its newest batch",
    "ledger": "its own applies",
    "event_logs": "prod's runs",
    "input_size": "the size of its input",
}


# It is shown without escaping, so it may be only three letters (ISO 4217).
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]

PRICE = r"[0-9]{1,12}(\.[0-9]{1,6})? [A-Z]{3}"
PRICE_WORDS = "must be an amount from 0 up and a currency, such as `0.42 EUR`"


class Price(Contract):
    """An amount with its currency, ISO 4217."""

    amount: Seconds
    currency: Currency

    @classmethod
    def parse_price(cls, text: str) -> Price:
        """Parses a text such as `0.42 EUR`.

        Raises:
            ValueError: it has no amount or no currency; the message says what it must be.
        """
        words = " ".join(text.split())
        if not re.fullmatch(PRICE, words):
            raise ValueError(PRICE_WORDS)
        amount, currency = words.split()
        return cls(amount=float(amount), currency=currency)

    def compute_price(self, hours: float) -> float:
        return round(hours * self.amount, 2)

    def __str__(self) -> str:
        return f"{self.amount:g} {self.currency}"


class Counters(Contract):
    """What Spark has counted for some work, summed over its stages.

    `used_seconds` is the time of tasks: one core that is occupied for one second counts as 1.
    """

    used_seconds: Seconds = 0.0
    cpu_seconds: Seconds = 0.0
    input_bytes: Bytes = 0
    input_rows: Count = 0
    output_bytes: Bytes = 0
    output_rows: Count = 0
    shuffle_read_bytes: Bytes = 0
    shuffle_write_bytes: Bytes = 0
    memory_spilled_bytes: Bytes = 0
    disk_spilled_bytes: Bytes = 0
    peak_memory_bytes: Bytes = Field(
        default=0, description="The most that one task has taken for execution; a maximum."
    )
    tasks: Count = 0
    failed_tasks: Count = 0
    stages: Count = 0
    stages_lost: Count = Field(
        default=0, description="Stages that Spark had forgotten before they were read."
    )


class Skew(Contract):
    """The longest task of a stage beside its median one."""

    median_seconds: Seconds
    longest_seconds: Seconds
    tasks: Count

    @property
    def ratio(self) -> float:
        return self.longest_seconds / max(self.median_seconds, 0.001)


class ModelEstimate(Contract):
    """The expected executor time of one model, and where the figure comes from."""

    model: Name
    layer: CostLayer
    runs: Count = Field(
        description="Recorded runs that it is made from; of `input_size` also those of others."
    )
    input_bytes: Bytes | None = Field(
        default=None, description="What it will read, by Spark; null if nobody has asked."
    )
    executor_hours_low: Seconds
    executor_hours_mid: Seconds
    executor_hours_high: Seconds


class Accuracy(Contract):
    """How far the newest estimates were off, as shares of what the applies then cost."""

    estimates: Count
    median: Seconds = Field(description="Half of them were closer.")
    nine_of_ten: Seconds = Field(description="Nine in ten were closer.")


class ActualCost(Contract):
    """What an apply has cost.

    `allocated_hours` are executors occupied while it built, whether they worked or not.
    `core_hours` is the same, multiplied by their cores. A value is null if it could not be asked.
    """

    source: Literal["counters", "clock"] = Field(
        description="Spark's counters, or the wall clock times the executors at the end."
    )
    allocated_hours: Seconds
    core_hours: Seconds | None = None
    used_share: Seconds | None = Field(
        default=None, description="The share of the allocated cores' time in which tasks ran."
    )
    price: Seconds | None = Field(default=None, description="Of the allocated time.")
    currency: Currency | None = None
    counters: Counters | None = None
    remarks: list[Line] = Field(
        default_factory=list, description="Spill and skew that are worth a look."
    )


# What Spark's event logs say about the cost of prod's own runs.


_Unreadable = Annotated[Count, Field(description="Logs that could not be opened.")]
_Remark = Annotated[Line | None, Field(description="Why a log could not be opened.")]


class LearnDocument(Contract):
    """How many logs there were, what happened to each, and what they showed."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["learn"] = "learn"
    directory: Name
    logs: Count
    read: Count = Field(description="Logs that tell of tables of SQLMesh.")
    known: Count = Field(description="Logs that were read before.")
    foreign: Count = Field(description="Logs of applications that write no table of SQLMesh.")
    other_version: Count = Field(description="Logs of a Spark whose logs are not known here.")
    cut: Count = Field(description="Logs without an end; what is whole in them was read.")
    unreadable: _Unreadable
    old: Count = Field(default=0, description="Logs that are older than the ledger remembers.")
    writes: Count
    tables: Count
    seconds: Seconds
    remark: _Remark = None
    versions: Versions


# Who has read prod's tables, according to Spark's event logs.


class LoggedReader(Contract):
    """An application of one user, or several whose names differ only in numbers."""

    application: Name
    user: str
    last_read: Timestamp
    statements: Count
    reads: dict[Name, list[Name] | None] = Field(
        description="The columns of each model; null: all of them, or not known which."
    )


class ExposuresDocument(Contract):
    """How many logs there were, what happened to each, and who has read what."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["exposures"] = "exposures"
    since: Timestamp
    logs: Count = 0
    read: Count = Field(default=0, description="Logs that tell of a read of a model.")
    own: Count = Field(default=0, description="Logs of applications that write tables of SQLMesh.")
    foreign: Count = Field(default=0, description="Logs without a read of a model.")
    other_version: Count = Field(default=0, description="Logs of a Spark that is not known here.")
    unreadable: _Unreadable = 0
    old: Count = Field(default=0, description="Logs without a change since `since`.")
    malformed: Count = Field(default=0, description="Lines that begin as an event and are none.")
    readers: list[LoggedReader] = Field(default_factory=list)
    more_readers: Count = Field(default=0, description="Further ones, which were seen earlier.")
    remark: _Remark = None
    seconds: Seconds
    versions: Versions


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TENTHS_BELOW = 10


def format_duration(seconds: float) -> str:
    """Writes seconds for people: "0.4 s", "41 s", "2 min 14 s", "1 h 42 min", "3 d 2 h"."""
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _format_duration_in_two_units(whole, _MINUTE, "min", 1, "s")
    if whole < _DAY:
        return _format_duration_in_two_units(whole, _HOUR, "h", _MINUTE, "min")
    return _format_duration_in_two_units(whole, _DAY, "d", _HOUR, "h")


def format_executor_time(hours: float) -> str:
    """Writes executor-hours like `format_duration`, but from a day on in hours, as they are sold.

    "20 s", "1 h 42 min", "1,204 h".
    """
    seconds = hours * _HOUR
    return format_duration(seconds) if seconds < _DAY else f"{round(hours):,} h"


def _format_duration_in_two_units(
    seconds: int, large: int, large_name: str, small: int, small_name: str
) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_name}" + (f" {rest} {small_name}" if rest else "")


def read_time(text: str) -> datetime:
    """Reads a time or a date as documents write it. Before 3.11 Python itself reads no `Z`.

    Raises:
        ValueError: the text is neither.
    """
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def count_days_between(start: str, end: str) -> float | None:
    """Counts the days between two times or dates; None if one of them is neither."""
    try:
        return (read_time(end) - read_time(start)) / timedelta(days=1)
    except (ValueError, TypeError):
        return None
