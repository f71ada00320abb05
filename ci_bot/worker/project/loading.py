"""Loading a project's models, and finding everything that keeps them from being loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.errors import BotError
from ci_bot.protocol.base import Failure
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import NotLoaded, failure_of, unit_of
from ci_bot.worker.project.configuration import ProjectPlace, configure_projects, new_context
from ci_bot.worker.runtime import PhaseClock

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

HINT = "Correct it and push; `sqlmesh info` shows the same locally."
# Each round loads the project once more, without the files that failed so far.
MAX_ROUNDS = 10

MAX_FAILURES = 1_000
# In SQL the name mostly stands first, as SQLMesh's formatter writes it; in Python it always does.
_MODEL_NAME = re.compile(
    r"^\s*MODEL\s*\(\s*(?:[^;]*?,\s*)?name\s+([\w.]+)"
    r"|^@model\(\s*(?:name\s*=\s*)?[\"']([\w.]+)",
    re.IGNORECASE | re.MULTILINE,
)

LONGEST_READ = 64 * 1024


def load_project(context: Context, phase: AbstractContextManager[None], repository: Path) -> None:
    """Loads models, macros, audits and tests into `context`.

    Args:
        phase: What measures the time.
        repository: The root of the tree that the project lies in.

    Raises:
        NotLoaded: with the file, the line and the cause.
    """
    with phase, sqlmesh_compat.registries_kept(), sqlmesh_compat.types_read_once():
        try:
            context.load()
            sqlmesh_compat.order_models(context)
        except BotError:
            raise
        except (Exception, SystemExit) as error:
            unit = unit_of(error, repository)
            raise NotLoaded(
                [_make_load_failure(error, repository)], units=[unit] if unit else []
            ) from error


def every_failure(
    first: NotLoaded,
    repository: Path,
    again: Callable[[Sequence[Path]], object],
    *,
    rounds: int = MAX_ROUNDS,
) -> list[Failure]:
    """All that keeps the project from being loaded, as far as it can be distinguished.

    SQLMesh stops at the first failure, and chance decides which is first: the files of a directory
    have no order. To tell whether a failure is new, all of them have to be known.

    Args:
        again: Loads the project without some files; raises as `load` does.
        rounds: How often that is done at most; one finds all models that do not parse.
    """
    found = {(failure.path, failure.message): failure for failure in first.failures}
    ignored: list[Path] = []
    units = list(first.units)
    for _ in range(rounds):
        fresh = [unit for unit in units if unit not in ignored]
        if not fresh or len(found) >= MAX_FAILURES:
            break
        ignored += fresh
        units = []
        recorded: list[tuple[Path, BaseException]] = []
        try:
            with sqlmesh_compat.model_failures(recorded):
                again(ignored)
        except NotLoaded as error:
            units += error.units
            more = [*error.failures]
        except BotError:
            break
        else:
            break
        for path, problem in recorded:
            units.append(path)
            more.append(_make_load_failure(sqlmesh_compat.load_error(path, problem), repository))
        for failure in more:
            found.setdefault((failure.path, failure.message), failure)
    return list(found.values())[:MAX_FAILURES]


def _make_load_failure(error: BaseException, repository: Path) -> Failure:
    failure = failure_of(error, stage="load", repository=repository, hint=HINT)
    if failure.model is not None or failure.path is None:
        return failure
    return failure.model_copy(update={"model": _model_of(repository / failure.path)})


def _model_of(file: Path) -> str | None:
    """The model that a file would define, read from its text: it is what does not load."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            named = _MODEL_NAME.search(opened.read(LONGEST_READ))
    except OSError:
        return None
    return (named[1] or named[2]) if named else None


# A project loaded by itself: no state is read, and none is there afterwards.


def load_alone(
    place: ProjectPlace, clock: PhaseClock, on_spark_start: Callable[[], None], *, name: str
) -> Any:
    """SQLMesh's context with everything loaded.

    Args:
        name: Of the throw-away state, among those of this run.

    Raises:
        BadInput: the configuration cannot be read.
        NotLoaded: the project does not load.
    """
    configs, _ = configure_projects(
        place, on_spark_start, clock=clock, read=sqlmesh_compat.read_configs_without_state
    )
    context = new_context(configs, place)
    state = sqlmesh_compat.throwaway_state(place.scratch_dir / f"{name}.duckdb", context)
    sqlmesh_compat.give_state(context, state)
    sqlmesh_compat.merge_nothing_from_state(context)
    load_project(context, clock.time_phase("load"), place.repository)
    return context
