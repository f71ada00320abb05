"""The verdict on the data: one sentence, a row per model, and how each column changed."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.markdown.comments import render_apply_comment
from ci_bot.bot.report.model import sentences
from ci_bot.bot.report.model.sentences import DiffView
from ci_bot.protocol.apply_report import (
    AppliedModel,
    ApplyVerdict,
    ColumnMatch,
    ModelAudit,
    NotCleared,
    Profile,
    SchemaDifference,
)
from ci_bot.protocol.review_report import Weighed
from tests.factories import make_apply, make_context, make_risk, make_table_diff

SAME = {"matched": 100, "full_match": 100, "rows_prod": 100, "rows_pr": 100, "columns": []}
WHOLE: dict[str, Any] = {"complete": True, "window": None, "window_of": None, "same": 100}
NEW = {"compared": False, "nothing_to_compare": True, "skipped_because": "The model is new."}


def column(name: str, rate: float | None = 0.71) -> dict[str, Any]:
    return {"name": name, "match_rate": rate}


def said(**parts: Any) -> str:
    return sentences.describe_main_difference(DiffView(make_table_diff("m.x", **SAME | parts)))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            {"full_match": 71, "columns": [column("late")]},
            "`late` changes in 29 % of the rows of `m.x`; no row is gone or new",
        ),
        (
            {
                "full_match": 71,
                "only_prod": 1,
                "only_pr": 2,
                "columns": [column("a"), column("b"), column("c"), column("d", 1.0)],
            },
            "`a`, `b` and 1 more column change in 29 % of the rows of `m.x`; 1 row is gone, 2 new",
        ),
        (
            {"only_prod": 3, "rows_pr": 97, "matched": 97, "full_match": 97},
            "`m.x`: 3 rows are gone, none is new; all other rows are equal",
        ),
        (
            {"only_pr": 1, "rows_pr": 101},
            "`m.x`: no row is gone, 1 new; all other rows are equal",
        ),
        (
            {"matched": 0, "full_match": 0, "only_prod": 100, "only_pr": 100},
            "No row of `m.x` has a key that `prod` has; 100 rows are gone, 100 new",
        ),
        ({"duplicate_keys": 1}, "1 key of `m.x` is on more than one row"),
        (
            {"duplicate_keys": 2, "null_keys": 1},
            "2 keys of `m.x` are on more than one row, and 1 row has no key",
        ),
        (
            {"schema": SchemaDifference(removed=["a"])},
            "`a` is gone or of another type in `m.x`; all rows are equal in the other columns",
        ),
        (
            {"full_match": None, "columns": [column("g", None)]},
            "The columns of `m.x` could not be compared; no row is gone or new",
        ),
    ],
)
def test_sentence__says_the_one_thing(parts: dict[str, Any], expected: str) -> None:
    assert said(**parts) == expected


def test_changed__a_new_column_is_no_difference() -> None:
    found = make_table_diff(**SAME | WHOLE, schema=SchemaDifference(added=["c"]))
    assert DiffView(found).state == "same"
    assert sentences.describe_changed_columns_of_diff(DiffView(found)) == "new: `c`"
    assert sentences.render_row_bar(DiffView(found)) == "none of 100 rows<br>0 gone, 0 new"


def test_changed__a_small_share_is_not_an_empty_bar() -> None:
    found = make_table_diff(**{**SAME, **WHOLE, "full_match": 99, "columns": [column("a", 0.99)]})
    assert sentences.render_row_bar(DiffView(found)).startswith(
        "`▏░░░░░░░` 1\u00a0%<br>of 100 rows"
    )


def test_changed__says_which_part_was_compared() -> None:
    found = make_table_diff(**SAME)
    assert sentences.describe_changed_columns_of_diff(DiffView(found)) == "compared: 7 of 730 days"


def test_name__a_long_one_takes_two_lines() -> None:
    assert sentences.wrap_model_name_in_view("m.short") == "`m.short`"
    assert sentences.wrap_model_name_in_view("marts.daily_carrier_performance") == (
        "`marts.`<br>`daily_carrier_performance`"
    )
    assert (
        sentences.wrap_model_name_in_view("a_name_without_any_schema_at_all")
        == "`a_name_without_any_schema_at_all`"
    )


@pytest.mark.parametrize(
    ("prod", "pr", "expected"),
    [
        (
            {"nulls": 0, "distinct": 16, "mean": 12.125, "min": "0", "max": "210"},
            {"nulls": 3, "distinct": 17, "mean": 15.25, "min": "0", "max": "1260.50"},
            "mean 12.12 → 15.25 · max 210 → 1,260 · null 0 % → 3 % · about 16 → 17 distinct values",
        ),
        (
            {"nulls": 0, "min": "2024-01-01", "max": "2024-01-31"},
            {"nulls": 0, "min": "2024-01-01", "max": "2024-01-30"},
            "max `2024-01-31` → `2024-01-30`",
        ),
        ({"nulls": 1, "mean": 0.5}, {"nulls": 1, "mean": None}, "mean 0.5 → none"),
        (
            {"nulls": 1, "distinct": 2},
            {"nulls": 1, "distinct": 2},
            "other values, spread as before",
        ),
        ({"nulls": 0, "max": "NaN"}, {"nulls": 0, "max": "1e300"}, "max `NaN` → 1e+300"),
    ],
)
def test_how__names_what_is_different(
    prod: dict[str, Any], pr: dict[str, Any], expected: str
) -> None:
    found = ColumnMatch(name="v", match_rate=0.5, prod=Profile(**prod), pr=Profile(**pr))
    assert sentences.describe_value_change(found, (100, 100)) == expected


def test_audits__are_named_with_what_prod_has() -> None:
    answers: tuple[dict[str, Any], ...] = (
        {"prod_rows": 7},
        {"prod_rows": 0},
        {"prod_rows": 1},
        {"prod_unknown_because": "no such column"},
        {},
    )
    audits = [
        ModelAudit(audit="a", blocking=False, status="failed", failed_rows=7, **answer)
        for answer in answers
    ]
    model = AppliedModel(model="m.x", table="t", intervals=1, batches=1, seconds=1, audits=audits)
    assert sentences.list_failed_audits([model], blocking=False) == [
        "`a` on `m.x`, 7 rows (same in `prod`)",
        "`a` on `m.x`, 7 rows (0 rows in `prod`)",
        "`a` on `m.x`, 7 rows (1 row in `prod`)",
        "`a` on `m.x`, 7 rows (`prod` could not be asked)",
        "`a` on `m.x`, 7 rows",
    ]
    assert sentences.list_failed_audits([model], blocking=True) == []


@pytest.mark.parametrize(
    ("diffs", "heading"),
    [
        ([make_table_diff()], "🟡 Built in `pr_142` · the numbers differ from `prod`"),
        ([make_table_diff(**SAME | WHOLE)], "✅ Built in `pr_142` · the same rows as `prod`"),
        (
            [make_table_diff(**SAME | WHOLE), make_table_diff("m.new", **NEW)],
            "✅ Built in `pr_142` · the same rows as `prod`",
        ),
        (
            [make_table_diff(**SAME)],
            "✅ Built in `pr_142` · the same rows as `prod`, where both were compared",
        ),
        (
            [make_table_diff(**SAME | WHOLE), make_table_diff("m.y", compared=False)],
            "✅ Built in `pr_142` · the same rows as `prod`, where both were compared",
        ),
        ([make_table_diff("m.new", **NEW)], "⚪ Built in `pr_142` · nothing to compare"),
    ],
)
def test_heading__is_the_verdict_on_the_data(diffs: list[Any], heading: str) -> None:
    text = render_apply_comment(make_apply(table_diff=diffs), make_context(phase="applied")).text
    assert f"## {heading} · `analytics`\n" in text


def test_first__is_the_model_that_was_changed_itself() -> None:
    most = make_table_diff("m.reader", **{**SAME, "full_match": 1, "columns": [column("r", 0.01)]})
    self_ = make_table_diff("m.x", **{**SAME, "full_match": 71, "columns": [column("late")]})
    diffs = [most.model_copy(update={"direct": False}), self_.model_copy(update={"direct": True})]
    text = render_apply_comment(make_apply(table_diff=diffs), make_context(phase="applied")).text
    assert "**`late` changes in 29 % of the rows of `m.x`; no row is gone or new.** 1 more" in text


def test_verdict__says_what_is_cleared_what_stands_and_the_decision() -> None:
    told = Weighed(by="data_diff", weight="high", reason="Past results did not change: 0 of 9 rows")
    cleared = make_risk("R06-breaking-rebuild").model_copy(update={"weighed": told})
    stands = NotCleared(rule="R06-breaking-rebuild", model="m.y", why="only a part was compared")
    verdict = ApplyVerdict(decision="review", reasons=["x"], cleared=[cleared], standing=[stands])
    context = make_context(phase="applied", judged="no_go")
    text = render_apply_comment(make_apply(verdict=verdict), context).text
    assert "✅ `R06-breaking-rebuild` on `stg.orders` is cleared. Past results did not" in text
    assert (
        "does not clear it:\n\n- `m.y`: only a part was compared. (`R06-breaking-rebuild`)" in text
    )
    assert "**Decision with this data: 🟡 Review** (the review said 🔴 No-Go)" in text


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (
            "R06-breaking-rebuild on m.x: all is built",
            "`m.x`: all is built (`R06-breaking-rebuild`)",
        ),
        ("interval-limit: 9 intervals", "9 intervals (`interval-limit`)"),
        ("2 more of the same weight.", "2 more of the same weight."),
    ],
)
def test_verdict__names_the_rule_behind_its_reason(reason: str, shown: str) -> None:
    verdict = ApplyVerdict(decision="review", reasons=[reason])
    text = render_apply_comment(make_apply(verdict=verdict), make_context(phase="applied")).text
    assert f"**Decision with this data: 🟡 Review**: {shown}\n" in text
