"""A cursor over the event file's JSON that names the place of everything that is wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ci_bot.errors import BadInput

T = TypeVar("T")

BIGGEST = 2**63 - 1
_SHA = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(
    r"(?!\.{1,2}/)[A-Za-z0-9_.-]{1,100}/(?!\.{1,2}\Z)[A-Za-z0-9_.-]{1,100}", re.ASCII
)


def is_repository(text: str) -> bool:
    """Whether `text` is an `owner/name` that can be put into a path as it is."""
    return _REPOSITORY.fullmatch(text) is not None


def is_sha(text: str) -> bool:
    """Whether `text` is a commit's whole id."""
    return _SHA.fullmatch(text) is not None


class Node:
    """A place in the payload that knows its path, so that every complaint can name it."""

    def __init__(self, value: object, path: str, event: str) -> None:
        self.value = value
        self.path = path
        self.event = event

    def child(self, key: str) -> Node:
        """The value at `key`; a complaint where there is none. Null counts as a value."""
        below = f"{self.path}.{key}" if self.path else key
        if not isinstance(self.value, Mapping) or key not in self.value:
            raise self._complaint(f"The event file of this {self.event} run lacks `{below}`.")
        return Node(self.value[key], below, self.event)

    def at(self, path: str) -> Node:
        """The value at a dotted path below this one."""
        node = self
        for key in path.split("."):
            node = node.child(key)
        return node

    def optional(self, path: str, read: Callable[[Node], T]) -> T | None:
        """What `read` makes of the value at `path`; None where something on the way is absent."""
        node = self
        for key in path.split("."):
            if not isinstance(node.value, Mapping) or node.value.get(key) is None:
                return None
            node = node.child(key)
        return read(node)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def name(self) -> str:
        text = self.text()
        if not text:
            raise self.wrong("a name")
        return text

    def sha(self) -> str:
        if not isinstance(self.value, str) or not is_sha(self.value):
            raise self.wrong("a commit's 40 hexadecimal digits")
        return self.value

    def repository(self) -> str:
        if not isinstance(self.value, str) or not is_repository(self.value):
            raise self.wrong("owner/name")
        return self.value

    def positive(self) -> int:
        if type(self.value) is not int or not 0 < self.value <= BIGGEST:
            raise self.wrong("a positive whole number")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def wrong(self, expected: str) -> BadInput:
        where = f"`{self.path}`" if self.path else "the whole document"
        return self._complaint(
            f"In the event file of this {self.event} run, {where} is not {expected}."
        )

    def _complaint(self, message: str) -> BadInput:
        return BadInput(
            message,
            hint=(
                "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH must be those that GitHub set for this "
                "run; a hand-made event file needs this key."
            ),
            reason_code="event_unreadable",
        )
