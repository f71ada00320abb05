"""From the bytes of a policy file to its entries, or to one sentence that says in which line it is
wrong.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from pydantic import BaseModel, ValidationError
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

from ci_bot.bot.policy.document import (
    EVERY_RULE,
    PROTECTED,
    UNWEIGHED,
    IgnoreEntry,
    MessageEntry,
    PolicyEntry,
    PolicyFile,
    SeverityEntry,
)
from ci_bot.errors import BadInput

# YAML as plain data, with the line of every part of it. Nothing in a document is run or expanded.
#
# The text is a pull request's, and this process holds the token. So the parser gives its events
# only, which build nothing by themselves: aliases, tags and keys that stand twice are refused
# where they are met, and depth and number of values are bounded before anything grows.


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
class PositionedDocument:
    """A document and where its parts stand."""

    data: Any
    known: dict[YamlPlace, int] = field(default_factory=dict)

    def line_of_part(self, place: YamlPlace) -> int:
        """The line of a part; of something that is not there, of what would hold it."""
        while place and place not in self.known:
            place = place[:-1]
        return self.known.get(place, 1)


def read_policy_yaml(text: str) -> PositionedDocument:
    """The one document in `text`.

    Raises:
        UnfitYaml: it is none, or has aliases, tags, a key twice, or too much of anything.
    """
    found = PositionedDocument(None)
    try:
        data = _YamlReader(
            found.known, _bound_events(YAML(typ="safe", pure=True).parse(text))
        ).read_document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = error.problem or "it cannot be read"
        raise UnfitYaml(f"it is no YAML: {told}", mark.line + 1 if mark else 1) from error
    except (YAMLError, ValueError) as error:  # characters that no YAML has
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise UnfitYaml("it holds characters that YAML does not allow", line) from error
    return PositionedDocument(data, found.known)


def _bound_events(events: Iterator[Event]) -> Iterator[Event]:
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


class _YamlReader:
    """One pass over the events. Depth is bounded before an event gets here."""

    def __init__(self, known: dict[YamlPlace, int], events: Iterator[Event]) -> None:
        self._known = known
        self._events = events

    def read_document(self) -> Any:
        """The value of the document; None if there is nothing in it."""
        data = None
        for event in self._events:
            if isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent):
                data = self._read_value(event, ())
        return data

    def _read_value(self, event: Event, place: YamlPlace) -> Any:
        # The line of a key is where people look, so it stays if it is known.
        self._known.setdefault(place, event.start_mark.line + 1)
        if isinstance(event, MappingStartEvent):
            return self._read_mapping(place)
        if isinstance(event, SequenceStartEvent):
            return self._read_sequence(place)
        return _parse_scalar(event)

    def _read_mapping(self, place: YamlPlace) -> dict[str, Any]:
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
                    f"the key `{_shorten_text(event.value)}` stands in line {first}, too", line
                )
            self._known[here] = line
            found[event.value] = self._read_value(next(self._events), here)
        return found

    def _read_sequence(self, place: YamlPlace) -> list[Any]:
        found: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            found.append(self._read_value(event, (*place, len(found))))
        return found


def _parse_scalar(event: Any) -> Any:
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


def _shorten_text(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain[:60].replace("`", "'")


FILE_NAME = ".sqlmesh-review.yaml"

MOST_POLICY_BYTES = 64 * 1024
# An ignore without an end in sight is a rule that is off.
LONGEST_IGNORE = timedelta(days=366)

_MOST_SHOWN = 5

_HINT = "`ci-bot policy check` reads it on a laptop; docs/policy.md has every key."

# What pydantic's words for these would say to somebody who writes YAML.
_EXPECTED = {
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "at most {le:,g}",
    "too_short": "a list with something in it",
    "too_long": "a list of at most {max_length}",
    "string_too_long": "at most {max_length} characters long",
}

Problem = tuple[int, str]


class UnfitPolicy(BadInput):
    """A policy file that cannot be used: exit 2, with the line."""

    reason_code = "bad_policy"


def read_policy(content: bytes, *, path: str, rules: Collection[str], today: date) -> PolicyFile:
    """The entries of a file, each with its line.

    Args:
        path: Relative to the repository, for messages.
        rules: Every rule that there is.

    Raises:
        UnfitPolicy: it cannot be read, or says something that nothing here understands.
    """
    text = _decode_content(content, path)
    try:
        lines = read_policy_yaml(text)
    except UnfitYaml as error:
        raise make_unfit_policy(path, [(error.line, error.message)]) from error
    data = {} if lines.data is None else lines.data
    if not isinstance(data, dict):
        raise make_unfit_policy(path, [(1, "it must hold keys, such as `severity:`")])
    try:
        found = PolicyFile.model_validate(data)
    except ValidationError as error:
        raise make_unfit_policy(path, _list_problems(error, lines)) from error
    for name in ("severity", "ignore", "statements", "data_diff", "owners", "messages"):
        for position, entry in enumerate(getattr(found, name)):
            entry.found_at(path, lines.line_of_part((name.replace("_", "-"), position)))
    if found.trust is not None:
        found.trust.found_at(path, lines.line_of_part(("trust", "code-on-load")))
    wrong = [
        *_wrong_rules(found, lines, rules),
        *_too_late(found.ignore, lines, today),
    ]
    if wrong:
        raise make_unfit_policy(path, wrong)
    return found


def make_unfit_policy(path: str, problems: Iterable[Problem]) -> UnfitPolicy:
    """The failure about some problems of a file."""
    every = sorted(set(problems))
    told = "; ".join(f"line {line}: {text}" for line, text in every[:_MOST_SHOWN])
    more = len(every) - _MOST_SHOWN
    return UnfitPolicy(
        f"The policy `{path}` cannot be used: {told}{f'; and {more} more' if more > 0 else ''}.",
        hint=_HINT,
        path=path,
        line=every[0][0],
    )


def _decode_content(content: bytes, path: str) -> str:
    if len(content) > MOST_POLICY_BYTES:
        told = f"it has more than {MOST_POLICY_BYTES // 1024} KiB, which no policy needs"
        raise make_unfit_policy(path, [(1, told)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise make_unfit_policy(path, [(line, "it is not UTF-8")]) from error


def _list_problems(error: ValidationError, lines: PositionedDocument) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        place: YamlPlace = tuple(item["loc"])
        yield lines.line_of_part(place), _describe_problem(item, place)


def _describe_problem(item: Any, place: YamlPlace) -> str:
    key = next((str(part) for part in reversed(place) if isinstance(part, str)), "")
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        return f"`{key}` is no key here{_find_near_name(key, _keys_at(place))}"
    if kind == "missing":
        return f"`{key}` is missing"
    if kind == "literal_error":
        expected = str(context["expected"]).replace("'", "`")
        return f"`{key}` must be {expected}, and not {_quote_value(item['input'])}"
    if kind == "value_error":
        told = str(context["error"])
        return told if told.startswith("`") or "needs" in told else f"`{key}` {told}"
    if kind in ("model_type", "model_attributes_type"):
        return f"`{key}` must hold keys, and not {_quote_value(item['input'])}"
    what = _EXPECTED.get(kind, str(item["msg"])[:1].lower() + str(item["msg"])[1:])
    return f"`{key}` must be {what.format(**context)}, and not {_quote_value(item['input'])}"


def _quote_value(value: Any) -> str:
    text = "".join(letter if letter.isprintable() else "?" for letter in str(value))
    return f"`{text[:60].replace('`', chr(39))}`"


def _keys_at(place: YamlPlace) -> list[str]:
    """The keys that are known where the last key of `place` stands."""
    model: type[BaseModel] | None = PolicyFile
    for part in place[:-1]:
        if isinstance(part, str) and model is not None:
            model = _find_nested_model(model, part)
    if model is None:
        return []
    return [str(field.alias or name) for name, field in model.model_fields.items()]


def _find_nested_model(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    field = model.model_fields.get(key.replace("-", "_"))
    if field is None:
        return None
    for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _find_near_name(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=3)
    return f" (did you mean {' or '.join(f'`{one}`' for one in found)}?)" if found else ""


def _wrong_rules(
    found: PolicyFile, lines: PositionedDocument, rules: Collection[str]
) -> Iterator[Problem]:
    named: tuple[tuple[str, Sequence[SeverityEntry | IgnoreEntry | MessageEntry]], ...] = (
        ("severity", found.severity),
        ("ignore", found.ignore),
        ("messages", found.messages),
    )
    for key, entries in named:
        for position, entry in enumerate(entries):
            for item, rule in enumerate(entry.rule):
                line = lines.line_of_part((key, position, "rule", item))
                problem = _wrong_rule(rule, entry, rules)
                if problem is not None:
                    yield line, problem


def _wrong_rule(
    rule: str, entry: SeverityEntry | IgnoreEntry | MessageEntry, rules: Collection[str]
) -> str | None:
    if rule == EVERY_RULE:
        return None
    if rule not in rules:
        return f"there is no rule {_quote_value(rule)}{_find_near_name(rule, rules)}"
    if isinstance(entry, MessageEntry):
        return None  # about any rule there may be something to say
    if rule in UNWEIGHED:
        return f"`{rule}` always has its own weight, because {UNWEIGHED[rule]}"
    if isinstance(entry, SeverityEntry) and rule in PROTECTED and entry.severity != "blocker":
        return (
            f"`{rule}` is not made lighter, because {PROTECTED[rule]}; ignore it for named models "
            "or paths until a day, or allow what a statement writes"
        )
    return None


def _too_late(
    entries: Iterable[PolicyEntry], lines: PositionedDocument, today: date
) -> Iterator[Problem]:
    latest = today + LONGEST_IGNORE
    for position, entry in enumerate(entries):
        if isinstance(entry, IgnoreEntry) and entry.until > latest:
            yield (
                lines.line_of_part(("ignore", position, "until")),
                f"`until` is more than a year away; {latest.isoformat()} is the latest day",
            )
