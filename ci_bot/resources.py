"""Files that travel with the package, and are at the top level of a checkout."""

from __future__ import annotations

from pathlib import Path


def find_resource(name: str) -> Path:
    """Finds a directory of this installation: `templates`, `examples` or `docs/rules`."""
    package = Path(__file__).parent
    return find_directory(package, package.parent, name)


def find_directory(package: Path, checkout: Path, name: str) -> Path:
    """Finds the directory inside the installed package, or else the one at a checkout's root."""
    packaged = package / name
    return packaged if packaged.is_dir() else checkout / name
