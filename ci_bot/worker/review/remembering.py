"""What the default branch's files define is noted, so that reviews need not find it out again."""

from __future__ import annotations

from collections.abc import Callable

from ci_bot.contracts.base_cache.known import BaseCache
from ci_bot.contracts.messages import RememberRequest
from ci_bot.worker import compat
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project import opening
from ci_bot.worker.project.directories import place_of


def remember(
    request: RememberRequest, clock: Clock, on_spark_start: Callable[[], None]
) -> BaseCache:
    """Loads the project on its state, and tells which files define what prod has. Read-only.

    Raises:
        BadInput, Refused: the configuration or the state cannot be used.
        NotLoaded: the project does not load.
    """
    place = place_of(request, request.projects)
    with compat.noted() as found:
        opened = opening.open_project(
            place, write=False, clock=clock, on_spark_start=on_spark_start
        )
    try:
        files = compat.known_files_of(opened.context, found, place.repository)
        return BaseCache(files=files, models=len(opened.context.models))
    finally:
        opened.close()
