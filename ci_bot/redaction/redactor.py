"""The redactor: exact forms of known secrets and shapes of unknown ones, in a text or a stream.

A text is handled line by line, and a line is cut only at places that depend on the text itself. So
it does not matter in which pieces a text arrives: `redact(text)` is the stream with one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from operator import is_
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

from ci_bot.protocol.base import VerbatimContract
from ci_bot.redaction.known_secrets import KnownSecretValues
from ci_bot.redaction.literals import SecretEntryReader, find_spans_of_named_secrets
from ci_bot.redaction.shapes import (
    BEGIN_KEY,
    END_KEY,
    KEY_BODY,
    YAML_MARK,
    YAML_VALUE,
    Span,
    find_echoed_secret_input,
    find_issued_credentials,
    find_placed_credentials,
)

# Control sequences of terminals (colours, titles, hyperlinks), which are invisible when printed.
#
# Every viewer of a text removes them. So a text is checked as it will be shown: a sequence in the
# middle of a value does not hide the value.


TERMINAL_CODE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, hyperlinks
    r"|\x1b[@-Z\\-_]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)


def strip_terminal_codes_for_redaction(text: str) -> str:
    """Returns `text` as a terminal shows it, without colours."""
    return TERMINAL_CODE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def list_places_before_redaction(text: str) -> list[int]:
    """Lists the places in `text` of each character of the stripped text, and of its end."""
    places: list[int] = []
    position = 0
    for code in TERMINAL_CODE.finditer(text):
        places.extend(range(position, code.start()))
        position = code.end()
    places.extend(range(position, len(text) + 1))
    return places


def restore_span_before_redaction(span: Span, places: list[int]) -> Span:
    """Turns a span of the stripped text into one of the original, with all of its characters."""
    start, end = span
    return (places[start], places[end - 1] + 1) if end > start else (places[start], places[start])


MASK = "***"
# Longer lines are handled in segments; no shape matches more than LONGEST_SHAPE characters.
LINE_SEGMENT = 65_536
LONGEST_SHAPE = 10_000

Document = TypeVar("Document", bound="BaseModel")


class Redactor:
    """Replaces secrets by `***`.

    Args:
        secrets: Values that the bot knows. A short value is replaced only if it is a separate word,
            and a value that anybody can guess is not replaced at all (`known_secrets`).
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = KnownSecretValues(secrets)
        self._longest = max(LONGEST_SHAPE, self._known.longest)
        # Documents repeat their names and sentences many times, and the bot checks them twice.
        self._text = cache(self._redact_text)

    def __repr__(self) -> str:
        return f"Redactor({self._known.count} secrets)"

    def redact(self, text: str) -> str:
        """Returns `text` without its secrets."""
        stream = self.open_stream()
        return stream.feed_text(text) + stream.flush_rest()

    def _redact_text(self, text: str) -> str:
        """Returns the same object if it has no secret, so that no second one is kept beside it."""
        redacted = self.redact(text)
        return text if redacted == text else redacted

    def open_stream(self) -> StreamRedactor:
        """Opens a redactor for one text that arrives in pieces."""
        return StreamRedactor(self)

    def redact_document(self, document: Document) -> Document:
        """Returns a document without secrets; fields that are compared stay as they are."""
        return redact_document(document, self._text)

    def find_spans(self, line: str) -> list[Span]:
        """Returns the places in one line (or a segment) that must not be shown, in order.

        A line with terminal codes is checked as it is and as it will be shown.
        """
        spans = self._find_spans(line)
        shown = strip_terminal_codes_for_redaction(line)
        if shown != line:
            places = list_places_before_redaction(line)
            spans += [
                restore_span_before_redaction(span, places) for span in self._find_spans(shown)
            ]
        return _merge_redacted_spans(spans)

    def _find_spans(self, line: str) -> list[Span]:
        spans = [
            span
            for found in (
                find_issued_credentials,
                find_placed_credentials,
                find_echoed_secret_input,
            )
            for _, span in found(line)
        ]
        spans += find_spans_of_named_secrets(line)
        spans += self._known.find_spans(line)
        return spans

    def find_cut(self, line: str) -> int | None:
        """Returns where a long line may be cut without cutting a secret; None if it is short."""
        window = LINE_SEGMENT + self._longest
        if len(line) < window:
            return None
        head = line[:window]
        markers = [match.span() for key in (BEGIN_KEY, END_KEY) for match in key.finditer(head)]
        for start, end in _merge_redacted_spans(self.find_spans(head) + markers):
            if start < LINE_SEGMENT < end:
                # A secret that fills the window from its start is removed in one piece.
                return start if start > 0 else end
        return LINE_SEGMENT


class StreamRedactor:
    """Takes one text in any pieces, and returns it without its secrets."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._pending: list[str] = []
        self._pending_length = 0
        self._in_key = False
        self._repeated = False
        self._netrc = SecretEntryReader()

    def feed_text(self, piece: str) -> str:
        """Returns what can already be shown: all whole lines, and long lines up to a cut."""
        done: list[str] = []
        lines = piece.split("\n")
        for line in lines[:-1]:
            self._hold_piece(line + "\n")
            done.append(self._release_long())
            done.append(self._redact_segment(self._take_held()))
        self._hold_piece(lines[-1])
        done.append(self._release_long())
        return "".join(done)

    def flush_rest(self) -> str:
        """Returns the rest, when no more will come."""
        return self._redact_segment(self._take_held())

    def _hold_piece(self, piece: str) -> None:
        if piece:
            self._pending.append(piece)
            self._pending_length += len(piece)

    def _take_held(self) -> str:
        line = "".join(self._pending)
        self._pending, self._pending_length = [], 0
        return line

    def _release_long(self) -> str:
        if self._pending_length < LINE_SEGMENT + LONGEST_SHAPE:
            return ""
        line, done = self._take_held(), []
        while (cut := self._redactor.find_cut(line)) is not None:
            done.append(self._redact_segment(line[:cut]))
            line = line[cut:]
        self._hold_piece(line)
        return "".join(done)

    def _redact_segment(self, text: str) -> str:
        """Redacts a line or a segment; only private keys and .netrc entries span several lines."""
        body = text.rstrip("\r\n")
        ending = text[len(body) :]
        shown = strip_terminal_codes_for_redaction(body)
        if shown != body and (self._in_key or BEGIN_KEY.search(shown)):
            return self._redact_segment(shown + ending)  # such a line needs no colours
        if self._in_key:
            end = END_KEY.search(body)
            if end is not None:
                self._in_key = False
                return MASK + self._redact_segment(text[end.end() :])
            if KEY_BODY.fullmatch(body):
                return (MASK[: len(body)] if body.strip() else body) + ending
            self._in_key = False
        repeated, self._repeated = self._repeated, YAML_MARK.fullmatch(shown) is not None
        value = YAML_VALUE.fullmatch(body) if repeated else None
        if value is not None:
            start = value.start(value.lastindex or 0)
            return self._redact_plain(body[:start]) + MASK + ending
        passwords = self._netrc.list_passwords(shown)
        begin = _find_unfinished_secret_key(body)
        if begin is None:
            return (
                self._redact_plain(shown, passwords) + ending
                if passwords
                else self._redact_plain(text)
            )
        self._in_key = True
        return self._redact_plain(body[:begin]) + MASK + ending

    def _redact_plain(self, text: str, more: Iterable[Span] = ()) -> str:
        """Returns `text`, a line or a part of one, without its secrets and the places in `more`."""
        parts, position = [], 0
        for start, end in _merge_redacted_spans([*self._redactor.find_spans(text), *more]):
            parts += [text[position:start], MASK]
            position = end
        return "".join(parts) + text[position:]


def _find_unfinished_secret_key(line: str) -> int | None:
    """Returns where a private key begins that does not end in the same line."""
    for begin in BEGIN_KEY.finditer(line):
        if not END_KEY.search(line, begin.end()):
            return begin.start()
    return None


def _merge_redacted_spans(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


_BY_SHAPE = Redactor()


def redact_shapes(text: str) -> str:
    """Returns `text` without credentials that show by their form, their place or their name."""
    return _BY_SHAPE.redact(text)


# Shortening a text that may hold secrets which are not yet removed.


LONGEST_QUOTED = 60


def shorten_redacted(text: str, most: int) -> str:
    """Returns the beginning of `text`, at most `most` characters, without half a word at its end.

    Half a secret does not look like one. The process that cuts the text knows no secrets, and the
    one that removes them gets the text later.
    """
    if len(text) <= most:
        return text
    head = text[: most - 1]
    if not text[most - 1].isspace():
        words = head.split()
        head = head[: head.rindex(words[-1])] if words and not head[-1].isspace() else head
    return f"{head.rstrip()}…"


def quote_value(value: str) -> str:
    """Quotes a person's value for a sentence: on one line, and cut if it is long.

    Text that looks like a credential is removed first: nobody would recognise half of one.
    """
    text = redact_shapes(value.strip())
    rest = len(text) - LONGEST_QUOTED
    more = f" and {rest:,} more characters" if rest > 0 else ""
    return f"{text[:LONGEST_QUOTED]!r}{more}"


# Removes secrets from a whole document, field by field.
#
# Values of a closed set or a fixed form (a decision, a commit, a time, an id) cannot hold a secret.
# They stay as they are, because they are compared with others.


Redact = Callable[[str], str]

_Document = TypeVar("_Document", bound=BaseModel)


def redact_document(document: _Document, redact: Redact) -> _Document:
    """Returns `document` with `redact` applied to every text that came from outside.

    Contracts are frozen, so parts without a secret are not copied: nearly all of a large report.
    """
    changed = {}
    for name in _list_redacted_fields(type(document)):
        value = getattr(document, name)
        redacted = _redact_json_value(value, redact)
        if redacted is not value:
            changed[name] = redacted
    # The copy needs no validation: no text has become longer.
    return document.model_copy(update=changed) if changed else document


def _redact_json_value(value: Any, redact: Redact) -> Any:
    """Returns the value without secrets; the same object if it has none."""
    if isinstance(value, str):
        redacted = redact(value)
        return value if redacted == value else redacted
    if isinstance(value, BaseModel):
        return redact_document(value, redact)
    if isinstance(value, list | tuple):
        parts = [_redact_json_value(item, redact) for item in value]
        return value if all(map(is_, parts, value)) else type(value)(parts)
    if isinstance(value, dict):
        pairs = [
            (_redact_json_value(key, redact), _redact_json_value(item, redact))
            for key, item in value.items()
        ]
        same = all(
            key is before and item is old
            for (key, item), (before, old) in zip(pairs, value.items(), strict=True)
        )
        return value if same else dict(pairs)
    return value


@cache
def _list_redacted_fields(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(
        name
        for name, field in model.model_fields.items()
        if not _is_type_without_redaction(field.annotation)
        and not _is_fixed_without_redaction(field.metadata)
    )


def _is_type_without_redaction(annotation: Any) -> bool:
    """Whether every text of this type is one of ours: a literal, or of a fixed form."""
    origin = get_origin(annotation)
    if origin is Literal or annotation in (int, float, bool, type(None)):
        return True
    if origin is Annotated:
        base, *extras = get_args(annotation)
        return _is_type_without_redaction(base) or any(
            _is_fixed_without_redaction([extra, *getattr(extra, "metadata", [])])
            for extra in extras
        )
    if origin in (Union, UnionType):
        return all(_is_type_without_redaction(option) for option in get_args(annotation))
    return False


def _is_fixed_without_redaction(metadata: list[Any]) -> bool:
    return any(
        isinstance(item, VerbatimContract) or getattr(item, "pattern", None) is not None
        for item in metadata
    )
