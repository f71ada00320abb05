"""The batches in which a model will be built, and which of them are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlmesh.core.snapshot import Snapshot, merge_intervals
from sqlmesh.core.snapshot.definition import expand_range

from ci_bot.worker.plan.planning import Interval

# Pruned partitions differ from batch to batch; so many spread over the range tell enough of them.
MOST_ASKED = 20


def batches_of(snapshot: Snapshot, intervals: Sequence[Interval]) -> list[Interval]:
    """The ranges that one statement each will fill, oldest first: as SQLMesh's scheduler cuts them.

    (`Scheduler.batch_intervals`)

    Args:
        intervals: What is missing, in milliseconds.
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


def spread(batches: Sequence[Interval], most: int = MOST_ASKED) -> list[Interval]:
    """At most so many of them, the newest first, then the oldest, then ever finer between these."""
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
