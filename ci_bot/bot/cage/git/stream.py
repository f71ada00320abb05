"""A git process that answers while it runs: read in pieces, and not waited for beyond a deadline.

One process serves any number of questions. What `subprocess.run` does is made for one answer that
fits into memory.
"""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ci_bot.bot.cage.watch.deadline import Deadline

_CHUNK = 256 * 1024
DOING = "while git read the checkout"


class StreamEnded(Exception):
    """Git said less than it had to: it failed, or the repository is broken."""


class GitStream:
    """One running git process.

    Args:
        process: With pipes for its input and output.
        deadline: Bounds every wait for it.
    """

    def __init__(self, process: subprocess.Popen[bytes], deadline: Deadline) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self._process = process
        self._input, self._output = process.stdin, process.stdout.fileno()
        self._deadline = deadline
        self._held = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def ask(self, line: str) -> None:
        """Sends one question. Its answer has to be read before the next one is asked.

        Raises:
            StreamEnded: git has ended, and nobody hears the question.
        """
        try:
            self._input.write(line.encode("utf-8", "surrogateescape") + b"\n")
            self._input.flush()
        except BrokenPipeError:
            raise StreamEnded from None

    def until(self, mark: bytes) -> bytes:
        """What comes before the next `mark`, which is taken away, too.

        Raises:
            StreamEnded: there is no mark any more.
        """
        seen = 0
        while (found := self._held.find(mark, seen)) < 0:
            seen = len(self._held)
            self._more()
        return self._take(found, drop=len(mark))

    def parts(self, mark: bytes) -> Iterator[bytes]:
        """Everything up to the end, in parts that `mark` ends.

        Raises:
            StreamEnded: it was not all, because git failed.
        """
        while True:
            *whole, rest = bytes(self._held).split(mark)
            self._held[:] = rest
            yield from whole
            try:
                self._more()
            except StreamEnded:
                break
        if rest or self._process.wait() != 0:
            raise StreamEnded

    def exactly(self, count: int) -> bytes:
        """The next `count` bytes."""
        while len(self._held) < count:
            self._more()
        return self._take(count)

    def skip(self, count: int) -> None:
        """Throws the next `count` bytes away, holding no more than a piece of them."""
        while count > len(self._held):
            count -= len(self._held)
            self._held.clear()
            self._more()
        del self._held[:count]

    def close(self) -> None:
        self._selector.close()

    def _more(self) -> None:
        if not self._selector.select(self._deadline.timeout()):
            raise self._deadline.error(DOING)
        piece = os.read(self._output, _CHUNK)
        if not piece:
            raise StreamEnded
        self._held += piece

    def _take(self, count: int, *, drop: int = 0) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[: count + drop]
        return taken


@contextmanager
def streaming(
    command: Sequence[str], *, environment: Mapping[str, str], deadline: Deadline
) -> Iterator[GitStream]:
    """Runs a git command that is read while it runs; it is gone afterwards, finished or not.

    Raises:
        FileNotFoundError: there is no git program.
        TimedOut: the deadline passed.
    """
    deadline.check(DOING)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environment),
        cwd="/",
    ) as process:
        stream = GitStream(process, deadline)
        try:
            yield stream
        finally:
            stream.close()
            process.kill()
