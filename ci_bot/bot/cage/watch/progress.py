"""What the worker says of its progress: one JSON document a line, on a pipe of its own."""

from __future__ import annotations

from pydantic import ValidationError

from ci_bot.contracts.messages import Progress


class ProgressReader:
    """Turns bytes as they come into progress messages; what is not one is dropped and counted.

    Args:
        line_bytes: Longer lines are dropped.
        lines: Later lines are dropped; the worker is not asked to be quiet, only not listened to.
    """

    def __init__(self, *, line_bytes: int, lines: int) -> None:
        self._line_bytes = line_bytes
        self._left = lines
        self._rest = b""
        self._skipping = False
        self.dropped = 0

    def feed(self, data: bytes) -> list[Progress]:
        """The messages that `data` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages: list[Progress] = []
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif (message := self._parse(line)) is not None:
                messages.append(message)
        if len(self._rest) > self._line_bytes:
            self._rest = b""
            self.dropped += not self._skipping
            self._skipping = True
        return messages

    def _parse(self, line: bytes) -> Progress | None:
        if self._left > 0 and len(line) <= self._line_bytes:
            try:
                message = Progress.model_validate_json(line)
            except ValidationError:
                pass
            else:
                self._left -= 1
                return message
        self.dropped += 1
        return None
