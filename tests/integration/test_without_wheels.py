"""What `requirements` brings that has no wheel: PySpark, which is built from source where its hash is
known, and a driver that the image has under another name."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ci_bot.bot.sandbox import caged_pip

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


@pytest.mark.night
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


def asks_for_driver(index: Path, version: str = "") -> None:
    """A wheel with an extra that asks for PostgreSQL's driver by the name of its source."""
    index.mkdir(exist_ok=True)
    information = "wants-1.0.dist-info"
    with zipfile.ZipFile(index / "wants-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            f"{information}/METADATA",
            "Metadata-Version: 2.1\nName: wants\nVersion: 1.0\nProvides-Extra: postgres\n"
            f"Requires-Dist: psycopg2{version}; extra == 'postgres'\n",
        )
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")


def test_driver__that_an_extra_asks_for__is_the_one_that_is_installed(tmp_path: Path) -> None:
    asks_for_driver(tmp_path / "index")
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links index\nwants[postgres]\n")

    done = install(tmp_path, "")

    assert done.returncode == 0, done.stdout + done.stderr
    own = tmp_path / "target"
    # No module of it hides the one that works.
    assert not (own / "psycopg2").exists()
    found = {
        each.metadata["Name"]: each.version
        for each in importlib.metadata.distributions(path=[str(own)])
    }
    assert found == {"wants": "1.0", "psycopg2": importlib.metadata.version("psycopg2-binary")}


def test_driver__of_another_version__is_not_claimed_to_be_there(tmp_path: Path) -> None:
    asks_for_driver(tmp_path / "index", "==2.8.0")
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links index\nwants[postgres]\n")

    done = install(tmp_path, "")

    assert done.returncode != 0
    assert "psycopg2==2.8.0" in done.stderr
