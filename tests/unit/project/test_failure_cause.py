"""One sentence from what SQLMesh prints about a failing unit test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.project.unit_tests import MAX_CAUSE, describe_unit_test_failure

ONE_VALUE = """\
Data mismatch (exp: expected, act: actual)

    n
  exp act
0   2   1
"""
LONG_NAME = """\
Data mismatch (exp: expected, act: actual)

   total_revenue
             exp    act
12          15.0   14.5
"""
SEVERAL = """\
Data mismatch (exp: expected, act: actual)

          c                              d                          n
        exp       act                  exp                  act   exp act
0  Old York  New York  2024-01-01 00:00:00  2024-01-02 00:00:00  None   3
"""
EMPTY_CELLS = """\
Data mismatch (exp: expected, act: actual)

      a         b
    exp  act  exp  act
0   NaN  NaN  5.0  2.0
10  1.0  7.0  NaN  NaN
"""
ROWS = """\
Data mismatch (rows are different)

Missing rows:

    id   country
0    7  New York
11   8        DE

Unexpected rows:

   id country
0   9    None
"""
COLUMNS = """\
Failed to run test:
Detected unknown column(s)

Expected column(s): id, country
Unknown column(s): kountry
"""


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ONE_VALUE, "`n`: expected 2, actual 1"),
        (LONG_NAME, "`total_revenue`: expected 15, actual 14.5"),
        (SEVERAL, "`c`: expected Old York, actual New York, and 2 more"),
        (EMPTY_CELLS, "`b`: expected 5, actual 2, and 1 more"),
        (
            ROWS,
            "the row `id` 7, `country` New York is missing, and 1 more like it; "
            "the row `id` 9, `country` NULL is not expected",
        ),
        (
            COLUMNS,
            "the test has the unknown column `kountry`; there are `id`, `country`",
        ),
        (
            'Failed to run test at tests/t.yaml:\nNo CTE named "zz" found in model shop.strs',
            'No CTE named "zz" found in model shop.strs',
        ),
        (
            "Failed to create test t (tests/t.yaml)\nFailed to run test at tests/t.yaml:\n"
            "Incomplete test, missing input model 'shop.orders'",
            "Incomplete test, missing input model 'shop.orders'",
        ),
        (
            "Binder Error: column x not found\n\nLINE 1: SELECT x",
            "Binder Error: column x not found",
        ),
        ("Data mismatch (exp: expected, act: actual)", "the expected and the actual values differ"),
        ("Data mismatch (rows are different)", "the number of rows differs"),
        ("Failed to run test:", "Failed to run test:"),
        ("", "it fails"),
    ],
)
def test_cause(message: str, expected: str) -> None:
    assert describe_unit_test_failure(message) == expected


@given(
    st.sampled_from([ONE_VALUE, SEVERAL, ROWS, COLUMNS]),
    st.lists(st.tuples(st.integers(0, 400), st.text(max_size=5)), max_size=6),
)
def test_cause__of_any_text_is_one_short_line(text: str, edits: list[tuple[int, str]]) -> None:
    for place, piece in edits:
        text = text[:place] + piece + text[place + 1 :]

    found = describe_unit_test_failure(text)

    assert found
    assert len(found) <= MAX_CAUSE
