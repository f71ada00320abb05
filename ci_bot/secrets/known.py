"""Where known secrets stand in a text, in whatever form and letter case.

SQLMesh writes names in lower case, and some databases in upper case, so a secret that went through
a name is still that secret.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby

from ci_bot.secrets.forms import encodings, lines
from ci_bot.secrets.shapes import Span

# A value is taken out if there are a million like it, by its length and its kinds of characters:
# six digits, five small letters, four characters of several kinds. Of three characters there are
# fewer, whatever they are. Who wants such a value tries them all, and taking it out of every text
# would take the text with it.
ENOUGH = 1_000_000
# With fewer than this (eight letters, eleven digits) it is taken out only where it stands alone: it
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


def possibilities(value: str) -> int:
    """How many values there are of this length and these kinds of characters."""
    kinds = [kind for kind in _KINDS if any(char in kind for char in value)]
    size = sum(len(kind) for kind in kinds)
    if any(all(char not in kind for kind in _KINDS) for char in value):
        size += _OTHER_CHARACTERS
    return int(size ** min(len(value), 32))


def can_be_hidden(value: str) -> bool:
    """Whether a text would survive it if `value` were taken out wherever it stands alone."""
    return possibilities(value) >= ENOUGH and value.lower() not in _VOCABULARY


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
            for line in lines(value):
                self._add(line)

    def _add(self, value: str) -> None:
        if not can_be_hidden(value):
            return
        short = len(value) < SHORTEST_ANYWHERE or possibilities(value) < ENOUGH_ANYWHERE
        for form in encodings(value):
            folded = fold(form)
            alone = short and form == value
            if not alone and len(folded) < (SHORTEST_FORM if short else SHORTEST_ANYWHERE):
                continue
            index = self._alone if alone else self._anywhere
            index[folded[:_HEAD]].add(folded)
            self.longest = max(self.longest, len(folded))

    @cached_property
    def _heads(self) -> re.Pattern[str]:
        """Where a form may begin; found without consuming, because forms may overlap."""
        return re.compile(f"(?={any_of({*self._anywhere, *self._alone})})")

    def spans(self, text: str) -> Iterator[Span]:
        """The places of all known values, in order of their starts; they may overlap."""
        if not self._anywhere and not self._alone:
            return
        folded = fold(text)
        for place in self._heads.finditer(folded):
            start = place.start()
            head = folded[start : start + _HEAD]
            if head in self._anywhere:
                for form in self._anywhere[head]:
                    if folded.startswith(form, start):
                        yield start, start + len(form)
            if head in self._alone:
                for form in self._alone[head]:
                    end = start + len(form)
                    if folded.startswith(form, start) and _stands_alone(folded, start, end):
                        yield start, end


def fold(text: str) -> str:
    """`text` without differences of letter case, each character at its old place."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _stands_alone(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return not any(char.isascii() and (char.isalnum() or char == "_") for char in around)


def any_of(texts: Iterable[str]) -> str:
    """A regular expression for the longest of `texts` (none of them empty) at a place.

    A list of alternatives is tried one after the other at every place: fifty secrets in all their
    encodings are thousands. In a tree of common beginnings a place is given up at its first or
    second character, however many they are.
    """
    return _branches(sorted(set(texts)), 0)


def _branches(texts: list[str], depth: int) -> str:
    if depth == _DEEPEST:
        longest_first = sorted(texts, key=lambda text: -len(text))
        return f"(?:{'|'.join(re.escape(text) for text in longest_first)})"
    parts = [_branch(list(group), depth) for _, group in groupby(texts, key=lambda text: text[0])]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _branch(texts: list[str], depth: int) -> str:
    """For texts that begin with the same character, in their order."""
    first, last = texts[0], texts[-1]
    pairs = enumerate(zip(first, last, strict=False))
    length = next((place for place, (a, b) in pairs if a != b), min(len(first), len(last)))
    shared, longer = re.escape(first[:length]), [text[length:] for text in texts if text[length:]]
    if len(longer) == len(texts):
        return shared + _branches(longer, depth + 1)
    # Greedy, so that the longest text is found where one is the beginning of another.
    return f"{shared}(?:{_branches(longer, depth + 1)})?" if longer else shared
