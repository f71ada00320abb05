"""Files for which the checkout holds a Git LFS pointer and not the content.

A pointer is a text of three lines. Code that reads the file as data or as code gets those lines.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ci_bot.protocol.limits import POINTER_BYTES, is_lfs_pointer
from ci_bot.worker.runtime import exclude_from_trace
from ci_bot.worker.sqlmesh_compat import is_seed_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SeedModel

# `oid` and `size` have at least this length together with the first line.
_SHORTEST = 60
_SKIPPED = frozenset({".git", ".cache", ".venv", "__pycache__", "node_modules"})
# Files beyond this number are not checked: a project has some thousands.
_MOST_FILES = 200_000
# The kinds of files that SQLMesh loads from a project's directories.
_LOADED = (".sql", ".py", ".yaml", ".yml", ".csv", ".tsv")
_TEXTS = (".sql", ".py", ".yaml", ".yml")
FIX = (
    "the workflow checks out with `lfs: true` in the `with:` of actions/checkout; on a laptop "
    "`git lfs pull` gets the files"
)


def list_pointers(paths: Iterable[str | Path]) -> list[Path]:
    """Lists the files that are pointers, each once, sorted.

    Only small files are opened, and of them only the first bytes are read.
    """
    found = {Path(os.path.normpath(path)) for path in paths if _is_pointer(os.fspath(path))}
    return sorted(found)


def list_seed_files(models: Iterable[Model]) -> dict[Path, SeedModel]:
    """Lists the files of the seed models, each with its model."""
    # A model of another project comes from the state and has no file here.
    own = (model for model in models if is_seed_model(model) and model._path is not None)
    return {Path(os.path.normpath(model.seed_path)): model for model in own}


def list_files_below(directories: Iterable[Path]) -> set[Path]:
    """Lists the files in and below these directories, without caches and git's own files."""
    return {
        Path(os.path.normpath(path))
        for directory in directories
        for path in _iterate_files(str(directory))
    }


def list_loaded_pointers(pointers: Iterable[Path]) -> list[Path]:
    """Lists the pointers of a kind of file that SQLMesh loads."""
    return [path for path in pointers if path.suffix.lower() in _LOADED]


def list_pointers_named_in_code(
    pointers: Sequence[Path], directories: Iterable[Path]
) -> list[Path]:
    """Lists the pointers whose names appear in a model, macro or configuration below
    `directories`.
    """
    if not pointers:
        return []
    texts = [
        _read_content(path)
        for directory in directories
        for path in _iterate_files(str(directory))
        if path.endswith(_TEXTS)
    ]
    return [path for path in pointers if any(os.fsencode(path.name) in text for text in texts)]


def _iterate_files(directory: str) -> Iterator[str]:
    # A copy of a checkout links to large directories of data.
    seen: set[str] = set()
    todo, left = [directory], _MOST_FILES
    while todo and left > 0:
        here = todo.pop()
        real = os.path.realpath(here)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            if entry.name in _SKIPPED:
                continue
            try:
                is_directory = entry.is_dir()
            except OSError:
                continue  # a link that leads to itself
            if is_directory:
                todo.append(entry.path)
            else:
                yield entry.path


def _is_pointer(path: str) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - of each file of a project, and in half the time
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(status.st_mode) or not _SHORTEST <= status.st_size < POINTER_BYTES:
        return False
    return is_lfs_pointer(_read_content(path, POINTER_BYTES))


def _read_content(path: str, at_most: int = -1) -> bytes:
    try:
        # This read is not part of loading the project, so the load trace leaves it out.
        with exclude_from_trace(), Path(path).open("rb") as file:
            return file.read(at_most)
    except OSError:
        return b""
