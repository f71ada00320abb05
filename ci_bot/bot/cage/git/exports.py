"""Files that git holds, written to disk for the worker to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ci_bot.bot.cage.checkout_copy import seal_tree
from ci_bot.bot.cage.git.objects import Blob, object_id
from ci_bot.bot.cage.git.program import GitProgram
from ci_bot.bot.cage.user import Identity
from ci_bot.bot.cage.watch.deadline import Deadline


class Exports:
    """Writes trees. `private` is a directory of the bot alone, for an index of each."""

    def __init__(self, program: GitProgram, private: Path, deadline: Deadline) -> None:
        self._program = program
        self._private = private
        self._deadline = deadline
        self._indexes = 0

    def commit(self, commit: str, target: Path, *, identity: Identity | None) -> list[str]:
        """Write the files of a commit into the new directory `target`.

        No filter runs and no attribute leaves a file out, as `git archive` would let them; line
        endings are those of a checkout. Links that lead out of `target` are dropped; submodules
        stay empty.

        Args:
            identity: Who owns the result.

        Raises:
            BadInput: the checkout lacks the commit.

        Returns:
            The links that were dropped.
        """
        index = self._index()
        self._program.borrow(["read-tree", object_id(commit)], extra=index)
        return self._check_out(index, target, identity)

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
        self, index: dict[str, str], target: Path, identity: Identity | None
    ) -> list[str]:
        target.mkdir(mode=0o700)
        self._program.borrow([f"--work-tree={target}", "checkout-index", "--all"], extra=index)
        return seal_tree(target, identity=identity, deadline=self._deadline)
