"""Files and directories that both processes agree on.

Which files of a change are read, how large they may be, and what texts call the directories of a
run instead of their real paths.

A rule only gets files that `is_file_read_by_a_rule` names. So a new rule that reads another kind of
file has to add it here; the bot then prepares these files.

A report uses paths of the repository. The worker reads from a private copy, the base branch's files
are beside it, and a traceback names the interpreter's own packages. No reader can open these paths,
and they differ in every run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ci_bot.protocol.base import Contract

# Larger files are no code, no configuration, and no seed that SQLMesh should keep in its state.
LARGEST_FILE_BYTES = 4 * 1024 * 1024
# The sum of all files that one review reads, of both sides. The smallest are read first.
MOST_BYTES = 256 * 1024 * 1024

# What no rule can read: these files hold no text, so neither code nor a credential that anybody
# could use. Files with any other suffix are read: the rules for credentials check every text.
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

# How a pointer of Git LFS begins, and its largest size, by its specification. The second line is
# how pointers began before the first release of Git LFS.
_POINTERS = (
    b"version https://git-lfs.github.com/spec/",
    b"version https://hawser.github.com/spec/",
)

POINTER_BYTES = 1024


def is_lfs_pointer(content: bytes) -> bool:
    """Whether a file's content is a pointer of Git LFS, that is, the real content is elsewhere."""
    return content.startswith(_POINTERS) and len(content) < POINTER_BYTES


def is_file_read_by_a_rule(path: str) -> bool:
    """Whether some rule reads a changed file with this path."""
    name = path.rpartition("/")[2]
    # `.env.db` is a file of variables like `.env`, not a database.
    return name.startswith(".env") or splitext(name)[1].lower() not in UNREAD_SUFFIXES


# How many intervals one may ask for. Fast to import.


# For every model SQLMesh goes back through this many intervals, one by one.
MOST_INTERVALS = 1_000_000

# Above this number of intervals in one plan a person has to look, if a team sets no limit itself
# (`max-intervals`): 27 years of days in one table, or one year of days in 27.
DEFAULT_MAX_INTERVALS = 10_000


# In the path of an installed package, or of Python's own module, only the module's part matters.
_PACKAGES = re.compile(
    r"/lib/python3(?:\.\d+)?/(?:(?:site|dist)-packages/)?(?!(?:site|dist)-packages/)(?=\w)"
)
_IN_PATHS = frozenset("_.+@~/-")
_LONGEST_PREFIX = 1_000
# How the text continues for a path below a directory, or after the directory itself.
_BELOW, _ITSELF = r"/(?=[\w.@%+~-])", r"(?![\w-]|\.\w)"

Document = TypeVar("Document", bound="Contract")


class PrivateDirectories:
    """Replaces private directories in texts.

    Args:
        names: What a path below each directory begins with instead: "" makes it relative. A
            directory inside another one may have its own name.
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
        """Returns `text` with paths as a reader sees them in the repository."""
        if self._private is not None:
            text = self._private.sub(self._replace_match, text)
        return _strip_package_paths(text)

    def hide_in_document(self, document: Document) -> Document:
        """Returns the document with every string as `hide_in_text` returns it."""
        # Field by field: no path continues in the next field. Reports of large projects name no
        # private directory, and a copy of one takes 30 MB.
        if all(
            self.hide_in_text(part) == part for part in map(bytes.decode, document.iterate_parts())
        ):
            return document
        return type(document).model_validate_json(self.hide_in_text(document.to_json()))

    def _replace_match(self, match: re.Match[str]) -> str:
        name = self._names[match["directory"]]
        return name if match["below"] else (name.strip() or ".")


def _strip_package_paths(text: str) -> str:
    """Returns `text` without what is before the modules of installed packages.

    The search starts in the middle of a path: the worker could make texts that keep a search from
    the left busy.
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
    import json  # the bot reads this module at its start, which needs no JSON

    return json.dumps(text, ensure_ascii=False)[1:-1]
