"""R09: what a data diff says, with and without a tolerance."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.decision import TeamLimits, judge_risks_of_data_diffs
from ci_bot.protocol.apply_report import ColumnMatch, TableDiff


def diff(**parts: Any) -> TableDiff:
    values: dict[str, Any] = {
        "model": "stg.orders",
        "compared": True,
        "rows_prod": 100,
        "rows_pr": 100,
        "only_prod": 0,
        "only_pr": 0,
        "matched": 100,
        "full_match": 100,
        "null_keys": 0,
        "duplicate_keys": 0,
        "columns": [ColumnMatch(name="amount", match_rate=1.0)],
    }
    return TableDiff(**values | parts)


def weights(diff_: TableDiff, tolerance: float = 0.0) -> dict[str, str]:
    return {
        r.rule: r.severity
        for r in judge_risks_of_data_diffs([diff_], TeamLimits(diff_tolerance=tolerance))
    }


@pytest.mark.parametrize(
    ("parts", "tolerance", "expected"),
    [
        ({}, 0.0, {}),
        ({"only_prod": 5, "rows_pr": 95}, 0.0, {"R09-rows-lost": "high"}),
        ({"only_prod": 5, "rows_pr": 95}, 0.05, {}),
        ({"only_prod": 6, "rows_pr": 94}, 0.05, {"R09-rows-lost": "high"}),
        ({"only_pr": 5, "rows_pr": 105}, 0.0, {"R09-rows-gained": "medium"}),
        ({"null_keys": 1}, 0.5, {"R09-null-keys": "high"}),
        ({"duplicate_keys": 1}, 0.5, {"R09-duplicate-keys": "high"}),
        (
            {"columns": [ColumnMatch(name="amount", match_rate=0.9)]},
            0.0,
            {"R09-values-differ": "medium"},
        ),
        ({"columns": [ColumnMatch(name="amount", match_rate=0.9)]}, 0.2, {}),
        ({"columns": [ColumnMatch(name="amount", match_rate=None)]}, 0.0, {}),
        ({"rows_prod": 0, "rows_pr": 0, "matched": 0}, 0.0, {"R10-not-checked": "info"}),
        ({"rows_pr": None}, 0.0, {}),
        ({"rows_prod": None}, 0.0, {}),
        ({"compared": False, "skipped_because": "no grain"}, 0.0, {"R10-not-checked": "info"}),
    ],
)
def test_diff(parts: dict[str, Any], tolerance: float, expected: dict[str, str]) -> None:
    assert weights(diff(**parts), tolerance) == expected


def test_diff__of_a_new_model_leaves_nothing_unchecked() -> None:
    new = diff(compared=False, nothing_to_compare=True, skipped_because="The model is new.")
    assert weights(new) == {}
    assert weights(diff(compared=False, skipped_because="It has no grain.")) == {
        "R10-not-checked": "info"
    }
