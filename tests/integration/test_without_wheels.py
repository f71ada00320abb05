"""PySpark by `requirements`: the one package that is built from source, where its hash is known."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci_bot.bot.cage import caged_pip

SETUP = """\
from setuptools import setup
open({evidence!r}, "w").close()
setup(name="pyspark", version="9.9.1", py_modules=["pyspark"])
"""


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    return tmp_path / "built"


@pytest.fixture
def archive(tmp_path: Path, evidence: Path) -> Path:
    """A source package, beside a requirements file that pins it."""
    package = tmp_path / "pyspark-9.9.1"
    package.mkdir()
    (package / "setup.py").write_text(SETUP.format(evidence=str(evidence)))
    (package / "pyspark.py").write_text("SPARK = 9\n")
    (package / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 9.9.1\n")
    found = shutil.make_archive(
        str(tmp_path / "index" / "pyspark-9.9.1"), "gztar", tmp_path, "pyspark-9.9.1"
    )
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links index\npyspark==9.9.1\n")
    return Path(found)


def install(tmp_path: Path, source: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, caged_pip.__file__, tmp_path / "target", "requirements.txt", source],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def pin(content: bytes) -> str:
    return f"pyspark==9.9.1 --hash=sha256:{hashlib.sha256(content).hexdigest()}"


def test_source__whose_hash_is_known__is_built_and_put_in_front(
    tmp_path: Path, archive: Path, evidence: Path
) -> None:
    shadow = tmp_path / "lib"
    shadow.mkdir()
    (shadow / "setuptools.py").write_text("raise SystemExit('the project spoke')\n")

    done = install(tmp_path, pin(archive.read_bytes()), PYTHONPATH=str(shadow))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target" / "pyspark.py").read_text() == "SPARK = 9\n"
    assert evidence.exists()
    assert "requirements: building pyspark==9.9.1" in done.stdout


@pytest.mark.parametrize("source", [pin(b"what Apache has released"), ""])
def test_source__that_is_another_one_or_not_known__runs_nothing(
    tmp_path: Path, archive: Path, evidence: Path, source: str
) -> None:
    done = install(tmp_path, source)

    assert done.returncode != 0
    assert not evidence.exists()
    assert not (tmp_path / "target").exists()


def test_source__of_what_is_installed__is_not_built(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("--no-index\npip\n")
    pip = importlib.metadata.version("pip")

    done = install(tmp_path, f"pip=={pip} --hash=sha256:00")

    assert done.returncode == 0, done.stderr
    assert "building" not in done.stdout
