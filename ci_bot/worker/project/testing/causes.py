"""Why a unit test fails, in one sentence, from the message that SQLMesh gives.

SQLMesh prints the tables of pandas, in which numbers and names stand to the right of their columns.
(`sqlmesh.core.test.definition.ModelTest.assert_equal`, `_raise_if_unexpected_columns`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_CAUSE = 500
_VALUES_DIFFER = re.compile(r"Data (?:mismatch|differs) \(exp: expected, act: actual\)")
_ROWS_DIFFER = re.compile(r"Data (?:mismatch|differs) \(rows are different\)")
_UNKNOWN = re.compile(r"^Unknown column\(s\):\s*(.+)$", re.MULTILINE)
_EXPECTED = re.compile(r"^Expected column\(s\):\s*(.+)$", re.MULTILINE)
_WHERE_NOT_WHAT = re.compile(r"^Failed to (?:run|create) test\b.*$", re.MULTILINE)
_SIDE = re.compile(r"\b(?:exp|act)\b")
_WHOLE_NUMBER = re.compile(r"-?\d+\.0+")
_TITLES = {"Missing rows:": "is missing", "Unexpected rows:": "is not expected"}
_COLUMNS_SHOWN = 6


def cause(message: str) -> str:
    """What went wrong: the first value, row or column, and how many more there are."""
    return (_of_values(message) or _of_rows(message) or _of_columns(message) or _first(message))[
        :MAX_CAUSE
    ]


def _first(message: str) -> str:
    """The first line that says what, not where."""
    rest = _WHERE_NOT_WHAT.sub("", message).strip() or message.strip()
    return next((line.strip() for line in rest.splitlines() if line.strip()), "it fails")


def _of_columns(message: str) -> str | None:
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return None
    named = _list(unknown.group(1))
    known = _EXPECTED.search(message)
    many = "," in unknown.group(1)
    text = f"the test has the unknown {'columns' if many else 'column'} {named}"
    return f"{text}; there are {_list(known.group(1))}" if known else text


def _list(names: str) -> str:
    every = [name.strip() for name in names.split(",")]
    shown = ", ".join(f"`{name}`" for name in every[:_COLUMNS_SHOWN])
    rest = len(every) - _COLUMNS_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def _of_values(message: str) -> str | None:
    if not _VALUES_DIFFER.search(message):
        return None
    lines = _table(message.splitlines(), 1)
    differences = list(_differences(lines)) if len(lines) > 2 else []  # noqa: PLR2004 - 2 headers
    if not differences:
        return "the expected and the actual values differ"
    column, expected, actual = differences[0]
    more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
    return f"`{column}`: expected {expected}, actual {actual}{more}"


def _differences(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Column, expected and actual value of each cell; equal cells stand as NaN on both sides."""
    names, sides, *rows = lines
    edges = [found.end() for found in _SIDE.finditer(sides)]
    margin = _margin(rows)
    for row in rows:
        for left in range(0, len(edges) - 1, 2):
            start = edges[left - 1] if left else margin
            column = names[start : edges[left]].strip()
            expected = _shown(row[start : edges[left]])
            actual = _shown(row[edges[left] : edges[left + 1]])
            if column and expected != actual:
                yield column, expected, actual


def _margin(rows: Sequence[str]) -> int:
    """The width of the row numbers at the left."""
    return max((len(row.split(maxsplit=1)[0]) for row in rows if row.strip()), default=0)


def _shown(cell: str) -> str:
    text = cell.strip()
    if text in ("NaN", "None", "NaT", "<NA>"):
        return "NULL"
    # Whole numbers are shown as decimals where another cell of the column is empty.
    return text.partition(".")[0] if _WHOLE_NUMBER.fullmatch(text) else text


@dataclass(frozen=True)
class _Rows:
    """The rows below one title."""

    fate: str
    first: str
    count: int


def _of_rows(message: str) -> str | None:
    if not _ROWS_DIFFER.search(message):
        return None
    lines = message.splitlines()
    found = [
        rows
        for number, line in enumerate(lines)
        if (fate := _TITLES.get(line.strip())) and (rows := _rows(_table(lines, number + 1), fate))
    ]
    if not found:
        return "the number of rows differs"
    return "; ".join(
        f"the row {rows.first} {rows.fate}"
        + (f", and {rows.count - 1} more like it" if rows.count > 1 else "")
        for rows in found
    )


def _rows(lines: Sequence[str], fate: str) -> _Rows | None:
    if len(lines) < 2:  # noqa: PLR2004 - a header and a row
        return None
    header, first = lines[0], lines[1]
    edges = [found.end() for found in re.finditer(r"\S+", header)]
    starts = [_margin(lines[1:]), *edges]
    cells = [
        f"`{header[start:end].strip()}` {_shown(first[start:end])}"
        for start, end in zip(starts, edges, strict=False)
    ]
    shown = ", ".join(cells[:_COLUMNS_SHOWN])
    return _Rows(fate, shown, len(lines) - 1)


def _table(lines: Sequence[str], start: int) -> list[str]:
    """The lines of the table that begins at or after `start`; a blank line ends it."""
    found: list[str] = []
    for line in lines[start:]:
        if line.strip():
            # A wide table goes on in further blocks; the first has what a sentence needs.
            found.append(line.removesuffix("\\"))
        elif found:
            break
    return found
