"""Which cases of a test run every time. The others are for the nights: `CI_BOT_FUZZ=full`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pytest


def cases(every: Mapping[str, Any] | Iterable[str], *, by_day: Collection[str]) -> list[Any]:
    """The parameters of a test: each case by its name, those beside `by_day` marked `night`.

    Args:
        every: The cases by name, or names that are the cases.

    Raises:
        ValueError: a name of `by_day` is no case, so that a renamed one is not lost in silence.
    """
    found = every if isinstance(every, Mapping) else {name: name for name in every}
    unknown = sorted(set(by_day) - set(found))
    if unknown:
        raise ValueError(f"there is no case {', '.join(unknown)}")
    return [
        pytest.param(case, id=name, marks=[] if name in by_day else [pytest.mark.night])
        for name, case in found.items()
    ]


def list_late_cases(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Those of `items` that run at night only.

    They have the mark `night`, or are cases of a test with the mark `by_day(count)`: of these, so
    many run every time, spread evenly over all of them.
    """
    late = {item for item in items if item.get_closest_marker("night") is not None}
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item not in late and item.get_closest_marker("by_day") is not None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for found in tests.values():
        mark = found[0].get_closest_marker("by_day")
        count: int = mark.args[0] if mark is not None else len(found)
        by_day = {number * len(found) // count for number in range(count)}
        if len(found) > count:
            late |= {item for number, item in enumerate(found) if number not in by_day}
    return late
