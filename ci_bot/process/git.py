"""What the bot reads from git, before anything of the project is loaded.

A checkout is foreign ground: its `.git/config` can name programs (fsmonitor, hooks, filters, ssh,
diff drivers) that git starts as the user who runs it, and that user is root here. So the checkout's
own configuration is used for nothing but finding things out about it; commits and files are read
through an empty repository of ours that only borrows the checkout's objects. There is no configured
program in it, no filter, and no server from which a missing object would be fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ci_bot.errors import BadInput
from ci_bot.process.checkout import seal_tree
from ci_bot.process.identity import Identity

_SHA = re.compile(r"[0-9a-f]{40}")
_SECONDS = 60
_CREDENTIALS = re.compile(
    r"^(?:http\..*\.?extraheader|includeif\..*\.path|include\.path|credential\..*"
    r"|url\..*:.*@.*\.insteadof)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ChangedFile:
    """One file of a diff; `status` is git's letter (A, D, M, T), a rename is a D and an A."""

    status: str
    path: str


class Git:
    """Reads of one checkout.

    Args:
        checkout: Its root (the directory that has `.git`).
        private: A directory of the bot alone, for the borrowing repository and its index.
        executable: The git program.
    """

    def __init__(self, checkout: Path, *, private: Path, executable: str = "git") -> None:
        self._checkout = checkout.resolve()
        self._borrowing = private / "borrowing.git"
        self._git = executable
        self._environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
            "HOME": str(private),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
        }

    def head(self) -> str:
        """The commit that is checked out."""
        return self._commit("HEAD")

    def resolve(self, revision: str) -> str:
        """The commit that a branch, tag or abbreviation names, for use on a laptop.

        Raises:
            BadInput: There is no such commit, or the text looks like an option.
        """
        if revision.startswith("-") or not revision.strip():
            raise BadInput(f"{revision!r} is not a revision.", reason_code="bad_revision")
        return self._commit(revision)

    def parents(self, commit: str) -> list[str]:
        """The parents that a commit names, whether or not the checkout has them.

        The first parent of GitHub's test merge commit is the base branch, the second the head. A
        shallow checkout hides them from `git log`, but they stand in the commit itself.
        """
        text = (
            self._borrow(["cat-file", "commit", _sha(commit)])
            .split(b"\n\n", 1)[0]
            .decode("ascii", "replace")
        )
        return [line[7:] for line in text.splitlines() if line.startswith("parent ")]

    def has(self, commit: str) -> bool:
        """Whether the checkout holds `commit` with its files."""
        done = self._run_borrowing(["cat-file", "-e", f"{_sha(commit)}^{{tree}}"])
        return done.returncode == 0

    def base_of_merge(self, merge: str) -> str:
        """The base branch's commit in a test merge commit.

        Raises:
            BadInput: The commit is no merge, or its parents were not fetched.
        """
        parents = self.parents(merge)
        if len(parents) != 2:  # noqa: PLR2004
            raise BadInput(
                f"Commit {merge[:12]} is not a merge of a pull request with its base branch.",
                hint="Let actions/checkout take its default ref on `pull_request` events.",
                reason_code="not_a_merge_commit",
            )
        self.require(parents[0])
        return parents[0]

    def require(self, commit: str) -> None:
        """Raise BadInput, with the fix, if `commit` is not in the checkout."""
        if not self.has(commit):
            raise BadInput(
                f"The base commit {commit[:12]} is not in the checkout, so there is nothing to "
                "compare with.",
                hint="Set `fetch-depth: 2` in the `with:` of actions/checkout.",
                reason_code="base_commit_missing",
            )

    def changed_files(self, base: str, head: str) -> list[ChangedFile]:
        """The files in which the trees of two commits differ; renames count as both."""
        command = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", "--no-commit-id"]
        fields = self._borrow([*command, _sha(base), _sha(head), "--"]).decode("utf-8", "replace")
        parts = fields.split("\0")[:-1]
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return [ChangedFile(status[:1], path) for status, path in pairs]

    def content(self, commit: str, path: str) -> bytes | None:
        """A file as a commit holds it, without filters; None where it holds no such file."""
        done = self._run_borrowing(["cat-file", "blob", f"{_sha(commit)}:{path}"])
        return done.stdout if done.returncode == 0 else None

    def export(
        self, commit: str, paths: Sequence[str], target: Path, *, identity: Identity | None
    ) -> list[str]:
        """Write the files of a commit below `paths` into the new directory `target`.

        No filter runs and no attribute leaves a file out, as `git archive` would let them; line
        endings are those of a checkout. Links that lead out of `target` are dropped; submodules
        stay empty.

        Args:
            paths: Directories relative to the repository's root; none: the whole tree.
            identity: Who owns the result.

        Returns:
            The links that were dropped.
        """
        self.require(commit)
        target.mkdir(mode=0o700)
        everything = any(path in ("", ".") for path in paths)
        listing = self._borrow(
            [
                "ls-tree",
                "-r",
                "-z",
                "--full-tree",
                "--",
                _sha(commit),
                *([] if everything else paths),
            ]
        )
        index = {"GIT_INDEX_FILE": str(self._borrowing / f"index-{commit}")}
        self._borrow(["update-index", "-z", "--index-info"], feed=listing, extra=index)
        self._borrow([f"--work-tree={target}", "checkout-index", "--all"], extra=index)
        return seal_tree(target, identity=identity)

    def origin(self) -> str | None:
        """The URL of `origin` without credentials; the owner of environments on a laptop."""
        url = self._own_config(["--get", "remote.origin.url"]).strip()
        return without_credentials(url) if url else None

    def persisted_credentials(self) -> list[str]:
        """Names of settings through which a job's credentials can be read from the checkout."""
        names = self._own_config(["--name-only", "--list", "-z"]).split("\0")
        found = {name for name in names if _CREDENTIALS.match(name)}
        url = self._own_config(["--get", "remote.origin.url"]).strip()
        if url and url != without_credentials(url):
            found.add("remote.origin.url")
        return sorted(found)

    def _commit(self, revision: str) -> str:
        done = self._run_inside(["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"])
        sha = done.stdout.decode("ascii", "replace").strip()
        if done.returncode != 0 or not _SHA.fullmatch(sha):
            raise BadInput(
                f"{self._checkout} has no commit {revision}.",
                hint="Run actions/checkout before this action.",
                reason_code="no_commit",
            )
        return sha

    def _own_config(self, arguments: Sequence[str]) -> str:
        """The checkout's own configuration file, read as a file: nothing it names is followed."""
        done = self._run_inside(["rev-parse", "--path-format=absolute", "--git-common-dir"])
        path = Path(done.stdout.decode("utf-8", "surrogateescape").strip()) / "config"
        if done.returncode != 0 or not path.is_file():
            return ""
        listing = self._run(["config", "--file", str(path), "--no-includes", *arguments])
        return listing.stdout.decode("utf-8", "replace")

    def _borrow(
        self, arguments: Sequence[str], *, feed: bytes = b"", extra: dict[str, str] | None = None
    ) -> bytes:
        done = self._run_borrowing(arguments, feed=feed, extra=extra)
        if done.returncode != 0:
            first = done.stderr.decode("utf-8", "replace").strip().splitlines()[:1]
            raise BadInput(
                f"Git could not read the checkout {self._checkout}: {' '.join(first)}",
                hint="Set `fetch-depth: 2` and no `filter:` in the `with:` of actions/checkout.",
                reason_code="git_failed",
            )
        return done.stdout

    def _run_borrowing(
        self, arguments: Sequence[str], *, feed: bytes = b"", extra: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        if not self._borrowing.is_dir():
            self._run(["init", "--quiet", "--bare", "--template=", str(self._borrowing)])
        found = self._run_inside(["rev-parse", "--path-format=absolute", "--git-path", "objects"])
        objects = found.stdout.decode("utf-8", "surrogateescape").strip()
        return self._run(
            [f"--git-dir={self._borrowing}", *arguments],
            feed=feed,
            extra={"GIT_OBJECT_DIRECTORY": objects, **(extra or {})},
        )

    def _run_inside(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Only for `rev-parse`, which starts no program whatever the configuration says."""
        safe = ["-c", f"safe.directory={self._checkout}", "-c", "core.fsmonitor=false"]
        return self._run(
            [*safe, "-c", f"core.hooksPath={os.devnull}", "-C", str(self._checkout), *arguments]
        )

    def _run(
        self, arguments: Sequence[str], *, feed: bytes = b"", extra: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [self._git, *arguments],
                input=feed,
                capture_output=True,
                env=self._environment | (extra or {}),
                cwd="/",
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise BadInput(
                "There is no git program.", hint="Install git.", reason_code="git_failed"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise BadInput(
                f"Git did not answer within {_SECONDS} seconds.", reason_code="git_failed"
            ) from error


def without_credentials(url: str) -> str:
    """A git URL without user and password; `git@host:path` keeps its user, which is no secret."""
    parts = urlsplit(url)
    if not parts.scheme or "@" not in parts.netloc or parts.scheme in ("ssh", "git+ssh"):
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _sha(commit: str) -> str:
    if not _SHA.fullmatch(commit):
        raise BadInput(f"{commit!r} is not a commit id.", reason_code="bad_commit")
    return commit
