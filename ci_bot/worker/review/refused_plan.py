"""A review of a project that loads, and that SQLMesh refuses to plan.

The refusal is one sentence about one model. The rules need no plan: they compare the models with
prod's and find the other risks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.messages import ReviewRequest
from ci_bot.protocol.plan import AuditsCheck, Checks, Lineage, ProjectCheck, TableDiffCheck
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.protocol.review_report import ReviewFacts
from ci_bot.worker.cost import predict_plan_cost
from ci_bot.worker.messages import ModelNames, make_failure_of_error
from ci_bot.worker.planning import BaseDrift, BuiltPlan, PlanRefusedError
from ci_bot.worker.project import (
    OpenProject,
    check_formatting,
    collect_versions,
    describe_project,
    lint_project,
    make_project_place,
    mark_touched_failures,
    run_unit_tests,
    validation,
)
from ci_bot.worker.review.policy_scopes import evaluate_review_scopes
from ci_bot.worker.review.rule_inputs import make_refused_plan_inputs
from ci_bot.worker.rules import find_all
from ci_bot.worker.runtime import PhaseClock, load_trace

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.context import Context

# Every check that a review can make without touching the warehouse.


def run_checks(
    context: Context,
    planned: BuiltPlan | None,
    names: ModelNames,
    repository: Path,
    clock: PhaseClock,
    *,
    project: list[ProjectCheck],
    changed_files: list[str] | None,
) -> Checks:
    """Runs every check that a review can make without the warehouse; the result includes
    `project`.
    """
    with clock.time_phase("lint"):
        linted = lint_project(context, names, repository)
    with clock.time_phase("format"):
        touched = _touched_files(planned, changed_files, repository)
        formatted = check_formatting(context, touched, repository)
    with clock.time_phase("tests"):
        tested = run_unit_tests(context, repository)
        if tested.failures:
            tested = mark_touched_failures(tested, context.models, changed_files, repository, names)
    return Checks(
        project=project,
        formatting=formatted,
        lint=linted,
        tests=tested,
        audits=count_audits(planned),
        table_diff=TableDiffCheck(
            status="not_run", not_run_because="The changed tables do not exist before an apply."
        ),
    )


def _touched_files(
    planned: BuiltPlan | None, changed_files: list[str] | None, repository: Path
) -> set[Path]:
    """Returns the files of the diff, else those of the models that the plan changes directly."""
    if changed_files is not None:
        return {repository / name for name in changed_files}
    direct = planned.plan.directly_modified if planned else ()
    return {
        path
        for s_id in direct
        if planned
        and s_id in planned.plan_snapshots
        and (path := planned.plan_snapshots[s_id].node._path) is not None
    }


def count_audits(planned: BuiltPlan | None) -> AuditsCheck:
    """Counts the audits of the changed models; they need data, so a review cannot run them."""
    blocking = non_blocking = 0
    for snapshot in planned.changed_snapshots if planned else ():
        if not snapshot.is_model:
            continue
        for audit, arguments in snapshot.model.audits_with_args:
            if _is_blocking(audit, arguments):
                blocking += 1
            else:
                non_blocking += 1
    return AuditsCheck(
        status="not_run",
        blocking=blocking,
        non_blocking=non_blocking,
        not_run_because="Audits read the data that an apply builds.",
    )


def _is_blocking(audit: ModelAudit | StandaloneAudit, arguments: Any) -> bool:
    """Whether an audit blocks; the argument `blocking` of a model overrides the audit's own."""
    override = arguments.get("blocking")
    return bool(audit.blocking) if override is None else str(override).lower() not in ("false", "0")


def describe_refused_plan(
    error: PlanRefusedError,
    opened: OpenProject,
    request: ReviewRequest,
    flags: PlanFlags,
    clock: PhaseClock,
) -> ReviewFacts:
    """Makes the facts of a refused plan: the refusal, findings on models, and checks without a
    plan.
    """
    context = opened.context
    names = ModelNames(context.default_catalog, context.default_dialect)
    repository = Path(request.workplace.repository)
    place, stamp = make_project_place(request, request.projects), collect_versions(opened)
    checked = run_checks(
        context,
        None,
        names,
        repository,
        clock,
        project=validation.check_opened_project(opened, place, stamp),
        changed_files=request.changed_files,
    )
    with clock.time_phase("rules"):
        drift = BaseDrift.from_changed_files(
            context.models, request.changed_files, repository, load_trace.list_opened_files()
        )
        inputs = make_refused_plan_inputs(opened, drift, request, flags)
        found = find_all(inputs)
        told = (*found, *checked.lint.findings)
        scoped = evaluate_review_scopes(context, request.scopes, inputs, told)
    failure = make_failure_of_error(error, stage="plan", repository=repository)
    paths = {
        names.short_name(fqn): inputs.path_of(model)
        for side in (inputs.before, inputs.after)
        for fqn, model in side.items()
    }
    cause = next(iter(error.models), None)
    return ReviewFacts(
        project=describe_project(opened, place),
        environment=request.environment,
        baseline=opened.baseline,
        prod_plan=None,
        findings=found,
        checks=checked,
        versions=stamp,
        timings=dict(clock.phases),
        failure=failure.model_copy(
            update={"model": cause, "path": failure.path or paths.get(cause or "")}
        ),
        scoped=scoped,
        prod_not_found=opened.prod_not_found,
        base_models=opened.base_models,
        identity=None,
        changes=[],
        backfill=[],
        work=[],
        restatements=[],
        statements=[],
        lineage=Lineage(),
        cost=predict_plan_cost([]),
        stages=[],
    )
