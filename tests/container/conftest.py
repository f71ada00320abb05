"""Hands the fixtures to the tests below, and marks them all `container`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .fixtures import (
    act_program,
    action,
    buildx_program,
    engine,
    image,
    review_action,
    review_image,
)

__all__ = [
    "act_program",
    "action",
    "buildx_program",
    "engine",
    "image",
    "review_action",
    "review_image",
]

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this directory needs a container engine."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.container)
