"""The base branch as prod: a review without state database, warehouse or secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from sqlmesh.core import constants as c
from sqlmesh.core.config import EnvironmentSuffixTarget
from sqlmesh.core.context import Context
from sqlmesh.core.environment import Environment
from sqlmesh.core.snapshot import Snapshot, SnapshotChangeCategory, SnapshotIntervals, start_date
from sqlmesh.core.state_sync import StateSync

from ci_bot.errors import EXIT_FAILED, LOG_HINT, BadInput, BotError, WorkerFailed
from ci_bot.protocol.base import Failure
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import NotLoaded, make_failure_of_error, report_times
from ci_bot.worker.project.configuration import (
    ProjectPlace,
    create_project_context,
    read_project_configuration,
)
from ci_bot.worker.project.loading import MAX_ROUNDS, find_all_project_load_failures, load_project
from ci_bot.worker.project.opening import (
    OpenProject,
    ProjectConfigFacts,
    open_project_without_state,
)
from ci_bot.worker.runtime import ForkedBackgroundWork, KilledWorkerFork, WorkerPhaseClock, imports

if TYPE_CHECKING:
    from sqlmesh.core.snapshot import SnapshotId

PLAN_ID = "base-branch"


@dataclass(frozen=True)
class BaseProject:
    """The base branch's project. With no field set, the branch has no project.

    Attributes:
        state: A throw-away state that holds it as prod; None if it does not load.
        failures: Why it does not load.
        config: Its configuration; None if it does not load.
    """

    state: Path | None
    failures: tuple[Failure, ...] = ()
    config: ProjectConfigFacts | None = None


def open_project_on_base_branch(
    place: ProjectPlace,
    base: ProjectPlace,
    *,
    execution: int,
    clock: WorkerPhaseClock,
    on_spark_start: Callable[[], None],
) -> OpenProject:
    """Opens a project on a throw-away state that holds its base branch as prod.

    The state is empty if the base branch has no project, or one that does not load.

    Args:
        base: The base branch's tree and project directories, with a cache of their own.
        execution: The moment up to which prod's tables count as built, in milliseconds.

    Raises:
        BadInput: see `project.open_project_without_state`.
        NotLoaded: the project does not load; `base` shows whether the base branch's project does.
    """
    state, answer = place.scratch_dir / "base-state.duckdb", place.scratch_dir / "base.json"
    with ForkedBackgroundWork(
        partial(_load_base_project, base, place, state, execution), answer
    ) as beside:

        def open_ignoring(ignored: Sequence[Path] = ()) -> OpenProject:
            return open_project_without_state(
                place, clock=clock, on_spark_start=on_spark_start, ignored=ignored
            )

        try:
            opened = open_ignoring()
        except (NotLoaded, BadInput) as error:
            with clock.time_phase("base branch"):
                before = _list_load_failures_of_base_branch(beside, state)
            failures = _list_load_failures_of_head(
                error, place, open_ignoring, base_fails=bool(before)
            )
            raise NotLoaded(failures, base=before) from error
        with clock.time_phase("base branch"):
            found = _wait_for_base_project(beside, state)
    if found.state is not None:
        given = sqlmesh_compat.open_throwaway_sqlmesh_state(found.state, opened.context)
    else:
        given = sqlmesh_compat.make_throwaway_sqlmesh_state(
            place.scratch_dir / "nothing.duckdb", opened.context
        )
    sqlmesh_compat.give_sqlmesh_state(opened.context, given)
    opened.config_before, opened.base_failures = found.config, found.failures
    return opened


def _list_load_failures_of_head(
    error: NotLoaded | BadInput,
    place: ProjectPlace,
    attempt: Callable[[Sequence[Path]], object],
    *,
    base_fails: bool,
) -> list[Failure]:
    """Lists every failure that keeps the head from loading.

    Raises:
        BadInput: the fault is outside the project's files; for example, a gateway does not exist.
    """
    if isinstance(error, NotLoaded):
        # If the base branch loads, all failures are new, and one round shows the other models that
        # fail. More rounds would hide a macro that does not load behind its consequences.
        models = all(unit.suffix == ".sql" for unit in error.units)
        rounds = MAX_ROUNDS if base_fails else int(models)
        return find_all_project_load_failures(error, place.repository, attempt, rounds=rounds)
    if error.reason_code != "bad_config":
        raise error
    return [_make_base_project_failure(error, place, stage="configuration")]


def _list_load_failures_of_base_branch(
    beside: ForkedBackgroundWork, state: Path
) -> Sequence[Failure] | None:
    """Lists why the base branch does not load; None if that is not known."""
    try:
        return _wait_for_base_project(beside, state).failures
    except WorkerFailed:
        return None


def _wait_for_base_project(beside: ForkedBackgroundWork, state: Path) -> BaseProject:
    """Waits for the process that loads the base branch, and returns its project.

    Raises:
        WorkerFailed: a signal ended the process. The pull request's code can send one, so it is no
            proof that the base branch does not load.
    """
    try:
        values = beside.wait_for_result()
    except KilledWorkerFork as error:
        raise WorkerFailed(
            "The pull request could not be compared with the base branch: the process that loaded "
            f"the base branch's project {error}.",
            hint="Look for code of the project that sends signals, and for a machine that is out "
            "of memory; the log above says what happened last.",
            reason_code="worker_crashed",
        ) from error
    except ChildProcessError as error:
        failure = Failure(
            stage="load",
            reason_code="worker_crashed",
            exit_code=EXIT_FAILED,
            message=f"The process that loaded the base branch's project {error}.",
            hint=LOG_HINT,
        )
        return BaseProject(None, (failure,))
    if values["config"] is None:
        return BaseProject(
            None, tuple(Failure.model_validate(value) for value in values["failures"])
        )
    return BaseProject(state, config=ProjectConfigFacts.from_values(values["config"]))


class BaseValues(TypedDict):
    """The fields of `BaseProject` as JSON values, which its own process sends back."""

    config: dict[str, object] | None
    failures: list[dict[str, object]]


def _load_base_project(
    place: ProjectPlace, head: ProjectPlace, state: Path, execution: int
) -> BaseValues:
    """Loads the base branch into `state`. Runs in its own process, so it returns JSON values."""
    if not place.projects:
        return {"config": None, "failures": []}
    imports.move_search_paths_of_worker(head.python_path, head.repository, place.repository)
    try:
        context = _open_base_project_context(place)
        sqlmesh_compat.rewrite_checkout_paths_in_sqlmesh(context, place.repository, head.repository)
        kept = sqlmesh_compat.make_throwaway_sqlmesh_state(state, context)
        sqlmesh_compat.give_sqlmesh_state(context, kept)
        try:
            promote_base_project_as_prod(context, kept, execution)
        except Exception as error:
            # Fingerprints render models, and some broken macros fail only then.
            raise NotLoaded([_make_base_project_failure(error, place)]) from error
        kept.close()
        return {
            "config": ProjectConfigFacts.from_config(context.config).as_values(),
            "failures": [],
        }
    except NotLoaded as error:
        found = find_all_project_load_failures(
            error, place.repository, partial(_open_base_project_context, place)
        )
    except BotError as error:
        absent = error.reason_code == "no_config"  # the pull request adds the project
        found = [] if absent else [_make_base_project_failure(error, place, stage="configuration")]
    return {"config": None, "failures": [failure.model_dump(mode="json") for failure in found]}


def _open_base_project_context(place: ProjectPlace, ignored: Sequence[Path] = ()) -> Context:
    configs = read_project_configuration(place, sqlmesh_compat.read_sqlmesh_configs_without_state)
    sqlmesh_compat.let_sqlmesh_start_spark_late(configs, _refuse_spark_start_in_base_project)
    sqlmesh_compat.prepare_sqlmesh_configs(configs, place.cache_dir)
    sqlmesh_compat.let_sqlmesh_ignore_files(configs, ignored)
    context = create_project_context(configs, place)
    sqlmesh_compat.load_sqlmesh_context_without_state(context)
    load_project(context, WorkerPhaseClock().time_phase("load"), place.repository)
    return context


def _make_base_project_failure(
    error: BaseException, place: ProjectPlace, stage: str = "load"
) -> Failure:
    return make_failure_of_error(error, stage=stage, repository=place.repository)


def _refuse_spark_start_in_base_project() -> None:
    raise RuntimeError("the base branch is planned without Spark, and something started it")


def promote_base_project_as_prod(context: Context, state: StateSync, execution: int) -> None:
    """Records the loaded project as a prod that is built, promoted and unpaused.

    Unpausing matters: SQLMesh reads the intervals of paused forward-only snapshots as previews,
    and would backfill them from the beginning.
    """
    snapshots: list[Snapshot] = list(context.snapshots.values())
    for snapshot in snapshots:
        snapshot.categorize_as(SnapshotChangeCategory.BREAKING)
    state.push_snapshots(snapshots)
    by_id = {snapshot.snapshot_id: snapshot for snapshot in snapshots}
    cache: dict[str, datetime] = {}
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
            and (interval := _find_full_history_of_base_project(snapshot, by_id, cache, execution))
            is not None
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


def _find_full_history_of_base_project(
    snapshot: Snapshot,
    by_id: dict[SnapshotId, Snapshot],
    cache: dict[str, datetime],
    execution: int,
) -> tuple[int, int] | None:
    """Returns the interval that prod would hold if it had never missed a run; None for no
    interval.
    """
    start = report_times.to_milliseconds(start_date(snapshot, by_id, cache, relative_to=execution))
    unit = snapshot.node.interval_unit
    end = report_times.to_milliseconds(
        unit.cron_floor(report_times.to_milliseconds(snapshot.node.cron_floor(execution)))
    )
    first = report_times.to_milliseconds(unit.cron_floor(start))
    return (first, end) if first < end else None
