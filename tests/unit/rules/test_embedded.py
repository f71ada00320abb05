"""Models without a table, whose queries SQLMesh puts into those that read them."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, seen

CTE = """
    MODEL (name mart.sums, kind FULL);
    WITH paid AS (
      SELECT o.customer_id, o.amount FROM raw.orders AS o WHERE o.status = 'paid'
    )
    SELECT p.customer_id, SUM(p.amount) AS total FROM paid AS p GROUP BY p.customer_id
"""
READS = """
    MODEL (name mart.sums, kind FULL);
    SELECT p.customer_id, SUM(p.amount) AS total FROM mart.paid AS p GROUP BY p.customer_id
"""
PAID = """
    MODEL (name mart.paid, kind EMBEDDED);
    SELECT o.customer_id, o.amount FROM raw.orders AS o WHERE o.status = '{status}'
"""


@pytest.mark.parametrize(
    ("status", "expected"), [("paid", {"same-result"}), ("open", {"filter-changed"})]
)
def test_common_table__that_becomes_an_embedded_model(status: str, expected: set[str]) -> None:
    files = {"models/sums.sql": READS, "models/paid.sql": PAID.format(status=status)}
    found = seen(change({"models/sums.sql": CTE}, files))
    told = {item.rule for item in found if item.model == "mart.sums"}
    assert told & {"same-result", "filter-changed", "join-changed"} == expected


def test_embedded_model__that_is_written_out_again() -> None:
    files = {"models/sums.sql": READS, "models/paid.sql": PAID.format(status="paid")}
    found = seen(change(files, {"models/sums.sql": CTE}))
    assert "filter-changed" not in {item.rule for item in found if item.model == "mart.sums"}
