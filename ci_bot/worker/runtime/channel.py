"""The worker's channel to the bot: one request, some progress, one answer; and its log.

Three inherited descriptors, whose numbers are the process's arguments. Output (descriptors 1 and 2)
is only log, so nothing that SQLMesh, Spark or the project print can count as an answer.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from ci_bot.protocol.base import Contract
from ci_bot.protocol.messages import REQUEST, AnyRequest
from ci_bot.redaction import shorten_redacted

# The bot drops lines that are longer than 8,192 bytes.
PROGRESS_BYTES = 8_190
_PHASE_CHARACTERS = 200
_MESSAGE_CHARACTERS = 4_000
_CHUNK = 1024 * 1024


def write_log_line(text: str) -> None:
    """Writes a line to the job's log; the bot removes secrets from it."""
    print(text, file=sys.stderr)  # noqa: T201 - the one place that does


class BotChannel:
    """The channel to the bot.

    Args:
        request_fd: Descriptor of the file that holds the request.
        answer: Descriptor of the empty file for the answer.
        progress: Descriptor of the pipe for progress; -1 if nobody listens.
        gate: Descriptor that ends when the process beside this one has ended; -1: there is none.
    """

    def __init__(self, *, request_fd: int, answer: int, progress: int, gate: int = -1) -> None:
        self._request_fd, self._answer, self._progress = request_fd, answer, progress
        self._gate = gate
        # Reentrant, because a signal handler may answer while its thread is sending progress.
        self._lock = threading.RLock()
        self._torn = False
        self.answered = False
        for descriptor in (request_fd, answer, progress, gate):
            # A JVM that kept them open would keep the bot waiting.
            if descriptor >= 0:
                os.set_inheritable(descriptor, False)
        # Progress is optional: work never waits for a reader.
        if progress >= 0:
            os.set_blocking(progress, False)

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> BotChannel:
        """Makes the channel of this process.

        Args:
            arguments: `sys.argv[1:]`, as the bot starts the worker: three descriptor numbers, and
                that of the gate if there is one.
        """
        request_fd, answer, progress, *gate = (int(argument) for argument in arguments[:4])
        for stream in (sys.stdout, sys.stderr):
            _flush_line_by_line(stream)
        return cls(
            request_fd=request_fd, answer=answer, progress=progress, gate=next(iter(gate), -1)
        )

    def wait_for_second(self) -> None:
        """Returns when the process beside this one has ended."""
        while self._gate >= 0 and os.read(self._gate, _CHUNK):
            pass

    def read_request(self) -> AnyRequest:
        """Reads the bot's request."""
        chunks: list[bytes] = []
        while chunk := os.pread(self._request_fd, _CHUNK, sum(map(len, chunks))):
            chunks.append(chunk)
        return REQUEST.validate_json(b"".join(chunks))

    def send_progress(
        self,
        phase: str,
        message: str,
        done: int | None = None,
        total: int | None = None,
        *,
        seconds: float | None = None,
    ) -> None:
        """Sends progress to the bot, from any thread; it is lost if nobody listens."""
        fields = {
            "phase": phase[:_PHASE_CHARACTERS] or "work",
            "message": shorten_redacted(message, _MESSAGE_CHARACTERS),
            "done": done,
            "total": total,
            "seconds": seconds,
        }
        line = _encode_line(fields)
        while len(line) > PROGRESS_BYTES:
            fields["message"] = str(fields["message"])[: len(str(fields["message"])) // 2]
            line = _encode_line(fields)
        with self._lock, suppress(OSError):
            # A full pipe may take the first half of a line; then the next line starts on its own.
            text = (b"\n" if self._torn else b"") + line + b"\n"
            self._torn = os.write(self._progress, text) < len(text)

    def write_answer(self, document: Contract) -> None:
        """Writes the answer; a later one replaces an earlier one."""
        with self._lock:
            self._write_document(document)
            self.answered = True

    def write_last_words(self, document: Contract) -> None:
        """Writes the answer that holds if this process ends without a later one."""
        with self._lock:
            if not self.answered:
                self._write_document(document)

    def _write_document(self, document: Contract) -> None:
        data = memoryview(document.to_json().encode("utf-8"))
        os.ftruncate(self._answer, 0)
        position = 0
        while position < len(data):
            position += os.pwrite(self._answer, data[position : position + _CHUNK], position)


def _encode_line(fields: dict[str, str | int | float | None]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")


def _flush_line_by_line(stream: TextIO) -> None:
    """Flushes each line to the log, and escapes characters that it cannot encode."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True, errors="backslashreplace")


@contextmanager
def silence_log(name: str) -> Iterator[None]:
    """Inside of it the log of this name writes nothing."""
    log = logging.getLogger(name)
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was
