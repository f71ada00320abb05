"""Columns that a forward-only change takes from prod's table: refused, allowed, or not lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.world import change, seen

NAME = '"spark_catalog"."shop"."days"'
DAYS = """
MODEL (name shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day{more}));
SELECT CAST(order_ts AS DATE) AS day, CAST(status AS STRING) AS status{column}
FROM raw.orders WHERE CAST(order_ts AS DATE) BETWEEN @start_ds AND @end_ds
"""
HISTORY = """
MODEL (name shop.days, kind SCD_TYPE_2_BY_TIME (unique_key order_id, updated_at_name loaded_at));
SELECT CAST(order_id AS BIGINT) AS order_id, CAST(loaded_at AS TIMESTAMP) AS loaded_at,
  CAST({status} AS STRING) AS status{column} FROM raw.orders
"""
ONE_MORE = ", CAST(amount AS DECIMAL(10, 2)) AS amount"


def found(before: str, after: str, **more: Any) -> list[tuple[str, str]]:
    """Severity and evidence of the rule's findings."""
    inputs = change({"models/days.sql": before}, {"models/days.sql": after}, **more)
    return [(item.severity, item.evidence) for item in seen(inputs, "forward-only-destructive")]


def days(column: str, more: str = ", forward_only true") -> str:
    return DAYS.format(column=column, more=more)


def test_a_lost_column__is_refused__and_allowed_by_the_input() -> None:
    [(severity, says)] = found(days(ONE_MORE), days(""))
    assert severity == "blocker"
    assert "SQLMesh refuses this plan" in says
    [(severity, says)] = found(days(ONE_MORE), days(""), allowed_destructive=frozenset({NAME}))
    assert severity == "high"
    assert "allowed by the input `allow-destructive`" in says
    assert "refuses" not in says


@pytest.mark.parametrize(
    ("status", "hint"), [("INITCAP(status)", True), ("CAST(LENGTH(status) AS BIGINT)", False)]
)
def test_a_refused_column__of_the_same_type_in_spark__gets_the_cast_that_keeps_it(
    status: str, hint: bool
) -> None:
    before = days("").replace("CAST(status AS STRING)", "status")
    after = before.replace("status AS status", f"{status} AS status")
    [(severity, says)] = found(before, after)
    assert severity == "blocker"
    assert ("a cast to the type of the table keeps the columns" in says) is hint


def test_the_input__names_another_model__and_clears_nothing_here() -> None:
    other = frozenset({'"spark_catalog"."shop"."other"'})
    [(severity, _)] = found(days(ONE_MORE), days(""), allowed_destructive=other)
    assert severity == "blocker"


def test_the_models_own_setting__is_named_before_the_input() -> None:
    warns = ", forward_only true, on_destructive_change warn"
    [(severity, says)] = found(
        days(ONE_MORE, warns), days("", warns), allowed_destructive=frozenset({NAME})
    )
    assert severity == "high"
    assert "on_destructive_change warn" in says


def test_a_forward_only_plan__alters_tables_of_models_that_are_not() -> None:
    assert found(days(ONE_MORE, ""), days("", "")) == []
    [(severity, _)] = found(days(ONE_MORE, ""), days("", ""), forward_only_plan=True)
    assert severity == "blocker"


@pytest.mark.parametrize("kind", ["FULL", "VIEW"])
def test_a_forward_only_plan__of_what_is_computed_whole__loses_no_history(kind: str) -> None:
    text = "MODEL (name shop.days, kind {kind}); SELECT order_id{column} FROM raw.orders"
    before, after = (text.format(kind=kind, column=column) for column in (", status", ""))
    assert found(before, after, forward_only_plan=True) == []


def test_a_history__is_refused_for_any_change__and_loses_nothing_by_it() -> None:
    before = HISTORY.format(status="status", column="")
    after = HISTORY.format(status="UPPER(status)", column="")
    [(severity, says)] = found(before, after)
    assert severity == "blocker"
    assert "another one" in says
    assert found(before, after, allowed_destructive=frozenset({NAME})) == []


def test_a_history__that_does_lose_a_column__says_so_where_it_is_allowed() -> None:
    before = HISTORY.format(status="status", column=ONE_MORE)
    after = HISTORY.format(status="status", column="")
    [(severity, says)] = found(before, after, allowed_destructive=frozenset({NAME}))
    assert severity == "high"
    assert "`amount` are dropped" in says
    assert "valid_from" not in says
