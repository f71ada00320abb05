"""A project loaded by itself: no state is read, and none is there afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ci_bot.worker import compat
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project.configuring import configure, new_context
from ci_bot.worker.project.directories import ProjectPlace
from ci_bot.worker.project.loading import load


def load_alone(
    place: ProjectPlace, clock: Clock, on_spark_start: Callable[[], None], *, name: str
) -> Any:
    """SQLMesh's context with everything loaded.

    Args:
        name: Of the throw-away state, among those of this run.

    Raises:
        BadInput: the configuration cannot be read.
        NotLoaded: the project does not load.
    """
    configs, _ = configure(
        place, on_spark_start, clock=clock, read=compat.read_configs_without_state
    )
    context = new_context(configs, place)
    state = compat.throwaway_state(place.scratch_dir / f"{name}.duckdb", context)
    compat.give_state(context, state)
    compat.merge_nothing_from_state(context)
    load(context, clock.phase("load"), place.repository)
    return context
