"""Push commits of a local git repository into emulate, object by object, with their real shas.

emulate serves no git protocol, but its object store computes git's own hashes. So a test can check
out with git and ask the API about the very same commits. Commits that git's REST form cannot
express (a signature, an encoding header, a message without a final newline) are refused.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from .emulator import EmulateError, Emulator

_IDENTITY = re.compile(r"(?P<name>.*) <(?P<email>.*)> (?P<time>\d+) (?P<zone>[+-]\d{4})")


def git(repository: Path, *arguments: str) -> bytes:
    """Run git in `repository`; returns its output. Raises EmulateError with git's words."""
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],  # noqa: S607 - the git of whoever runs the tests
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise EmulateError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def resolve(repository: Path, revision: str) -> str:
    """The full sha of a commit."""
    return git(repository, "rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()


@dataclass(frozen=True)
class _Commit:
    sha: str
    tree: str
    payload: dict[str, Any]


class Pusher:
    """Pushes into one repository of emulate and remembers what is there already."""

    def __init__(self, emulator: Emulator, repo: str, login: str) -> None:
        self._emulator = emulator
        self._repo = repo
        self._login = login
        self._blobs: set[str] = set()
        self._trees: set[str] = set()
        self._commits: set[str] = set()

    def push(self, repository: Path, revisions: Iterable[str]) -> list[str]:
        """Push the revisions with all their ancestors; returns their full shas."""
        shas = [resolve(repository, revision) for revision in revisions]
        order = git(repository, "rev-list", "--reverse", "--topo-order", *shas).decode().split()
        for sha in order:
            if sha not in self._commits:
                self._push_commit(repository, _read_commit(repository, sha))
                self._commits.add(sha)
        return shas

    def _push_commit(self, repository: Path, commit: _Commit) -> None:
        self._push_tree(repository, commit.tree)
        self._post("commits", commit.payload, commit.sha)

    def _push_tree(self, repository: Path, tree: str) -> None:
        if tree in self._trees:
            return
        entries = []
        for line in git(repository, "ls-tree", "-r", "-z", tree).decode().split("\0")[:-1]:
            about, path = line.split("\t", 1)
            mode, kind, sha = about.split()
            if kind == "blob" and sha not in self._blobs:
                content = git(repository, "cat-file", "blob", sha)
                self._emulator.put_blob(self._repo, self._login, content)
                self._blobs.add(sha)
            entries.append({"path": path, "mode": mode, "type": kind, "sha": sha})
        self._post("trees", {"tree": entries}, tree)
        self._trees.add(tree)

    def _post(self, kind: str, payload: dict[str, Any], sha: str) -> None:
        target = f"/repos/{self._repo}/git/{kind}"
        made = self._emulator.do("POST", target, self._login, payload)
        if made["sha"] != sha:
            raise EmulateError(
                f"emulate made {made['sha']} of the {kind[:-1]} that git calls {sha}"
            )


def _read_commit(repository: Path, sha: str) -> _Commit:
    head, _, message = git(repository, "cat-file", "commit", sha).decode().partition("\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.split("\n"):
        name, _, value = line.partition(" ")
        fields.setdefault(name, []).append(value)
    if strange := set(fields) - {"tree", "parent", "author", "committer"}:
        raise EmulateError(f"commit {sha} has headers that cannot be pushed: {sorted(strange)}")
    payload = {
        "message": message,
        "tree": fields["tree"][0],
        "parents": fields.get("parent", []),
        "author": _identity(fields["author"][0]),
        "committer": _identity(fields["committer"][0]),
    }
    return _Commit(sha=sha, tree=fields["tree"][0], payload=payload)


def _identity(text: str) -> dict[str, str]:
    found = _IDENTITY.fullmatch(text)
    if found is None:
        raise EmulateError(f"not a git identity: {text!r}")
    zone = found["zone"]
    offset = timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[3:]))
    moment = datetime.fromtimestamp(int(found["time"]), timezone.utc).astimezone(timezone(offset))
    return {"name": found["name"], "email": found["email"], "date": moment.isoformat()}
