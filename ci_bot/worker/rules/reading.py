"""Reading the files of a change, as data."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from ci_bot.contracts.base import readable_path
from ci_bot.contracts.files import LARGEST_FILE_BYTES, is_read
from ci_bot.contracts.messages import Workplace
from ci_bot.worker.process.load_trace import not_loading
from ci_bot.worker.rules.inputs import ReadFile, no_file

# What stands in a name for a byte that is no UTF-8 (`readable_path`).
_REPLACED = "\ufffd"
# Files of each side whose contents are kept; each may be as large as `LARGEST_FILE_BYTES`.
_KEPT = 4


def before(directory: str | None, unread: Collection[str] = ()) -> ReadFile:
    """Reads the base branch's version of the changed files.

    Args:
        unread: Files that the bot has found to be too large on either side of the change.
    """
    return _reader([Path(directory)], unread) if directory else no_file


def after(workplace: Workplace, unread: Collection[str] = ()) -> ReadFile:
    """Reads the files of the head, large ones of a copy where they are linked to."""
    linked = [Path(workplace.linked_to)] if workplace.linked_to else []
    return _reader([Path(workplace.repository), *linked], unread)


def _reader(roots: list[Path], unread: Collection[str]) -> ReadFile:
    """Reads regular files below the first root; links that lead out of all roots are not there.

    Neither is what is too large, whole or not at all: a part of a file would be judged as if the
    rest had been taken away. The report says which files were not looked at.
    """
    # Not `resolve`, which raises where a link leads to itself: one such file in a change must not
    # keep a rule from all the others.
    tops = [os.path.realpath(root) for root in roots]
    inside = tuple(f"{top.rstrip('/')}/" for top in tops)
    closed = frozenset(unread)

    # One rule after the other looks at the same file.
    @lru_cache(maxsize=_KEPT)
    def read(path: str) -> bytes | None:
        if path in closed or not is_read(path):
            return None
        target = os.path.realpath(
            _named(tops[0], path) if _REPLACED in path else f"{tops[0]}/{path}"
        )
        file = Path(target)
        try:
            if not target.startswith(inside) or not stat.S_ISREG(file.stat().st_mode):
                return None
            with not_loading(), file.open("rb") as opened:
                content = opened.read(LARGEST_FILE_BYTES + 1)
        except OSError:
            return None
        return content if len(content) <= LARGEST_FILE_BYTES else None

    return read


def _named(top: str, path: str) -> str:
    """The first file that is called so where bytes that are no UTF-8 are replaced."""
    found = top
    for part in path.split("/"):
        try:
            beside = Path(found).iterdir() if _REPLACED in part else ()
            names = sorted(entry.name for entry in beside)
        except OSError:
            names = []
        found = f"{found}/{next((name for name in names if readable_path(name) == part), part)}"
    return found
