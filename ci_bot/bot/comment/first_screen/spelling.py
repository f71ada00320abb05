"""How names stand in sentences: between backticks, and spelled one way.

SQLMesh quotes each part of a model's name in some messages, and in others none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ci_bot.bot.comment.text import words

_NAMED = 2
_QUOTED = re.compile(r"'?((?:\"[^\"`\s]+\"\.){1,3}\"[^\"`\s]+\")'?")


def one_spelling(text: str, models: Collection[str]) -> str:
    """`text` in which quoted names of these models are written as everywhere else.

    What is no model of the report stays as it is: a table of the warehouse has no other name.
    """

    def plain(found: re.Match[str]) -> str:
        parts = found[1][1:-1].split('"."')
        for first in range(len(parts) - 1):
            name = ".".join(parts[first:])
            if name in models:
                return f"`{name}`"
        return found[0]

    return _QUOTED.sub(plain, text)


def listed(names: Sequence[str], shown: int = _NAMED) -> str:
    """ "`a`", "`a` and `b`", "`a`, `b` and 3 more"."""
    spans = [quoted(name) for name in names[:shown]]
    more = len(names) - shown
    if more > 0:
        return f"{', '.join(spans)} and {words.number(more)} more"
    return " and ".join(spans) if len(spans) <= _NAMED else ", ".join(spans)


def quoted(name: str) -> str:
    """The name between backticks, which it cannot close itself."""
    return f"`{name.replace('`', chr(39))}`"
