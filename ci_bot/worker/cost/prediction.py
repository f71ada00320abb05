"""What one model will take, from what it took before. Pure: numbers in, numbers out.

With enough runs that differ, `a x batches + b x bytes that are read`; else so much an interval. A
fixed part for each batch is what a small table costs, the bytes are what a large one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

# A line through fewer points, or through points that lie together, says nothing about others.
FEWEST_RUNS = 5
SPREAD = 1.5
# One run says nothing about the spread. Backfills of one model seldom differ by more than this.
SPREAD_LOW, SPREAD_HIGH = 0.6, 1.6


@dataclass(frozen=True)
class Past:
    """One run of a model.

    Attributes:
        seconds: executor time.
        input_bytes: what it read; None where nobody has counted.
    """

    intervals: int
    batches: int
    seconds: float
    input_bytes: int | None = None


@dataclass(frozen=True)
class Expected:
    """Executor seconds: the middle, and the least and the most that such runs have taken."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class BySize:
    """What a model is expected to take by the size of its input, as so many runs took."""

    expected: Expected
    runs: int
    input_bytes: int


def predict(
    past: Sequence[Past], *, intervals: int, batches: int, grows: bool = False
) -> Expected | None:
    """What so many intervals in so many batches will take; None where nothing is known.

    Args:
        past: Earlier runs, newest first.
        grows: The table is computed whole each time, so what the newest run read counts and not
            what runs read in the middle.
    """
    runs = [run for run in past if run.intervals > 0]
    if not runs:
        return None
    line = line_of(runs)
    if line is not None:
        per_interval = [(run.input_bytes or 0) / run.intervals for run in runs]
        size = (per_interval[0] if grows else median(per_interval)) * intervals
        fixed, per_byte = line
        middle = fixed * batches + per_byte * size
        off = [run.seconds / max(on_line(line, run), 1e-9) for run in runs]
        return _spread(middle, middle * min(off), middle * max(off), len(runs))
    rates = [run.seconds / run.intervals for run in runs]
    middle = median(rates) * intervals
    return _spread(middle, min(rates) * intervals, max(rates) * intervals, len(runs))


def _spread(middle: float, low: float, high: float, runs: int) -> Expected:
    if runs == 1:
        low, high = min(low, middle * SPREAD_LOW), max(high, middle * SPREAD_HIGH)
    return Expected(min(low, middle), middle, max(high, middle))


def on_line(line: tuple[float, float], run: Past) -> float:
    """The seconds that a run should have taken by `line_of`."""
    return line[0] * run.batches + line[1] * (run.input_bytes or 0)


def line_of(runs: Sequence[Past], *, fewest: int = FEWEST_RUNS) -> tuple[float, float] | None:
    """Seconds for a batch and for a byte, neither below 0; None where the runs do not tell.

    The least squares of the relative errors: a run of an hour must not outweigh ten of a minute.
    """
    if len(runs) < fewest or any(run.input_bytes is None for run in runs):
        return None
    sizes = [run.input_bytes or 0 for run in runs]
    if min(sizes) <= 0 or max(sizes) < SPREAD * min(sizes):
        return None
    points = [
        (run.batches / run.seconds, (run.input_bytes or 0) / run.seconds)
        for run in runs
        if run.seconds > 0 and run.batches > 0
    ]
    if len(points) < fewest:
        return None
    xx = sum(x * x for x, _ in points)
    yy = sum(y * y for _, y in points)
    xy = sum(x * y for x, y in points)
    sx, sy = sum(x for x, _ in points), sum(y for _, y in points)
    determinant = xx * yy - xy * xy
    if determinant > 1e-9 * xx * yy:
        fixed, per_byte = (sx * yy - sy * xy) / determinant, (sy * xx - sx * xy) / determinant
        if fixed >= 0 and per_byte >= 0:
            return fixed, per_byte
    # One of them alone, whichever fits better: the other would have to be below nothing.
    only_fixed, only_bytes = (sx / xx, 0.0), (0.0, sy / yy)
    return min(only_fixed, only_bytes, key=lambda line: _misfit(line, points))


def _misfit(line: tuple[float, float], points: Sequence[tuple[float, float]]) -> float:
    return sum((line[0] * x + line[1] * y - 1) ** 2 for x, y in points)
