"""YAML as plain data, with the line of every part of it. Nothing in a document is run or expanded.

The text is a pull request's, and this process holds the token. So the parser gives its events only,
which build nothing by themselves: aliases, tags and keys that stand twice are refused where they
are met, and depth and number of values are bounded before anything grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

# Where in a document something stands: keys, and the places of items in lists.
YamlPlace = tuple[str | int, ...]

# The parser looks ahead through every bracket that is open, so depth is what makes it slow.
MOST_LEVELS = 10
MOST_VALUES = 20_000
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


class UnfitYaml(Exception):
    """The text is no YAML, or none that is taken here; `line` is where, from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Lines:
    """A document and where its parts stand."""

    data: Any
    known: dict[YamlPlace, int] = field(default_factory=dict)

    def of(self, place: YamlPlace) -> int:
        """The line of a part; of something that is not there, of what would hold it."""
        while place and place not in self.known:
            place = place[:-1]
        return self.known.get(place, 1)


def read(text: str) -> Lines:
    """The one document in `text`.

    Raises:
        UnfitYaml: it is none, or has aliases, tags, a key twice, or too much of anything.
    """
    found = Lines(None)
    try:
        data = _Reading(found.known, _bounded(YAML(typ="safe", pure=True).parse(text))).document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = error.problem or "it cannot be read"
        raise UnfitYaml(f"it is no YAML: {told}", mark.line + 1 if mark else 1) from error
    except (YAMLError, ValueError) as error:  # characters that no YAML has
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise UnfitYaml("it holds characters that YAML does not allow", line) from error
    return Lines(data, found.known)


def _bounded(events: Iterator[Event]) -> Iterator[Event]:
    """The events, up to the first that is not taken here."""
    level = values = documents = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            raise UnfitYaml("aliases (`*name`) are not taken: write the value out", line)
        if getattr(event, "tag", None) is not None:
            raise UnfitYaml("tags (`!name`) are not taken: write the value alone", line)
        documents += isinstance(event, DocumentStartEvent)
        if documents > 1:
            raise UnfitYaml("a second document begins: there may be one", line)
        if isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent):
            values += 1
        level += isinstance(event, MappingStartEvent | SequenceStartEvent)
        level -= isinstance(event, MappingEndEvent | SequenceEndEvent)
        if level > MOST_LEVELS:
            raise UnfitYaml(f"it is nested more than {MOST_LEVELS} deep", line)
        if values > MOST_VALUES:
            raise UnfitYaml(f"it holds more than {MOST_VALUES:,} values", line)
        yield event


class _Reading:
    """One pass over the events. Depth is bounded before an event gets here."""

    def __init__(self, known: dict[YamlPlace, int], events: Iterator[Event]) -> None:
        self._known = known
        self._events = events

    def document(self) -> Any:
        """The value of the document; None where there is nothing in it."""
        data = None
        for event in self._events:
            if isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent):
                data = self._value(event, ())
        return data

    def _value(self, event: Event, place: YamlPlace) -> Any:
        # The line of a key is where people look, so it stays if it is known.
        self._known.setdefault(place, event.start_mark.line + 1)
        if isinstance(event, MappingStartEvent):
            return self._mapping(place)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(place)
        return _scalar(event)

    def _mapping(self, place: YamlPlace) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            line = event.start_mark.line + 1
            if not isinstance(event, ScalarEvent):
                raise UnfitYaml("a key is a list or a mapping; it must be a word", line)
            here = (*place, event.value)
            if event.value in found:
                first = self._known[here]
                raise UnfitYaml(
                    f"the key `{_shown(event.value)}` stands in line {first}, too", line
                )
            self._known[here] = line
            found[event.value] = self._value(next(self._events), here)
        return found

    def _sequence(self, place: YamlPlace) -> list[Any]:
        found: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            found.append(self._value(event, (*place, len(found))))
        return found


def _scalar(event: Any) -> Any:
    """A single value: text in quotes, and without them what YAML 1.2 makes of it.

    `off` and dates are text there, too.
    """
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _shown(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain[:60].replace("`", "'")
