"""Compares the tables of models in prod and in the PR environment: one, or many within a budget.

Many are compared side by side, until the budget is used up or the run is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ci_bot.protocol.apply_report import ColumnMatch, DiffWindow, Profile, TableDiff
from ci_bot.redaction import shorten_redacted
from ci_bot.worker.data_diff import column_comparison
from ci_bot.worker.data_diff import spec as windows
from ci_bot.worker.data_diff.column_comparison import (
    DiffColumnLayout,
    DiffColumnPair,
    lay_out_diff_columns,
)
from ci_bot.worker.data_diff.query import (
    COUNTS,
    DiffQuery,
    build_count_query_of_diff,
    build_diff_query,
    quote_name_of_diffed_table,
)
from ci_bot.worker.data_diff.spec import (
    FEW_BYTES,
    DiffedSparkType,
    DiffedTable,
    DiffPort,
    DiffQueryError,
    DiffSpec,
)
from ci_bot.worker.runtime import quote_spark_identifier

TimeSource = Callable[[], float]
# Characters of a sentence that lists columns; the contract allows 4,000.
_LINE = 1_000


def diff_tables(
    spark_sql: DiffPort, spec: DiffSpec, *, clock: TimeSource | None = None
) -> TableDiff:
    """Diffs one model, in one query over both tables.

    Args:
        clock: Monotonic seconds; without it `seconds` is null.

    Returns:
        Counts and rates. `compared` is False, with the reason, if no rows could be paired.
        If a key is on more than `spec.rows_per_key` rows of a side, the counts are there and
        `full_match` and the rates are null, with the reason. A rate over zero rows is null.

    Raises:
        DiffQueryError: Spark could not answer.
    """
    began = clock() if clock else 0.0
    found = _diff_tables_of_model(spark_sql, spec)
    if clock:
        return found.model_copy(update={"seconds": max(0.0, clock() - began)})
    return found


def diff_schemas(spark_sql: DiffPort, spec: DiffSpec, reason: str) -> TableDiff:
    """Compares the columns of both sides without reading data; `reason` says why there is no more.

    Raises:
        DiffQueryError: Spark could not answer.
    """
    with _analyse_diffed_tables(spark_sql, spec, few=False) as (prod, pr):
        layout = lay_out_diff_columns(prod.columns, pr.columns, spec.keys, spec.skip_columns)
    return TableDiff(
        model=spec.model,
        keys=_list_shown_diff_keys(spec, layout),
        schema_=layout.schema,
        compared=False,
        skipped_because=reason,
    )


def _diff_tables_of_model(port: DiffPort, spec: DiffSpec) -> TableDiff:
    if spec.few:
        # If Spark refuses the flattened plans, the ordinary way below works or gives the reason.
        with suppress(DiffQueryError), _analyse_diffed_tables(port, spec, few=True) as (prod, pr):
            if _are_diffed_tables_small(prod, pr):
                return _run_diff_query(port, spec, prod, pr, few=True)
    with _analyse_diffed_tables(port, spec, few=False) as (prod, pr):
        return _run_diff_query(port, spec, prod, pr, few=False)


@contextmanager
def _analyse_diffed_tables(
    port: DiffPort, spec: DiffSpec, *, few: bool
) -> Iterator[tuple[DiffedTable, DiffedTable]]:
    with (
        port.open_table(quote_name_of_diffed_table(spec.prod), few=few) as prod,
        port.open_table(quote_name_of_diffed_table(spec.pr), few=few) as pr,
    ):
        yield prod, pr


def _are_diffed_tables_small(*tables: DiffedTable) -> bool:
    sizes = [table.size() for table in tables]
    return all(size is not None for size in sizes) and sum(filter(None, sizes)) <= FEW_BYTES


def _run_diff_query(
    port: DiffPort, spec: DiffSpec, prod: DiffedTable, pr: DiffedTable, *, few: bool
) -> TableDiff:
    layout = lay_out_diff_columns(prod.columns, pr.columns, spec.keys, spec.skip_columns)
    window = _find_diffed_window(spec, layout)
    reason = layout.impossible or window.impossible
    if reason:
        # Rows that cannot be paired can still be counted.
        counted = None if window.impossible else _count_diffed_rows(port, prod, pr, window, few=few)
        return TableDiff(
            model=spec.model,
            keys=_list_shown_diff_keys(spec, layout),
            schema_=layout.schema,
            compared=False,
            window=window.part,
            window_of=window.whole,
            skipped_because=f"{reason}{_describe_diffed_row_counts(counted)}",
            rows_prod=counted[0] if counted else None,
            rows_pr=counted[1] if counted else None,
        )
    query = build_diff_query(
        layout,
        prod=prod.name,
        pr=pr.name,
        conditions=window.conditions,
        decimals=spec.decimals,
        rows_per_key=spec.rows_per_key,
        distinct=spec.distinct,
    )
    if "${" in query.sql:
        # Spark replaces ${...} in every statement, and quoting does not stop it.
        raise DiffQueryError("A name in the tables holds ${, which Spark would replace.")
    (answer,) = port.query_rows(query.sql, few=few)
    return TableDiff.model_validate(
        {
            "model": spec.model,
            "keys": _list_shown_diff_keys(spec, layout),
            "schema_": layout.schema,
            "compared": True,
            "window": window.part,
            "window_of": window.whole,
            "complete": window.complete,
            **_read_diff_counts(query, answer, spec, layout),
        }
    )


def _count_diffed_rows(
    port: DiffPort, prod: DiffedTable, pr: DiffedTable, window: _DiffedWindow, *, few: bool
) -> tuple[int, int] | None:
    """Counts the rows of prod and of the environment in the window; None if that is not safe."""
    sql = build_count_query_of_diff(prod.name, pr.name, window.conditions)
    if "${" in sql:
        return None  # Spark would replace it
    ((rows_prod, rows_pr),) = port.query_rows(sql, few=few)
    return int(rows_prod), int(rows_pr)


def _describe_diffed_row_counts(counted: tuple[int, int] | None) -> str:
    if counted is None:
        return ""
    return f" Prod has {counted[0]:,} rows of it, and this has {counted[1]:,}."


def _list_shown_diff_keys(spec: DiffSpec, layout: DiffColumnLayout) -> list[str]:
    return [key.shown_name for key in layout.keys] or list(spec.keys)


@dataclass(frozen=True)
class _DiffedWindow:
    """The range that is compared, prod's range, and the condition on each side."""

    part: DiffWindow | None = None
    whole: DiffWindow | None = None
    conditions: tuple[str | None, str | None] = (None, None)
    impossible: str | None = None
    complete: bool = False


def _find_diffed_window(spec: DiffSpec, layout: DiffColumnLayout) -> _DiffedWindow:
    if spec.window is None:
        return _DiffedWindow(complete=True)
    name, form = spec.window.column, spec.window.format
    whole = windows.find_covering_diff_window(name, spec.window.prod)
    common = windows.intersect_diff_intervals(spec.window.prod, spec.window.pr)
    column = layout.find_column(name)
    if not common:
        return _DiffedWindow(
            whole=whole, impossible="Prod and the PR environment have no interval in common."
        )
    if column is None:
        return _DiffedWindow(
            whole=whole, impossible=f"The time column {name} is not on both sides."
        )
    old = windows.render_diff_interval_condition(
        f"src.{quote_spark_identifier(column.prod)}", column.prod_type, common, form
    )
    new = windows.render_diff_interval_condition(
        f"src.{quote_spark_identifier(column.pr)}", column.pr_type, common, form
    )
    if old is None or new is None:
        kinds = " and ".join(dict.fromkeys((column.prod_type.ddl_text, column.pr_type.ddl_text)))
        return _DiffedWindow(
            whole=whole, impossible=f"The time column {name} is of type {kinds}, which is no time."
        )
    # Compared as intervals, because there may be gaps between the first and the last.
    complete = common == windows.merge_diff_intervals(spec.window.prod)
    return _DiffedWindow(
        windows.find_covering_diff_window(name, common), whole, (old, new), complete=complete
    )


def _read_diff_counts(
    query: DiffQuery, answer: tuple[Any, ...], spec: DiffSpec, layout: DiffColumnLayout
) -> dict[str, object]:
    """Reads the fields of the contract from the query's only row."""
    rest = iter(answer)
    numbers = {name: int(next(rest)) for name in COUNTS}
    crowded = numbers.pop("crowded_keys")
    counts: dict[str, object] = {**numbers}
    agreed = {column: int(next(rest)) for column in query.columns}
    # If a key is on too many rows, only some of them are in the aggregates.
    profiles = {} if crowded else {c: _read_diff_profiles(c, rest, query) for c in query.columns}
    pairs = 0 if crowded else numbers["matched"]
    counts["columns"] = [
        _match_diffed_column(
            column, agreed.get(column) if pairs else None, pairs, profiles.get(column)
        )
        for column in layout.value_columns
    ]
    if crowded:
        counts["full_match"] = counts["same"] = None
        keys = "1 key is" if crowded == 1 else f"{crowded:,} keys are"
        counts["skipped_because"] = (
            f"Columns were not compared: {keys} on more than {spec.rows_per_key} rows of one side, "
            "so the key does not say which rows belong together."
        )
    elif layout.unknown_columns:
        counts["full_match"] = counts["same"] = None
        names = ", ".join(
            f"{c.shown_name} ({c.prod_type.ddl_text})" for c in layout.unknown_columns
        )
        reason = f"Spark cannot compare these columns: {names}."
        counts["skipped_because"] = shorten_redacted(reason, _LINE)
    return counts


def _read_diff_profiles(
    column: DiffColumnPair, answer: Iterator[Any], query: DiffQuery
) -> tuple[Profile, Profile]:
    """Reads the profiles of prod and of the PR; consumes their part of the answer."""
    kind, distinct = column.kind or DiffedSparkType("void"), query.distinct
    width = len(column_comparison.list_diff_measures(kind, distinct=distinct))
    prod, pr = (
        column_comparison.read_diff_profile(kind, [*islice(answer, width)], distinct=distinct)
        for _ in range(2)
    )
    return prod, pr


def _match_diffed_column(
    column: DiffColumnPair, agreed: int | None, pairs: int, found: tuple[Profile, Profile] | None
) -> ColumnMatch:
    """Makes a column's match rate; adds its profiles only if the sides differ.

    Only then they show how.
    """
    rate = None if agreed is None else agreed / pairs
    prod, pr = found if found and rate != 1.0 else (None, None)
    return ColumnMatch(name=column.shown_name, match_rate=rate, prod=prod, pr=pr)


FAILED = "Spark could not compare it"
CANCELLED = "The run was cancelled before this model was compared."


@dataclass(frozen=True)
class DiffCandidate:
    """A model that could be compared.

    Attributes:
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
    """The most that all comparisons together may read; None means no limit.

    The largest models are left out until the rest fits. Under a limit, a model of unknown size is
    left out, too, because it may be the largest.
    """

    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class DiffControls:
    """The limits of a run, and the ways to stop it.

    Attributes:
        workers: The number of comparisons at a time; Spark shares its slots among them
            (`spark_port.count_parallel_diffs` says how many a session can run).
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


def diff_models(
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
        done: Called with each result as soon as it is there, on the caller's thread.

    Returns:
        One result for each candidate, in the order of `candidates`. If a model could not be
        compared, its `skipped_because` says why; a failure of one model does not stop the others.
    """
    controls = controls or DiffControls()
    tell = done or (lambda _: None)
    over = list_diffs_over_budget(candidates, budget or DiffBudget())
    results: dict[int, TableDiff] = {}

    def compare_numbered(number: int) -> TableDiff:
        return _diff_candidate(port, candidates[number], over.get(number), controls)

    pool = ThreadPoolExecutor(max(1, controls.workers), thread_name_prefix="ci-bot-diff")
    try:
        order = sorted(range(len(candidates)), key=lambda n: _weigh_diff_candidate(candidates[n]))
        waiting = {pool.submit(compare_numbered, number): number for number in order}
        chances = max(1, round(controls.patience / controls.poll))
        while waiting and chances:
            for future in wait(waiting, controls.poll, FIRST_COMPLETED).done:
                number = waiting.pop(future)
                results[number] = future.result()
                tell(results[number])
            if waiting and controls.cancelled():
                # At every check again, because a query starts its next job after the first one was
                # stopped.
                controls.stop()
                chances -= 1
        for number in waiting.values():
            results[number] = _make_skipped_diff(candidates[number], CANCELLED)
            tell(results[number])
    finally:
        # No wait: a query that will not end must not keep a cancelled run alive.
        pool.shutdown(wait=False, cancel_futures=True)
    return [results[number] for number in range(len(candidates))]


def list_diffs_over_budget(
    candidates: Sequence[DiffCandidate], budget: DiffBudget
) -> dict[int, str]:
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
            if number in out or not _is_candidate_diffed(candidates[number]):
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


def _is_candidate_diffed(candidate: DiffCandidate) -> bool:
    return candidate.unavailable is None and bool(candidate.spec.keys)


def _weigh_diff_candidate(candidate: DiffCandidate) -> tuple[bool, int]:
    size = candidate.size if candidate.size is not None else candidate.rows
    return size is None, size or 0


def _diff_candidate(
    port: DiffPort, candidate: DiffCandidate, over: str | None, controls: DiffControls
) -> TableDiff:
    if candidate.unavailable is not None:
        return _make_skipped_diff(candidate, candidate.unavailable)
    if controls.cancelled():
        return _make_skipped_diff(candidate, CANCELLED)
    again = controls.again
    while True:
        try:
            if over is not None:
                return diff_schemas(port, candidate.spec, over)
            return diff_tables(port, candidate.spec, clock=controls.clock)
        except DiffQueryError as error:
            if controls.cancelled():
                return _make_skipped_diff(candidate, CANCELLED)
            if again is None:
                return _make_skipped_diff(candidate, f"{FAILED}: {error}")
            again()
            again = None


def _make_skipped_diff(candidate: DiffCandidate, reason: str) -> TableDiff:
    spec = candidate.spec
    return TableDiff(
        model=spec.model,
        compared=False,
        keys=list(spec.keys),
        skipped_because=reason,
        nothing_to_compare=candidate.unaffected,
    )
