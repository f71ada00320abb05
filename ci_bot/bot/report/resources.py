"""Files that travel with the package, and are at the top level of a checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable


def find_resource(name: str) -> Traversable:
    """Returns the directory `templates` or `examples` of this installation."""
    return find_directory(files("ci_bot"), Path(__file__).parents[3], name)


def find_directory(package: Traversable, checkout: Path, name: str) -> Traversable:
    """Returns the directory inside the installed package, or else at the root of a checkout."""
    packaged = package / name
    return packaged if packaged.is_dir() else checkout / name
