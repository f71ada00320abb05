"""An installation without PySpark, as `pip install` makes one without an extra: a review goes, and
what needs Spark says what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.projects.repository import Repository, write_repository

REPOSITORY = Path(__file__).resolve().parents[2]
LEFT_OUT = ("pyspark", "py4j")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with every package of this one, but no PySpark."""
    home = tmp_path_factory.mktemp("without") / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    here = Path(sysconfig.get_paths()["purelib"])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    there = home / "lib" / version / "site-packages"
    for entry in here.iterdir():
        if not entry.name.lower().startswith(LEFT_OUT):
            (there / entry.name).symlink_to(entry)
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A project on Spark, with a branch that changes a model."""
    return write_repository(tmp_path_factory.mktemp("team") / "repository")


def ci_bot(python: Path, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "ci_bot", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_python__has_no_pyspark(python: Path) -> None:
    done = subprocess.run([python, "-c", "import pyspark"], capture_output=True, check=False)
    assert b"No module named 'pyspark'" in done.stderr


def test_review__of_a_spark_gateway_needs_no_pyspark(python: Path, team: Repository) -> None:
    done = ci_bot(
        python, team.root, "review", "project", "--baseline", "base-branch", "--format", "json"
    )
    report = json.loads(done.stdout)
    assert report["failure"] is None, done.stderr
    assert report["base_failures"] == []
    assert report["project"]["models"] > 0
    versions = next(c for c in report["checks"]["project"] if c["name"] == "versions")
    assert (versions["status"], versions["fix"][:21]) == ("warn", "A review needs none. ")
    assert "Failed to import" not in done.stderr


@pytest.mark.night
def test_apply__says_that_pyspark_is_missing(python: Path, team: Repository) -> None:
    done = ci_bot(python, team.root, "apply", "project", "--environment", "pr_1")
    assert done.returncode == 2
    assert "This needs Spark, and PySpark is not installed." in done.stderr
    assert "pip install 'pyspark<4'" in done.stderr
    assert "Traceback" not in done.stderr
