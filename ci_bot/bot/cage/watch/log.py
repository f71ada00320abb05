"""The worker's output, as lines that can be shown."""

from __future__ import annotations

import codecs

from ci_bot.secrets import Redactor


class LogReader:
    """Turns bytes as they come into whole lines without secrets.

    A secret may be cut by the borders of two reads, so the stream goes through the redactor before
    it becomes lines, and only then are long lines shortened and is the amount bounded.

    Args:
        redactor: Takes the secrets out.
        line_characters: Longer lines are shortened, and say so.
        limit_bytes: What comes after this many bytes is thrown away, and the last line says so.
    """

    def __init__(self, redactor: Redactor, *, line_characters: int, limit_bytes: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stream = redactor.stream()
        self._line_characters = line_characters
        self._left = limit_bytes
        self._line = ""
        self._cut = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
        if self._left <= 0:
            return []
        taken, self._left = data[: self._left], self._left - len(data)
        lines = self._lines(self._stream.feed(self._decoder.decode(taken)))
        if self._left <= 0:
            lines += [
                *self.finish(),
                "(the worker printed more than is kept; the rest is left out)",
            ]
        return lines

    def finish(self) -> list[str]:
        """The last line, if it has no line break."""
        rest = self._stream.feed(self._decoder.decode(b"", final=True)) + self._stream.flush()
        lines = self._lines(rest)
        if self._line:
            lines.append(self._take())
        return lines

    def _lines(self, text: str) -> list[str]:
        done: list[str] = []
        for piece in text.splitlines(keepends=True) if "\n" not in text else _split(text):
            self._hold(piece.rstrip("\n"))
            if piece.endswith("\n"):
                done.append(self._take())
        return done

    def _hold(self, piece: str) -> None:
        room = self._line_characters - len(self._line)
        self._line += piece[:room]
        self._cut += max(0, len(piece) - room)

    def _take(self) -> str:
        line = self._line + (f" … ({self._cut} more characters)" if self._cut else "")
        self._line, self._cut = "", 0
        return line


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return [*(line + "\n" for line in lines[:-1]), lines[-1]]
