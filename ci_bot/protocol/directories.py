"""The directories of a run as its readers know them.

A report speaks of the repository. Where the worker reads from is a private copy, the base branch's
files lie beside it, and a traceback names the interpreter's own packages: no reader can open any of
these paths, and they differ in every run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from ci_bot.protocol.base import Contract

# Of the path of an installed package, or of Python's own, only the module's part says anything.
_PACKAGES = re.compile(
    r"/lib/python3(?:\.\d+)?/(?:(?:site|dist)-packages/)?(?!(?:site|dist)-packages/)(?=\w)"
)
_IN_PATHS = frozenset("_.+@~/-")
_LONGEST_PREFIX = 1_000
# A path below a directory goes on like this; else the directory itself is meant.
_BELOW, _ITSELF = r"/(?=[\w.@%+~-])", r"(?![\w-]|\.\w)"

Document = TypeVar("Document", bound=Contract)


class PrivateDirectories:
    """Replaces private directories in texts.

    Args:
        names: What a path below each directory begins with instead: "" makes it relative. A
            directory inside another one may have a name of its own.
    """

    def __init__(self, names: Mapping[Path, str]) -> None:
        self._names: dict[str, str] = {}
        for directory, name in names.items():
            # A temporary directory may be reached through a link, as on macOS.
            for spelling in (str(directory), str(directory.resolve())):
                for form in (spelling, _escape_for_json(spelling)):
                    self._names.setdefault(form, name)
        self._names.pop("/", None)  # the root of the file system is no private place
        longest = sorted(self._names, key=len, reverse=True)
        known = "|".join(map(re.escape, longest))
        self._private = (
            re.compile(f"(?P<directory>{known})(?:(?P<below>{_BELOW})|{_ITSELF})")
            if known
            else None
        )

    def hide_in_text(self, text: str) -> str:
        """`text` in which paths begin where the reader's own view of the repository does."""
        if self._private is not None:
            text = self._private.sub(self._replace_match, text)
        return _strip_package_paths(text)

    def hide_in_document(self, document: Document) -> Document:
        """A contract document in which every string is as `text` gives it."""
        # A field at a time: no path goes beyond the text it stands in. Reports of large projects
        # name no such directory, and a copy of one takes 30 MB.
        if all(
            self.hide_in_text(part) == part for part in map(bytes.decode, document.iterate_parts())
        ):
            return document
        return type(document).model_validate_json(self.hide_in_text(document.to_json()))

    def _replace_match(self, match: re.Match[str]) -> str:
        name = self._names[match["directory"]]
        return name if match["below"] else (name.strip() or ".")


def _strip_package_paths(text: str) -> str:
    """`text` without what stands before the modules of installed packages.

    Looked for from the middle: the worker's texts may be made to keep a search from the left busy.
    """
    parts, position = [], 0
    for match in _PACKAGES.finditer(text):
        earliest = max(position, match.start() - _LONGEST_PREFIX)
        begin = match.start()
        while begin > earliest and (text[begin - 1].isalnum() or text[begin - 1] in _IN_PATHS):
            begin -= 1
        begin = text.find("/", begin, match.start() + 1)
        parts.append(text[position:begin])
        position = match.end()
    return "".join([*parts, text[position:]])


def _escape_for_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
