"""The expectations of a unit test, and those that another version of the test no longer checks.

A test compares the rows of a query, or of a CTE in it, with written rows: all of them, in any
order, and in every column of the model. A column that is left out is NULL. With `partial` the test
compares only columns that at least one row names. Two spellings of the same number or date are
equal. (https://sqlmesh.readthedocs.io/en/stable/concepts/tests/)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from ci_bot.protocol.rules import quote_names
from ci_bot.yaml_reader import read_yaml_or_none

ExpectedRow = Mapping[str, str | None]
ReadText = Callable[[str], str | None]


@dataclass(frozen=True)
class ExpectedTable:
    """Rows that a test feeds or expects.

    Attributes:
        rows: the values in one spelling, by column in lower case; None if the test does not write
            rows (a query, another format).
        text: the written form, which is compared if there are no rows.
        partial: only columns that at least one row names are compared.
    """

    rows: tuple[ExpectedRow, ...] | None
    text: str
    partial: bool = False

    @property
    def column_names(self) -> set[str]:
        return {column for row in self.rows or () for column in row}


@dataclass(frozen=True)
class UnitTestCase:
    """One unit test: the model's input, and the expected result."""

    model: str
    inputs: Mapping[str, ExpectedTable]
    outputs: Mapping[str, ExpectedTable]
    variables: Mapping[str, str | None]


@dataclass(frozen=True)
class ModelShape:
    """The columns and CTEs of a model and of the models above it, after the change.

    Attributes:
        columns, ctes, upstream: None if they are unknown.
        same: The model did not change, so other values come from the test's new rows.
    """

    columns: Collection[str] | None = None
    ctes: Collection[str] | None = None
    upstream: Mapping[str, Collection[str]] | None = None
    same: bool = False


QUERY = "query"
_TIMES = frozenset({"start", "end", "execution_time", "latest"})


def read_case_of_test_file(body: Mapping[str, Any], read: ReadText) -> UnitTestCase:
    """Reads a test case from its file.

    Args:
        read: Reads another file of the project, by the path that the test names.
    """
    outputs = _read_expectation_mapping(body.get("outputs"))
    partial = bool(outputs.get("partial"))
    expected = {
        name: _read_expected_table(value, read, partial=partial)
        for name, value in _read_expectation_mapping(outputs.get("ctes")).items()
    }
    expected = {f"CTE {name.lower()}": table for name, table in expected.items()}
    if outputs.get(QUERY) is not None:
        expected[QUERY] = _read_expected_table(outputs[QUERY], read, partial=partial)
    return UnitTestCase(
        model=str(body.get("model") or "").lower(),
        inputs={
            name.lower(): _read_expected_table(value, read)
            for name, value in _read_expectation_mapping(body.get("inputs")).items()
        },
        outputs=expected,
        variables={
            name.lower(): spell_value_of_test_file(value)
            for name, value in _read_expectation_mapping(body.get("vars")).items()
        },
    )


def _read_expectation_mapping(value: Any) -> Mapping[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _read_expected_table(value: Any, read: ReadText, *, partial: bool = False) -> ExpectedTable:
    whole = _read_expectation_mapping(value) if isinstance(value, dict) else {"rows": value}
    partial = partial or bool(whole.get("partial"))
    text = repr(sorted((key, repr(item)) for key, item in whole.items() if key != "partial"))
    rows = _read_expected_rows(whole, read)
    return ExpectedTable(
        None if rows is None else tuple(map(_read_expected_row, rows)), text, partial
    )


def _read_expected_rows(
    whole: Mapping[str, Any], read: ReadText
) -> Sequence[Mapping[str, Any]] | None:
    rows, path = whole.get("rows"), whole.get("path")
    if path is not None:
        content = read(str(path))
        if content is None:
            return None
        loaded = content if whole.get("format") == "csv" else read_yaml_or_none(content)
        rows = loaded.get("rows") if isinstance(loaded, dict) else loaded
    if whole.get("format") == "csv":
        plain = isinstance(rows, str) and not whole.get("csv_settings")
        rows = list(csv.DictReader(io.StringIO(str(rows)))) if plain else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    return rows


def _read_expected_row(row: Mapping[str, Any]) -> ExpectedRow:
    return {str(column).lower(): spell_value_of_test_file(value) for column, value in row.items()}


def spell_value_of_test_file(value: Any) -> str | None:
    """Writes equal values in one spelling; None for NULL and for an empty text."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text.removesuffix(" 00:00:00")
    # A number with a leading zero is a code, such as a postal code.
    digits = text.lstrip("+-")
    if not number.is_finite() or (digits[:1] == "0" and digits[1:2].isdigit()):
        return text
    return format(number.normalize(), "f")


def list_checks_lost_from_test_file(
    old: UnitTestCase, new: UnitTestCase, shape: ModelShape
) -> list[str]:
    """Lists checks of `old` that `new` lacks, each in words; empty if `new` is as strict.

    A column or CTE that the model no longer has need not be checked.
    """
    found: list[str] = []
    more = _count_added_input(old, new)
    for part, table in old.outputs.items():
        now = new.outputs.get(part)
        if now is not None:
            kept = shape.columns if part == QUERY else None
            found += _describe_lost_expectations(table, now, kept, more=more, same=shape.same)
        elif part == QUERY or shape.ctes is None or part.removeprefix("CTE ") in shape.ctes:
            found.append(
                f"it no longer checks the {part}" if part == QUERY else _describe_missing_cte(part)
            )
    if not found:
        found += _describe_lost_input(old, new, shape)
    return found + _describe_other_variables(old.variables, new.variables)


def _describe_missing_cte(part: str) -> str:
    return f"it no longer checks the CTE `{part.removeprefix('CTE ')}`"


def _count_added_input(old: UnitTestCase, new: UnitTestCase) -> int:
    """Counts the added input rows; 0 if an old input row is gone."""
    more = 0
    for model, table in old.inputs.items():
        now = new.inputs.get(model)
        if now is None or table.rows is None or now.rows is None:
            return 0
        left, unused = _list_unmatched_rows(table.rows, now.rows, table.column_names)
        if left:
            return 0
        more += len(unused)
    return more


def _describe_lost_expectations(
    old: ExpectedTable, new: ExpectedTable, kept: Collection[str] | None, *, more: int, same: bool
) -> list[str]:
    if old.rows is None or new.rows is None:
        return [] if old.text == new.text else ["it expects another result"]
    found = []
    if new.partial and not old.partial:
        found.append("it compares some columns only (partial)")
    gone = {
        column
        for column in old.column_names - new.column_names
        if any(row.get(column) is not None for row in old.rows) or new.partial
    }
    gone = {column for column in gone if kept is None or column in kept}
    if gone:
        found.append(f"it expects no value in {quote_names(gone)} any more")
    compared = {
        column
        for column in old.column_names - gone
        if kept is None or column in kept or column in new.column_names
    }
    left, unused = _list_unmatched_rows(old.rows, new.rows, compared)
    changed = [
        pair for row in left if (pair := _find_nearest_row(row, unused, compared)) is not None
    ]
    # If the model did not change, other values come from the new input rows.
    if changed and not (more and same):
        column, before, after = changed[0]
        others = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        rows = f", with {more} input {'row' if more == 1 else 'rows'} more" if more else ""
        found.append(
            f"it expects other values: `{column}` {after} instead of {before}{others}{rows}"
        )
    fewer = len(left) - len(changed)
    if fewer:
        found.append(f"it expects {fewer} {'row' if fewer == 1 else 'rows'} less")
    return found


def _list_unmatched_rows(
    old: Sequence[ExpectedRow], new: Sequence[ExpectedRow], compared: Collection[str]
) -> tuple[list[ExpectedRow], list[ExpectedRow]]:
    """Lists rows of `old` and of `new` that have no match; each row matches once."""
    unused = list(new)
    left = []
    # Rows with the most values choose first; the others match more rows.
    for row in sorted(old, key=lambda item: -len(item)):
        twin = next((other for other in unused if _does_cover_row(other, row, compared)), None)
        if twin is None:
            left.append(row)
        else:
            unused.remove(twin)
    return left, unused


def _does_cover_row(new: ExpectedRow, old: ExpectedRow, compared: Collection[str]) -> bool:
    return all(new.get(column) == value for column, value in old.items() if column in compared)


def _find_nearest_row(
    row: ExpectedRow, unused: list[ExpectedRow], compared: Collection[str]
) -> tuple[str, str, str] | None:
    """Finds the value in which the most similar unused row differs; that row then counts as used.

    Returns:
        (column, old value, new value); None if there is no such row or value.
    """

    def count_equal_values(other: ExpectedRow) -> int:
        return sum(other.get(column) == row[column] for column in row if column in compared)

    nearest = max(unused, key=count_equal_values, default=None)
    if nearest is None:
        return None
    unused.remove(nearest)
    for column in sorted(row):
        if column in compared and nearest.get(column) != row[column]:
            return column, row[column] or "NULL", nearest.get(column) or "NULL"
    return None


def _describe_lost_input(old: UnitTestCase, new: UnitTestCase, shape: ModelShape) -> list[str]:
    """Describes input rows that are gone, so the test no longer covers them."""
    found = []
    for model, table in old.inputs.items():
        now = new.inputs.get(model)
        if now is None or table.rows is None or now.rows is None:
            continue  # the model is no longer read; or the input is a query with unknown rows
        known = _list_expected_columns(model, shape)
        compared = {
            column
            for column in table.column_names
            if column in now.column_names or (known is not None and column in known)
        }
        left, _ = _list_unmatched_rows(table.rows, now.rows, compared)
        if left:
            found.append(
                f"it no longer feeds {'a row' if len(left) == 1 else f'{len(left)} rows'} "
                f"of `{model}`"
            )
    return found


def _list_expected_columns(model: str, shape: ModelShape) -> Collection[str] | None:
    for name, columns in (shape.upstream or {}).items():
        if name == model or name.endswith(f".{model}"):
            return columns
    return None


def list_new_variables(old: UnitTestCase, new: UnitTestCase) -> list[tuple[str, str | None]]:
    """Lists variables that only `new` sets, without the times, which fix the test to a date."""
    return [
        (name, value)
        for name, value in new.variables.items()
        if name not in old.variables and name not in _TIMES
    ]


def _describe_other_variables(
    old: Mapping[str, str | None], new: Mapping[str, str | None]
) -> list[str]:
    found = []
    for name, value in old.items():
        if name not in new:
            clock = name == "execution_time"
            follows = ", so the test follows the clock" if clock else ""
            found.append(f"the variable `{name}` is not set any more{follows}")
        elif new[name] != value:
            found.append(f"the variable `{name}` is {new[name]} instead of {value}")
    return found
