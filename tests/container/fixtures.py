"""pytest fixtures: `engine`, `image`, `review_image` and `action`; conftest.py here hands them to the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.act import act
from tests.buildx import buildx
from tests.conftest import missing
from tests.go_programs import GoProgramMissingError

from .engine import Engine, EngineMissingError, build_secrets, find_engine
from .runner import Action

ROOT = Path(__file__).resolve().parents[2]
TAG = "ci-bot:test"
FOR_REVIEWS = "-review"  # added to the name of the image without Spark
TARGET = ("--target", "review")


@pytest.fixture(scope="session")
def engine() -> Engine:
    """A container engine. Absent: skip with the reason, or fail where CI_BOT_REQUIRE_PARTS=1."""
    try:
        return find_engine(os.environ)
    except EngineMissingError as absent:
        missing(str(absent))


@pytest.fixture(scope="session")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tag of the image, built from this checkout once a session.

    CI_BOT_TEST_IMAGE names one that is built already; it is then used as it is.
    """
    given = os.environ.get("CI_BOT_TEST_IMAGE")
    if given:
        assert engine.has_image(given), f"CI_BOT_TEST_IMAGE={given}: the engine has no such image"
        return given
    engine.build(ROOT, TAG, build_secrets(os.environ, tmp_path_factory.mktemp("build")))
    return TAG


@pytest.fixture(scope="session")
def review_image(engine: Engine, image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tag of the image for reviews, of the same checkout as `image` and made of its stages."""
    tag = image + FOR_REVIEWS
    if os.environ.get("CI_BOT_TEST_IMAGE") and engine.has_image(tag):
        return tag
    engine.build(ROOT, tag, build_secrets(os.environ, tmp_path_factory.mktemp("build")), *TARGET)
    return tag


@pytest.fixture(scope="session")
def act_program() -> Path:
    """act, built once a machine."""
    return go_program(act)


@pytest.fixture(scope="session")
def buildx_program() -> Path:
    """buildx, built once a machine."""
    return go_program(buildx)


def go_program(build: Callable[[Mapping[str, str]], Path]) -> Path:
    try:
        return build(os.environ)
    except GoProgramMissingError as absent:
        missing(str(absent))


@pytest.fixture
def review_action(engine: Engine, review_image: str, tmp_path: Path) -> Action:
    """The action of `review/` in a job of its own."""
    return Action.prepare(engine, review_image, ROOT / "review" / "action.yml", tmp_path)


@pytest.fixture
def action(engine: Engine, image: str, tmp_path: Path) -> Action:
    """The action in a job of its own: an empty workspace, fresh output files."""
    return Action.prepare(engine, image, ROOT / "action.yml", tmp_path)
