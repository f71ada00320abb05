"""buildx, docker's plug-in that puts images of several architectures under one name; built by the
hashes in go.sum here.

The first time it costs 130 s of processor time and 500 MB of modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.go_programs import built

HERE = Path(__file__).resolve().parent


def buildx(env: Mapping[str, str]) -> Path:
    """The program.

    Raises:
        GoProgramMissingError: no Go could build it.
    """
    return built(HERE, "github.com/docker/buildx/cmd/buildx", env)
