"""What a run of the changed models on generated rows showed, in the forms that readers need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_bot.bot.report.words import and_more, format_count
from ci_bot.protocol.review_inputs import ExecutionExample, ModelExecution
from ci_bot.protocol.review_report import Report

GENERATED = (
    "All values are generated; none comes from a table. DuckDB ran both queries, with constructs "
    "that mean the same in Spark."
)
WITNESS = "As a unit test that passes with this change and fails without it"
NO_WITNESS = "No unit test is made of it:"
# An example that fits into one sentence has at most this many values.
_MOST_VALUES = 4
NULL = "NULL"
# How many models a sentence names.
_NAMED = 5
_SAME_RULE = "same-result"


@dataclass(frozen=True)
class ExampleCellView:
    """A value, and whether the change changed it."""

    text: str
    changed: bool = False


@dataclass(frozen=True)
class ExampleLineView:
    """A row of a result: `before` and `after` if it changes, `both` if it does not."""

    side: str
    cells: tuple[ExampleCellView, ...]


@dataclass(frozen=True)
class ExampleFactView:
    """A value of a generated row, with its column."""

    place: str
    value: str


@dataclass(frozen=True)
class ShortExampleView:
    """An example that fits into a sentence: `column` from `before` to `after`, for `given`.

    Without a column, a row disappears (`after` is None) or is new (`before` is None).
    """

    model: str
    column: str | None
    before: str | None
    after: str | None
    given: tuple[ExampleFactView, ...]


def list_example_views(report: Report) -> list[ModelExecution]:
    """Lists the models for which an example was found."""
    return [one for one in report.executions if one.example is not None]


def list_unproved_models(report: Report) -> list[str]:
    """Returns sentences about the changed models that have neither an example nor a proof."""
    proved = {risk.model for risk in (*report.risks, *report.set_aside) if risk.rule == _SAME_RULE}
    left = [one for one in report.executions if one.example is None and one.model not in proved]
    # Only columns that both versions have can be compared.
    other_columns = {change.model for change in report.changes if change.columns}
    found = []
    for note, is_partial in (("", False), (" in the columns that both versions have", True)):
        alike = [
            one
            for one in left
            if one.result == "alike" and (one.model in other_columns) is is_partial
        ]
        if alike:
            fewest, most = (pick(one.data_sets for one in alike) for pick in (min, max))
            sets = format_count(most, "generated data set")
            sets = sets if fewest == most else f"{fewest} to {sets}"
            found.append(
                f"Not proved to be the same, and not told apart by {sets}{note}: "
                f"{_list_models_of_examples(alike)}."
            )
    by_reason: dict[str, list[ModelExecution]] = {}
    for one in left:
        if one.result != "alike":
            reason = one.reason or "a difference without a small example"
            by_reason.setdefault(reason, []).append(one)
    return found + [
        f"Not tried on generated rows, because of {reason}: {_list_models_of_examples(models)}."
        for reason, models in by_reason.items()
    ]


def _list_models_of_examples(models: list[ModelExecution]) -> str:
    shown = ", ".join(f"`{one.model}`" for one in models[:_NAMED])
    return f"{shown}{and_more(models, _NAMED)}"


def list_lines_of_example_view(example: ExecutionExample) -> Iterator[ExampleLineView]:
    """Yields the rows of both results; rows that belong together follow each other."""
    for pair in example.outputs:
        before, after = pair.before, pair.after
        if before is not None and before == after:
            yield ExampleLineView(
                "both", tuple(ExampleCellView(show_example_value(value)) for value in before)
            )
            continue
        for side, own, other in (("before", before, after), ("after", after, before)):
            if own is not None:
                yield ExampleLineView(
                    side,
                    tuple(
                        ExampleCellView(
                            show_example_value(value), other is None or value != other[place]
                        )
                        for place, value in enumerate(own)
                    ),
                )


def show_example_value(value: str | None) -> str:
    """Returns a value of an example; NULL for None."""
    return NULL if value is None else value


def list_short_example_views(report: Report) -> list[ShortExampleView]:
    """Lists the examples that are short enough for the first screen."""
    return [
        found
        for one in list_example_views(report)
        if one.example is not None
        and (found := _shorten_example_view(one.model, one.example)) is not None
    ]


def _shorten_example_view(model: str, example: ExecutionExample) -> ShortExampleView | None:
    given = tuple(_list_facts_of_example_rows(example))
    changed = [pair for pair in example.outputs if pair.before != pair.after]
    if len(changed) != 1 or not 0 < len(given) <= _MOST_VALUES:
        return None
    if any(len(table.rows) > 1 for table in example.inputs):
        return None
    before, after = changed[0].before, changed[0].after
    if before is None or after is None:
        return ShortExampleView(
            model, None, _render_row_of_example(before), _render_row_of_example(after), given
        )
    places = [place for place, value in enumerate(before) if value != after[place]]
    if len(places) != 1:
        return None
    place = places[0]
    column = example.columns[place]
    return ShortExampleView(
        model, column, show_example_value(before[place]), show_example_value(after[place]), given
    )


def _render_row_of_example(row: Iterable[str | None] | None) -> str | None:
    return None if row is None else ", ".join(map(show_example_value, row))


def _list_facts_of_example_rows(example: ExecutionExample) -> Iterator[ExampleFactView]:
    for table in example.inputs:
        for row in table.rows:
            for name, value in zip(table.columns, row, strict=True):
                place = f"{table.table.rpartition('.')[2]}.{name}"
                yield ExampleFactView(
                    place if len(example.inputs) > 1 else name, show_example_value(value)
                )
