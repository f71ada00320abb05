"""Which files of a project define which of its models."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

# A change in one of these can change any model, so nothing can be called drift any more.
_REACHES_EVERY_MODEL = ("config.yaml", "config.yml", "config.py", "sqlmesh.yaml", "sqlmesh.yml")
_SHARED_FOLDERS = ("macros", "audits", "signals", "materializations", "linter")


def reaches_every_model(path: str) -> bool:
    """Whether a change of this file can change any model: configuration, macros and the like."""
    pure = PurePosixPath(path)
    return pure.name in _REACHES_EVERY_MODEL or bool(set(pure.parts) & set(_SHARED_FOLDERS))


def files_of(node: Any) -> set[str]:
    """The files that define a model: its own, and a seed's data."""
    if not node._path:
        return set()
    found = {str(node._path)}
    kind = getattr(node, "kind", None)
    data = getattr(kind, "path", None) if getattr(kind, "is_seed", False) else None
    if data:
        found.add(str((Path(node._path).parent / data).resolve()))
    return found
