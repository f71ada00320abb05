"""pytest fixtures: `github_standin` and `scripted_github`. Register with `pytest_plugins` in
tests/conftest.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.maven import parts_directory

from .local_git import LocalGit
from .parts import Parts, PartsMissingError, locate
from .repo import Repo
from .scripted import ScriptedServer
from .standin import GitHubStandin


@pytest.fixture(scope="session")
def github_parts() -> Parts:
    """The installed npm parts. Absent: skip with the reason; CI_BOT_REQUIRE_PARTS=1: fail."""
    try:
        return locate(parts_directory(os.environ))
    except PartsMissingError as missing:
        if os.environ.get("CI_BOT_REQUIRE_PARTS") == "1":
            pytest.fail(f"CI_BOT_REQUIRE_PARTS=1, but {missing}")
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def github_standin_process(
    github_parts: Parts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GitHubStandin]:
    """The one running stand-in of the session. Tests ask for `github_standin`."""
    with GitHubStandin(github_parts, tmp_path_factory.mktemp("emulate")) as running:
        yield running


@pytest.fixture
def github_standin(github_standin_process: GitHubStandin) -> Iterator[GitHubStandin]:
    """The stand-in with an empty log and no faults.

    After the test its traffic is held against GitHub's description, and every scripted reply must
    have been used.
    """
    github_standin_process.reset()
    yield github_standin_process
    try:
        github_standin_process.assert_conformant()
        assert github_standin_process.script.unused() == []
    finally:
        github_standin_process.reset()


@pytest.fixture
def github_repo(github_standin: GitHubStandin) -> Repo:
    """A fresh repository of `acme` with one commit on `main`."""
    repo = github_standin.make_repo()
    repo.commit("main", {"README.md": "# Warehouse\n"})
    return repo


@pytest.fixture
def local_git(tmp_path: Path) -> LocalGit:
    """An empty git repository on disk, to commit to and push from."""
    return LocalGit(tmp_path / "checkout")


@pytest.fixture
def scripted_github() -> Iterator[ScriptedServer]:
    """A loopback GitHub with comments in memory and a fault script; needs no npm part.

    Every scripted reply must have been used when the test ends.
    """
    with ScriptedServer() as server:
        yield server
        assert server.script.unused() == []
