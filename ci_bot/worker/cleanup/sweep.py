"""A sweep's two requests, which list environments and remove some, and the survey of the state.

The bot sends the two one after the other, because between them it reads from GitHub which pull
requests are closed, and this process has no access to GitHub.

The survey reports prod's gaps, tables that nobody reads, and estimates. It reads only the state:
prod's versions of its models, as `sqlmesh run` uses them, and the ledger. It loads no file of the
project, and does not start Spark.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlmesh.core.state_sync import StateSync

from ci_bot.errors import EXIT_REFUSED, BadInput
from ci_bot.protocol.base import Contract
from ci_bot.protocol.cleanup_report import (
    MOST_LISTED,
    CleanupDocument,
    EnvironmentList,
    FoundEnvironment,
    LastingEnvironment,
    MissedEstimate,
    StateSurvey,
    SweepDocument,
    SweepTarget,
    UnusedTables,
)
from ci_bot.protocol.environment import (
    is_name_of_prod_environment,
    parse_environment_prefix,
    read_pull_number,
)
from ci_bot.protocol.messages import CleanupRequest, ListRequest, SweepRequest
from ci_bot.protocol.plan import ModelRange
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup import reclaim, remove_environment
from ci_bot.worker.messages import make_failure_of_error, report_times
from ci_bot.worker.project import (
    collect_versions_of_project,
    configure_projects,
    create_project_context,
    make_project_place,
    opening,
)
from ci_bot.worker.runtime import WorkerPhaseClock
from ci_bot.worker.state_store import (
    ApplyRow,
    CostLedger,
    Ledger,
    LedgerRow,
    does_ledger_describe_stored_environment,
)

_DAY = 86_400_000
# A nightly run may be late until the next night.
GRACE = _DAY
_NEWEST_APPLIES = 200
_APPLIES_OF = 30 * _DAY
# Below this, a factor shows Spark's start more than the estimate.
_WORTH_A_WORD_HOURS = 0.1
_OFF = 2.0


def survey_state_for_sweep(state: StateSync, *, prefix: str, now: int | None = None) -> StateSurvey:
    """Surveys the state, without the environments of pull requests.

    Args:
        state: SQLMesh's state, opened for reading.
        prefix: The prefix of pull requests' environments, which are left out.
        now: In milliseconds; None: the clock's time.
    """
    moment = report_times.read_milliseconds_now() if now is None else now
    missing = sqlmesh_compat.list_missing_sqlmesh_intervals(state, moment - GRACE)
    behind = sorted(missing.items(), key=lambda item: (item[1][0], item[0]))
    unused = Counter(
        item.name.replace('"', "").replace("`", "")
        for item in sqlmesh_compat.list_unused_sqlmesh_versions(state)
        if item.ended_ts < moment
    )
    applies = [
        row for row in _list_applies_for_sweep(state, moment) if row.expected_hours is not None
    ]
    return StateSurvey(
        behind=[
            ModelRange(
                model=name,
                start=report_times.format_iso_in_message(start),
                end=report_times.format_iso_in_message(end),
            )
            for name, (start, end) in behind[:MOST_LISTED]
        ],
        behind_models=len(behind),
        lasting=list(_list_lasting_environments_for_sweep(state, prefix, moment))[:MOST_LISTED],
        unused=[
            UnusedTables(model=model, versions=count)
            for model, count in sorted(unused.items())[:MOST_LISTED]
        ],
        unused_versions=sum(unused.values()),
        estimates=[
            MissedEstimate(
                environment=row.environment,
                at=row.at,
                expected_hours=row.expected_hours or 0.0,
                used_hours=row.allocated_hours,
            )
            for row in applies
            if is_estimate_off_in_sweep(row.expected_hours or 0.0, row.allocated_hours)
        ][:MOST_LISTED],
        applies=len(applies),
    )


def is_estimate_off_in_sweep(expected: float, used: float) -> bool:
    """Whether an apply cost at least twice or at most half the expected executor-hours."""
    low, high = sorted((expected, used))
    return high >= _WORTH_A_WORD_HOURS and high >= _OFF * low


def _list_lasting_environments_for_sweep(
    state: StateSync, prefix: str, now: int
) -> Iterator[LastingEnvironment]:
    """Lists people's environments that never expire, or that have expired and still exist."""
    for item in sorted(state.get_environments_summary(), key=lambda item: str(item.name)):
        name = str(item.name)
        expires = item.expiration_ts
        if (
            is_name_of_prod_environment(name)
            or read_pull_number(name, prefix)
            or (expires is not None and expires > now)
        ):
            continue
        yield LastingEnvironment(
            environment=name,
            expires_at=None if expires is None else report_times.format_iso_in_message(expires),
        )


def _list_applies_for_sweep(state: StateSync, now: int) -> list[ApplyRow]:
    """Lists the successful applies of the last 30 days, without probes, which build only a part."""
    since = now - _APPLIES_OF
    rows = CostLedger(sqlmesh_compat.unwrap_sqlmesh_state_adapter(state)).list_applies(
        newest=_NEWEST_APPLIES
    )
    return [
        row
        for row in rows
        if row.outcome == "applied" and report_times.to_milliseconds(row.at) >= since
    ]


# These reasons concern one environment only; every other bad input concerns all of them.
_ONE_ENVIRONMENT = ("suffix_target",)


@dataclass(frozen=True)
class SweepPorts:
    """The clock and callbacks that a sweep gets from its caller.

    Attributes:
        stop: Whether the run was asked to stop; checked between two environments.
        keep: Called with the answer so far, so that a stopped run has reported it.
        now: A clock in seconds.
    """

    progress: Callable[[str, str, int | None, int | None], None]
    on_spark_start: Callable[[], None]
    stop: Callable[[], bool]
    keep: Callable[[Contract], None]
    now: Callable[[], float] = time.perf_counter


def answer_sweep_request(
    request: ListRequest | SweepRequest, ports: SweepPorts
) -> EnvironmentList | SweepDocument:
    """Answers a request to list environments, or to sweep them."""
    return (
        list_environments_to_sweep(request, ports)
        if isinstance(request, ListRequest)
        else sweep_environments(request, ports)
    )


def list_environments_to_sweep(request: ListRequest, ports: SweepPorts) -> EnvironmentList:
    """Lists everything called `<prefix>_<number>` in ledger and state, and this repository's
    environments in the ledger under another prefix. Read-only; does not start Spark.

    Raises:
        BadInput, RequestRefused: the configuration or the state cannot be used; see `opening`.
    """
    clock = WorkerPhaseClock(ports.now)
    started = clock.now()
    opening.refuse_postgres_writes_of_project()
    place = make_project_place(request, request.projects)
    configs, _ = configure_projects(place, ports.on_spark_start, clock=clock)
    context = create_project_context(configs, place)
    with clock.time_phase("state"):
        state, _ = opening.open_project_state(context, place, write=False)
        found: list[FoundEnvironment] = []
        survey = None
        if state is not None:
            try:
                found = _list_found_environments_of_sweep(
                    state, context.pinned_environments, request
                )
                if request.survey:
                    survey = survey_state_for_sweep(state, prefix=request.environment_prefix)
            finally:
                state.close()
    return EnvironmentList(
        environments=found,
        survey=survey,
        seconds=round(clock.now() - started, 3),
        timings=dict(clock.phases),
        versions=collect_versions_of_project(None),
    )


def _list_found_environments_of_sweep(
    state: StateSync, pinned: Any, request: ListRequest
) -> list[FoundEnvironment]:
    prefix = request.environment_prefix
    recorded = Ledger(sqlmesh_compat.unwrap_sqlmesh_state_adapter(state)).list_rows()
    expires = {str(item.name): item.expiration_ts for item in state.get_environments_summary()}
    rows = {row.environment: row for row in recorded if read_pull_number(row.environment, prefix)}
    rows |= {
        row.environment: row
        for row in recorded
        if row.owner == request.owner.name
        and row.phase != "removed"
        and row.environment not in rows
        and parse_environment_prefix(row.environment, row.pr_number or 0)
    }
    records = {
        name: at for name, at in expires.items() if read_pull_number(name, prefix) or name in rows
    }
    found = []
    for name in sorted(records.keys() | rows.keys()):
        row, expires_at = rows.get(name), records.get(name)
        if name in records and not does_ledger_describe_stored_environment(row, expires_at):
            row = None  # it describes an earlier environment of that name
        left = row if row and name not in records and _has_only_tables_left_to_sweep(row) else None
        found.append(
            FoundEnvironment(
                environment=name,
                owner=row.owner if row else None,
                pr_number=row.pr_number if row else None,
                phase=row.phase if row else None,
                pinned=name in pinned,
                updated_at=row.updated_at if row else None,
                expires_at=report_times.format_iso_in_message(expires_at)
                if expires_at is not None
                else None,
                tables_due_at=report_times.format_iso_in_message(
                    reclaim.get_time_when_reclaim_is_due(left)
                )
                if left is not None
                else None,
                tables_due=left is not None and reclaim.is_reclaim_due(left),
            )
        )
    return found


def _has_only_tables_left_to_sweep(row: LedgerRow) -> bool:
    """Whether an environment is already removed, and only its tables are left."""
    return row.phase in reclaim.PHASES


def sweep_environments(request: SweepRequest, ports: SweepPorts) -> SweepDocument:
    """Cleans up the environments one by one. A failure of one does not stop the others.

    Each uses the same `remove_environment` as the end of its pull request, which opens and closes
    the state itself. Spark's session belongs to the process, so it starts once.

    Raises:
        BadInput: something is wrong that concerns every environment; nothing was touched.
    """
    started = ports.now()
    done: list[CleanupDocument] = []
    spark_started = False

    def on_spark_start() -> None:
        # Every cleanup makes its own connection on the one session.
        nonlocal spark_started
        if not spark_started:
            spark_started = True
            ports.on_spark_start()

    inner = replace(ports, on_spark_start=on_spark_start)

    def make_document() -> SweepDocument:
        return SweepDocument(
            cleanups=list(done),
            seconds=round(ports.now() - started, 3),
            versions=collect_versions_of_project(None),
        )

    for number, target in enumerate(request.targets, start=1):
        if ports.stop():
            break
        ports.progress("sweep", f"removing {target.environment}", number, len(request.targets))
        done.append(_clean_up_swept_environment(request, target, inner, first=not done))
        ports.keep(make_document())
    return make_document()


def _clean_up_swept_environment(
    request: SweepRequest, target: SweepTarget, ports: SweepPorts, *, first: bool
) -> CleanupDocument:
    clock = WorkerPhaseClock(ports.now)
    started = clock.now()
    cleanup_request = CleanupRequest(
        projects=request.projects,
        gateway=request.gateway,
        workplace=request.workplace,
        # A pull request's number requires the ledger's record: a sweep has no other proof of
        # ownership.
        owner=request.owner.model_copy(update={"pr_number": target.pr_number}),
        environment=target.environment,
        environment_prefix=request.environment_prefix,
        reclaim=request.reclaim,
        merged=target.merged,
    )
    try:
        return remove_environment.remove_environment(
            cleanup_request,
            remove_environment.CleanupPorts(clock, ports.progress, ports.on_spark_start),
        )
    except Exception as error:
        everywhere = isinstance(error, BadInput) and error.reason_code not in _ONE_ENVIRONMENT
        if first and everywhere:
            raise
        failure = make_failure_of_error(
            error, stage="cleanup", repository=Path(request.workplace.repository)
        )
        return CleanupDocument(
            environment=target.environment,
            existed=True,
            result="refused" if failure.exit_code == EXIT_REFUSED else "incomplete",
            state_record_removed=False,
            seconds=round(clock.now() - started, 3),
            timings=dict(clock.phases),
            versions=collect_versions_of_project(None),
            failure=failure,
        )
