"""What the bot reads from git, before anything of the project is loaded.

How git is run on a checkout that may be hostile is `git_program`'s. The number of processes does
not grow with what is read: many questions go to one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ci_bot.bot.cage.checkout_copy import seal_tree
from ci_bot.bot.cage.git.program import GitProgram
from ci_bot.bot.cage.user import Identity
from ci_bot.bot.cage.watch.deadline import Deadline, no_deadline
from ci_bot.errors import BadInput
from ci_bot.secrets.cutting import quoted_value

# Every one of them is named in memory and in the question to the worker.
MOST_CHANGED_FILES = 100_000
_SHA = re.compile(r"[0-9a-f]{40}")
_BRANCH = "refs/heads/"
_OBJECT = re.compile(rb"[0-9a-f]{40} (?P<kind>[a-z]+) (?P<size>[0-9]+)")
# Would end a question, or make it another one; a path from the root begins with neither.
_BREAKS = re.compile(r"[\n\0]|^\.{1,2}(?:/|$)|^$")
_NO_MODE, _SUBMODULE, _LINK = "000000", "160000", "120000"


@dataclass(frozen=True)
class Blob:
    """What a tree holds under a name: the id of the content, and its mode (a link has 120000)."""

    id: str
    mode: str


@dataclass(frozen=True)
class GitFile:
    """One file of a diff.

    Attributes:
        status: git's letter (A, D, M, T); a rename is a D and an A.
        before, after: the content on either side; None where that side has none, or a submodule.
    """

    status: str
    path: str
    before: Blob | None = field(default=None, compare=False)
    after: Blob | None = field(default=None, compare=False)


class Git:
    """Reads of one checkout.

    Args:
        checkout: Its root (the directory that has `.git`).
        private: A directory of the bot alone, for the borrowing repository and its index.
        executable: The git program.
        deadline: What bounds every wait for git, which raises TimedOut then.
    """

    def __init__(
        self,
        checkout: Path,
        *,
        private: Path,
        executable: str = "git",
        deadline: Deadline | None = None,
    ) -> None:
        self._program = GitProgram(
            checkout, private=private, executable=executable, deadline=deadline
        )
        self._private = private
        self._deadline = deadline or no_deadline()
        self._indexes = 0

    def head(self) -> str:
        """The commit that is checked out."""
        return self._commit("HEAD")

    def branch(self) -> str | None:
        """The branch that is checked out; None where it is a commit alone, or nothing."""
        done = self._program.inside(["rev-parse", "--quiet", "--symbolic-full-name", "HEAD"])
        name = done.stdout.decode("utf-8", "replace").strip()
        return name.removeprefix(_BRANCH) if name.startswith(_BRANCH) else None

    def resolve(self, revision: str) -> str:
        """The commit that a branch, tag or abbreviation names, for use on a laptop.

        Raises:
            BadInput: There is no such commit, or the text looks like an option.
        """
        found = None
        if revision.strip() and not revision.startswith("-"):
            found = self._find(revision)
        if found is None:
            near = difflib.get_close_matches(revision, self.names(), n=3)
            raise BadInput(
                f"The repository has no branch, tag or commit {quoted_value(revision)}.",
                hint=f"Did you mean {' or '.join(f'`{name}`' for name in near)}?"
                if near
                else "`git branch --all` lists the branches.",
                reason_code="bad_revision",
            )
        return found

    def names(self) -> list[str]:
        """The names of all branches and tags, also of those that were fetched."""
        kinds = ["--symbolic", "--branches", "--tags", "--remotes"]
        told = self._program.inside(["rev-parse", *kinds]).stdout.decode("utf-8", "replace")
        every = told.split()
        # `main` is what people type where only `origin/main` is there.
        return list(dict.fromkeys([*every, *(name.partition("/")[2] or name for name in every)]))

    def parents(self, commit: str) -> list[str]:
        """The parents that a commit names, whether or not the checkout has them.

        The first parent of GitHub's test merge commit is the base branch, the second the head. A
        shallow checkout hides them from `git log`, but they stand in the commit itself.
        """
        text = (
            self._program.borrow(["cat-file", "commit", _sha(commit)])
            .split(b"\n\n", 1)[0]
            .decode("ascii", "replace")
        )
        return [line[7:] for line in text.splitlines() if line.startswith("parent ")]

    def has(self, commit: str) -> bool:
        """Whether the checkout holds `commit` with its files."""
        done = self._program.try_borrow(["cat-file", "-e", f"{_sha(commit)}^{{tree}}"])
        return done.returncode == 0

    def mentions(self, commit: str, word: str) -> list[str]:
        """The files of a commit that hold this word, in any case; binary ones too."""
        found: list[str] = []
        options = [
            "--text",
            "--ignore-case",
            "--word-regexp",
            "--fixed-strings",
            "--files-with-matches",
        ]
        command = ["grep", "-z", *options, "-e", word, _sha(commit), "--"]
        done = self._program.try_borrow(command)
        if done.returncode > 1:
            raise BadInput(
                f"git cannot search commit {commit[:12]}.",
                hint="The log says what git said.",
                reason_code="git_failed",
            )
        begin = f"{_sha(commit)}:".encode()
        for line in done.stdout.split(b"\0"):
            if line:
                found.append(line.removeprefix(begin).decode("utf-8", "surrogateescape"))
        return found

    def require(self, commit: str) -> None:
        """Raise BadInput, with the fix, if `commit` is not in the checkout."""
        if not self.has(commit):
            raise BadInput(
                f"The base commit {commit[:12]} is not in the checkout, so there is nothing to "
                "compare with.",
                hint="Set `fetch-depth: 2` in the `with:` of actions/checkout.",
                reason_code="base_commit_missing",
            )

    def changed_files(self, base: str, head: str) -> list[GitFile]:
        """The files in which the trees of two commits differ; renames count as both.

        Raises:
            BadInput: There are more than `MOST_CHANGED_FILES`.
        """
        options = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id"]
        command = ["diff-tree", *options, _sha(base), _sha(head), "--"]
        found: list[GitFile] = []
        with self._program.stream(command) as stream:
            parts = stream.parts(b"\0")
            for facts, path in zip(parts, parts, strict=True):
                if len(found) == MOST_CHANGED_FILES:
                    raise BadInput(
                        f"More than {MOST_CHANGED_FILES:,} files differ between the base and the "
                        "head, which is more than a review looks at.",
                        hint="Split the pull request, or bring its branch up to date.",
                        reason_code="too_many_files",
                    )
                found.append(_changed(facts, path))
        return found

    def file(self, commit: str, path: str, *, at_most: int) -> bytes | None:
        """A file of a commit; None where there is none, where it is a link, or too large.

        Args:
            path: relative to the root of the tree, without `.` and `..` in it.
        """
        told = self._program.borrow(["ls-tree", "-z", _sha(commit), "--", path])
        facts, _, name = told.rstrip(b"\0").partition(b"\t")
        words = facts.decode("ascii", "replace").split(" ")
        if name != path.encode() or words[1:2] != ["blob"] or words[0] == _LINK:
            return None
        with self.contents(at_most=at_most) as read:
            return read(words[2])

    def sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """Bytes of each of these blobs, by one process; what the checkout lacks is not in it."""
        feed = "".join(f"{_sha(blob)}\n" for blob in dict.fromkeys(blobs)).encode("ascii")
        if not feed:
            return {}
        form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
        told = self._program.borrow(["cat-file", form], feed=feed).decode("ascii", "replace")
        words = [line.split(" ") for line in told.splitlines()]
        return {line[0]: int(line[2]) for line in words if line[1:2] == ["blob"]}

    @contextmanager
    def contents(self, *, at_most: int) -> Iterator[Callable[[str], bytes | None]]:
        """What reads blobs, one at a time, through one process.

        A blob comes as a commit holds it, without filters; None where the checkout lacks it, or
        where it is larger than `at_most` bytes.
        """
        with self._objects(at_most) as read:
            yield lambda blob: read(_sha(blob))

    @contextmanager
    def files_of(self, commit: str, *, at_most: int) -> Iterator[Callable[[str], bytes | None]]:
        """The same for files of a commit, by path; of a link it is the name that it leads to.

        Of a file that is larger it is the first `at_most` bytes and one more.
        """
        begin = _sha(commit)
        with self._objects(at_most, cut=True) as read:
            yield lambda path: None if _BREAKS.search(path) else read(f"{begin}:{path}")

    @contextmanager
    def _objects(
        self, at_most: int, *, cut: bool = False
    ) -> Iterator[Callable[[str], bytes | None]]:
        with self._program.stream(["cat-file", "--batch"]) as stream:

            def read(name: str) -> bytes | None:
                stream.ask(name)
                # What is not there is told with the name that was asked for, whatever that holds.
                told = _OBJECT.fullmatch(stream.until(b"\n"))
                if told is None:
                    return None
                size = int(told["size"])
                wanted = size if size <= at_most else at_most + 1 if cut else 0
                if told["kind"] != b"blob" or not (wanted or size == 0):
                    stream.skip(size + 1)
                    return None
                content = stream.exactly(wanted)
                stream.skip(size - wanted + 1)
                return content

            yield read

    def export(self, commit: str, target: Path, *, identity: Identity | None) -> list[str]:
        """Write the files of a commit into the new directory `target`.

        No filter runs and no attribute leaves a file out, as `git archive` would let them; line
        endings are those of a checkout. Links that lead out of `target` are dropped; submodules
        stay empty.

        Args:
            identity: Who owns the result.

        Returns:
            The links that were dropped.
        """
        self.require(commit)
        index = self._index()
        self._program.borrow(["read-tree", _sha(commit)], extra=index)
        return self._check_out(index, target, identity)

    def export_blobs(
        self, blobs: Mapping[str, Blob], target: Path, *, identity: Identity | None
    ) -> list[str]:
        """The same for some blobs, by the path that each gets."""
        index = self._index()
        lines = [f"{blob.mode} {_sha(blob.id)}\t{path}\0" for path, blob in blobs.items()]
        feed = "".join(lines).encode("utf-8", "surrogateescape")
        self._program.borrow(["update-index", "-z", "--index-info"], feed=feed, extra=index)
        return self._check_out(index, target, identity)

    def _index(self) -> dict[str, str]:
        """An empty index of its own, as a variable for git."""
        self._indexes += 1
        return {"GIT_INDEX_FILE": str(self._private / f"index-{self._indexes}")}

    def _check_out(
        self, index: dict[str, str], target: Path, identity: Identity | None
    ) -> list[str]:
        target.mkdir(mode=0o700)
        self._program.borrow([f"--work-tree={target}", "checkout-index", "--all"], extra=index)
        return seal_tree(target, identity=identity, deadline=self._deadline)

    def origin(self) -> str | None:
        """The URL of `origin` without credentials; the owner of environments on a laptop."""
        url = self._program.own_config(["--get", "remote.origin.url"]).strip()
        return without_credentials(url) if url else None

    def _commit(self, revision: str) -> str:
        found = self._find(revision)
        if found is None:
            raise BadInput(
                f"{self._program.checkout} has no commit {revision}.",
                hint="Run actions/checkout before this action.",
                reason_code="no_commit",
            )
        return found

    def _find(self, revision: str) -> str | None:
        done = self._program.inside(["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"])
        sha = done.stdout.decode("ascii", "replace").strip()
        return sha if done.returncode == 0 and _SHA.fullmatch(sha) else None


def _changed(facts: bytes, path: bytes) -> GitFile:
    """One pair of `diff-tree -z --raw`: `:mode mode id id status`, and the path."""
    old_mode, new_mode, old, new, status = facts.decode("ascii")[1:].split(" ")
    return GitFile(
        status[:1],
        path.decode("utf-8", "replace"),
        before=_blob(old_mode, old),
        after=_blob(new_mode, new),
    )


def _blob(mode: str, name: str) -> Blob | None:
    return None if mode in (_NO_MODE, _SUBMODULE) else Blob(name, mode)


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
