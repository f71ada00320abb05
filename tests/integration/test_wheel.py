"""The files of a release beside its images: the same commit gives the same bytes, and the wheel works."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci_bot import __version__
from tests.checkout import GIT, Repository
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

# Not the one that the tests have.
OTHER_SQLMESH = "0.230.1"
DAY = 86_400


def clone(place: Path, *, umask: int, age: int) -> Path:
    """This checkout's files, with other rights and another time than a fresh one has."""
    listed = subprocess.run(
        [GIT, "-C", REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if name.startswith("tests/") or not (REPOSITORY / name).is_file():
            continue
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, target)
        target.chmod((target.stat().st_mode | 0o066) & ~umask)
        written = target.stat().st_mtime - age
        os.utime(target, (written, written))
    (place / ".venv").symlink_to(sys.prefix)
    return place


def commit(place: Path) -> None:
    repository = Repository(place, new=False)
    dated = {"GIT_AUTHOR_DATE": "1764000000 +0000", "GIT_COMMITTER_DATE": "1764000000 +0000"}
    repository.git("add", "--all")
    subprocess.run(
        [GIT, "-C", place, "commit", "--quiet", "--message", "x"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **dated},
        check=True,
    )


def package(place: Path, **variables: str) -> dict[str, str]:
    """The hash of each file that `.ci/package.sh` makes."""
    done = subprocess.run(
        ["/bin/bash", place / ".ci" / "package.sh", "package"],
        cwd=place,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (place / "package" / "SHA256SUMS").read_text().splitlines()
    found = {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}
    for name, digest in found.items():
        assert hashlib.sha256((place / "package" / name).read_bytes()).hexdigest() == digest
    return found


@pytest.mark.night
def test_package__of_one_commit_has_the_same_bytes_anywhere(tmp_path: Path) -> None:
    here = clone(tmp_path / "here", umask=0o022, age=0)
    there = clone(tmp_path / "another" / "place", umask=0o077, age=400 * DAY)
    for place in (here, there):
        commit(place)
    first = package(here, TZ="UTC", LC_ALL="C")
    assert set(first) == {
        f"sqlmesh_plan_review-{__version__}-py3-none-any.whl",
        "site.tar.gz",
    }
    assert package(there, TZ="Asia/Kathmandu", LC_ALL="C.UTF-8") == first


@pytest.mark.night
def test_wheel__beside_another_sqlmesh_keeps_it_and_reviews(tmp_path: Path) -> None:
    place = clone(tmp_path / "here", umask=0o022, age=0)
    commit(place)
    package(place)
    (wheel,) = (place / "package").glob("*.whl")
    done = subprocess.run(
        [
            "/bin/bash",
            place / ".ci" / "try_wheel.sh",
            wheel,
            __version__,
            OTHER_SQLMESH,
            sys.executable,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"is version {__version__} beside SQLMesh {OTHER_SQLMESH}, and reviews" in done.stdout
