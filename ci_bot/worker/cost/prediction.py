"""The cost of one model from earlier runs, its own or of others. Pure: numbers in, numbers out.

With enough different runs it is `a x batches + b x bytes read`; else a rate by interval. The fixed
part of each batch dominates a small table, the bytes a large one. So a rate by interval holds only
for batches about as long as the known ones; a longer batch counts its fixed part once.

By its input size (`estimate_cost_by_input_size`), the model's own runs count if there are any, else
runs of models of its kind, else all of the project's; each model has equal weight. With three or
more different runs the time is `a x batches + b x bytes`; a batch that reads less than all of them
counts as the smallest, because no run shows the cost of a start alone. Else it is a rate by byte,
and no batch takes less than the shortest run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

from sqlmesh.core.snapshot import Snapshot, merge_intervals
from sqlmesh.core.snapshot.definition import expand_range

from ci_bot.protocol.plan import Backfill
from ci_bot.worker.planning import Interval
from ci_bot.worker.state_store import RunRow

# A line through fewer points, or through points close together, predicts nothing.
FEWEST_RUNS = 5
SPREAD = 1.5
# One run has no spread. Backfills of one model seldom differ by more than this.
SPREAD_LOW, SPREAD_HIGH = 0.6, 1.6
# The prediction of a batch longer than all known ones may be off by more.
LONGER_LOW, LONGER_HIGH = 0.4, 2.5
# Starting and committing a batch takes no longer than this, whatever it computes.
LONGEST_START = 60.0
# By default, reading this many bytes takes about as long as starting a batch.
BYTES_OF_A_START = 200_000_000
# Each of the zooms tries this many lines around the best of the previous zoom.
_ZOOMS, _STEPS = 8, 40


@dataclass(frozen=True)
class PastRun:
    """One run of a model.

    Attributes:
        seconds: executor time.
        input_bytes: the bytes that it read; None if not counted.
        growth: the factor by which an interval will read more now.
    """

    intervals: int
    batches: int
    seconds: float
    input_bytes: int | None = None
    growth: float = 1.0


@dataclass(frozen=True)
class ExpectedCost:
    """Executor seconds: the middle, the least and the most that such runs have taken."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class BySize:
    """The expected cost of a model by its input size, from a number of runs."""

    expected: ExpectedCost
    runs: int
    input_bytes: int


def predict_cost(
    past: Sequence[PastRun],
    *,
    intervals: int,
    batches: int,
    grows: bool = False,
    others: tuple[float, float] | None = None,
) -> ExpectedCost | None:
    """Predicts the cost of intervals in batches; None without a run.

    Args:
        past: Earlier runs, newest first.
        grows: The table is computed whole each time, so the newest run's input counts and not the
            median.
        others: Seconds for a batch and for a byte, by `fit_cost_line` of the runs of more models.
            They separate a run's start from its bytes.
    """
    runs = [run for run in past if run.intervals > 0]
    if not runs:
        return None
    line = fit_cost_line(runs)
    if line is not None:
        per_interval = [(run.input_bytes or 0) / run.intervals * run.growth for run in runs]
        size = (per_interval[0] if grows else median(per_interval)) * intervals
        fixed, per_byte = line
        middle = fixed * batches + per_byte * size
        off = [run.seconds / max(compute_seconds_on_cost_line(line, run), 1e-9) for run in runs]
        return _widen_cost_prediction(middle, middle * min(off), middle * max(off), len(runs))
    if _are_batches_longer_than_costed(runs, intervals, batches):
        return _predict_cost_of_longer_batches(runs, intervals, batches, others)
    rates = [run.seconds / run.intervals * _compute_cost_growth_factor(run, others) for run in runs]
    middle = median(rates) * intervals
    return _widen_cost_prediction(middle, min(rates) * intervals, max(rates) * intervals, len(runs))


def _are_batches_longer_than_costed(runs: Sequence[PastRun], intervals: int, batches: int) -> bool:
    """Whether the batches hold many more intervals than any batch of the runs did."""
    if batches <= 0:
        return False
    seen = max(run.intervals / max(run.batches, 1) for run in runs)
    return intervals / batches > SPREAD * seen


def _predict_cost_of_longer_batches(
    runs: Sequence[PastRun], intervals: int, batches: int, others: tuple[float, float] | None
) -> ExpectedCost:
    """Predicts batches that are longer than all known ones.

    They cost at least as much as the same number of short batches, and at most as much as the same
    number of intervals. Which is nearer depends on the share of a run that its bytes took.
    """
    found = [_predict_cost_of_longer_batch(run, intervals, batches, others) for run in runs]
    middle = median(each.middle for each in found)
    low, high = min(each.low for each in found), max(each.high for each in found)
    return _widen_cost_prediction(middle, low, high, len(runs))


def _predict_cost_of_longer_batch(
    run: PastRun, intervals: int, batches: int, others: tuple[float, float] | None
) -> ExpectedCost:
    of_a_batch = run.seconds / max(run.batches, 1)
    longest = min(of_a_batch, LONGEST_START)

    def compute_seconds(start: float) -> float:
        rest = (of_a_batch - start) * max(run.batches, 1) / run.intervals
        return start * batches + rest * intervals * run.growth

    if not run.input_bytes:
        least, most = sorted((compute_seconds(longest), compute_seconds(0.0)))
        return ExpectedCost(least, math.sqrt(least * most), most)
    line = others or (1.0, 1 / BYTES_OF_A_START)
    whole = compute_seconds_on_cost_line(line, run)
    start = of_a_batch * line[0] * run.batches / whole if whole else 0.0
    middle = compute_seconds(min(start, longest))
    return ExpectedCost(middle * LONGER_LOW, middle, middle * LONGER_HIGH)


def _widen_cost_prediction(middle: float, low: float, high: float, runs: int) -> ExpectedCost:
    if runs == 1:
        low, high = min(low, middle * SPREAD_LOW), max(high, middle * SPREAD_HIGH)
    return ExpectedCost(min(low, middle), middle, max(high, middle))


def _compute_cost_growth_factor(run: PastRun, others: tuple[float, float] | None) -> float:
    """Returns the factor by which a run would take longer with its larger input; its start does not
    grow.
    """
    if others is None or not run.input_bytes:
        return run.growth
    before = compute_seconds_on_cost_line(others, run)
    read = replace(run, input_bytes=round(run.input_bytes * run.growth))
    return compute_seconds_on_cost_line(others, read) / before if before else run.growth


def compute_seconds_on_cost_line(line: tuple[float, float], run: PastRun) -> float:
    """Returns the seconds that a run should have taken by `fit_cost_line`."""
    return line[0] * run.batches + line[1] * (run.input_bytes or 0)


def fit_cost_line(
    runs: Sequence[PastRun], *, fewest: int = FEWEST_RUNS, weights: Sequence[float] | None = None
) -> tuple[float, float] | None:
    """Fits seconds for a batch and for a byte, neither below 0; None if the runs do not determine
    them.

    It minimizes the factors by which the runs are above or below the line. An hour's run must not
    outweigh ten of a minute. Squared shares would give runs of half the time more weight than runs
    of twice the time, and every estimate would be too low.

    Args:
        weights: The weight of each run; None: equal weights.
    """
    if len(runs) < fewest or any(run.input_bytes is None for run in runs):
        return None
    sizes = [run.input_bytes or 0 for run in runs]
    if min(sizes) <= 0 or max(sizes) < SPREAD * min(sizes):
        return None
    # For each run: batches per second, bytes per second, and its weight.
    points = [
        (run.batches / run.seconds, (run.input_bytes or 0) / run.seconds, weight)
        for run, weight in zip(runs, weights or [1.0] * len(runs), strict=True)
        if run.seconds > 0 and run.batches > 0
    ]
    if len(points) < fewest:
        return None
    batches, size = (sum(point[axis] for point in points) for axis in (0, 1))
    scaled = [(x / batches, y / size, weight) for x, y, weight in points]
    share = _find_narrowest_share(scaled)
    level = math.exp(-_fit_level(scaled, share)[0])
    return level * (1 - share) / batches, level * share / size


def _find_narrowest_share(points: Sequence[tuple[float, float, float]]) -> float:
    """Finds the share of the bytes (0 to 1) whose line is closest to the runs."""
    low, high = 0.0, 1.0
    for _ in range(_ZOOMS):
        step = (high - low) / _STEPS
        best = min(
            (low + step * number for number in range(_STEPS + 1)),
            key=lambda share: _fit_level(points, share)[1],
        )
        low, high = max(0.0, best - step), min(1.0, best + step)
    return best


def _fit_level(points: Sequence[tuple[float, float, float]], share: float) -> tuple[float, float]:
    """Returns middle and spread of the logarithms of the runs' deviations from such a line."""
    logs = [(math.log((1 - share) * x + share * y), weight) for x, y, weight in points]
    total = sum(weight for _, weight in logs)
    middle = sum(log * weight for log, weight in logs) / total
    return middle, sum(weight * (log - middle) ** 2 for log, weight in logs) / total


# The growth of the input of a table that is computed whole, since an earlier run. Pure.
#
# Such a table is one interval, however large the tables are that it reads. In a pull request's
# environment these hold a window of varying length, and in prod years. Their content in a run is
# the sum of the intervals that the ledger has of their version up to then.


@dataclass(frozen=True)
class UpstreamGrowthForCost:
    """The upstream tables of a plan's models.

    Attributes:
        new: The tables that the plan makes, by model: only the plan and the ledger's applies fill
            them. Prod's tables, which SQLMesh's own runs fill, and previews, of which one version
            can have several, do not count.
        rows: The ledger's runs of the models of the plan.
        tables: For each model that is computed whole, the models whose tables it reads, also behind
            views.
    """

    new: Mapping[str, Backfill]
    rows: Sequence[RunRow]
    tables: Mapping[str, frozenset[str]]

    def compute_input_growth(self, run: RunRow) -> float:
        """Returns the factor by which a model will read more than in `run`; 1.0 if not known.

        It differs from 1.0 only if the plan makes a table that the model reads, and the run's own
        apply built it. The input from other tables stays the same: the bytes read beyond those
        written then.
        """
        above = self.tables.get(run.model, frozenset())
        apply = self._applied_runs[run.environment, run.at]
        built = [apply[model] for model in sorted(above & apply.keys())]
        ratios = {
            row.model: ratio
            for row in built
            if (ratio := self._estimate_row_ratio(row)) is not None
        }
        if not ratios:
            return 1.0
        written = {row.model: row.counters.output_bytes if row.counters else 0 for row in built}
        total = sum(written[model] for model in ratios)
        if not total:
            return sum(ratios.values()) / len(ratios) if ratios.keys() == above else 1.0
        changed = sum(written[model] * ratio for model, ratio in ratios.items()) / total
        read = run.counters.input_bytes if run.counters else 0
        share = 1.0 if ratios.keys() == above else min(1.0, total / read) if read else 0.0
        return 1.0 + share * (changed - 1.0)

    def _estimate_row_ratio(self, row: RunRow) -> float | None:
        """Returns the future size of a table that an apply has built, as a factor of its size
        then.
        """
        item = self.new.get(row.model)
        if item is None:
            return None
        if row.model in self.tables:
            return self.compute_input_growth(row)
        runs = self._model_runs[row.model]
        same = [run for run in runs if run.version == row.version]
        if any(run.environment != row.environment for run in same):
            return None  # each of them may have had a preview of its own
        then = sum(run.intervals for run in same if run.at <= row.at)
        # A table's name ends with its version.
        version = item.table.rpartition("__")[2].strip('`"')
        there = sum(run.intervals for run in runs if run.version == version)
        return (item.intervals + there) / then if then else None

    @cached_property
    def _applied_runs(self) -> Mapping[tuple[str, str], Mapping[str, RunRow]]:
        found: dict[tuple[str, str], dict[str, RunRow]] = {}
        for row in self.rows:
            found.setdefault((row.environment, row.at), {})[row.model] = row
        return found

    @cached_property
    def _model_runs(self) -> Mapping[str, Sequence[RunRow]]:
        found: dict[str, list[RunRow]] = {}
        for row in self.rows:
            found.setdefault(row.model, []).append(row)
        return found


# With fewer models of a kind, all of the project's runs are the better sample.
FEWEST_OF_A_KIND = 3
# Even good estimates from input size are off by a factor of two.
SIZE_SPREAD_LOW, SIZE_SPREAD_HIGH = 0.5, 2.0
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


def estimate_cost_by_input_size(
    model: str, size: InputSize, seen: Sequence[CountedRun]
) -> BySize | None:
    """Estimates the cost of building the model; None if no run is similar, or all are too small.

    Args:
        seen: The project's runs.
    """
    like = _list_similar_runs(
        model, size.kind, [item for item in seen if _is_run_informative(item.run)]
    )
    runs = [item.run for item in like]
    if not runs or _is_input_size_beyond_runs(size, runs):
        return None
    of_model = Counter(item.model for item in like)
    smallest = min((run.input_bytes or 0) / run.batches for run in runs)
    planned_run = PastRun(
        intervals=1,
        batches=size.batches,
        seconds=0.0,
        input_bytes=max(size.bytes, round(smallest * size.batches)),
    )
    line = fit_cost_line(
        runs, fewest=FEWEST_OF_A_KIND, weights=[1 / of_model[item.model] for item in like]
    )
    if line is not None:
        middle = compute_seconds_on_cost_line(line, planned_run)
        off = [run.seconds / max(compute_seconds_on_cost_line(line, run), 1e-9) for run in runs]
    else:
        rates = [run.seconds / (run.input_bytes or 1) for run in runs]
        rate = median(rates)
        shortest = min(run.seconds / run.batches for run in runs)
        middle = max(rate * size.bytes, shortest * size.batches)
        off = [each / rate for each in rates]
    expected = ExpectedCost(
        middle * min(SIZE_SPREAD_LOW, *off), middle, middle * max(SIZE_SPREAD_HIGH, *off)
    )
    return BySize(expected, len(runs), size.bytes)


def _is_run_informative(run: PastRun) -> bool:
    return bool(run.input_bytes) and run.seconds > 0 and run.batches > 0


def _list_similar_runs(model: str, kind: str, seen: Sequence[CountedRun]) -> Sequence[CountedRun]:
    own = [item for item in seen if item.model == model]
    if own:
        return own
    same = [item for item in seen if item.kind == kind]
    return same if len({item.model for item in same}) >= FEWEST_OF_A_KIND else seen


def _is_input_size_beyond_runs(size: InputSize, runs: Sequence[PastRun]) -> bool:
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
