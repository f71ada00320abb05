"""A place on disk that other users can reach, which pytest's own directories are not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def ground() -> Iterator[Path]:
    """An empty directory with mode 0755 below a temporary directory that everybody can enter."""
    path = Path(tempfile.mkdtemp(prefix="ci-bot-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)
