"""Two sides that did the same work in turns, and the table that shows them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from tests.benchmarks.timed_command import Taken, say


@dataclass(frozen=True)
class Comparison:
    """One row: what was done, by whom, and how long it took in each turn.

    Attributes:
        work: The work, in the words of docs/numbers.md.
        peer: Whom ours is compared with.
        goal: At most so much of the peer's time by the clock.
        ours: What ours took, turn by turn.
        theirs: What the peer took.
        load: The machine's load before and after.
    """

    work: str
    peer: str
    goal: float
    ours: Sequence[Taken]
    theirs: Sequence[Taken]
    load: tuple[float, float] = field(default=(0.0, 0.0))

    def __post_init__(self) -> None:
        """Raises ValueError if a side is missing in a turn."""
        if not self.ours or len(self.ours) != len(self.theirs):
            raise ValueError(f"{self.work}: {len(self.ours)} turns, and {len(self.theirs)}")

    @property
    def wall(self) -> Share:
        return _share([(a.wall, b.wall) for a, b in zip(self.ours, self.theirs, strict=True)])

    @property
    def processor(self) -> Share:
        return _share(
            [(a.processor, b.processor) for a, b in zip(self.ours, self.theirs, strict=True)]
        )


@dataclass(frozen=True)
class Share:
    """Medians of seconds of both sides, their ratio, and the smallest and largest of a turn."""

    ours: float
    theirs: float
    least: float
    most: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def _share(turns: Sequence[tuple[float, float]]) -> Share:
    ratios = [a / b for a, b in turns]
    ours, theirs = (statistics.median(side) for side in zip(*turns, strict=True))
    return Share(ours, theirs, min(ratios), max(ratios))


COMPARISONS = TypeAdapter(list[Comparison])
_HEAD = (
    "| work | compared with | goal | of its time | spread | of its processor time | seconds | "
    "turns, load |\n|---|---|--:|--:|--:|--:|--:|--:|"
)


def format_row(row: Comparison) -> str:
    """One line of the Markdown table."""
    wall, processor = row.wall, row.processor
    return (
        f"| {row.work} | {row.peer} | {row.goal:.2f} | **{wall.ratio:.2f}** | "
        f"{wall.least:.2f} to {wall.most:.2f} | {processor.ratio:.2f} | "
        f"{wall.ours:.1f} against {wall.theirs:.1f} | {len(row.ours)}, "
        f"{row.load[0]:.1f} to {row.load[1]:.1f} |"
    )


def format_table(rows: Iterable[Comparison]) -> str:
    """A Markdown table: ratios of the medians, and the spread of the turns' own ratios."""
    return "\n".join([_HEAD, *map(format_row, rows)])


def print_table(rows: Iterable[Comparison]) -> None:
    say(format_table(rows))
