"""Where known secrets stand in a text, in whatever form and letter case.

SQLMesh writes names in lower case, and some databases in upper case, so a secret that went through
a name is still that secret.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from urllib.parse import quote, quote_plus

from ci_bot.redaction.shapes import Span

# A known secret in all the forms in which programs print it; `known` sees to letter case.


# Shorter lines of a longer secret are words.
SHORTEST_LINE = 6
# A line of YAML or of properties: what is secret there is a part of it.
_MEMBER = re.compile(r"[\"'\-\s]*[A-Za-z_][\w.\-]*[\"']?\s*(?::\s|=\S|=\s)")

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~])")

_SHELL = re.compile(r"([^\w@%+=:,./-])")

_WRAPPED_AT = (64, 76)  # what `openssl base64` and `base64` do with long values


def list_encodings(value: str) -> list[str]:
    """`value` and every encoding of it, longest first, without doubles.

    Base64 comes in its three alignments, because a secret inside a longer text (`user:password`)
    starts at any of three bit offsets. The characters at the ends that also depend on the
    neighbours are left out there.
    """
    raw = value.encode("utf-8", "surrogatepass")
    found = {
        value,
        *_list_quoted_forms(value),
        *_list_base64_forms(raw),
        raw.hex(),
        raw.hex().upper(),
    }
    found |= {json.dumps(form)[1:-1] for form in _list_quoted_forms(value)}
    return sorted((form for form in found if form), key=lambda form: (-len(form), form))


def iterate_lines(value: str) -> Iterator[str]:
    """`value`, and each line of it where it has several: programs print keys line by line."""
    # Pasted values often end in a line break, and programs strip it.
    yield from dict.fromkeys((value, value.strip()))
    parts = [line.strip() for line in value.splitlines()]
    if len(parts) > 1:
        yield from (
            line for line in parts if len(line) >= SHORTEST_LINE and not _MEMBER.match(line)
        )


def _list_quoted_forms(value: str) -> set[str]:
    """How JSON, URLs, shells, XML, SQL, Python and Markdown write `value`."""
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
    """As a part of a physical table's name; a text of signs only would become only `_`."""
    if sum(char.isascii() and char.isalnum() for char in value) < SHORTEST_LINE:
        return set()
    return {re.sub(r"[^A-Za-z0-9_]", "_", value), re.sub(r"\W", "_", value)}


def _list_base64_forms(raw: bytes) -> set[str]:
    found: set[str] = set()
    for offset, foreign in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        # Of the last group, a character that carries bits of the next byte is not stable.
        stable = text if (offset + len(raw)) % 3 == 0 else text[:-1]
        found.add(stable[foreign:])
    padded = base64.b64encode(raw).decode()
    found.add(padded)
    for width in _WRAPPED_AT:
        if len(padded) > width:
            found.update(padded[start : start + width] for start in range(0, len(padded), width))
    return found | {text.replace("+", "-").replace("/", "_") for text in found}


# A value is taken out if there are a million like it, by its length and its kinds of characters:
# six digits, five small letters, four characters of several kinds. Of three characters there are
# fewer, whatever they are. Who wants such a value tries them all, and taking it out of every text
# would take the text with it.
ENOUGH = 1_000_000
# With fewer than this (eight letters, eleven digits) it is taken out only if it stands alone: it
# may well be a part of other words and numbers.
ENOUGH_ANYWHERE = 1_000_000_000_000

SHORTEST_ANYWHERE = 6

SHORTEST_FORM = 8
# Words that this action and SQLMesh write into every report. To hide them hides nothing.
_VOCABULARY = frozenset({
    "false", "duckdb", "postgres", "postgresql", "mysql", "mssql", "spark", "pyspark",
    "databricks", "sqlmesh", "local", "client", "cluster", "default", "warning", "error",
    "debug", "production", "staging", "development",
})  # fmt: skip

_KINDS = (string.ascii_lowercase, string.ascii_uppercase, string.digits)

_OTHER_CHARACTERS = 33
# As many characters as the shortest form has, so each form is found by its beginning.
_HEAD = 4


def count_possibilities(value: str) -> int:
    """How many values there are of this length and these kinds of characters."""
    kinds = [kind for kind in _KINDS if any(char in kind for char in value)]
    size = sum(len(kind) for kind in kinds)
    if any(all(char not in kind for kind in _KINDS) for char in value):
        size += _OTHER_CHARACTERS
    return int(size ** min(len(value), 32))


def can_be_hidden(value: str) -> bool:
    """Whether a text would survive it if `value` were taken out wherever it stands alone."""
    return count_possibilities(value) >= ENOUGH and value.lower() not in _VOCABULARY


# Deeper groups are more than a pattern may nest; what is left there are few texts.
_DEEPEST = 12


class KnownValues:
    """Finds values, and the forms of them, in texts.

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
            for line in iterate_lines(value):
                self._add_value(line)

    def _add_value(self, value: str) -> None:
        if not can_be_hidden(value):
            return
        short = len(value) < SHORTEST_ANYWHERE or count_possibilities(value) < ENOUGH_ANYWHERE
        for form in list_encodings(value):
            folded = fold_case(form)
            alone = short and form == value
            if not alone and len(folded) < (SHORTEST_FORM if short else SHORTEST_ANYWHERE):
                continue
            index = self._alone if alone else self._anywhere
            index[folded[:_HEAD]].add(folded)
            self.longest = max(self.longest, len(folded))

    @cached_property
    def _head_pattern(self) -> re.Pattern[str]:
        """Where a form may begin; found without consuming, because forms may overlap."""
        return re.compile(f"(?={make_alternation({*self._anywhere, *self._alone})})")

    def find_spans(self, text: str) -> Iterator[Span]:
        """The places of all known values, in order of their starts; they may overlap."""
        if not self._anywhere and not self._alone:
            return
        folded = fold_case(text)
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


def fold_case(text: str) -> str:
    """`text` without differences of letter case, each character at its old place."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _is_separate_word(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return not any(char.isascii() and (char.isalnum() or char == "_") for char in around)


def make_alternation(texts: Iterable[str]) -> str:
    """A regular expression for the longest of `texts` (none of them empty) at a place.

    A list of alternatives is tried one after the other at every place: fifty secrets in all their
    encodings are thousands. In a tree of common beginnings a place is given up at its first or
    second character, however many they are.
    """
    return _build_branches(sorted(set(texts)), 0)


def _build_branches(texts: list[str], depth: int) -> str:
    if depth == _DEEPEST:
        longest_first = sorted(texts, key=lambda text: -len(text))
        return f"(?:{'|'.join(re.escape(text) for text in longest_first)})"
    parts = [
        _build_branch(list(group), depth) for _, group in groupby(texts, key=lambda text: text[0])
    ]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _build_branch(texts: list[str], depth: int) -> str:
    """For texts that begin with the same character, in their order."""
    first, last = texts[0], texts[-1]
    pairs = enumerate(zip(first, last, strict=False))
    length = next((place for place, (a, b) in pairs if a != b), min(len(first), len(last)))
    shared, longer = re.escape(first[:length]), [text[length:] for text in texts if text[length:]]
    if len(longer) == len(texts):
        return shared + _build_branches(longer, depth + 1)
    # Greedy, so that the longest text is found where one is the beginning of another.
    return f"{shared}(?:{_build_branches(longer, depth + 1)})?" if longer else shared
