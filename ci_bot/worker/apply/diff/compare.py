"""Compares one model's table in prod with the one in the PR environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ci_bot.contracts.documents.apply import ColumnMatch, DiffWindow, TableDiff
from ci_bot.secrets.cutting import shortened
from ci_bot.worker.apply.diff import window as windows
from ci_bot.worker.apply.diff.layout import Layout, lay_out
from ci_bot.worker.apply.diff.query import COUNTS, DiffQuery, build, table_name
from ci_bot.worker.apply.diff.spec import DiffPort, DiffSpec, SqlError
from ci_bot.worker.warehouse.catalog import quoted

TimeSource = Callable[[], float]
_LINE = 1_000
"""Characters of a sentence that lists columns; the contract allows 4,000."""


def compare(spark_sql: DiffPort, spec: DiffSpec, *, clock: TimeSource | None = None) -> TableDiff:
    """Diffs one model, in one query over both tables.

    Args:
        clock: Monotonic seconds; without it `seconds` is null.

    Returns:
        Counts and rates. `compared` is False, with the reason, where no rows could be paired.
        Where a key is on more than `spec.rows_per_key` rows of a side, the counts are there and
        `full_match` and the rates are null, with the reason. A rate over zero rows is null.

    Raises:
        SqlError: Spark could not answer.
    """
    began = clock() if clock else 0.0
    found = _compare(spark_sql, spec)
    if clock:
        return found.model_copy(update={"seconds": max(0.0, clock() - began)})
    return found


def compare_schema(spark_sql: DiffPort, spec: DiffSpec, reason: str) -> TableDiff:
    """What can be said without reading data: the columns of both sides, and why there is no more.

    Raises:
        SqlError: Spark could not answer.
    """
    _, _, layout = _laid_out(spark_sql, spec)
    return TableDiff(**_shown(spec, layout), compared=False, skipped_because=reason)


def _compare(port: DiffPort, spec: DiffSpec) -> TableDiff:
    prod, pr, layout = _laid_out(port, spec)
    window = _window(spec, layout)
    reason = layout.impossible or window.impossible
    if reason:
        return TableDiff(
            **_shown(spec, layout), compared=False, window_of=window.whole, skipped_because=reason
        )
    query = build(
        layout,
        prod=prod,
        pr=pr,
        conditions=window.conditions,
        decimals=spec.decimals,
        rows_per_key=spec.rows_per_key,
    )
    if "${" in query.sql:
        # Spark replaces ${...} in every statement, and quoting does not stop it.
        raise SqlError("A name in the tables holds ${, which Spark would replace.")
    (answer,) = port.rows(query.sql)
    return TableDiff(
        **_shown(spec, layout),
        compared=True,
        window=window.part,
        window_of=window.whole,
        **_counts(query, answer, spec, layout),
    )


def _laid_out(port: DiffPort, spec: DiffSpec) -> tuple[str, str, Layout]:
    prod, pr = table_name(spec.prod), table_name(spec.pr)
    return prod, pr, lay_out(port.columns(prod), port.columns(pr), spec.keys, spec.skip_columns)


def _shown(spec: DiffSpec, layout: Layout) -> dict[str, Any]:
    keys = [key.name for key in layout.keys] or list(spec.keys)
    return {"model": spec.model, "keys": keys, "schema_": layout.schema}


@dataclass(frozen=True)
class _Window:
    """The range that is compared, prod's range, and the condition on each side."""

    part: DiffWindow | None = None
    whole: DiffWindow | None = None
    conditions: tuple[str | None, str | None] = (None, None)
    impossible: str | None = None


def _window(spec: DiffSpec, layout: Layout) -> _Window:
    if spec.window is None:
        return _Window()
    name, form = spec.window.column, spec.window.format
    whole = windows.span(name, spec.window.prod)
    common = windows.shared(spec.window.prod, spec.window.pr)
    column = layout.named(name)
    if not common:
        return _Window(
            whole=whole, impossible="Prod and the PR environment have no interval in common."
        )
    if column is None:
        return _Window(whole=whole, impossible=f"The time column {name} is not on both sides.")
    old = windows.condition(f"src.{quoted(column.prod)}", column.prod_type, common, form)
    new = windows.condition(f"src.{quoted(column.pr)}", column.pr_type, common, form)
    if old is None or new is None:
        kinds = " and ".join(dict.fromkeys((column.prod_type.ddl, column.pr_type.ddl)))
        return _Window(
            whole=whole, impossible=f"The time column {name} is of type {kinds}, which is no time."
        )
    return _Window(windows.span(name, common), whole, (old, new))


def _counts(
    query: DiffQuery, answer: tuple[Any, ...], spec: DiffSpec, layout: Layout
) -> dict[str, Any]:
    """The fields of the contract, from the query's only row."""
    numbers = [int(value) for value in answer]
    counts: dict[str, Any] = dict(zip(COUNTS, numbers, strict=False))
    crowded = counts.pop("crowded_keys")
    agreed = dict(zip(query.columns, numbers[len(COUNTS) :], strict=True))
    pairs = 0 if crowded else counts["matched"]
    counts["columns"] = [
        ColumnMatch(
            name=column.name,
            match_rate=agreed[column] / pairs if pairs and column in agreed else None,
        )
        for column in layout.values
    ]
    if crowded:
        counts["full_match"] = None
        keys = "1 key is" if crowded == 1 else f"{crowded:,} keys are"
        counts["skipped_because"] = (
            f"Columns were not compared: {keys} on more than {spec.rows_per_key} rows of one side, "
            "so the grain does not say which rows belong together."
        )
    elif layout.unknown:
        counts["full_match"] = None
        names = ", ".join(f"{c.name} ({c.prod_type.ddl})" for c in layout.unknown)
        told = f"Spark cannot compare these columns: {names}."
        counts["skipped_because"] = shortened(told, _LINE)
    return counts
