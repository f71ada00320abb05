"""Many models compared side by side, within a budget and until somebody cancels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from ci_bot.protocol.apply_report import TableDiff
from ci_bot.worker.data_diff.compare import TimeSource, compare_schema, compare_tables
from ci_bot.worker.data_diff.spec import DiffPort, DiffSpec, SqlError

FAILED = "Spark could not compare it"
CANCELLED = "The run was cancelled before this model was compared."


@dataclass(frozen=True)
class DiffCandidate:
    """A model that could be compared.

    Args:
        rows: Rows of both sides together; None if nobody knows.
        size: Bytes of both sides together; None if nobody knows.
        unavailable: Why there is nothing to compare (a new model, a view that was removed). The
            tables are then not asked for at all.
        unaffected: Whether that is because nothing of prod's can differ.
    """

    spec: DiffSpec
    rows: int | None = None
    size: int | None = None
    unavailable: str | None = None
    unaffected: bool = False


@dataclass(frozen=True)
class DiffBudget:
    """How much all comparisons together may read; None is no limit.

    The largest models are left out until the rest fits. A model whose size nobody knows is left out
    under a limit, because it may be the one that the limit is for.
    """

    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class DiffControls:
    """How a run is bounded and stopped.

    Args:
        workers: Comparisons at a time; Spark shares its slots among them
            (`spark_port.side_by_side` says how many a session can feed).
        cancelled: Asked before each model, and several times a second while models run.
        stop: Ends the queries that are running. Called every `poll` seconds once `cancelled` says
            yes, until they have ended or `patience` is over.
        clock: Monotonic seconds, for `seconds` of each model.
        poll: Seconds between two questions to `cancelled`.
        patience: Seconds that running queries get to end.
        again: Called before a model whose comparison failed is tried once more; None: it is not.
    """

    workers: int = 2
    cancelled: Callable[[], bool] = field(default=lambda: False)
    stop: Callable[[], None] = field(default=lambda: None)
    clock: TimeSource | None = None
    poll: float = 0.2
    patience: float = 2.0
    again: Callable[[], None] | None = None


def compare_models(
    port: DiffPort,
    candidates: Sequence[DiffCandidate],
    *,
    budget: DiffBudget | None = None,
    controls: DiffControls | None = None,
    done: Callable[[TableDiff], None] | None = None,
) -> list[TableDiff]:
    """Compares every candidate, small ones first.

    Args:
        port: Must allow calls from several threads at once.
        done: Told of each result as it comes, on the thread of the caller.

    Returns:
        One result per candidate, in the order of `candidates`. A model that could not be compared
        says why in `skipped_because`; no failure of one model stops the others.
    """
    controls = controls or DiffControls()
    tell = done or (lambda _: None)
    over = over_budget(candidates, budget or DiffBudget())
    results: dict[int, TableDiff] = {}

    def run(number: int) -> TableDiff:
        return _compare_candidate(port, candidates[number], over.get(number), controls)

    pool = ThreadPoolExecutor(max(1, controls.workers), thread_name_prefix="ci-bot-diff")
    try:
        order = sorted(range(len(candidates)), key=lambda n: _candidate_weight(candidates[n]))
        waiting = {pool.submit(run, number): number for number in order}
        chances = max(1, round(controls.patience / controls.poll))
        while waiting and chances:
            for future in wait(waiting, controls.poll, FIRST_COMPLETED).done:
                number = waiting.pop(future)
                results[number] = future.result()
                tell(results[number])
            if waiting and controls.cancelled():
                # Again at every look: a query starts its next job after the first one was stopped.
                controls.stop()
                chances -= 1
        for number in waiting.values():
            results[number] = _skipped_diff(candidates[number], CANCELLED)
            tell(results[number])
    finally:
        # No wait: a query that will not end must not keep a cancelled run alive.
        pool.shutdown(wait=False, cancel_futures=True)
    return [results[number] for number in range(len(candidates))]


def over_budget(candidates: Sequence[DiffCandidate], budget: DiffBudget) -> dict[int, str]:
    """The candidates (by position) that must be left out, each with its sentence."""
    out: dict[int, str] = {}
    for limit, unit, sizes in (
        (budget.rows, "rows", [candidate.rows for candidate in candidates]),
        (budget.size, "bytes", [candidate.size for candidate in candidates]),
    ):
        if limit is None:
            continue
        spent = 0
        for number in sorted(range(len(candidates)), key=lambda n: (sizes[n] is None, sizes[n])):
            size = sizes[number]
            if number in out or not _is_compared(candidates[number]):
                continue
            if size is None:
                out[number] = (
                    f"Nobody knows how many {unit} it has, and the budget for all data diffs is "
                    f"{limit:,} {unit}."
                )
            elif spent + size > limit:
                out[number] = (
                    f"It has {size:,} {unit}, and of the budget for all data diffs, "
                    f"{limit:,} {unit}, {limit - spent:,} were left."
                )
            else:
                spent += size
    return out


def _is_compared(candidate: DiffCandidate) -> bool:
    return candidate.unavailable is None and bool(candidate.spec.keys)


def _candidate_weight(candidate: DiffCandidate) -> tuple[bool, int]:
    size = candidate.size if candidate.size is not None else candidate.rows
    return size is None, size or 0


def _compare_candidate(
    port: DiffPort, candidate: DiffCandidate, over: str | None, controls: DiffControls
) -> TableDiff:
    if candidate.unavailable is not None:
        return _skipped_diff(candidate, candidate.unavailable)
    if controls.cancelled():
        return _skipped_diff(candidate, CANCELLED)
    again = controls.again
    while True:
        try:
            if over is not None:
                return compare_schema(port, candidate.spec, over)
            return compare_tables(port, candidate.spec, clock=controls.clock)
        except SqlError as error:
            if controls.cancelled():
                return _skipped_diff(candidate, CANCELLED)
            if again is None:
                return _skipped_diff(candidate, f"{FAILED}: {error}")
            again()
            again = None


def _skipped_diff(candidate: DiffCandidate, reason: str) -> TableDiff:
    spec = candidate.spec
    return TableDiff(
        model=spec.model,
        compared=False,
        keys=list(spec.keys),
        skipped_because=reason,
        nothing_to_compare=candidate.unaffected,
    )
