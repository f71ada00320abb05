"""Passwords of `.netrc`, whose entries are words with nothing but blanks or line ends between them.

The format is that of ftp(1): `machine NAME` or `default`, then `login`, `password` and `account`
with a value each, in any order and on any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ci_bot.secrets.literals import Likeness, likeness, stands_for_one
from ci_bot.secrets.shapes import Span

# What a diff, a quotation or a log puts before a line.
_BEFORE = r"[\s>|+\-]{0,40}"
_WORD = r"(?:\"[^\"\n]{0,500}\"|\S+)"
_MEMBERS = rf"(?:\s+(?:login|user|account|password)\s+{_WORD})*\s*"
_ENTRY = re.compile(rf"{_BEFORE}(?:machine\s+\S+|default){_MEMBERS}")
_REST = re.compile(rf"{_BEFORE}(?:login|user|account|password)\s+{_WORD}{_MEMBERS}")
_PASSWORD = re.compile(r"(?<!\S)password\s+(\"[^\"\n]{3,500}\"|\S{3,500})")
# Lines that an entry has at most: machine, login, password, account, and a comment or two.
_LONGEST_ENTRY = 6


class EntryReader:
    """Reads lines in their order and knows whether the next one belongs to an entry."""

    def __init__(self) -> None:
        self._in_entry = False

    def list_passwords(self, line: str) -> list[Span]:
        """Where the passwords of an entry stand in `line`.

        A line that holds nothing but such a password is taken for one without its entry, too,
        where the value looks like a password: `password required` is a sentence.
        """
        begins = _ENTRY.fullmatch(line) is not None
        member = not begins and _REST.fullmatch(line) is not None
        in_entry = begins or (self._in_entry and (member or _is_skipped(line)))
        self._in_entry = in_entry
        if not (begins or member):
            return []
        return [
            found.span(1)
            for found in _PASSWORD.finditer(line)
            if _is_password(found[1], sure=in_entry)
        ]


def list_entry_passwords(lines: Sequence[str], number: int) -> list[Span]:
    """Where passwords of entries stand in one line of a file.

    Args:
        lines: The lines of the file.
        number: Which of them, from 0.
    """
    if "password" not in lines[number]:
        return []
    reader, found = EntryReader(), list[Span]()
    for line in lines[max(0, number - _LONGEST_ENTRY) : number + 1]:
        found = reader.list_passwords(line)
    return found


def _is_password(value: str, *, sure: bool) -> bool:
    if stands_for_one(value):
        return False
    return sure or likeness(value, made_by_people=True) is Likeness.YES


def _is_skipped(line: str) -> bool:
    """Whether a line inside of an entry is empty or a comment."""
    return not line.strip() or line.lstrip().startswith("#")
