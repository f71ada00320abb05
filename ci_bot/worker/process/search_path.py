"""Where the project's Python modules are found, and where its relative paths begin.

Plain `sqlmesh` finds modules through PYTHONPATH, and opens relative paths where the user started
it. The worker ignores PYTHONPATH, so that nothing can change how it starts; what the team has set
is put in place here, before the project's first line runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def use(directories: Sequence[str]) -> None:
    """Puts `directories` where PYTHONPATH would: before everything that is installed.

    Processes that are forked or spawned by Python's own means take `sys.path` along; others, such
    as Spark's, have them in their environment.
    """
    sys.path[:0] = [directory for directory in directories if directory not in sys.path]


def move(directories: Sequence[str], old: Path, new: Path) -> None:
    """Turns this process from one tree to another: its search path, and where it stands.

    Args:
        directories: What `use` was given. Other entries stay, also where they lie in the old tree,
            as a virtual environment may.
    """
    moved = {directory: str(_moved(Path(directory), old, new)) for directory in directories}
    sys.path[:] = [moved.get(entry, entry) for entry in sys.path]
    if inherited := os.environ.get("PYTHONPATH"):
        entries = inherited.split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(moved.get(entry, entry) for entry in entries)
    here = _moved(Path.cwd(), old, new)
    while not here.is_dir():  # the other tree may lack the directory
        here = here.parent
    os.chdir(here)


def _moved(path: Path, old: Path, new: Path) -> Path:
    """`path` in the other tree, where it lies in the old one."""
    for top in (old, old.resolve()):
        if path.is_relative_to(top):
            return new / path.relative_to(top)
    return path
