"""The content of files in git: one process reads any number of files."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ci_bot.bot.sandbox.checkout_copy import DURING_EXPORT, seal_tree_for_sandbox
from ci_bot.bot.sandbox.deadline import SandboxDeadline
from ci_bot.bot.sandbox.git_program import GitProgram
from ci_bot.bot.sandbox.launch import SandboxIdentity
from ci_bot.errors import BadInput
from ci_bot.protocol.base import Sha
from ci_bot.protocol.files import POINTER_BYTES, is_file_read_by_a_rule, is_lfs_pointer

SHA = re.compile(r"[0-9a-f]{40}")
_OBJECT = re.compile(rb"[0-9a-f]{40} (?P<kind>[a-z]+) (?P<size>[0-9]+)")
# They would end a question or change it; a path from the root begins with neither.
_BREAKS = re.compile(r"[\n\0]|^\.{1,2}(?:/|$)|^$")
_LINK = "120000"


@dataclass(frozen=True)
class GitBlob:
    """An entry of a tree: the id of its content, and its mode (120000 for a link)."""

    id: str
    mode: str


class GitObjects:
    """Reads the objects of one repository."""

    def __init__(self, program: GitProgram) -> None:
        self._program = program

    def read_file(self, commit: Sha, path: str, *, at_most: int) -> bytes | None:
        """Reads a file of a commit; None if it does not exist, is a link, or is too large.

        Args:
            path: relative to the root of the tree, without `.` and `..`.
        """
        listed = self._program.run_borrowing(
            ["ls-tree", "-z", check_git_object_id(commit), "--", path]
        )
        facts, _, name = listed.rstrip(b"\0").partition(b"\t")
        words = facts.decode("ascii", "replace").split(" ")
        if name != path.encode() or words[1:2] != ["blob"] or words[0] == _LINK:
            return None
        with self.open_contents(at_most=at_most) as read:
            return read(words[2])

    def has_path(self, commit: Sha, path: str) -> bool:
        """Whether a commit has anything under this path; for `path` see `read_file`."""
        return bool(
            self._program.run_borrowing(["ls-tree", "-z", check_git_object_id(commit), "--", path])
        )

    def read_sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """Returns the bytes of each blob, read by one process, without blobs that are missing."""
        feed = "".join(f"{check_git_object_id(blob)}\n" for blob in dict.fromkeys(blobs)).encode(
            "ascii"
        )
        if not feed:
            return {}
        form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
        output = self._program.run_borrowing(["cat-file", form], feed=feed).decode(
            "ascii", "replace"
        )
        words = [line.split(" ") for line in output.splitlines()]
        return {line[0]: int(line[2]) for line in words if line[1:2] == ["blob"]}

    @contextmanager
    def open_contents(self, *, at_most: int) -> Iterator[Callable[[str], bytes | None]]:
        """Opens a reader of blobs, which reads one at a time, through one process.

        It returns a blob as a commit has it, without filters; None if the checkout lacks it, or if
        it is larger than `at_most` bytes.
        """
        with self._open_objects(at_most) as read:
            yield lambda blob: read(check_git_object_id(blob))

    @contextmanager
    def open_commit_files(
        self, commit: Sha, *, at_most: int
    ) -> Iterator[Callable[[str], bytes | None]]:
        """Opens a reader of a commit's files, by path; for a link it returns the target's name.

        If a file is larger, it returns the first `at_most` bytes and one more.
        """
        begin = check_git_object_id(commit)
        with self._open_objects(at_most, cut=True) as read:
            yield lambda path: None if _BREAKS.search(path) else read(f"{begin}:{path}")

    @contextmanager
    def _open_objects(
        self, at_most: int, *, cut: bool = False
    ) -> Iterator[Callable[[str], bytes | None]]:
        with self._program.open_stream(["cat-file", "--batch"]) as stream:

            def read_blob(name: str) -> bytes | None:
                stream.send_line(name)
                # For a missing object git answers with the requested name, whatever that contains.
                header = _OBJECT.fullmatch(stream.read_until(b"\n"))
                if header is None:
                    return None
                size = int(header["size"])
                wanted = size if size <= at_most else at_most + 1 if cut else 0
                if header["kind"] != b"blob" or not (wanted or size == 0):
                    stream.skip_bytes(size + 1)
                    return None
                content = stream.read_exactly(wanted)
                stream.skip_bytes(size - wanted + 1)
                return content

            yield read_blob


def check_git_object_id(commit: str) -> str:
    """Returns `commit`, or the id of any other object, which can be no option of git.

    Raises:
        BadInput: it is not 40 hexadecimal digits.
    """
    if not SHA.fullmatch(commit):
        raise BadInput(f"{commit!r} is not a commit id.", reason_code="bad_commit")
    return commit


# Files in git, written to disk for the worker to read.


_SUBMODULE = b"160000 "
_OID = re.compile(rb"(?m)^oid sha256:([0-9a-f]{64})$")
# A seed may have 100 MB (`seed-too-large`).
_LARGEST_FILLED = 256 * 1024 * 1024


class GitTreeExports:
    """Writes trees to disk; `private` is a directory only for the bot, for their indexes."""

    def __init__(self, program: GitProgram, private: Path, deadline: SandboxDeadline) -> None:
        self._program = program
        self._private = private
        self._deadline = deadline
        self._indexes = 0
        self.notes: list[str] = []

    def export_commit(
        self, commit: Sha, target: Path, *, identity: SandboxIdentity | None
    ) -> list[str]:
        """Writes the files of a commit into the new directory `target`.

        Unlike with `git archive`, no filter runs and no attribute leaves a file out; line endings
        are those of a checkout. Links that lead out of `target` are removed. A submodule is written
        if the checkout's own repository of it has the commit. Content that Git LFS has fetched
        replaces its pointer. `notes` says what is missing.

        Args:
            identity: The owner of the result.

        Raises:
            BadInput: the checkout lacks the commit.

        Returns:
            The removed links.
        """
        index = self._make_index()
        self._program.run_borrowing(["read-tree", check_git_object_id(commit)], extra=index)
        self.notes = []
        return self._check_out(index, target, identity, submodules=True)

    def export_blobs(
        self, files: Mapping[str, GitBlob], target: Path, *, identity: SandboxIdentity | None
    ) -> list[str]:
        """Writes some blobs, as `export_commit` does, each to its path."""
        index = self._make_index()
        lines = [
            f"{blob.mode} {check_git_object_id(blob.id)}\t{path}\0" for path, blob in files.items()
        ]
        feed = "".join(lines).encode("utf-8", "surrogateescape")
        self._program.run_borrowing(["update-index", "-z", "--index-info"], feed=feed, extra=index)
        return self._check_out(index, target, identity)

    def _make_index(self) -> dict[str, str]:
        """Returns git's variable for a new, empty index."""
        self._indexes += 1
        return {"GIT_INDEX_FILE": str(self._private / f"index-{self._indexes}")}

    def _check_out(
        self,
        index: dict[str, str],
        target: Path,
        identity: SandboxIdentity | None,
        *,
        submodules: bool = False,
    ) -> list[str]:
        target.mkdir(mode=0o700)
        self._program.run_borrowing(
            [f"--work-tree={target}", "checkout-index", "--all"], extra=index
        )
        if submodules and (target / ".gitmodules").is_file():
            self._write_submodules(index, target)
        self._fill_lfs_pointers(target)
        return seal_tree_for_sandbox(target, identity=identity, deadline=self._deadline)

    def _write_submodules(self, index: dict[str, str], target: Path) -> None:
        listed = self._program.run_borrowing(["ls-files", "--stage", "-z"], extra=index)
        links = [line for line in listed.split(b"\0") if line.startswith(_SUBMODULE)]
        for number, line in enumerate(links):
            facts, _, name = line.partition(b"\t")
            commit, path = facts.split(b" ")[1].decode("ascii"), os.fsdecode(name)
            program = self._program.open_submodule(path, number)
            if program is None:
                continue  # the checkout has no files of it either
            done = program.try_borrow(["cat-file", "-e", f"{check_git_object_id(commit)}^{{tree}}"])
            if done.returncode != 0:
                self.notes.append(
                    f"The base branch has the submodule `{path}` at commit {commit[:12]}, which "
                    "this checkout does not hold. So the models in it count as new."
                )
                continue
            place = target / path
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if place.is_dir():
                place.rmdir()
            inner = GitTreeExports(program, program.private_directory, self._deadline)
            # The owner is set for the whole tree at the end.
            inner.export_commit(commit, place, identity=None)
            self.notes += inner.notes

    def _fill_lfs_pointers(self, target: Path) -> None:
        """Replaces pointers by contents that Git LFS has fetched; git ran no filter here."""
        store = self._program.lfs_store
        if store is None:
            return
        missing: list[str] = []
        for directory, _, names in os.walk(target):
            self._deadline.check_time(DURING_EXPORT)
            for name in names:
                file = Path(directory, name)
                relative = file.relative_to(target).as_posix()
                oid = _read_git_lfs_pointer(file) if is_file_read_by_a_rule(name) else None
                if oid is None:
                    continue
                content = store / oid[:2] / oid[2:4] / oid
                if content.is_file() and content.stat().st_size <= _LARGEST_FILLED:
                    shutil.copyfile(content, file)
                elif _read_git_lfs_pointer(self._program.checkout / relative) is None:
                    missing.append(relative)
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            self.notes.append(
                f"The base branch's version of `{missing[0]}`{more} is in Git LFS and not in this "
                "checkout. So it is compared with a pointer, and counts as changed."
            )


def _read_git_lfs_pointer(path: Path) -> str | None:
    """Returns the id of the content to which a file points; None if it is no pointer of Git LFS."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size >= POINTER_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    found = _OID.search(content) if is_lfs_pointer(content) else None
    return None if found is None else found[1].decode("ascii")
