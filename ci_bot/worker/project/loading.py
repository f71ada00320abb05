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
from ci_bot.worker.messages import NotLoaded, find_failed_file, make_failure_of_error
from ci_bot.worker.project.configuration import ProjectPlace, configure_projects, create_context
from ci_bot.worker.runtime import PhaseClock

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

HINT = "Correct it and push; `sqlmesh info` shows the same locally."
# Each round loads the project once more, without the files that failed so far.
MAX_ROUNDS = 10

MAX_FAILURES = 1_000
# SQLMesh's formatter writes a SQL model's name first; in Python it always comes first.
_MODEL_NAME = re.compile(
    r"^\s*MODEL\s*\(\s*(?:[^;]*?,\s*)?name\s+([\w.]+)"
    r"|^@model\(\s*(?:name\s*=\s*)?[\"']([\w.]+)",
    re.IGNORECASE | re.MULTILINE,
)

LONGEST_READ = 64 * 1024


def load_project(context: Context, phase: AbstractContextManager[None], repository: Path) -> None:
    """Loads models, macros, audits and tests into `context`.

    Args:
        phase: Measures the time of the load.
        repository: The root of the tree that the project lies in.

    Raises:
        NotLoaded: with the file, the line and the cause.
    """
    with phase, sqlmesh_compat.restore_registries(), sqlmesh_compat.cache_parsed_types():
        try:
            context.load()
            sqlmesh_compat.order_models(context)
        except BotError:
            raise
        except (Exception, SystemExit) as error:
            unit = find_failed_file(error, repository)
            raise NotLoaded(
                [_make_load_failure(error, repository)], units=[unit] if unit else []
            ) from error


def find_all_load_failures(
    first: NotLoaded,
    repository: Path,
    again: Callable[[Sequence[Path]], object],
    *,
    rounds: int = MAX_ROUNDS,
) -> list[Failure]:
    """Lists every failure that keeps the project from loading, as far as they can be distinguished.

    SQLMesh stops at the first failure, and the files of a directory have no order, so the first is
    random. To know whether a failure is new, all of them are needed.

    Args:
        again: Loads the project without some files; raises as `load_project` does.
        rounds: The most rounds of loading; one finds all models that do not parse.
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
            with sqlmesh_compat.collect_model_failures(recorded):
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
            more.append(
                _make_load_failure(sqlmesh_compat.make_load_error(path, problem), repository)
            )
        for failure in more:
            found.setdefault((failure.path, failure.message), failure)
    return list(found.values())[:MAX_FAILURES]


def _make_load_failure(error: BaseException, repository: Path) -> Failure:
    failure = make_failure_of_error(error, stage="load", repository=repository, hint=HINT)
    if failure.model is not None or failure.path is None:
        return failure
    return failure.model_copy(update={"model": _guess_model_name(repository / failure.path)})


def _guess_model_name(file: Path) -> str | None:
    """Reads the name of a file's model from its text, because the file itself does not load."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            named = _MODEL_NAME.search(opened.read(LONGEST_READ))
    except OSError:
        return None
    return (named[1] or named[2]) if named else None


# A project loaded without any state: none is read, and none is left behind.


def load_alone(
    place: ProjectPlace, clock: PhaseClock, on_spark_start: Callable[[], None], *, name: str
) -> Any:
    """Loads a project without its state and returns SQLMesh's context.

    Args:
        name: Name of the throw-away state, among those of this run.

    Raises:
        BadInput: the configuration cannot be read.
        NotLoaded: the project does not load.
    """
    configs, _ = configure_projects(
        place, on_spark_start, clock=clock, read=sqlmesh_compat.read_configs_without_state
    )
    context = create_context(configs, place)
    state = sqlmesh_compat.make_throwaway_state(place.scratch_dir / f"{name}.duckdb", context)
    sqlmesh_compat.give_state(context, state)
    sqlmesh_compat.load_without_state_models(context)
    load_project(context, clock.time_phase("load"), place.repository)
    return context
