"""Every row of the threat list is held by tests that exist, or says why none can."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.conftest import REPOSITORY
from tests.security.threats import PHYSICAL, ROWS, Row

MOST_PHYSICAL = 3


@cache
def cases_in(file: str) -> frozenset[str]:
    """The test functions of a module, by reading it: collecting needs what a machine may lack."""
    tree = ast.parse((REPOSITORY / file).read_text("utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_rows__are_all_58_once() -> None:
    assert [row.number for row in ROWS] == list(range(1, 59))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_row__is_held_by_tests_that_exist(row: Row) -> None:
    assert bool(row.tests) != bool(PHYSICAL.get(row.number)), f"nothing holds row {row.number}"
    for test in row.tests:
        file, _, name = test.partition("::")
        assert (REPOSITORY / file).is_file(), file
        assert name in cases_in(file), test


def test_reasons__are_few_and_written() -> None:
    assert len(PHYSICAL) <= MOST_PHYSICAL
    assert all(len(reason.split()) > 8 for reason in PHYSICAL.values())
