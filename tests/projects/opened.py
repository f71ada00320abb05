"""A project opened in this process, as the worker opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci_bot.worker.project import opening
from ci_bot.worker.project.configuration import ProjectPlace
from ci_bot.worker.project.opening import OpenProject
from ci_bot.worker.runtime.process import WorkerPhaseClock


@contextmanager
def opened(scratch: Path, *projects: Path, write: bool = False) -> Iterator[OpenProject]:
    """The projects on their own state, with the cache in `scratch`; closed afterwards."""
    place = ProjectPlace(
        projects=projects,
        repository=projects[0],
        cache_dir=scratch / "cache",
        scratch_dir=scratch,
        gateway=None,
    )
    found = opening.open_project(
        place, write=write, clock=WorkerPhaseClock(), on_spark_start=lambda: None
    )
    try:
        yield found
    finally:
        found.close_state()
