"""Imports of the project's modules that leave nothing beside them.

Python writes `__pycache__` into the directory of every module that it imports, and on a laptop that
is the user's checkout, which a review promises not to change. To switch that off for the whole
process would mean to compile SQLMesh anew in every run where its packages came without byte code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from typing import Any

_PACKAGES = ("site-packages", "dist-packages")


class _Loader(SourceFileLoader):
    """Reads byte code that is there, and writes none."""

    def set_data(self, path: Any, data: Any, *, _mode: int = 0o666) -> None:
        """Where `SourceFileLoader` would write the file."""


_finder = FileFinder.path_hook(
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (_Loader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


def keep_out_of(repository: Path) -> None:
    """From now on no import writes below `repository`, except in environments that lie there."""
    hook = _hook(repository.resolve(), Path(sys.prefix).resolve())
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def _hook(repository: Path, environment: Path) -> Callable[[str], Any]:
    def finder(entry: str) -> Any:
        place = Path(entry or ".").resolve()
        inside = place.is_relative_to(repository) and not place.is_relative_to(environment)
        if not inside or not set(_PACKAGES).isdisjoint(place.parts):
            raise ImportError("for the next hook")
        return _finder(entry)

    return finder
