"""The time of a model from its input size, by the rates of other models. Pure.

The model's own runs count if there are any, else runs of models of its kind, else all of the
project's; each model has equal weight. With three or more different runs the time is `a x batches +
b x bytes`; a batch that reads less than all of them counts as the smallest, because no run shows
the cost of a start alone. Else it is a rate by byte, and no batch takes less than the shortest run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sqlmesh.core.snapshot import Snapshot, merge_intervals
from sqlmesh.core.snapshot.definition import expand_range

from ci_bot.worker.cost.prediction import BySize, ExpectedCost, PastRun, fit_line, seconds_on_line
from ci_bot.worker.planning import Interval

# With fewer models of a kind, all of the project's runs are the better sample.
FEWEST_OF_A_KIND = 3
# Even good estimates from input size are off by a factor of two.
SPREAD_LOW, SPREAD_HIGH = 0.5, 2.0
# Small runs do not show the cost of a byte, because most of their time is starting; their rate
# holds up to `REACH` times their size. From a gigabyte on, the bytes dominate.
REACH, LARGE_BYTES = 10, 1_000_000_000


@dataclass(frozen=True)
class InputSize:
    """The input of building a model.

    Attributes:
        bytes: all batches together.
        kind: SQLMesh's kind of the model.
    """

    bytes: int
    batches: int
    kind: str


@dataclass(frozen=True)
class CountedRun:
    """A run of a model with counted input."""

    model: str
    kind: str
    run: PastRun


def estimate_by_size(model: str, size: InputSize, seen: Sequence[CountedRun]) -> BySize | None:
    """Estimates the cost of building the model; None if no run is similar.

    Args:
        seen: The project's runs.
    """
    like = _similar_runs(model, size.kind, [item for item in seen if _is_informative(item.run)])
    runs = [item.run for item in like]
    if not runs or _is_beyond_runs(size, runs):
        return None
    of_model = Counter(item.model for item in like)
    smallest = min((run.input_bytes or 0) / run.batches for run in runs)
    asked = PastRun(
        intervals=1,
        batches=size.batches,
        seconds=0.0,
        input_bytes=max(size.bytes, round(smallest * size.batches)),
    )
    line = fit_line(
        runs, fewest=FEWEST_OF_A_KIND, weights=[1 / of_model[item.model] for item in like]
    )
    if line is not None:
        middle = seconds_on_line(line, asked)
        off = [run.seconds / max(seconds_on_line(line, run), 1e-9) for run in runs]
    else:
        rates = [run.seconds / (run.input_bytes or 1) for run in runs]
        rate = median(rates)
        shortest = min(run.seconds / run.batches for run in runs)
        middle = max(rate * size.bytes, shortest * size.batches)
        off = [each / rate for each in rates]
    expected = ExpectedCost(middle * min(SPREAD_LOW, *off), middle, middle * max(SPREAD_HIGH, *off))
    return BySize(expected, len(runs), size.bytes)


def _is_informative(run: PastRun) -> bool:
    return bool(run.input_bytes) and run.seconds > 0 and run.batches > 0


def _similar_runs(model: str, kind: str, seen: Sequence[CountedRun]) -> Sequence[CountedRun]:
    own = [item for item in seen if item.model == model]
    if own:
        return own
    same = [item for item in seen if item.kind == kind]
    return same if len({item.model for item in same}) >= FEWEST_OF_A_KIND else seen


def _is_beyond_runs(size: InputSize, runs: Sequence[PastRun]) -> bool:
    largest = max((run.input_bytes or 0) / run.batches for run in runs)
    return largest < LARGE_BYTES and size.bytes / max(size.batches, 1) > REACH * largest


# The batches in which a model will be built, and the ones to measure.


# Pruned partitions differ from batch to batch; this many, spread over the range, are enough.
MOST_ASKED = 20


def cut_batches(snapshot: Snapshot, intervals: Sequence[Interval]) -> list[Interval]:
    """Cuts intervals into the ranges that one statement fills, oldest first, as SQLMesh's scheduler
    does.

    (`Scheduler.batch_intervals`)

    Args:
        intervals: The missing intervals, in milliseconds.
    """
    merged = merge_intervals(list(intervals))
    if not merged:
        return []
    if not snapshot.is_incremental:
        return [(merged[0][0], merged[-1][1])]
    size = snapshot.node.batch_size
    if not size:
        return merged
    found: list[Interval] = []
    for start, end in merged:
        ends = expand_range(start, end, snapshot.node.interval_unit)
        cuts = [*ends[:-1:size], end]
        found += pairwise(cuts)
    return found


def spread_batches(batches: Sequence[Interval], most: int = MOST_ASKED) -> list[Interval]:
    """Chooses at most `most` batches: the newest, the oldest, then ever finer between these."""
    if len(batches) <= most:
        chosen = list(range(len(batches)))
    else:
        step = (len(batches) - 1) / (most - 1)
        chosen = sorted({round(number * step) for number in range(most)})
    if not chosen:
        return []
    ordered = [chosen[-1]]
    waiting = [(0, len(chosen) - 1)]
    if len(chosen) > 1:
        ordered.append(chosen[0])
    while waiting:
        low, high = waiting.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            ordered.append(chosen[middle])
            waiting += [(low, middle), (middle, high)]
    return [batches[number] for number in ordered]
