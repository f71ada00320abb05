"""Which cases of a test run every time. The others are for the nights: `CI_BOT_FUZZ=full`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
