"""What a restatement in prod builds again, once a merge is deployed. Read-only.

SQLMesh deploys a merge first and restates afterwards: a plan with a restatement backfills the
restated models and the models that they read, and leaves other changed models without data. So the
restatement is planned here over the project as the merge makes it, with SQLMesh's own planner, and
only the restated models of that plan count.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.dialect import normalize_model_name
from sqlmesh.core.plan import Plan
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.plan import Backfill, Window
from ci_bot.redaction import quote_value, shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, extract_sentence_of_error, report_times
from ci_bot.worker.planning import describe_plan, make_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, PlanRequest

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

_NEAR = 3
# Separators between the fields of a line that a deployment reads.
_SEPARATORS = frozenset("\t\r\n")


@dataclass(frozen=True)
class RestatedWindow:
    """The dates of a restatement in milliseconds; None: from the beginning, or to the end."""

    start: int | None
    end: int | None


@dataclass(frozen=True)
class PlannedRestatement:
    """The work that SQLMesh would do again in prod.

    Attributes:
        fqn: the model's fully qualified name.
        fingerprint: the model's, with the data that it reads.
        window: the dates to give to SQLMesh.
        work: for the model and its readers.
        kept: readers that keep their rows, by their names in reports.
        environments: other environments whose data of these models SQLMesh clears.
    """

    fqn: str
    snapshot: Snapshot
    fingerprint: str
    window: Window
    work: list[Backfill]
    kept: list[str]
    environments: list[str]

    @property
    def rebuilds(self) -> list[str]:
        return sorted(item.model for item in self.work)


def find_model_to_restate(context: Context, wanted: str, names: MessageNames) -> str:
    """Finds the model's fully qualified name.

    Raises:
        BadInput: the project has no model of that name.
    """
    try:
        found = normalize_model_name(wanted, context.default_catalog, context.default_dialect)
    except Exception:  # a name that SQLGlot cannot read
        found = wanted
    if found in context.models:
        return found
    every = sorted(names.short_name(fqn) for fqn in context.models)
    near = difflib.get_close_matches(wanted, every, n=_NEAR)
    shown = " or ".join(f"`{name}`" for name in near)
    raise BadInput(
        f"The project has no model {quote_value(wanted)}.",
        hint=f"Did you mean {shown}?" if near else "Write its name as the comment shows it.",
        reason_code="unknown_model",
    )


def parse_window_of_restatement(start: str | None, end: str | None, *, now: int) -> RestatedWindow:
    """Parses the dates of a requested restatement as SQLMesh does: `1 week ago` counts from `now`.

    Raises:
        BadInput: one is not a date, they are in the wrong order, or they are in the future.
    """
    begins = report_times.parse_start(start, relative_to=now) if start is not None else None
    ends = report_times.parse_end(end, relative_to=now) if end is not None else None
    if begins is not None and begins >= (now if ends is None else ends):
        until = (
            "the present"
            if ends is None
            else f"the end ({report_times.format_iso_in_message(ends)})"
        )
        raise BadInput(
            f"The start ({report_times.format_iso_in_message(begins)}) is not before {until}.",
            hint="Swap the dates, or leave them out to build all of it again.",
            reason_code="bad_window",
        )
    return RestatedWindow(begins, ends)


def plan_restatement(
    context: Context,
    fqn: str,
    wanted: RestatedWindow,
    plan_request: PlanRequest,
    names: MessageNames,
    *,
    environment: EnvironmentName,
) -> PlannedRestatement:
    """Plans a restatement in prod over the project as it is here.

    Args:
        environment: The pull request's own environment, which is removed after the merge.

    Raises:
        RequestRefused: SQLMesh restates nothing of the model, or the merge builds it anyway.
        BadInput: there is no prod, or prod has nothing in the window.
        BotError: SQLMesh refuses the plan.
    """
    snapshot = context.get_snapshot(fqn, raise_if_missing=True)
    name = names.short_name(fqn)
    _check_kind_of_restated_model(context, snapshot, name)
    frontier = make_plan.find_prod_frontier_of_plan(context)
    if frontier is None:
        raise BadInput(
            "Prod holds no data yet, so there is nothing to build again.",
            hint="Deploy prod first.",
            reason_code="no_prod",
        )
    restating = _build_restatement_plan(context, name, wanted, plan_request, frontier)
    plan = restating.plan
    _check_restated_model_not_built_by_merge(plan, fqn, name)
    intervals = make_plan.list_missing_intervals_of_plan(
        restating,
        [
            make_plan.copy_planned_snapshot_without_intervals(plan.snapshots[s_id])
            for s_id in plan.restatements
        ],
        plan.end_override_per_model,
    )
    work = describe_plan.list_planned_backfill(
        restating, intervals, names, reused=lambda snapshot: False
    )
    # Readers of other kinds are built again whole, whatever the dates are.
    own = any(s_id.name == fqn for s_id in intervals) or _has_restated_model_no_table(snapshot)
    if not own or not work:
        raise BadInput(
            f"Prod has nothing of `{name}` from {restating.window.start} to {restating.window.end} "
            "that could be built again.",
            hint="Choose dates for which the model is built, or leave them out.",
            reason_code="bad_window",
        )
    return PlannedRestatement(
        fqn=fqn,
        snapshot=plan.snapshots.get(snapshot.snapshot_id, snapshot),
        fingerprint=describe_plan.compute_planned_fingerprint(snapshot),
        window=restating.window,
        work=work,
        kept=_list_readers_kept_by_restatement(plan, names),
        environments=_list_environments_cleared_by_restatement(context, plan, environment),
    )


def _check_kind_of_restated_model(context: Context, snapshot: Snapshot, name: str) -> None:
    """Refuses models that SQLMesh leaves out, with or without a warning. (`_build_restatements`)"""
    if snapshot.is_seed:
        raise RequestRefused(
            f"`{name}` is a seed, and SQLMesh builds no seed again: its file holds its rows.",
            hint="Change the file, or ask for the models that read it.",
            reason_code="not_restatable",
        )
    if snapshot.disable_restatement:
        raise RequestRefused(
            f"`{name}` has `disable_restatement`, by itself or by its kind "
            f"{describe_plan.name_planned_model_kind(snapshot)}, because rows could be lost.",
            hint="If its source still has all of its history, set `disable_restatement false` in "
            "the model's kind first.",
            reason_code="not_restatable",
        )
    try:
        selected = sqlmesh_compat.expand_sqlmesh_selection(context, name)
    except Exception:  # its parser raises more than one kind
        selected = set()
    if selected != {snapshot.name} or set(name) & _SEPARATORS:
        raise RequestRefused(
            f"`--restate-model` of SQLMesh cannot name {quote_value(name)} alone.",
            hint="Restate it from a terminal.",
            reason_code="not_restatable",
        )


def _build_restatement_plan(
    context: Context, name: str, wanted: RestatedWindow, plan_request: PlanRequest, frontier: int
) -> BuiltPlan:
    """Builds the plan of `sqlmesh plan prod --restate-model` with all of its dates.

    A model whose history can only be restated as a whole is restated up to the execution time. By
    default that is the present, so that SQLMesh would note intervals as built for which prod has no
    data yet. (`Snapshot.get_removal_interval`)
    """
    end = frontier if wanted.end is None else min(wanted.end, frontier)
    start = wanted.start
    if start is not None and start >= end:
        raise BadInput(
            f"Prod's data ends at {report_times.format_iso_in_message(frontier)}, and the "
            f"restatement would begin at {report_times.format_iso_in_message(start)}.",
            hint="Choose dates that prod has.",
            reason_code="bad_window",
        )
    if start is None:
        start = _find_beginning_of_prod_data(context)
    builder = sqlmesh_compat.make_sqlmesh_plan_builder(
        context,
        c.PROD,
        start=start,
        end=end,
        execution_time=frontier,
        restate_models=[name],
        always_include_local_changes=True,
        skip_tests=True,
        skip_linter=True,
        forward_only=plan_request.flags.forward_only,
        allow_destructive_models=plan_request.flags.allow_destructive or None,
        categorizer_config=plan_request.categorizer,
    )
    try:
        plan: Plan = sqlmesh_compat.build_sqlmesh_plan(builder)
    except SQLMeshError as error:
        raise BotError(
            f"SQLMesh refuses to restate `{name}` in prod: "
            f"{shorten_redacted(extract_sentence_of_error(error), 1_000)}",
            hint="Fix what it names, and ask again.",
            reason_code="failed",
        ) from error
    return BuiltPlan(
        plan=plan,
        window=Window(
            start=report_times.format_iso_in_message(start),
            end=report_times.format_iso_in_message(end),
            execution_time=report_times.format_iso_in_message(frontier),
        ),
        flags=plan_request.flags,
        deployable=plan.deployability_index,
        versions_in_prod=make_plan.list_prod_versions_for_plan(context.state_reader),
        restatements=plan.restatements,
        notes=(),
    )


def _find_beginning_of_prod_data(context: Context) -> int:
    """Finds the start of prod's oldest data (ms); SQLMesh cuts each model at its own start."""
    prod = context.state_reader.get_environment(c.PROD)
    held = context.state_reader.get_snapshots(prod.snapshots if prod else ())
    return min(
        (begin for snapshot in held.values() for begin, _ in snapshot.intervals if begin),
        default=0,
    )


def _check_restated_model_not_built_by_merge(plan: Plan, fqn: str, name: str) -> None:
    diff = plan.context_diff
    new, old = diff.modified_snapshots.get(fqn, (None, None))
    added = any(
        s_id.name == fqn and not _has_restated_model_no_table(plan.snapshots[s_id])
        for s_id in diff.added
    )
    kept = (
        new is None
        or old is None
        or _has_restated_model_no_table(new)
        or sqlmesh_compat.sqlmesh_snapshot_inherits_intervals(old, new)
    )
    if kept and not added:
        return
    raise RequestRefused(
        f"The merge gives `{name}` a new table and builds all of it, so a restatement would build "
        "it twice.",
        hint="Leave it out. To build its readers again, ask for those.",
        reason_code="not_restatable",
    )


def _has_restated_model_no_table(snapshot: Snapshot) -> bool:
    """Whether a model is external or embedded: to restate it means to restate its readers."""
    return bool(snapshot.is_symbolic)


def _list_readers_kept_by_restatement(plan: Plan, names: MessageNames) -> list[str]:
    """Lists the readers of restated models that SQLMesh leaves as they are."""
    restated = {s_id.name for s_id in plan.restatements}
    return sorted(
        names.short_name(snapshot.name)
        for snapshot in plan.snapshots.values()
        if snapshot.name not in restated
        and snapshot.disable_restatement
        and any(parent.name in restated for parent in snapshot.parents)
    )


def _list_environments_cleared_by_restatement(
    context: Context, plan: Plan, environment: EnvironmentName
) -> list[str]:
    """Lists other environments with their own versions of restated models: SQLMesh clears these.

    (`identify_restatement_intervals_across_snapshot_versions`)
    """
    restated = {s_id.name for s_id in plan.restatements}
    shared = make_plan.list_prod_versions_for_plan(context.state_reader)
    return sorted(
        name
        for name, infos in sqlmesh_compat.list_sqlmesh_environment_snapshots(context).items()
        if name not in (environment, c.PROD)
        and any(info.name in restated and (info.name, info.version) not in shared for info in infos)
    )
