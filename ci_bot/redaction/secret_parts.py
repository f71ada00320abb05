"""The secret parts of a value that holds more than a secret: an address, a document, a list.

A program takes such a value apart, and then prints the password alone.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus

from ci_bot.redaction.literals import is_random, is_suspect, split_name_words
from ci_bot.redaction.shapes import find_issued_credentials, find_placed_credentials

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


def find_secret_parts(value: str, *, also_random: bool = True) -> set[str]:
    """What in `value` is a secret by itself; empty if it is no structured value.

    Args:
        also_random: Members without a name that says so count where they look random.
    """
    if len(value) > LARGEST:
        return set()
    found = _SecretParts(also_random).find_parts_of_text(value, _DEEPEST)
    return {part for part in found if part.strip() and part != value}


class _SecretParts:
    """Takes values apart, to a certain depth."""

    def __init__(self, also_random: bool) -> None:
        self._also_random = also_random

    def find_parts_of_text(self, text: str, depth: int) -> Iterator[str]:
        """The secret parts of a text."""
        if depth == 0:
            return
        document = _parse_document(text)
        if document is not None:
            yield from self._find_parts_of_members("", document, depth - 1)
            return
        yield from _find_in_addresses(text)
        for line in text.splitlines():
            for found in (find_issued_credentials(line), find_placed_credentials(line)):
                for _, (start, end) in found:
                    yield line[start:end]
        yield from self._find_in_lists(text, depth - 1)

    def _is_secret(self, name: str, value: str) -> bool:
        return is_suspect(name) or (self._also_random and is_random(value))

    def _find_parts_of_members(self, name: str, value: Any, depth: int) -> Iterator[str]:
        """The secrets among the members of a document."""
        if depth == 0:
            return
        if isinstance(value, dict):
            for key, item in value.items():
                yield from self._find_parts_of_members(str(key), item, depth - 1)
        elif isinstance(value, list):
            for item in value:
                yield from self._find_parts_of_members(name, item, depth - 1)
        elif isinstance(value, str):
            if self._is_secret(name, value):
                yield value
            yield from self.find_parts_of_text(value, depth - 1)
        elif isinstance(value, int) and not isinstance(value, bool) and is_suspect(name):
            yield str(value)

    def _find_in_lists(self, text: str, depth: int) -> Iterator[str]:
        for found in _MEMBER.finditer(text):
            written = found["double"] or found["single"] or found["bare"] or ""
            inner = re.sub(r"\\(.)", r"\1", written)
            secret = self._is_secret(found["name"], inner)
            if secret:
                yield from (written, inner, unquote_plus(inner), inner.replace("''", "'"))
            if found["bare"] is None and not secret:
                yield from self.find_parts_of_text(inner, depth)
            elif found["bare"] and "=" in inner and depth > 0:
                # `options=password=...`, which as a whole may look random by its password alone.
                yield from self._find_in_lists(inner, depth - 1)
        for found in _BLANKS.finditer(text):
            if found[3]:
                yield found[3]
            elif is_suspect(found[1]):
                yield found[2]


def _parse_document(text: str) -> Any:
    """The JSON object or list that `text` is, plain or in base64; None if it is none."""
    for candidate in (text, _decode_text(text)):
        if candidate.lstrip()[:1] in ("{", "["):
            try:
                found = json.loads(candidate, strict=False)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict | list):
                return found
    return None


def _decode_text(text: str) -> str:
    if not _BASE64.fullmatch(text):
        return ""
    joined = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def _find_in_addresses(text: str) -> Iterator[str]:
    for found in _URL_USER.finditer(text):
        user, colon, password = found[1].partition(":")
        if colon:
            yield from (password, unquote(password))
        if is_random(user):  # a token in the place of a user
            yield from (user, unquote(user))
    for found in _URL_LOOSE.finditer(text):
        yield from (found[1], unquote(found[1]))


# Which values of an environment are secrets.
#
# What reaches the project's code is a secret unless the name of its variable is harmless: to take
# out too much costs a `***`, to take out too little costs a password. Only names make a variable
# harmless, never values: a password may begin with a slash, or be digits only.


_HARMLESS = frozenset(
    (
        # The machine.
        *("PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "PWD", "OLDPWD"),
        *("SHELL", "SHLVL", "TERM", "COLUMNS", "LINES", "NO_COLOR", "USER", "LOGNAME"),
        *("HOSTNAME", "CI", "PYTHONUTF8", "PYTHONPATH", "CLASSPATH", "VIRTUAL_ENV"),
        # Java, Spark and Hadoop.
        *("SPARK_MASTER", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"),
        *("SPARK_DIST_CLASSPATH", "HADOOP_CLASSPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"),
        # SQLMesh.
        *("SQLMESH__DEFAULT_GATEWAY", "SQLMESH__PROJECT", "SQLMESH__LOG_LIMIT"),
        *("SQLMESH__DISABLE_ANONYMIZED_ANALYTICS", "SQLMESH_DEBUG", "MAX_FORK_WORKERS"),
        # By its documentation it holds a file's name.
        "GOOGLE_APPLICATION_CREDENTIALS",
    )
)

_HARMLESS_SECTIONS = ("LC_", "JAVA_HOME_", "SQLMESH__MODEL_DEFAULTS__", "SQLMESH__PLAN__")
# The last word of names whose values are places on the machine, sizes, or words that the plan
# itself is made of. Users and hosts are not here: a token may be a user, and where a warehouse is
# may be nobody's business.
_HARMLESS_ENDS = frozenset({
    "home", "dir", "dirs", "region", "port", "database", "schema", "catalog", "gateway",
    "dialect", "type", "version", "memory", "cores", "level", "timezone", "date", "tasks",
})  # fmt: skip


_SETTING = re.compile(
    r"""(?mx) ^[ \t]* (?:export[ \t]+)? (?P<name>[A-Za-z_]\w*) [ \t]*=[ \t]*
    (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^\n]*?) )
    [ \t]* (?:\#.*)? $"""
)


def read_dotenv_secrets(text: str) -> dict[str, str]:
    """The variables of a .env file, which SQLMesh reads by itself; what is no setting is left."""
    return {
        found["name"]: found["double"] or found["single"] or found["bare"] or ""
        for found in _SETTING.finditer(text)
    }


def is_harmless(name: str) -> bool:
    """Whether the name of a variable says that its value as a whole is no secret."""
    upper = name.upper()
    if upper in _HARMLESS or upper.startswith(_HARMLESS_SECTIONS):
        return True
    found = split_name_words(name)
    return bool(found) and found[-1] in _HARMLESS_ENDS and not is_suspect("_".join(found[:-1]))


def list_secret_values(environ: Mapping[str, str], passed: Callable[[str], bool]) -> Iterator[str]:
    """The values of an environment that no text may show, and the secret parts of all values.

    Args:
        environ: The environment of the bot.
        passed: Whether a variable is meant for the project's code. Its value is a secret unless
            its name is harmless. Of all other variables, those are secrets whose name says so: a
            laptop's project sees all of them, and without PATH and USER no report can be read.
    """
    for name, value in environ.items():
        secret = not is_harmless(name) and (passed(name) or is_suspect(name))
        if secret:
            yield value
        # A hash is no secret in a variable that says nothing of the kind.
        yield from find_secret_parts(value, also_random=secret)
