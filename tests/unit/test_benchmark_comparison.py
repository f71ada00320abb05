"""What benchmarks say of two sides, and how it gets into docs/numbers.md."""

from __future__ import annotations

import pytest

from tests.benchmarks.comparison import COMPARISONS, Comparison, format_row
from tests.benchmarks.timed_command import Taken
from tests.benchmarks.write_numbers import PAGE, replace_table


def _row(ours: list[float], theirs: list[float]) -> Comparison:
    return Comparison(
        "review",
        "plan",
        0.5,
        [Taken(wall, wall / 2) for wall in ours],
        [Taken(wall, wall) for wall in theirs],
    )


def test_row__has_the_ratio_of_medians_and_the_spread_of_turns() -> None:
    row = _row([1.0, 2.0, 9.0], [4.0, 4.0, 10.0])

    assert row.wall.ratio == 0.5
    assert (row.wall.least, row.wall.most) == (0.25, 0.9)
    assert row.processor.ratio == 0.25
    assert "| **0.50** | 0.25 to 0.90 | 0.25 | 2.0 against 4.0 | 3," in format_row(row)


def test_row__of_a_side_that_is_missing_in_a_turn__is_none() -> None:
    with pytest.raises(ValueError, match="2 turns, and 1"):
        _row([1.0, 2.0], [4.0])


def test_rows__are_the_same_when_read_again() -> None:
    rows = [_row([1.0], [2.0])]

    assert COMPARISONS.validate_json(COMPARISONS.dump_json(rows)) == rows


def test_page__has_the_marks_that_the_table_goes_between() -> None:
    page = replace_table(PAGE.read_text("utf-8"), "| a table |")

    assert "\n\n| a table |\n\n" in page
    assert "| a table |" not in replace_table(page, "| another |")


def test_page__without_marks__is_refused() -> None:
    with pytest.raises(ValueError, match="no <!-- measured"):
        replace_table("text", "| a table |")
