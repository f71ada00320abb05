"""Types that the parser works out, with every parser that a supported SQLMesh brings."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.worker.sql.column_changes import list_column_changes
from tests.unit.rules.world import models

QUERY = "SELECT order_id, {} FROM raw.orders"
IN_A_CTE = "WITH a AS (SELECT {} FROM raw.orders) SELECT amount FROM a"


def model(query: str, columns: str = "") -> Any:
    text = f"MODEL (name stg.orders, kind FULL{columns});\n{query}"
    return models({"orders.sql": text})['"spark_catalog"."stg"."orders"']


def retyped(query: str, expression: str, columns: str = "") -> list[tuple[str, str | None]]:
    before, after = model(query.format("amount")), model(query.format(expression), columns)
    return [(change.name, change.after) for change in list_column_changes(before, after)]


@pytest.mark.parametrize(
    "expression",
    ["amount * 2 AS amount", "amount + amount AS amount", "COALESCE(amount, 0) AS amount",
     "IF(order_id > 5, amount, amount * 2) AS amount"],
)  # fmt: skip
@pytest.mark.parametrize("query", [QUERY, IN_A_CTE])
def test_a_computed_decimal__is_no_other_type(query: str, expression: str) -> None:
    assert retyped(query, expression) == []


@pytest.mark.parametrize("query", [QUERY, IN_A_CTE])
def test_a_decimal_that_is_written_without_digits__is_one_of_ten(query: str) -> None:
    assert [name for name, _ in retyped(query, "CAST(amount AS DECIMAL) AS amount")] == ["amount"]


def test_a_decimal_that_is_declared_without_digits__is_one_of_ten() -> None:
    declared = ", columns (order_id BIGINT, amount DECIMAL)"

    assert [name for name, _ in retyped(QUERY, "amount * 2 AS amount", declared)] == ["amount"]
