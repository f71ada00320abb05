"""Known secrets: the secret parts of a value that holds more, and where they are in a text.

A value may be an address, a document or a list. A program takes it apart and then prints only the
password. SQLMesh writes names in lower case, and some databases in upper case; a secret that was
used in a name is still a secret. So it is found in every form and letter case.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import shlex
import string
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from ci_bot.redaction.literals import (
    is_name_of_secret,
    is_random_like_secret,
    split_words_of_secret_name,
)
from ci_bot.redaction.shapes import Span, find_issued_credentials, find_placed_credentials

# A known secret in all the forms in which programs print it; `KnownSecretValues` ignores letter
# case.


# Shorter lines of a longer secret count as words.
SHORTEST_LINE = 6
# A line of YAML or of properties: only a part of it is secret.
_MEMBER_OF_TEXT = re.compile(r"[\"'\-\s]*[A-Za-z_][\w.\-]*[\"']?\s*(?::\s|=\S|=\s)")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~])")
_SHELL = re.compile(r"([^\w@%+=:,./-])")
_WRAPPED_AT = (64, 76)  # what `openssl base64` and `base64` do with long values


def list_encodings_of_secret(value: str) -> list[str]:
    """Lists `value` and every encoding of it, longest first, without duplicates.

    Base64 has three alignments, because a secret inside a longer text (`user:password`) starts at
    any of three bit offsets. The characters at its ends that also depend on the neighbours are
    left out.
    """
    raw = value.encode("utf-8", "surrogatepass")
    quoted = _list_quoted_forms(value)
    found = {value, *quoted, *_list_base64_forms(raw), raw.hex(), raw.hex().upper()}
    found |= {json.dumps(form)[1:-1] for form in quoted}
    return sorted((form for form in found if form), key=lambda form: (-len(form), form))


def iterate_lines_of_secret(value: str) -> Iterator[str]:
    """Yields `value`, and each line of it if it has several: programs print keys line by line."""
    # Pasted values often end with a line break, and programs strip it.
    yield from dict.fromkeys((value, value.strip()))
    parts = [line.strip() for line in value.splitlines()]
    if len(parts) > 1:
        yield from (
            line for line in parts if len(line) >= SHORTEST_LINE and not _MEMBER_OF_TEXT.match(line)
        )


def _list_quoted_forms(value: str) -> set[str]:
    """Returns how JSON, URLs, shells, XML, SQL, Python and Markdown write `value`."""
    urls = {quote(value, safe=safe, errors="replace") for safe in ("", "/", "!'()*~-_.")}
    urls.add(quote_plus(value, errors="replace"))
    urls |= {re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), url) for url in urls}
    jsons = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    jsons |= {text.replace("/", "\\/") for text in jsons}
    xml = {html.escape(value, quote=False)}
    xml |= {text.replace("'", mark) for text in xml for mark in ("&#39;", "&#x27;", "&apos;")}
    xml |= {text.replace('"', "&quot;") for text in xml}
    return {
        value,
        *urls,
        *jsons,
        shlex.quote(value)[1:-1] if shlex.quote(value) != value else value,
        _SHELL.sub(r"\\\1", value),
        *xml,
        *(value.replace(mark, mark * 2) for mark in "'\"`"),
        repr(value)[1:-1],
        repr(value.encode("utf-8", "surrogatepass"))[2:-1],
        *_spell_in_names(value),
        _MARKDOWN.sub(r"\\\1", value),
        value.replace("|", "\\|"),
    }


def _spell_in_names(value: str) -> set[str]:
    """Returns it as a part of a table's name; empty if that would be little more than `_`."""
    if sum(char.isascii() and char.isalnum() for char in value) < SHORTEST_LINE:
        return set()
    return {re.sub(r"[^A-Za-z0-9_]", "_", value), re.sub(r"\W", "_", value)}


def _list_base64_forms(raw: bytes) -> set[str]:
    found: set[str] = set()
    for offset, foreign in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        # A character of the last group that has bits of the next byte depends on that byte.
        stable = text if (offset + len(raw)) % 3 == 0 else text[:-1]
        found.add(stable[foreign:])
    padded = base64.b64encode(raw).decode()
    found.add(padded)
    for width in _WRAPPED_AT:
        if len(padded) > width:
            found.update(padded[start : start + width] for start in range(0, len(padded), width))
    return found | {text.replace("+", "-").replace("/", "_") for text in found}


# A value is removed from texts if there are at least a million of its length and kinds of
# characters: six digits, five small letters, four characters of several kinds. With three
# characters there are always fewer. Anybody can try them all, and removing such a value from every
# text would make the text unreadable.
ENOUGH = 1_000_000
# With fewer than this (eight letters, eleven digits) it is removed only if it is a separate word,
# because it may be a part of other words and numbers.
ENOUGH_ANYWHERE = 1_000_000_000_000
SHORTEST_ANYWHERE = 6
SHORTEST_FORM = 8
# Words that this action and SQLMesh write into every report. Hiding them would hide nothing.
_VOCABULARY = frozenset({
    "false", "duckdb", "postgres", "postgresql", "mysql", "mssql", "spark", "pyspark",
    "databricks", "sqlmesh", "local", "client", "cluster", "default", "warning", "error",
    "debug", "production", "staging", "development",
})  # fmt: skip

_KINDS = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
_OTHER_CHARACTERS = 33
# As many characters as the shortest form has, so each form is found by its first characters.
_HEAD = 4


def count_possible_secrets(value: str) -> int:
    """Counts the values of this length and with these kinds of characters."""
    kinds = [kind for kind in _KINDS if any(char in kind for char in value)]
    size = sum(len(kind) for kind in kinds)
    if any(all(char not in kind for kind in _KINDS) for char in value):
        size += _OTHER_CHARACTERS
    return int(size ** min(len(value), 32))


def can_secret_be_hidden(value: str) -> bool:
    """Whether a text stays readable if `value` is removed wherever it is a separate word."""
    return count_possible_secrets(value) >= ENOUGH and value.lower() not in _VOCABULARY


# A pattern cannot nest deeper groups; only a few texts are left at this depth.
_DEEPEST_FORM = 12


class KnownSecretValues:
    """Finds values and their forms in texts.

    Args:
        values: The secrets; those that cannot be hidden are left out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._anywhere: defaultdict[str, set[str]] = defaultdict(set)
        self._alone: defaultdict[str, set[str]] = defaultdict(set)
        self.longest = 0
        self.count = 0
        for value in {value for value in values if value.strip()}:
            self.count += 1
            for line in iterate_lines_of_secret(value):
                self._add_value(line)

    def _add_value(self, value: str) -> None:
        if not can_secret_be_hidden(value):
            return
        short = len(value) < SHORTEST_ANYWHERE or count_possible_secrets(value) < ENOUGH_ANYWHERE
        for form in list_encodings_of_secret(value):
            folded = fold_case_of_secret(form)
            alone = short and form == value
            if not alone and len(folded) < (SHORTEST_FORM if short else SHORTEST_ANYWHERE):
                continue
            index = self._alone if alone else self._anywhere
            index[folded[:_HEAD]].add(folded)
            self.longest = max(self.longest, len(folded))

    @cached_property
    def _head_pattern(self) -> re.Pattern[str]:
        """Where a form may begin; it consumes no characters, because forms may overlap."""
        return re.compile(f"(?={make_alternation_of_secrets({*self._anywhere, *self._alone})})")

    def find_spans(self, text: str) -> Iterator[Span]:
        """Yields the places of all known values, in the order of their starts; they may overlap."""
        if not self._anywhere and not self._alone:
            return
        folded = fold_case_of_secret(text)
        for place in self._head_pattern.finditer(folded):
            start = place.start()
            head = folded[start : start + _HEAD]
            if head in self._anywhere:
                for form in self._anywhere[head]:
                    if folded.startswith(form, start):
                        yield start, start + len(form)
            if head in self._alone:
                for form in self._alone[head]:
                    end = start + len(form)
                    if folded.startswith(form, start) and _is_separate_word(folded, start, end):
                        yield start, end


def fold_case_of_secret(text: str) -> str:
    """Returns `text` without differences of letter case; each character keeps its place."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _is_separate_word(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return not any(char.isascii() and (char.isalnum() or char == "_") for char in around)


def make_alternation_of_secrets(texts: Iterable[str]) -> str:
    """Makes a regular expression that finds the longest of `texts` (none is empty) at a place.

    A list of alternatives is tried one by one at every place, and fifty secrets in all their
    encodings are thousands. A tree of common beginnings gives a place up at its first or second
    character, however many texts there are.
    """
    return _build_branches(sorted(set(texts)), 0)


def _build_branches(texts: list[str], depth: int) -> str:
    if depth == _DEEPEST_FORM:
        longest_first = sorted(texts, key=lambda text: -len(text))
        return f"(?:{'|'.join(re.escape(text) for text in longest_first)})"
    parts = [
        _build_branch(list(group), depth) for _, group in groupby(texts, key=lambda text: text[0])
    ]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _build_branch(texts: list[str], depth: int) -> str:
    """Builds the part for texts that begin with the same character, in their order."""
    first, last = texts[0], texts[-1]
    pairs = enumerate(zip(first, last, strict=False))
    length = next((place for place, (a, b) in pairs if a != b), min(len(first), len(last)))
    shared, longer = re.escape(first[:length]), [text[length:] for text in texts if text[length:]]
    if len(longer) == len(texts):
        return shared + _build_branches(longer, depth + 1)
    # Greedy, so that the longest text is found if one is the beginning of another.
    return f"{shared}(?:{_build_branches(longer, depth + 1)})?" if longer else shared


# A larger value is no credential but a file; its forms alone would take seconds.
LARGEST = 100_000
_DEEPEST_PART = 8
_URL_USER = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://([^\s/\"'<>]{0,2000})@")
# Passwords with a bare slash in them: this is no URL, but many drivers accept it.
_URL_LOOSE = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s:/@\"'<>]{0,500}:([^\s\"'<>]{1,2000})@"
)
# `name=value` and `name: value`, as in connection strings, options, properties and YAML.
_MEMBER_OF_VALUE = re.compile(
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
    """Finds the parts of `value` that are secrets themselves; empty if it is not structured.

    Args:
        also_random: Whether members that look random count, too, if their name says nothing.
    """
    if len(value) > LARGEST:
        return set()
    found = _SecretParts(also_random).find_parts_of_text(value, _DEEPEST_PART)
    return {part for part in found if part.strip() and part != value}


class _SecretParts:
    """Takes values apart, to a certain depth."""

    def __init__(self, also_random: bool) -> None:
        self._also_random = also_random

    def find_parts_of_text(self, text: str, depth: int) -> Iterator[str]:
        """Yields the secret parts of a text."""
        if depth == 0:
            return
        document = _parse_document(text)
        if document is not None:
            yield from self._find_parts_of_members("", document, depth - 1)
            return
        yield from _find_secrets_in_addresses(text)
        for line in text.splitlines():
            for found in (find_issued_credentials(line), find_placed_credentials(line)):
                for _, (start, end) in found:
                    yield line[start:end]
        yield from self._find_in_lists(text, depth - 1)

    def _is_secret(self, name: str, value: str) -> bool:
        return is_name_of_secret(name) or (self._also_random and is_random_like_secret(value))

    def _find_parts_of_members(self, name: str, value: Any, depth: int) -> Iterator[str]:
        """Yields the secrets among the members of a document."""
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
        elif isinstance(value, int) and not isinstance(value, bool) and is_name_of_secret(name):
            yield str(value)

    def _find_in_lists(self, text: str, depth: int) -> Iterator[str]:
        for found in _MEMBER_OF_VALUE.finditer(text):
            written = found["double"] or found["single"] or found["bare"] or ""
            inner = re.sub(r"\\(.)", r"\1", written)
            secret = self._is_secret(found["name"], inner)
            if secret:
                yield from (written, inner, unquote_plus(inner), inner.replace("''", "'"))
            if found["bare"] is None and not secret:
                yield from self.find_parts_of_text(inner, depth)
            elif found["bare"] and "=" in inner and depth > 0:
                # `options=password=...`: as a whole it may look random because of its password.
                yield from self._find_in_lists(inner, depth - 1)
        for found in _BLANKS.finditer(text):
            if found[3]:
                yield found[3]
            elif is_name_of_secret(found[1]):
                yield found[2]


def _parse_document(text: str) -> Any:
    """Parses `text` as a JSON object or list, plain or in base64; None if it is neither."""
    for candidate in (text, _decode_secret_from_base64(text)):
        if candidate.lstrip()[:1] in ("{", "["):
            try:
                found = json.loads(candidate, strict=False)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict | list):
                return found
    return None


def _decode_secret_from_base64(text: str) -> str:
    if not _BASE64.fullmatch(text):
        return ""
    joined = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def _find_secrets_in_addresses(text: str) -> Iterator[str]:
    for found in _URL_USER.finditer(text):
        user, colon, password = found[1].partition(":")
        if colon:
            yield from (password, unquote(password))
        if is_random_like_secret(user):  # a token instead of a user
            yield from (user, unquote(user))
    for found in _URL_LOOSE.finditer(text):
        yield from (found[1], unquote(found[1]))


# Which values of an environment are secrets.
#
# A value that reaches the project's code is a secret unless the name of its variable is harmless:
# removing too much costs a `***`, removing too little costs a password. Only names make a variable
# harmless, never values: a password may begin with a slash, or have only digits.


_HARMLESS = frozenset({
    # The machine.
    "PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "PWD", "OLDPWD",
    "SHELL", "SHLVL", "TERM", "COLUMNS", "LINES", "NO_COLOR", "USER", "LOGNAME",
    "HOSTNAME", "CI", "PYTHONUTF8", "PYTHONPATH", "CLASSPATH", "VIRTUAL_ENV",
    # Java, Spark and Hadoop.
    "SPARK_MASTER", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME",
    "SPARK_DIST_CLASSPATH", "HADOOP_CLASSPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON",
    # SQLMesh.
    "SQLMESH__DEFAULT_GATEWAY", "SQLMESH__PROJECT", "SQLMESH__LOG_LIMIT",
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS", "SQLMESH_DEBUG", "MAX_FORK_WORKERS",
    # By its documentation it holds the name of a file.
    "GOOGLE_APPLICATION_CREDENTIALS",
})  # fmt: skip

_HARMLESS_SECTIONS = ("LC_", "JAVA_HOME_", "SQLMESH__MODEL_DEFAULTS__", "SQLMESH__PLAN__")
# The last words of names whose values are places on the machine, sizes, or words that the plan
# itself consists of. Users and hosts are not here: a user may be a token, and the address of a
# warehouse may be confidential.
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
    """Reads the variables of a .env file, which SQLMesh reads itself; other lines are skipped."""
    return {
        found["name"]: found["double"] or found["single"] or found["bare"] or ""
        for found in _SETTING.finditer(text)
    }


def is_harmless_beside_secrets(name: str) -> bool:
    """Whether a variable's name shows that its value as a whole is no secret."""
    upper = name.upper()
    if upper in _HARMLESS or upper.startswith(_HARMLESS_SECTIONS):
        return True
    found = split_words_of_secret_name(name)
    return (
        bool(found) and found[-1] in _HARMLESS_ENDS and not is_name_of_secret("_".join(found[:-1]))
    )


def list_secret_values(environ: Mapping[str, str], passed: Callable[[str], bool]) -> Iterator[str]:
    """Yields the values of an environment that no text may show, and secret parts of all values.

    Args:
        environ: The environment of the bot.
        passed: Whether a variable is meant for the project's code. Then its value is a secret,
            unless its name is harmless. Another variable is a secret if its name says so: a
            laptop's project sees all of them, and with PATH and USER masked no report would be
            readable.
    """
    for name, value in environ.items():
        secret = not is_harmless_beside_secrets(name) and (passed(name) or is_name_of_secret(name))
        if secret:
            yield value
        # If the variable is not secret, a hash in it is no secret either.
        yield from find_secret_parts(value, also_random=secret)
