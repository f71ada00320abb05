"""One spelling of a model's name: SQLMesh quotes each part in some messages and in others none."""

from __future__ import annotations

import re
from collections.abc import Collection

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
