"""The last commits of somebody's repository as cases without labels."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from tests.checkout import GIT
from tests.corpus.labelled import Case


def cases_of(repository: Path, most: int) -> Iterator[Case]:
    """What the newest commits have changed in a project at the root of a repository.

    Args:
        repository: A git directory, with or without a working tree.
        most: How many; commits that touch nothing that SQLMesh reads do not count.

    Raises:
        CalledProcessError: git reads no such repository.
    """
    listed = _git(repository, "log", "--no-merges", "--format=%H", "--", *_READ)
    commits = listed.decode().split()
    # The oldest has nothing before it.
    for number, (head, _) in enumerate(pairwise(commits)):
        if number == most:
            return
        yield Case(
            id=f"{number:03}-{head[:12]}",
            danger=False,
            decisions=(),
            wanted=(),
            unwanted=(),
            base=_tree(repository, f"{head}^"),
            head=_tree(repository, head),
        )


_READ = (
    *("audits", "config.py", "config.yaml", "external_models.yaml"),
    *("macros", "metrics", "models", "seeds", "signals"),
)


def _tree(repository: Path, commit: str) -> Mapping[str, bytes]:
    packed = _git(repository, "archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [(member.name, archive.extractfile(member)) for member in archive]
        return {name: file.read() for name, file in files if file is not None}


def _git(repository: Path, *words: str) -> bytes:
    done = subprocess.run([GIT, "-C", repository, *words], check=True, capture_output=True)
    return done.stdout
