"""Files and directories that both processes agree on: which files of a change are read, how large
they may be, and how its readers know the directories of a run.

A rule is given no file that `is_file_read_by_a_rule` does not name, so that a new rule which reads
another kind of file has to say so here, and the bot then prepares it.

A report speaks of the repository. Where the worker reads from is a private copy, the base branch's
files lie beside it, and a traceback names the interpreter's own packages: no reader can open any of
these paths, and they differ in every run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ci_bot.protocol.base import Contract

# Larger ones are no code, no configuration, and no seed that SQLMesh should keep in its state.
LARGEST_FILE_BYTES = 4 * 1024 * 1024
# Of all that are read in one review, both sides together. The smallest are read first.
MOST_BYTES = 256 * 1024 * 1024

# What no rule can read: no text, so neither code nor a credential that anybody could use from it.
# A suffix that is not here is read: the rules for credentials look at every text.
_PICTURES = "png jpg jpeg gif bmp ico webp tif tiff pdf psd"
_SOUND_AND_FILM = "mp3 mp4 mov avi mkv webm wav ogg flac"
_FONTS = "woff woff2 ttf otf eot"
_ARCHIVES = "zip gz bz2 xz zst 7z rar tar tgz jar war whl egg"
_DATA = "parquet orc avro arrow feather duckdb db sqlite sqlite3 xls xlsx docx pptx npy npz h5"
_MACHINE_CODE = "so dll dylib exe pyc pyo class o a"

UNREAD_SUFFIXES = frozenset(
    f".{suffix}"
    for group in (_PICTURES, _SOUND_AND_FILM, _FONTS, _ARCHIVES, _DATA, _MACHINE_CODE)
    for suffix in group.split()
)

# How a pointer of Git LFS begins, and how large it is at most, by its specification. The second
# one is what it was called before its first release.
_POINTERS = (
    b"version https://git-lfs.github.com/spec/",
    b"version https://hawser.github.com/spec/",
)

POINTER_BYTES = 1024


def is_lfs_pointer(content: bytes) -> bool:
    """Whether a file's content is a pointer of Git LFS, which stands for the content elsewhere."""
    return content.startswith(_POINTERS) and len(content) < POINTER_BYTES


def is_file_read_by_a_rule(path: str) -> bool:
    """Whether some rule looks into a changed file with this path."""
    name = path.rpartition("/")[2]
    # `.env.db` is a file of variables like `.env`, and no database.
    return name.startswith(".env") or splitext(name)[1].lower() not in UNREAD_SUFFIXES


# How many intervals anybody may ask for. Fast to import.


# SQLMesh goes back that many intervals one by one, for every model.
MOST_INTERVALS = 1_000_000

# So many intervals of one plan ask for a person, if a team draws no line of its own
# (`max-intervals`): 27 years of days in one table, or one year of days in 27.
DEFAULT_MAX_INTERVALS = 10_000


# Of the path of an installed package, or of Python's own, only the module's part says anything.
_PACKAGES = re.compile(
    r"/lib/python3(?:\.\d+)?/(?:(?:site|dist)-packages/)?(?!(?:site|dist)-packages/)(?=\w)"
)
_IN_PATHS = frozenset("_.+@~/-")
_LONGEST_PREFIX = 1_000
# A path below a directory goes on like this; else the directory itself is meant.
_BELOW, _ITSELF = r"/(?=[\w.@%+~-])", r"(?![\w-]|\.\w)"

Document = TypeVar("Document", bound="Contract")


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
                for form in (spelling, _escape_for_json_document(spelling)):
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


def _escape_for_json_document(text: str) -> str:
    import json  # the rest is read at the bot's start, which needs no JSON

    return json.dumps(text, ensure_ascii=False)[1:-1]
