"""Who owns a file by GitHub's CODEOWNERS. Pure.

https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# In this order; the first that is there counts.
PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
MOST_BYTES = 3 * 1024 * 1024  # GitHub loads no larger one
_WORD = re.compile(r"(?:\\.|[^\s\\])+")
_PARTS = re.compile(
    r"(?P<between>/\*\*/)|(?P<deep>\*\*/)|(?P<below>/\*\*)|(?P<many>\*+)|(?P<one>\?)"
    r"|\\(?P<quoted>.)|(?P<plain>.)"
)


@dataclass(frozen=True)
class CodeOwners:
    """The accounts of one line: logins and organization/team, without `@`; `line` from 1."""

    accounts: tuple[str, ...]
    line: int


def owners_of(text: str, path: str) -> CodeOwners | None:
    """What the last line that matches says of a file; None where none does."""
    found = None
    for number, pattern, accounts in _lines(text):
        if _matches(pattern, path):
            found = CodeOwners(accounts, number)
    return found


def _lines(text: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = []
        for word in _WORD.findall(line):
            if word.startswith("#"):
                break
            words.append(word)
        # GitHub passes over a line with what its syntax does not have.
        if words and not words[0].startswith("!") and "[" not in words[0]:
            # An address is no account that could be compared with a login.
            yield number, words[0], tuple(w[1:] for w in words[1:] if w.startswith("@"))


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(_expression(pattern), path) is not None


def _expression(pattern: str) -> str:
    inner = pattern.strip("/")
    anchored = pattern.startswith("/") or "/" in inner
    folder = pattern.endswith("/")
    parts = []
    for found in _PARTS.finditer(inner):
        if found["between"]:
            parts.append("/(?:.*/)?")
        elif found["deep"]:
            parts.append("(?:.*/)?")
        elif found["below"]:
            parts.append("/.*")
        elif found["many"]:
            parts.append("[^/]*")
        elif found["one"]:
            parts.append("[^/]")
        else:
            parts.append(re.escape(found["quoted"] or found["plain"]))
    begin = "" if anchored else "(?:.*/)?"
    # `docs/*` are the files of that folder; `docs/a` may be a folder with everything in it.
    alone = inner.rpartition("/")[2] == "*" and "/" in inner
    end = "/.*" if folder else "" if alone else "(?:/.*)?"
    return f"{begin}{''.join(parts)}{end}"
