"""Where one run finds the project and may write, and how a reader knows those directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ProjectPlace:
    """Where a run reads and writes: the project's directories and the run's private ones.

    `repository` is the root of the tree that the projects lie in: the checkout, or the base
    branch's files.
    """

    projects: tuple[Path, ...]
    repository: Path
    cache_dir: Path
    scratch_dir: Path
    gateway: str | None
    own: bool = False
    python_path: tuple[str, ...] = ()


def place_of(
    request: Any, projects: list[str], cache_name: str = "", root: Path | None = None
) -> ProjectPlace:
    """The directories of a run, from its request; `root` is another tree than the checkout's."""
    workplace = request.workplace
    cache = Path(workplace.cache_dir)
    return ProjectPlace(
        projects=tuple(Path(path) for path in projects),
        repository=root or Path(workplace.repository),
        cache_dir=cache / cache_name if cache_name else cache,
        scratch_dir=Path(workplace.scratch_dir),
        gateway=request.gateway,
        own=workplace.own,
        python_path=tuple(workplace.python_path),
    )


def display_path(path: Path, place: ProjectPlace) -> str:
    """A path as the reader knows it: relative to the repository."""
    if path == place.repository:
        return "."
    if path.is_relative_to(place.repository):
        return str(path.relative_to(place.repository))
    return str(path)


def named(path: Path, place: ProjectPlace) -> str:
    """A directory where "." would say nothing: the whole path, unless it is a copy's."""
    if place.own:
        return str(path)
    return "the repository's root" if path == place.repository else display_path(path, place)
