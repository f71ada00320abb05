"""Metrics: no model holds them, so only their files say what changes."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from tests.unit.rules.world import files, seen

RULE = "metric-changed"
PATH = "metrics/orders.sql"
OTHERS = "METRIC (name total, expression SUM(mart.orders.amount));\n\n"
BUYERS = "METRIC (name buyers, owner ann, expression COUNT(DISTINCT mart.orders.customer_id))"


def subjects(before: str, after: str | None) -> list[str | None]:
    found = seen(files({PATH: before}, {PATH: after}), RULE)
    assert {one.severity for one in found} <= {"high"}
    return [one.subject for one in found]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("COUNT(DISTINCT mart.orders.customer_id)", "COUNT(mart.orders.customer_id)"),
        ("mart.orders.customer_id", "mart.orders.order_id"),
        ("COUNT(DISTINCT mart.orders.customer_id)", "total / 2"),
        ("name buyers", "name customers"),
    ],
)
def test_metric__that_gives_something_else_is_found(old: str, new: str) -> None:
    assert subjects(OTHERS + BUYERS, OTHERS + BUYERS.replace(old, new)) == ["buyers"]


def test_metric__that_goes_is_found() -> None:
    assert subjects(OTHERS + BUYERS, OTHERS) == ["buyers"]
    assert subjects(OTHERS + BUYERS, None) == ["buyers", "total"]


@pytest.mark.parametrize(
    "after",
    [
        OTHERS + BUYERS.replace("owner ann", "owner bob, description 'who buys'"),
        f"-- who buys\n{BUYERS};\n\n{OTHERS}",
        OTHERS + BUYERS.replace("COUNT(DISTINCT mart", "count( distinct mart"),
        OTHERS + BUYERS + ";\nMETRIC (name lines, expression COUNT(mart.orders.order_id));",
    ],
)
def test_metric__that_stays_is_none(after: str) -> None:
    assert subjects(OTHERS + BUYERS, after) == []


def test_metric__that_moves_to_another_file_is_none() -> None:
    other = "metrics/buyers.sql"
    inputs = files({PATH: OTHERS + BUYERS}, {PATH: OTHERS, other: BUYERS})
    told = replace(inputs, all_changed_files=(PATH, other))
    assert seen(told, RULE) == []


def test_metric__in_a_file_of_empty_lines__is_found_in_a_moment() -> None:
    begun = process_time()

    assert subjects(BUYERS + "\n" * 400_000, None) == ["buyers"]

    assert process_time() - begun < 20
