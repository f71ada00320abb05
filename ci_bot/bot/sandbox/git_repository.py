"""What the bot reads from git before anything of the project is loaded.

`git_program` runs git safely in a checkout that may be hostile. The number of processes does not
grow with the number of reads: one process answers many questions.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ci_bot.bot.sandbox.deadline import SandboxDeadline, make_endless_sandbox_deadline
from ci_bot.bot.sandbox.git_objects import (
    SHA,
    GitBlob,
    GitObjects,
    GitTreeExports,
    check_git_object_id,
)
from ci_bot.bot.sandbox.git_program import GitProgram
from ci_bot.errors import BadInput
from ci_bot.protocol.base import Sha
from ci_bot.protocol.files import LARGEST_FILE_BYTES
from ci_bot.redaction import quote_value

# What is in a laptop's checkout and not committed yet, as a tree that can be compared.
#
# A review plans the files as they are in the directory, so the rules on changed files have to see
# the same ones. Nothing is written to the checkout: git works on a copy of its index, and new
# content goes to a directory of ours. Unlike all other reads, this one runs git with the user's own
# configuration, because only that knows which files are ignored and how content is filtered. So it
# is only for a user's own checkout, in which they run git themselves.


# Settings of the index that would make git search, or write, beside it.
_PLAIN = ("-c", "core.splitIndex=false", "-c", "core.untrackedCache=false")
_UNCOMMITTED = ("ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard")
_UNTRACKED = b"? "
_ENVIRONMENT = re.compile(rb"(?:.*/)?\.env(?:\..*)?")


class GitWorkingTree:
    """The files of a checkout as they are in the directory.

    Args:
        private: A directory only for the bot.
    """

    def __init__(self, program: GitProgram, private: Path) -> None:
        self._program = program
        self._index = private / "working.index"
        self._objects = private / "working.objects"

    def write_tree(self, environ: Mapping[str, str]) -> str | None:
        """Writes a tree of tracked and untracked files, without ignored ones, and returns its id.

        Two kinds of untracked files are left out: those that no rule would read, because they are
        too large, and environment files (`.env`), which are meant to stay out of git.

        Args:
            environ: The user's own environment.

        Returns:
            None if git cannot make a tree (during a merge, or if it cannot read a file).
        """
        variables = self._choose_git_variables(environ)
        listed = self._program.run_as_user([*_PLAIN, *_UNCOMMITTED], variables)
        if listed.returncode != 0:
            return None
        update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        feed = b"".join(path + b"\0" for path in self._count_listed(listed.stdout))
        done = self._program.run_as_user([*_PLAIN, *update], variables, feed=feed)
        if done.returncode != 0:
            return None
        written = self._program.run_as_user([*_PLAIN, "write-tree"], variables)
        tree = written.stdout.decode("ascii", "replace").strip()
        return tree if written.returncode == 0 and SHA.fullmatch(tree) else None

    def _count_listed(self, listed: bytes) -> Iterator[bytes]:
        for entry in dict.fromkeys(filter(None, listed.split(b"\0"))):
            path = entry[len(_UNTRACKED) :]
            if not entry.startswith(_UNTRACKED) or self._would_be_added(path):
                yield path

    def _would_be_added(self, path: bytes) -> bool:
        # A path that ends with a slash is a repository of its own.
        if path.endswith(b"/") or _ENVIRONMENT.fullmatch(path):
            return False
        try:
            full = os.path.join(os.fsencode(self._program.checkout), path)  # noqa: PTH118 - bytes
            return os.lstat(full).st_size <= LARGEST_FILE_BYTES
        except OSError:
            return False  # it was deleted meanwhile

    def _choose_git_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns the user's variables, but our own for git: a hook has those of its repository."""
        self._objects.mkdir(parents=True, exist_ok=True)
        index = self._program.locate_inside("index")
        if index.is_file():
            shutil.copyfile(index, self._index)
        return {
            **{name: value for name, value in environ.items() if not name.startswith("GIT_")},
            "GIT_INDEX_FILE": str(self._index),
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            **self._program.add_object_directory(self._objects),
        }


# Each changed file is in memory, and in the request to the worker.
MOST_CHANGED_FILES = 100_000
_BRANCH = "refs/heads/"
_ORIGIN_HEAD = "origin/HEAD"
_USUAL = ("main", "master")

_NO_MODE, _SUBMODULE, _LINK = "000000", "160000", "120000"
# The replacement for bytes that are no UTF-8.
_REPLACED = "\ufffd"


@dataclass(frozen=True)
class GitFile:
    """One file of a diff.

    Attributes:
        status: git's letter (A, D, M, T); a rename is a D and an A.
        before, after: the content in each version; None if there is none, or for a submodule.
    """

    status: str
    path: str
    before: GitBlob | None = field(default=None, compare=False)
    after: GitBlob | None = field(default=None, compare=False)


@dataclass(frozen=True)
class FilesMissingInGit:
    """Files and submodules that a commit has and its checkout lacks.

    Attributes:
        files: files that are not written, as with a sparse checkout.
        submodules: directories that are empty, because the submodule is not checked out.
    """

    files: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()


class GitRepository:
    """Reads from one checkout.

    Args:
        checkout: Its root (the directory that has `.git`).
        private: A directory only for the bot, for the borrowing repository and its index.
        executable: The git program.
        deadline: Limits every wait for git.

    Attributes:
        objects: The content of files, by id and by path.
        exports: The same content, written to disk.
        working: What is not committed yet, on a laptop.
    """

    def __init__(
        self,
        checkout: Path,
        *,
        private: Path,
        executable: str = "git",
        deadline: SandboxDeadline | None = None,
    ) -> None:
        self._program = GitProgram(
            checkout, private=private, executable=executable, deadline=deadline
        )
        self.objects = GitObjects(self._program)
        self.exports = GitTreeExports(
            self._program, private, deadline or make_endless_sandbox_deadline()
        )
        self.working = GitWorkingTree(self._program, private)

    def read_head(self) -> Sha:
        """Returns the commit that is checked out.

        Raises:
            BadInput: there is no commit.
        """
        return self._resolve_commit("HEAD")

    def read_branch(self) -> str | None:
        """Returns the branch that is checked out; None if there is only a commit, or nothing."""
        done = self._program.run_inside(["rev-parse", "--quiet", "--symbolic-full-name", "HEAD"])
        name = done.stdout.decode("utf-8", "replace").strip()
        return name.removeprefix(_BRANCH) if name.startswith(_BRANCH) else None

    def resolve_revision(self, revision: str) -> Sha:
        """Returns the commit of a branch, tag or abbreviation, for use on a laptop.

        Raises:
            BadInput: there is no such commit, or the text looks like an option.
        """
        found = None
        if revision.strip() and not revision.startswith("-"):
            found = self._find_commit(revision)
        if found is None:
            near = difflib.get_close_matches(revision, self.list_names(), n=3)
            raise BadInput(
                f"The repository has no branch, tag or commit {quote_value(revision)}.",
                hint=f"Did you mean {' or '.join(f'`{name}`' for name in near)}?"
                if near
                else "`git branch --all` lists the branches.",
                reason_code="bad_revision",
            )
        return found

    def find_default_base(self) -> str | None:
        """Finds the branch into which changes are usually merged: `origin/HEAD` if it is set.

        Returns:
            Its name in git, for example `origin/main`; None if there is no likely one.
        """
        shown = self._program.run_inside(["rev-parse", "--abbrev-ref", _ORIGIN_HEAD])
        named = shown.stdout.decode("utf-8", "replace").strip() if shown.returncode == 0 else ""
        usual = [named] if named and named != _ORIGIN_HEAD else []
        usual += [*(f"origin/{name}" for name in _USUAL), *_USUAL]
        return next((name for name in usual if self._find_commit(name) is not None), None)

    def find_fork_point(self, base: Sha, head: Sha) -> Sha:
        """Returns the commit at which `head` left `base`; `base` itself if none is known here."""
        command = ["merge-base", check_git_object_id(base), check_git_object_id(head)]
        done = self._program.try_borrow(command)
        found = done.stdout.decode("ascii", "replace").strip()
        return found if done.returncode == 0 and SHA.fullmatch(found) else base

    def list_names(self) -> list[str]:
        """Lists the names of all branches and tags, also of those that were fetched."""
        kinds = ["--symbolic", "--branches", "--tags", "--remotes"]
        output = self._program.run_inside(["rev-parse", *kinds]).stdout.decode("utf-8", "replace")
        every = output.split()
        # People type `main`, also if only `origin/main` exists.
        return list(dict.fromkeys([*every, *(name.partition("/")[2] or name for name in every)]))

    def list_parents(self, commit: Sha) -> list[Sha]:
        """Lists the parents that a commit names, also those that the checkout does not have.

        The first parent of GitHub's test merge commit is the base branch, the second the head. A
        shallow checkout hides them from `git log`, but the commit itself names them.
        """
        text = (
            self._program.run_borrowing(["cat-file", "commit", check_git_object_id(commit)])
            .split(b"\n\n", 1)[0]
            .decode("ascii", "replace")
        )
        return [line[7:] for line in text.splitlines() if line.startswith("parent ")]

    def has_commit(self, commit: Sha) -> bool:
        """Whether the checkout has `commit` with its files."""
        done = self._program.try_borrow(
            ["cat-file", "-e", f"{check_git_object_id(commit)}^{{tree}}"]
        )
        return done.returncode == 0

    def list_files_mentioning(self, commit: Sha, word: str) -> list[str]:
        """Lists the files of a commit that contain this word, in any case; also binary ones.

        Raises:
            BadInput: git cannot search the commit.
        """
        found: list[str] = []
        options = [
            "--text",
            "--ignore-case",
            "--word-regexp",
            "--fixed-strings",
            "--files-with-matches",
        ]
        command = ["grep", "-z", *options, "-e", word, check_git_object_id(commit), "--"]
        done = self._program.try_borrow(command)
        if done.returncode > 1:
            raise BadInput(
                f"git cannot search commit {commit[:12]}.",
                hint="The log shows git's message.",
                reason_code="git_failed",
            )
        begin = f"{check_git_object_id(commit)}:".encode()
        for line in done.stdout.split(b"\0"):
            if line:
                found.append(line.removeprefix(begin).decode("utf-8", "surrogateescape"))
        return found

    def list_files_with(
        self, commit: Sha, texts: Iterable[str], *, most: int
    ) -> dict[str, GitBlob]:
        """Lists a commit's text files, `most` at most, that contain one of these texts in a line.

        The texts may be secrets, so git gets them on its input and not in a command.
        """
        feed = "\n".join(texts).encode("utf-8", "surrogateescape")
        if not feed:
            return {}
        options = ["-I", "--fixed-strings", "--files-with-matches"]
        command = ["grep", "-z", *options, "-f", "-", check_git_object_id(commit), "--"]
        done = self._program.try_borrow(command, feed=feed)
        begin = f"{check_git_object_id(commit)}:".encode()
        paths = [line.removeprefix(begin) for line in done.stdout.split(b"\0") if line]
        if done.returncode > 1 or not paths:
            return {}
        wanted = [path.decode("utf-8", "surrogateescape") for path in sorted(paths)[:most]]
        listed = self._program.run_borrowing(
            [
                "--literal-pathspecs",
                "ls-tree",
                "-r",
                "-z",
                check_git_object_id(commit),
                "--",
                *wanted,
            ]
        )
        found: dict[str, GitBlob] = {}
        for line in listed.split(b"\0"):
            facts, _, path = line.partition(b"\t")
            words = facts.decode("ascii", "replace").split(" ")
            name = path.decode("utf-8", "replace")
            if words[1:2] == ["blob"] and words[0] != _LINK and _REPLACED not in name:
                found[name] = GitBlob(words[2], words[0])
        return found

    def list_missing(self, commit: Sha, directories: Iterable[str]) -> FilesMissingInGit:
        """Returns what a commit has below some directories and the checkout lacks."""
        wanted = list(directories)
        paths = [] if "." in wanted else wanted
        listed = self._program.run_borrowing(
            ["ls-tree", "-r", "-z", check_git_object_id(commit), "--", *paths]
        )
        files: list[str] = []
        submodules: list[str] = []
        for line in listed.split(b"\0"):
            facts, _, path = line.partition(b"\t")
            # No `Path` for each, because a repository may have very many files.
            place = f"{self._program.checkout}/{os.fsdecode(path)}"
            if facts.startswith(_SUBMODULE.encode()):
                if not any(Path(place).glob("*")):
                    submodules.append(path.decode("utf-8", "replace"))
            elif path and not os.path.lexists(place):
                files.append(path.decode("utf-8", "replace"))
        return FilesMissingInGit(tuple(files), tuple(submodules))

    def require_commit(self, commit: Sha) -> None:
        """Checks that the checkout has `commit`.

        Raises:
            BadInput: it does not; the hint says how to fix it.
        """
        if not self.has_commit(commit):
            raise BadInput(
                f"The base commit {commit[:12]} is not in the checkout, so there is nothing to "
                "compare with.",
                hint="Set `fetch-depth: 2` in the `with:` of actions/checkout.",
                reason_code="base_commit_missing",
            )

    def changed_files(self, base: Sha, head: Sha) -> list[GitFile]:
        """Lists the files that differ between two commits; a rename is a deleted and an added file.

        Raises:
            BadInput: there are more than `MOST_CHANGED_FILES`.
        """
        options = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id"]
        command = [
            "diff-tree",
            *options,
            check_git_object_id(base),
            check_git_object_id(head),
            "--",
        ]
        found: list[GitFile] = []
        with self._program.open_stream(command) as stream:
            parts = stream.read_parts(b"\0")
            for facts, path in zip(parts, parts, strict=True):
                if len(found) == MOST_CHANGED_FILES:
                    raise BadInput(
                        f"More than {MOST_CHANGED_FILES:,} files differ between the base and the "
                        "head, which is more than a review looks at.",
                        hint="Split the pull request, or bring its branch up to date.",
                        reason_code="too_many_files",
                    )
                found.append(_parse_changed_file(facts, path))
        return found

    def read_origin(self) -> str | None:
        """Returns the URL of `origin` without credentials (the owner on a laptop), or None."""
        url = self._program.read_own_config(["--get", "remote.origin.url"]).strip()
        return strip_credentials_of_git_remote(url) if url else None

    def _resolve_commit(self, revision: str) -> str:
        found = self._find_commit(revision)
        if found is None:
            raise BadInput(
                f"{self._program.checkout} has no commit {revision}.",
                hint="Run actions/checkout before this action.",
                reason_code="no_commit",
            )
        return found

    def _find_commit(self, revision: str) -> str | None:
        done = self._program.run_inside(
            ["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
        )
        sha = done.stdout.decode("ascii", "replace").strip()
        return sha if done.returncode == 0 and SHA.fullmatch(sha) else None


def _parse_changed_file(facts: bytes, path: bytes) -> GitFile:
    """Parses one pair of `diff-tree -z --raw`: `:mode mode id id status`, and the path."""
    old_mode, new_mode, old, new, status = facts.decode("ascii")[1:].split(" ")
    return GitFile(
        status[:1],
        path.decode("utf-8", "replace"),
        before=_make_git_blob(old_mode, old),
        after=_make_git_blob(new_mode, new),
    )


def _make_git_blob(mode: str, name: str) -> GitBlob | None:
    return None if mode in (_NO_MODE, _SUBMODULE) else GitBlob(name, mode)


def strip_credentials_of_git_remote(url: str) -> str:
    """Removes user and password from a git URL; keeps the user of `git@host:path`, no secret."""
    parts = urlsplit(url)
    if not parts.scheme or "@" not in parts.netloc or parts.scheme in ("ssh", "git+ssh"):
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
