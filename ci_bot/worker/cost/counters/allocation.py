"""Whose the executors were, and for how long: exact where they come and go.

Times are seconds since the epoch, as the driver's clock has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

# Spark's clock counts milliseconds; what is shorter has no rate of its own.
_TICK_SECONDS = 0.001


@dataclass(frozen=True)
class Executor:
    """One executor, from when it was there until it went; None: it is still there."""

    added: float
    removed: float | None
    cores: int


@dataclass(frozen=True)
class Busy:
    """A piece of work: when it ran, and the task time that it used.

    Attributes:
        key: whose work it is.
        used: seconds of tasks.
    """

    key: str
    start: float
    end: float
    used: float


@dataclass(frozen=True)
class Allocated:
    """Seconds of executors, and of their cores."""

    executors: float = 0.0
    cores: float = 0.0

    def __add__(self, other: Allocated) -> Allocated:
        return Allocated(self.executors + other.executors, self.cores + other.cores)

    def scaled(self, factor: float) -> Allocated:
        return Allocated(self.executors * factor, self.cores * factor)


def allocated(executors: Iterable[Executor], start: float, end: float) -> Allocated:
    """What was occupied between two moments, idle or not."""
    total = Allocated()
    for executor in executors:
        gone = end if executor.removed is None else min(end, executor.removed)
        seconds = max(0.0, gone - max(start, executor.added))
        total += Allocated(seconds, seconds * executor.cores)
    return total


def shares(executors: Sequence[Executor], spans: Sequence[Busy]) -> Mapping[str, Allocated]:
    """What was occupied while work ran, by whose work it is.

    Where several pieces run at once, the executors of that moment are theirs by the task time that
    each uses in a second; where none uses any, in equal parts. The sum over all keys is what was
    occupied while any of them ran.
    """
    found = {span.key: Allocated() for span in spans}
    running = [span for span in spans if span.end > span.start]
    moments = sorted({moment for span in running for moment in (span.start, span.end)})
    begins: dict[float, list[int]] = {}
    ends: dict[float, list[int]] = {}
    for number, span in enumerate(running):
        begins.setdefault(span.start, []).append(number)
        ends.setdefault(span.end, []).append(number)
    active: set[int] = set()
    for start, end in pairwise(moments):
        active.difference_update(ends.get(start, ()))
        active.update(begins.get(start, ()))
        if not active:
            continue
        here = allocated(executors, start, end)
        rates = {number: _rate(running[number]) for number in active}
        total = sum(rates.values())
        for number, rate in rates.items():
            part = rate / total if total > 0 else 1 / len(rates)
            found[running[number].key] += here.scaled(part)
    return found


def _rate(span: Busy) -> float:
    return span.used / max(span.end - span.start, _TICK_SECONDS)
