"""The content of files in git: read by one process, whatever number of files is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ci_bot.bot.cage.git.program import GitProgram
from ci_bot.errors import BadInput

SHA = re.compile(r"[0-9a-f]{40}")
_OBJECT = re.compile(rb"[0-9a-f]{40} (?P<kind>[a-z]+) (?P<size>[0-9]+)")
# Would end a question, or make it another one; a path from the root begins with neither.
_BREAKS = re.compile(r"[\n\0]|^\.{1,2}(?:/|$)|^$")
_LINK = "120000"


@dataclass(frozen=True)
class Blob:
    """What a tree holds under a name: the id of the content, and its mode (a link has 120000)."""

    id: str
    mode: str


class Objects:
    """Reads of the objects of one repository."""

    def __init__(self, program: GitProgram) -> None:
        self._program = program

    def file(self, commit: str, path: str, *, at_most: int) -> bytes | None:
        """A file of a commit; None where there is none, where it is a link, or too large.

        Args:
            path: relative to the root of the tree, without `.` and `..` in it.
        """
        told = self._program.borrow(["ls-tree", "-z", object_id(commit), "--", path])
        facts, _, name = told.rstrip(b"\0").partition(b"\t")
        words = facts.decode("ascii", "replace").split(" ")
        if name != path.encode() or words[1:2] != ["blob"] or words[0] == _LINK:
            return None
        with self.contents(at_most=at_most) as read:
            return read(words[2])

    def holds(self, commit: str, path: str) -> bool:
        """Whether a commit has anything under this path; the path is that of `file`."""
        return bool(self._program.borrow(["ls-tree", "-z", object_id(commit), "--", path]))

    def sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """Bytes of each of these blobs, by one process; what the checkout lacks is not in it."""
        feed = "".join(f"{object_id(blob)}\n" for blob in dict.fromkeys(blobs)).encode("ascii")
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
            yield lambda blob: read(object_id(blob))

    @contextmanager
    def files_of(self, commit: str, *, at_most: int) -> Iterator[Callable[[str], bytes | None]]:
        """The same for files of a commit, by path; of a link it is the name that it leads to.

        Of a file that is larger it is the first `at_most` bytes and one more.
        """
        begin = object_id(commit)
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


def object_id(commit: str) -> str:
    """`commit`, or the id of any other object, which no option of git can be. Raises BadInput."""
    if not SHA.fullmatch(commit):
        raise BadInput(f"{commit!r} is not a commit id.", reason_code="bad_commit")
    return commit
