"""The secret parts of a value that holds more than a secret: an address, a document, a list.

A program takes such a value apart, and then prints the password alone.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, unquote_plus

from ci_bot.secrets.literals import is_random
from ci_bot.secrets.names import is_suspect
from ci_bot.secrets.shapes import issued, placed

# A value that is larger is no credential but a file; its forms alone would cost seconds.
LARGEST = 100_000
_DEEPEST = 8
_URL_USER = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://([^\s/\"'<>]{0,2000})@")
# Passwords with a bare slash in them: no URL, and accepted by many a driver.
_URL_LOOSE = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s:/@\"'<>]{0,500}:([^\s\"'<>]{1,2000})@"
)
# `name=value` and `name: value`, as in connection strings, options, properties and YAML.
_MEMBER = re.compile(
    r"""
    (?<![\w.])(?P<name>[A-Za-z_][\w.\-]{0,200}) \s{0,3} (?:=|:(?=\s)|:=) \s{0,20}
    (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.|'')*)' | (?P<bare>[^\s;,&"']+) )
    """,
    re.VERBOSE,
)
# spark-defaults.conf and .netrc: blanks between name and value.
_BLANKS = re.compile(r"(?m)^[ \t]*([A-Za-z_][\w.\-]{0,200})[ \t]+(\S+)[ \t]*$|\bpassword\s+(\S+)")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]{40,}={0,2}\s*")


def secret_parts(value: str, *, also_random: bool = True) -> set[str]:
    """What in `value` is a secret by itself; empty where it is no structured value.

    Args:
        also_random: Members without a name that says so count where they look random.
    """
    if len(value) > LARGEST:
        return set()
    found = _Parts(also_random).of(value, _DEEPEST)
    return {part for part in found if part.strip() and part != value}


class _Parts:
    """Takes values apart, to a certain depth."""

    def __init__(self, also_random: bool) -> None:
        self._also_random = also_random

    def of(self, text: str, depth: int) -> Iterator[str]:
        """The secret parts of a text."""
        if depth == 0:
            return
        document = _document(text)
        if document is not None:
            yield from self._members("", document, depth - 1)
            return
        yield from _in_addresses(text)
        for line in text.splitlines():
            for found in (issued(line), placed(line)):
                for _, (start, end) in found:
                    yield line[start:end]
        yield from self._in_lists(text, depth - 1)

    def _is_secret(self, name: str, value: str) -> bool:
        return is_suspect(name) or (self._also_random and is_random(value))

    def _members(self, name: str, value: Any, depth: int) -> Iterator[str]:
        """The secrets among the members of a document."""
        if depth == 0:
            return
        if isinstance(value, dict):
            for key, item in value.items():
                yield from self._members(str(key), item, depth - 1)
        elif isinstance(value, list):
            for item in value:
                yield from self._members(name, item, depth - 1)
        elif isinstance(value, str):
            if self._is_secret(name, value):
                yield value
            yield from self.of(value, depth - 1)
        elif isinstance(value, int) and not isinstance(value, bool) and is_suspect(name):
            yield str(value)

    def _in_lists(self, text: str, depth: int) -> Iterator[str]:
        for found in _MEMBER.finditer(text):
            written = found["double"] or found["single"] or found["bare"] or ""
            inner = re.sub(r"\\(.)", r"\1", written)
            secret = self._is_secret(found["name"], inner)
            if secret:
                yield from (written, inner, unquote_plus(inner), inner.replace("''", "'"))
            if found["bare"] is None and not secret:
                yield from self.of(inner, depth)
            elif found["bare"] and "=" in inner and depth > 0:
                # `options=password=...`, which as a whole may look random by its password alone.
                yield from self._in_lists(inner, depth - 1)
        for found in _BLANKS.finditer(text):
            if found[3]:
                yield found[3]
            elif is_suspect(found[1]):
                yield found[2]


def _document(text: str) -> Any:
    """The JSON object or list that `text` is, plain or in base64; None where it is none."""
    for candidate in (text, _decoded(text)):
        if candidate.lstrip()[:1] in ("{", "["):
            try:
                found = json.loads(candidate, strict=False)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict | list):
                return found
    return None


def _decoded(text: str) -> str:
    if not _BASE64.fullmatch(text):
        return ""
    joined = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def _in_addresses(text: str) -> Iterator[str]:
    for found in _URL_USER.finditer(text):
        user, colon, password = found[1].partition(":")
        if colon:
            yield from (password, unquote(password))
        if is_random(user):  # a token in the place of a user
            yield from (user, unquote(user))
    for found in _URL_LOOSE.finditer(text):
        yield from (found[1], unquote(found[1]))
