"""Compares many models side by side, within a budget, until the run is cancelled."""

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
        rows: Rows of both sides together; None if not known.
        size: Bytes of both sides together; None if not known.
        unavailable: Why there is nothing to compare (a new model, a view that was removed). The
            tables are then not read.
        unaffected: Whether the reason is that prod's data cannot differ.
    """

    spec: DiffSpec
    rows: int | None = None
    size: int | None = None
    unavailable: str | None = None
    unaffected: bool = False


@dataclass(frozen=True)
class DiffBudget:
    """How much all comparisons together may read; None is no limit.

    The largest models are left out until the rest fits. Under a limit, a model of unknown size is
    left out, too, because it may be the largest.
    """

    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class DiffControls:
    """The limits of a run, and how it is stopped.

    Args:
        workers: Comparisons at a time; Spark shares its slots among them
            (`spark_port.count_parallel_queries` says how many a session can feed).
        cancelled: Whether the run is cancelled; checked before each model, and several times a
            second while models run.
        stop: Ends the running queries. Called every `poll` seconds after a cancellation, until they
            have ended or `patience` is over.
        clock: Monotonic seconds, for `seconds` of each model.
        poll: Seconds between two checks of `cancelled`.
        patience: Seconds that running queries get to end.
        again: Called before the retry of a model whose comparison failed; None: no retry.
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
        done: Called with each result as it comes, on the caller's thread.

    Returns:
        One result per candidate, in the order of `candidates`. A model that could not be compared
        says why in `skipped_because`; no failure of one model stops the others.
    """
    controls = controls or DiffControls()
    tell = done or (lambda _: None)
    over = list_over_budget(candidates, budget or DiffBudget())
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
                # Again at every check: a query starts its next job after the first one was stopped.
                controls.stop()
                chances -= 1
        for number in waiting.values():
            results[number] = _skipped_diff(candidates[number], CANCELLED)
            tell(results[number])
    finally:
        # No wait: a query that will not end must not keep a cancelled run alive.
        pool.shutdown(wait=False, cancel_futures=True)
    return [results[number] for number in range(len(candidates))]


def list_over_budget(candidates: Sequence[DiffCandidate], budget: DiffBudget) -> dict[int, str]:
    """Lists the candidates (by position) that must be left out, each with its reason."""
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
