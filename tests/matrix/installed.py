"""An interpreter that sees another version of a package in front of everything that is installed.

As in the action: what that version needs goes first, all else stays what this release is made of.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.maven import parts_directory

INSTALL_SECONDS = 900
# Published as source alone, with nothing to compile.
_SOURCE_ONLY = ("pyspark",)


class NotInstalledError(Exception):
    """The package index did not give the version; the text has pip's words."""


def python_with(version: str, package: str = "sqlmesh") -> Path:
    """The interpreter, made on first use and kept in the cache of parts.

    Args:
        package: `sqlmesh` or `pyspark`.

    Raises:
        NotInstalledError: the version cannot be had.
    """
    here = f"cp{sys.version_info.major}{sys.version_info.minor}"
    directory = parts_directory(os.environ) / package / f"{version}-{here}"
    directory.mkdir(parents=True, exist_ok=True)
    python = directory / "venv" / "bin" / "python"
    with (directory / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        base = sysconfig.get_paths()["purelib"]
        (packages,) = _environment(directory / "venv").glob("lib/python*/site-packages")
        # Written each time: another clone may use the same cache.
        (packages / "base.pth").write_text(f"{base}\n", encoding="utf-8")
        if not any(packages.glob(f"{package}-{version}.dist-info")):
            _install(python, package, version)
    return python


def _environment(directory: Path) -> Path:
    if not (directory / "pyvenv.cfg").exists():
        venv.create(directory, with_pip=False, symlinks=True)
    return directory


def _install(python: Path, package: str, version: str) -> None:
    wanted = ["install", "--quiet", "--no-input", "--only-binary", ":all:", f"{package}=={version}"]
    if package in _SOURCE_ONLY:
        wanted += ["--no-binary", package, "--no-build-isolation"]
    done = subprocess.run(
        [python, "-m", "pip", *wanted],
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise NotInstalledError(f"{package} {version}: {done.stderr[-1000:]}")
