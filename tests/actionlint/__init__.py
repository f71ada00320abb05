"""actionlint, built by the hashes in go.sum here: 20 s of processor time the first time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.go_programs import built

HERE = Path(__file__).resolve().parent


def actionlint(env: Mapping[str, str]) -> Path:
    """The program.

    Raises:
        GoProgramMissingError: no Go could build it.
    """
    return built(HERE, "github.com/rhysd/actionlint/cmd/actionlint", env)
