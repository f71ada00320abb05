"""Packages that a few tests need beside those of `.venv`: installed once by the hashes of a lock file."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.maven import parts_directory

SECONDS = 300


class LockedPackagesMissingError(Exception):
    """The packages of a lock file cannot be installed here."""


def install_locked_packages(lock: Path, env: Mapping[str, str]) -> Path:
    """The directory with the packages of `lock`, which is kept among the parts of tests.

    Raises:
        LockedPackagesMissingError: pip cannot install them.
    """
    version = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    target = parts_directory(env) / f"{lock.stem.replace('_', '-')}-{version}"
    if not target.is_dir():
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
             "--only-binary", ":all:", "--target", fresh, "-r", lock],
            env=dict(env), capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise LockedPackagesMissingError(
                f"the packages of {lock.name} cannot be installed: {done.stderr[-500:]}"
            )
        fresh.replace(target)
    return target
