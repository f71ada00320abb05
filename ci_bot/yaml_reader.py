"""YAML as data: the one reader of it, for both processes.

Nothing in a text is run. Its size, its depth and its aliases are limited before anything grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
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
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.parser import Parser

__all__ = [
    "MOST_NODES",
    "EndlessYaml",
    "MappingNode",
    "Node",
    "PositionedDocument",
    "ScalarNode",
    "SequenceNode",
    "UnfitYaml",
    "UnreadYaml",
    "YamlPlace",
    "compose_yaml",
    "read_plain_yaml",
    "read_yaml",
    "read_yaml_or_none",
]

# A place in a document: keys, and the positions of items in lists.
YamlPlace = tuple[str | int, ...]

# Counted with every alias written out. No configuration and no test has so many; nine lines of
# aliases of aliases make a billion, and code that walks through them never ends.
MOST_NODES = 200_000
# The parser looks ahead through every open bracket, so it is depth that makes it slow.
MOST_LEVELS = 100
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?")
# What the library raises for a value or an escape that has no meaning, such as `!!int ""`.
_OF_VALUES = (ValueError, LookupError, OverflowError, TypeError, AttributeError)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


class UnfitYaml(Exception):
    """The text is not YAML, or YAML that is not accepted here; `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class UnreadYaml(UnfitYaml):
    """It may be YAML, but it is too deep or too large to be read here."""


class EndlessYaml(UnreadYaml):
    """Its aliases make it too large."""


@dataclass(frozen=True)
class PositionedDocument:
    """A document and the lines of its parts."""

    data: Any
    known: dict[YamlPlace, int] = field(default_factory=dict)

    def find_line_of_part(self, place: YamlPlace) -> int:
        """Returns the line of a part; if it does not exist, of the part that would hold it."""
        while place and place not in self.known:
            place = place[:-1]
        return self.known.get(place, 1)


class _BoundedParser(Parser):
    """A parser that stops at the first event that is not accepted."""

    most_levels, most_values, is_plain = MOST_LEVELS, MOST_NODES, False

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._levels = self._values = self._documents = 0

    def get_event(self) -> Event:
        event: Event = super().get_event()
        line = event.start_mark.line + 1
        if self.is_plain and isinstance(event, AliasEvent):
            raise UnfitYaml("aliases (`*name`) are not taken: write the value out", line)
        if self.is_plain and getattr(event, "tag", None) is not None:
            raise UnfitYaml("tags (`!name`) are not taken: write the value alone", line)
        self._documents += isinstance(event, DocumentStartEvent)
        if self._documents > 1:
            raise UnfitYaml("a second document begins: there may be one", line)
        self._values += isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent)
        self._levels += isinstance(event, MappingStartEvent | SequenceStartEvent)
        self._levels -= isinstance(event, MappingEndEvent | SequenceEndEvent)
        if self._levels > self.most_levels:
            raise UnreadYaml(f"it is nested more than {self.most_levels} deep", line)
        if self._values > self.most_values:
            raise UnreadYaml(f"it holds more than {self.most_values:,} values", line)
        return event


class _PlainParser(_BoundedParser):
    most_levels, most_values, is_plain = 10, 20_000, True


def compose_yaml(text: str) -> Node | None:
    """Returns the nodes of the one document in `text`; None if it is empty.

    An alias stays one node, and a tag is not followed.

    Raises:
        UnfitYaml: the text is no document, or has a key twice.
        UnreadYaml: it is nested too deep, or holds too much.
    """
    with _translate_errors(text):
        return _compose_document(_make_reader(_BoundedParser), text)


def read_yaml(text: str) -> Any:
    """Reads the document in `text` as SQLMesh does, with aliases and merges written out.

    Raises:
        UnfitYaml: as for `compose_yaml`, or it has a tag that makes more than data.
        EndlessYaml: it contains itself, or too much.
    """
    with _translate_errors(text):
        reader = _make_reader(_BoundedParser)
        root = _compose_document(reader, text)
        if _count_yaml_nodes(root, {}) > MOST_NODES:
            raise EndlessYaml("it is too much with its aliases written out", 1)
        return None if root is None else reader.constructor.construct_document(root)


def read_yaml_or_none(text: str) -> Any:
    """Returns the document as `read_yaml` does, or None if it cannot be read."""
    try:
        return read_yaml(text)
    except UnfitYaml:
        return None


def read_plain_yaml(text: str) -> PositionedDocument:
    """Reads the document in `text`, and the line of every part of it.

    It is for a text that people write for this program. Keys are words, and values are text, except
    numbers, true, false and null.

    Raises:
        UnfitYaml: as for `compose_yaml`, or it has an alias or a tag, or more than a person writes.
    """
    found = PositionedDocument(None)
    with _translate_errors(text):
        root = _compose_document(_make_reader(_PlainParser), text)
    data = None if root is None else _read_plain_node(root, (), found.known)
    return PositionedDocument(data, found.known)


def _make_reader(parser: type[Parser]) -> YAML:
    reader = YAML(typ="safe", pure=True)
    reader.Parser = parser
    return reader


@contextmanager
def _translate_errors(text: str) -> Iterator[None]:
    """Turns the library's errors into one sentence and a line."""
    try:
        yield
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or "it cannot be read"
        raise UnfitYaml(f"it is not YAML: {problem}", mark.line + 1 if mark else 1) from error
    except (YAMLError, *_OF_VALUES) as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise UnfitYaml("it holds values or characters that YAML does not allow", line) from error
    except RecursionError as error:
        raise UnreadYaml("it is nested too deep", 1) from error


def _compose_document(reader: YAML, text: str) -> Node | None:
    root: Node | None = reader.compose(text)
    todo, seen = [root], set[int]()
    while todo:
        node = todo.pop()
        if isinstance(node, ScalarNode) or node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            _refuse_repeated_keys(node)
        todo += _list_children(node)
    return root


def _refuse_repeated_keys(node: MappingNode) -> None:
    lines: dict[str, int] = {}
    for key in (key for key, _ in node.value if isinstance(key, ScalarNode)):
        line = key.start_mark.line + 1
        if key.value in lines:
            shown = _shorten_yaml_error_text(key.value)
            raise UnfitYaml(f"the key `{shown}` is in line {lines[key.value]}, too", line)
        lines[key.value] = line


def _list_children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, SequenceNode) else []


def _count_yaml_nodes(node: Node | None, known: dict[int, int]) -> int:
    """Counts the nodes with every alias written out.

    Args:
        known: The counts of lists and mappings so far. One that is still being counted has no end
            yet, so it counts as more than allowed, and so does a document that contains itself.
    """
    if node is None or isinstance(node, ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST_NODES + 1
        known[id(node)] = 1 + sum(_count_yaml_nodes(child, known) for child in _list_children(node))
    return known[id(node)]


def _read_plain_node(node: Node, place: YamlPlace, known: dict[YamlPlace, int]) -> Any:
    # People look for the line of a key, so it stays if it is known.
    known.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, SequenceNode):
        return [
            _read_plain_node(item, (*place, position), known)
            for position, item in enumerate(node.value)
        ]
    if isinstance(node, ScalarNode):
        return _parse_scalar(node)
    found: dict[str, Any] = {}  # what people wrote; code that uses a part checks its type
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, ScalarNode):
            raise UnfitYaml("a key is a list or a mapping; it must be a word", line)
        inside = (*place, key.value)
        known[inside] = line
        found[key.value] = _read_plain_node(value, inside, known)
    return found


def _parse_scalar(node: ScalarNode) -> Any:
    """Parses a single value: in quotes it is text, without them what YAML 1.2 makes of it.

    `off` and dates are text there, too.
    """
    text: str = node.value
    if node.style:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _shorten_yaml_error_text(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain[:60].replace("`", "'")
