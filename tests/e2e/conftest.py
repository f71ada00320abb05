"""Scenes for the end-to-end tests: a team's repository with prod built, and the action's process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scene import Scene
from tests.github_standin.standin import GitHubStandin
from tests.projects import Shop


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here talks to the GitHub stand-in."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.standin)


@pytest.fixture
def scene(github_standin: GitHubStandin, built_shop: Shop, tmp_path: Path) -> Iterator[Scene]:
    """A repository whose prod was built on Spark, once for all tests of the session."""
    scene = Scene(github_standin, built_shop, tmp_path)
    yield scene
    scene.end()
