"""How much the property tests try: a little at every run, 100,000 inputs and more at night.

`CI_BOT_FUZZ=full` asks for the whole amount; `tests/security/test_fuzz.py` adds it up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

FULL = os.environ.get("CI_BOT_FUZZ") == "full"
_QUICK_SHARE = 100
planned: dict[str, int] = {}


def fuzz(full: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Settings for a property test: `full` inputs at night, a hundredth of it otherwise."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        planned[f"{test.__module__}.{test.__qualname__}"] = full
        return settings(
            max_examples=full if FULL else max(50, full // _QUICK_SHARE),
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        )(test)

    return decorate


def caught(strategy: SearchStrategy[Any], fails: Callable[[Any], bool]) -> bool:
    """Whether some input makes `fails` true: the proof that a property notices a missing escape."""
    thorough = settings(
        max_examples=20_000,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        find(strategy, fails, settings=thorough)
    except NoSuchExample:
        return False
    return True
