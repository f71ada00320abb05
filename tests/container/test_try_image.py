"""The look at a published image, on this checkout's: it passes, and says what is wrong."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from ci_bot import __version__
from tests.container.engine import Engine
from tests.container.fixtures import ROOT

pytestmark = pytest.mark.container


def tried(engine: Engine, image: str, version: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(engine.client).parent}:{engine.variables.get('PATH', '')}"
    return subprocess.run(
        [ROOT / ".ci" / "try_image.sh", image, version],
        env={**engine.variables, "PATH": path, "DOCKER_HOST": engine.host},
        capture_output=True,
        text=True,
        check=False,
    )


def test_image__is_what_it_says_and_runs(engine: Engine, image: str) -> None:
    done = tried(engine, image, __version__)
    assert done.returncode == 0, done.stdout + done.stderr
    machine = platform.machine()
    assert done.stdout.endswith(f"{image} is version {__version__} for {machine}, and runs\n")


def test_review_image__is_what_it_says_and_runs(engine: Engine, review_image: str) -> None:
    done = tried(engine, review_image, __version__)
    assert done.returncode == 0, done.stdout + done.stderr


def test_image__of_another_version_is_refused(engine: Engine, image: str) -> None:
    done = tried(engine, image, "9.9.9")
    assert done.returncode == 1
    assert "::error::The image says: ci-bot, version" in done.stdout


def test_image__that_cannot_be_pulled_says_what_to_do(engine: Engine) -> None:
    done = tried(engine, "127.0.0.1:9/nobody/nothing:none", __version__)
    assert done.returncode == 1
    assert "Make the package public" in done.stdout
