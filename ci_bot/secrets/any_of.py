"""One pattern for very many texts, whose speed does not depend on how many they are.

A list of alternatives is tried one after the other at every place of a text: fifty secrets in all
their encodings are thousands, and a log passed at a fifth of a megabyte a second. In a tree of
common beginnings a place is given up at its first or second character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

# Deeper groups are more than a pattern may nest; what is left there are few texts.
_DEEPEST = 12


def any_of(texts: Iterable[str]) -> str:
    """A regular expression for the longest of `texts` (none of them empty) at a place."""
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
