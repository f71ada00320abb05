"""Files that git holds, written to disk for the worker to read."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from ci_bot.bot.cage.checkout_copy import seal_tree
from ci_bot.bot.cage.git.objects import Blob, object_id
from ci_bot.bot.cage.git.program import GitProgram
from ci_bot.bot.cage.user import Identity
from ci_bot.bot.cage.watch.deadline import Deadline
from ci_bot.contracts.files import POINTER_BYTES, is_lfs_pointer, is_read

_SUBMODULE = b"160000 "
_OID = re.compile(rb"(?m)^oid sha256:([0-9a-f]{64})$")
# A seed may have 100 MB (`seed-too-large`).
_LARGEST_FILLED = 256 * 1024 * 1024


class Exports:
    """Writes trees. `private` is a directory of the bot alone, for an index of each."""

    def __init__(self, program: GitProgram, private: Path, deadline: Deadline) -> None:
        self._program = program
        self._private = private
        self._deadline = deadline
        self._indexes = 0
        self.notes: list[str] = []

    def commit(self, commit: str, target: Path, *, identity: Identity | None) -> list[str]:
        """Write the files of a commit into the new directory `target`.

        No filter runs and no attribute leaves a file out, as `git archive` would let them; line
        endings are those of a checkout. Links that lead out of `target` are dropped. A submodule is
        written where the checkout's own repository of it holds the commit, and what Git LFS has
        fetched takes the place of its pointer; `notes` says what could not be had.

        Args:
            identity: Who owns the result.

        Raises:
            BadInput: the checkout lacks the commit.

        Returns:
            The links that were dropped.
        """
        index = self._index()
        self._program.borrow(["read-tree", object_id(commit)], extra=index)
        self.notes = []
        return self._check_out(index, target, identity, submodules=True)

    def blobs(
        self, files: Mapping[str, Blob], target: Path, *, identity: Identity | None
    ) -> list[str]:
        """The same for some blobs, by the path that each gets."""
        index = self._index()
        lines = [f"{blob.mode} {object_id(blob.id)}\t{path}\0" for path, blob in files.items()]
        feed = "".join(lines).encode("utf-8", "surrogateescape")
        self._program.borrow(["update-index", "-z", "--index-info"], feed=feed, extra=index)
        return self._check_out(index, target, identity)

    def _index(self) -> dict[str, str]:
        """An empty index of its own, as a variable for git."""
        self._indexes += 1
        return {"GIT_INDEX_FILE": str(self._private / f"index-{self._indexes}")}

    def _check_out(
        self,
        index: dict[str, str],
        target: Path,
        identity: Identity | None,
        *,
        submodules: bool = False,
    ) -> list[str]:
        target.mkdir(mode=0o700)
        self._program.borrow([f"--work-tree={target}", "checkout-index", "--all"], extra=index)
        if submodules and (target / ".gitmodules").is_file():
            self._write_submodules(index, target)
        self._fill_lfs_pointers(target)
        return seal_tree(target, identity=identity, deadline=self._deadline)

    def _write_submodules(self, index: dict[str, str], target: Path) -> None:
        told = self._program.borrow(["ls-files", "--stage", "-z"], extra=index)
        links = [line for line in told.split(b"\0") if line.startswith(_SUBMODULE)]
        for number, line in enumerate(links):
            facts, _, name = line.partition(b"\t")
            commit, path = facts.split(b" ")[1].decode("ascii"), os.fsdecode(name)
            program = self._program.of_submodule(path, number)
            if program is None:
                continue  # the checkout has none of it either
            done = program.try_borrow(["cat-file", "-e", f"{object_id(commit)}^{{tree}}"])
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
            inner = Exports(program, program.private, self._deadline)
            # Whom it belongs to is said of the whole tree in the end.
            inner.commit(commit, place, identity=None)
            self.notes += inner.notes

    def _fill_lfs_pointers(self, target: Path) -> None:
        """Puts what Git LFS has fetched in the place of its pointers; git ran no filter here."""
        store = self._program.lfs_store
        if store is None:
            return
        missing: list[str] = []
        for directory, _, names in os.walk(target):
            self._deadline.check("while the base branch was exported")
            for name in names:
                file = Path(directory, name)
                relative = file.relative_to(target).as_posix()
                oid = _pointed_at(file) if is_read(name) else None
                if oid is None:
                    continue
                content = store / oid[:2] / oid[2:4] / oid
                if content.is_file() and content.stat().st_size <= _LARGEST_FILLED:
                    shutil.copyfile(content, file)
                elif _pointed_at(self._program.checkout / relative) is None:
                    missing.append(relative)
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            self.notes.append(
                f"The base branch's version of `{missing[0]}`{more} is in Git LFS and not in this "
                "checkout. So it is compared with a pointer, and counts as changed."
            )


def _pointed_at(path: Path) -> str | None:
    """The id of the content that a file points at; None where it is no pointer of Git LFS."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size >= POINTER_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    found = _OID.search(content) if is_lfs_pointer(content) else None
    return None if found is None else found[1].decode("ascii")
