"""The base branch as prod: a review without state database, warehouse or secret (DESIGN 5)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlmesh.core import constants as c
from sqlmesh.core.config import Config, EnvironmentSuffixTarget
from sqlmesh.core.context import Context
from sqlmesh.core.environment import Environment
from sqlmesh.core.snapshot import Snapshot, SnapshotChangeCategory, SnapshotIntervals, start_date
from sqlmesh.core.state_sync import StateSync

from ci_bot.errors import BadInput
from ci_bot.worker import compat, times
from ci_bot.worker.problems import sentence
from ci_bot.worker.project import Clock, Place, load, new_context

PLAN_ID = "base-branch"


def state_from_base(
    place: Place, head: Place, *, clock: Clock, execution: int
) -> tuple[StateSync, Any]:
    """A throw-away state whose prod is the base branch's project, complete up to `execution`.

    Returns:
        The state, and the base branch's configuration.

    Args:
        place: The base branch's project directories, with a cache of their own.
        head: Where the run keeps its private files.
        execution: The moment up to which prod's tables count as built, in milliseconds.

    Raises:
        BadInput: the base branch's configuration cannot be read, for example because of a variable
            that `config.py` needs; the message names it.
        SQLMeshError: the base branch's project does not load.
    """
    with clock.phase("base branch"), _traceless(place.projects):
        configs = _read(place)
        compat.make_spark_lazy(configs, _never)
        compat.prepare_configs(configs, place.cache_dir)
        context = new_context(configs, place)
        state = compat.throwaway_state(head.scratch_dir / "base-state.duckdb", context)
        compat.give_state(context, state)
        load(context, Clock(now=clock.now))
        promote_as_prod(context, state, execution)
    return state, context.config


def _read(place: Place) -> dict[Path, Config]:
    try:
        return compat.read_configs_without_state(place.projects)
    except Exception as error:
        # Reading runs Jinja, YAML and perhaps config.py, each with errors of its own.
        text = sentence(error)
        for project in place.projects:
            text = text.replace(f"{project}/", "")
        raise BadInput(
            f"The SQLMesh configuration of the base branch is not valid: {text}",
            hint="If it needs a variable, give the variable a default, or pass it with "
            "`worker-env`; else correct the configuration on the base branch.",
            reason_code="bad_base_config",
        ) from error


@contextmanager
def _traceless(projects: Sequence[Path]) -> Iterator[None]:
    """Forgets afterwards what the base branch's code left in this process.

    Its `.env` sets variables, its Python modules stay loaded under their names, and it may have put
    directories of its tree on the search path. The head would take all of them for its own: other
    values, Python models that look changed although they are not, because SQLMesh keeps a helper's
    source only where it lies in the project, and changed modules that look as they were.
    """
    variables, search_path, known = dict(os.environ), list(sys.path), set(sys.modules)
    installed = [Path(entry) for entry in search_path]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        sys.path[:] = search_path
        # All are looked at before one goes: a package without a file asks the one that holds it.
        came = {name: _places(sys.modules[name]) for name in sys.modules.keys() - known}
        for name, places in came.items():
            if any(
                _is_below(place, projects) or not _is_below(place, installed) for place in places
            ):
                del sys.modules[name]


def _places(module: Any) -> list[Path]:
    """The file of a module, else the directories of a package; none for what is built in."""
    file = getattr(module, "__file__", None)
    if file:
        return [Path(file)]
    try:
        return [Path(place) for place in module.__path__]
    except (AttributeError, TypeError, KeyError):
        return []


def _is_below(place: Path, directories: Sequence[Path]) -> bool:
    return any(place.is_relative_to(directory) for directory in directories)


def _never() -> None:
    raise RuntimeError("the base branch is planned without Spark, and something started it")


def promote_as_prod(context: Context, state: StateSync, execution: int) -> None:
    """Records the loaded project as a prod that is built, promoted and unpaused.

    Unpausing matters: SQLMesh reads the intervals of paused forward-only snapshots as previews,
    and would backfill them from the beginning.
    """
    snapshots: list[Snapshot] = list(context.snapshots.values())
    for snapshot in snapshots:
        snapshot.categorize_as(SnapshotChangeCategory.BREAKING)
    state.push_snapshots(snapshots)
    by_id = {snapshot.snapshot_id: snapshot for snapshot in snapshots}
    cache: dict[str, Any] = {}
    state.add_snapshots_intervals(
        [
            SnapshotIntervals(
                name=snapshot.name,
                identifier=snapshot.identifier,
                version=snapshot.version,
                dev_version=snapshot.dev_version,
                intervals=[interval],
            )
            for snapshot in snapshots
            if snapshot.evaluatable
            and (interval := _whole_history(snapshot, by_id, cache, execution)) is not None
        ]
    )
    infos = [snapshot.table_info for snapshot in snapshots]
    environment = Environment(
        name=c.PROD,
        suffix_target=context.config.environment_suffix_target or EnvironmentSuffixTarget.default,
        snapshots=infos,
        start_at=c.EPOCH,
        end_at=execution,
        plan_id=PLAN_ID,
        previous_plan_id=None,
        gateway_managed=context.config.gateway_managed_virtual_layer,
    )
    state.promote(environment, environment_statements=context._environment_statements)
    state.unpause_snapshots(infos, execution)
    state.finalize(environment)


def _whole_history(
    snapshot: Snapshot, by_id: Any, cache: dict[str, Any], execution: int
) -> tuple[int, int] | None:
    """The interval that a prod which never missed a run would hold."""
    start = times.milliseconds(start_date(snapshot, by_id, cache, relative_to=execution))
    unit = snapshot.node.interval_unit
    end = times.milliseconds(
        unit.cron_floor(times.milliseconds(snapshot.node.cron_floor(execution)))
    )
    first = times.milliseconds(unit.cron_floor(start))
    return (first, end) if first < end else None
