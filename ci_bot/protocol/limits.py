"""Which files of a change are read, and how large they may be; bot and worker agree on it here.

A rule is given no file that `is_read` does not name, so that a new rule which reads another kind of
file has to say so here, and the bot then prepares it.
"""

from __future__ import annotations

from posixpath import splitext

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


def is_read(path: str) -> bool:
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
