"""Which tests a day's run leaves to the nights."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

SUITE = """
import pytest
from tests import nights

@pytest.mark.by_day(1)
@pytest.mark.parametrize("case", nights.cases(["a", "b", "c"], by_day=["c"]))
def test_of_both(case): ...

@pytest.mark.by_day(2)
@pytest.mark.parametrize("case", ["a", "b", "c", "d"])
def test_of_four(case): ...
"""


def test_by_day__takes_none_that_another_mark_leaves_to_the_night(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        "from tests import nights\n"
        "def pytest_collection_modifyitems(items):\n"
        "    late = nights.list_late_cases(items)\n"
        "    items[:] = [item for item in items if item not in late]\n"
    )
    pytester.makepyfile(SUITE)

    result = pytester.runpytest_inprocess("-q", "--collect-only")

    assert [line.partition("::")[2] for line in result.outlines if "::" in line] == [
        "test_of_both[c]",
        "test_of_four[a]",
        "test_of_four[c]",
    ]
