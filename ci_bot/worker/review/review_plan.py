"""A review: the changes of a plan, read-only, without starting Spark; and whether the unit tests
that fail in the pull request also fail on the base branch.

If SQLMesh loads a project and refuses to plan it, the refusal is one sentence about one model. The
rules need no plan: they compare the models with prod's and find the other risks.

The tests of the base branch run in a separate process, so that no code of the pull request is
loaded beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmesh.utils.errors import SQLMeshError

from ci_bot.errors import BadInput
from ci_bot.protocol.messages import BaseTestsRequest, RememberRequest, ReviewRequest
from ci_bot.protocol.plan import (
    AuditsCheck,
    Checks,
    ProjectCheck,
    TableDiffCheck,
    make_unrun_checks,
)
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.protocol.review_inputs import BaseCache, BaseTests, TestName, TestOutcome
from ci_bot.protocol.review_report import ReviewFacts, make_planless_facts
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost import add_unneeded_rebuilds_to_cost, predict_plan_cost
from ci_bot.worker.messages import MessageNames, NotLoaded, make_failure_of_error, report_times
from ci_bot.worker.planning import (
    BuiltPlan,
    PlannedBaseDrift,
    PlanRefusedError,
    PlanRequest,
    make_plan,
    plan_options,
)
from ci_bot.worker.project import (
    OpenProject,
    base_branch,
    check_project_formatting,
    checks,
    collect_versions_of_project,
    describe_project,
    lint_project,
    load_project_alone,
    make_project_place,
    mark_unit_tests_touched_by_change,
    opening,
    read_plan_settings_of_project,
    run_unit_tests,
    unit_tests,
)
from ci_bot.worker.review.change_facts import find_change_facts, find_change_facts_beside
from ci_bot.worker.review.plan_facts import ReviewedPlanFacts
from ci_bot.worker.review.policy_scopes import evaluate_policy_scopes_of_review, find_exposed_models
from ci_bot.worker.review.restatement_facts import plan_restatements
from ci_bot.worker.review.rule_inputs import make_rule_inputs, make_rule_inputs_of_refused_review
from ci_bot.worker.rules import find_project_findings
from ci_bot.worker.runtime import WorkerPhaseClock, imports, load_trace

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.context import Context
    from sqlmesh.core.test import ModelTestMetadata

# Every check that a review can make without touching the warehouse.


def run_review_checks(
    context: Context,
    planned: BuiltPlan | None,
    names: MessageNames,
    repository: Path,
    clock: WorkerPhaseClock,
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
        touched = _list_touched_files(planned, changed_files, repository)
        formatted = check_project_formatting(context, touched, repository)
    with clock.time_phase("tests"):
        tested = run_unit_tests(context, repository)
        if tested.failures:
            tested = mark_unit_tests_touched_by_change(
                tested, context.models, changed_files, repository, names
            )
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


def _list_touched_files(
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
            if _is_blocking_audit(audit, arguments):
                blocking += 1
            else:
                non_blocking += 1
    return AuditsCheck(
        status="not_run",
        blocking=blocking,
        non_blocking=non_blocking,
        not_run_because="Audits read the data that an apply builds.",
    )


def _is_blocking_audit(audit: ModelAudit | StandaloneAudit, arguments: Any) -> bool:
    """Whether an audit blocks; the argument `blocking` of a model overrides the audit's own."""
    override = arguments.get("blocking")
    return bool(audit.blocking) if override is None else str(override).lower() not in ("false", "0")


def make_review_of_refused_plan(
    error: PlanRefusedError,
    opened: OpenProject,
    request: ReviewRequest,
    flags: PlanFlags,
    clock: WorkerPhaseClock,
) -> ReviewFacts:
    """Makes the facts of a refused plan: the refusal, findings on models, and checks without a
    plan.
    """
    context = opened.context
    names = MessageNames(context.default_catalog, context.default_dialect)
    repository = Path(request.workplace.repository)
    place = make_project_place(request, request.projects)
    stamp = collect_versions_of_project(opened)
    checked = run_review_checks(
        context,
        None,
        names,
        repository,
        clock,
        project=checks.check_opened_project(opened, place, stamp),
        changed_files=request.changed_files,
    )
    with clock.time_phase("rules"):
        drift = PlannedBaseDrift.from_changed_files(
            context.models, request.changed_files, repository, load_trace.list_files_in_load_trace()
        )
        inputs = make_rule_inputs_of_refused_review(opened, drift, request, flags)
        found = find_project_findings(inputs)
        reported = (*found, *checked.lint.findings)
        scoped = evaluate_policy_scopes_of_review(context, request.scopes, inputs, reported)
    failure = make_failure_of_error(error, stage="plan", repository=repository)
    paths = {
        names.short_name(fqn): inputs.find_path(model)
        for side in (inputs.before, inputs.after)
        for fqn, model in side.items()
    }
    cause = next(iter(error.models), None)
    facts = make_planless_facts(
        describe_project(opened, place),
        request.environment,
        opened.baseline,
        checks=checked,
        cost=predict_plan_cost([]),
        versions=stamp,
        timings=dict(clock.phases),
    )
    failure = failure.model_copy(
        update={"model": cause, "path": failure.path or paths.get(cause or "")}
    )
    return facts.model_copy(
        update={
            "findings": found,
            "failure": failure,
            "scoped": scoped,
            "prod_not_found": opened.prod_not_found,
            "base_models": opened.base_models,
        }
    )


def make_review_without_prod(
    opened: OpenProject, request: ReviewRequest, clock: WorkerPhaseClock
) -> ReviewFacts:
    """Makes the facts for a state without prod, if the base branch will be used as prod: nothing is
    planned or checked.
    """
    facts = make_planless_facts(
        describe_project(opened, make_project_place(request, request.projects)),
        request.environment,
        opened.baseline,
        checks=make_unrun_checks("The state holds no prod."),
        cost=predict_plan_cost([]),
        versions=collect_versions_of_project(opened),
        timings=dict(clock.phases),
    )
    return facts.model_copy(update={"prod_not_found": opened.prod_not_found})


ReportProgress = Callable[[str, str], None]


@dataclass(frozen=True)
class ReviewPorts:
    """The clock and callbacks that a review gets from its caller."""

    clock: WorkerPhaseClock
    progress: ReportProgress
    on_spark_start: Callable[[], None]


def review_plan(request: ReviewRequest, ports: ReviewPorts) -> ReviewFacts:
    """Plans the project against prod and collects the facts of the report.

    Raises:
        BotError: bad input, a state that cannot be used, a lock.
        NotLoaded: the project does not load.
        SQLMeshError: SQLMesh refuses to plan it.
    """
    ports.progress("load", "loading the project")
    opened = open_for_review(request, ports)
    context = opened.context
    names = MessageNames(context.default_catalog, context.default_dialect)
    repository = Path(request.workplace.repository)
    clock = ports.clock
    if opened.prod_not_found is not None and not request.plan_without_prod:
        return make_review_without_prod(opened, request, clock)
    ports.progress("plan", f"planning {len(context.models)} models against prod")
    settings = read_plan_settings_of_project(context.configs)
    plan_request = PlanRequest.from_options(
        request.environment,
        plan_options.read_plan_options_of_request(context, request, settings),
        execution_time=request.execution_time,
    )
    try:
        with clock.time_phase("plan"):
            planned = _plan_review_or_fail(opened, plan_request, repository)
    except PlanRefusedError as error:
        return make_review_of_refused_plan(error, opened, request, plan_request.flags, clock)
    facts = ReviewedPlanFacts(opened, planned, names, repository, request, plan_request, settings)
    ports.progress("rules", "looking at models, changes and changed columns")
    with clock.time_phase("rules"):
        inputs = make_rule_inputs(
            opened,
            planned,
            facts.base_drift,
            request,
            row_counts=facts.row_counts(),
            flags=plan_request.flags,
            config_before=opened.config_before,
        )
    find = partial(find_change_facts, context, planned, names, inputs)
    place = make_project_place(request, request.projects)
    with find_change_facts_beside(find, context, place.scratch_dir / "change.json") as wait:
        with clock.time_phase("describe"):
            parts = facts.plan_parts()
            restated = plan_restatements(facts)
        ports.progress("checks", "running the linter and the unit tests")
        stamp = collect_versions_of_project(opened)
        checked = run_review_checks(
            context,
            planned,
            names,
            repository,
            clock,
            project=checks.check_opened_project(opened, place, stamp),
            changed_files=request.changed_files,
        )
        with clock.time_phase("prod plan"):
            merged = facts.prod_plan(restated.list_work())
        change = wait()
    found, impact = change.findings, change.impact
    with clock.time_phase("rules"):
        reported = (*parts.changes, *found, *checked.lint.findings, *restated.list_recorded())
        scoped = evaluate_policy_scopes_of_review(context, request.scopes, inputs, reported)
        exposed = find_exposed_models(request.exposed, inputs)
    # The phases are shown in the order of the report, in which the merge comes last.
    clock.add_seconds({**change.seconds, "prod plan": clock.phases.pop("prod plan")})
    restated = restated.after_plan(merged)
    if merged is not None and merged.cost is not None:
        priced = add_unneeded_rebuilds_to_cost(merged.cost, merged.full_backfill, impact)
        merged = merged.model_copy(update={"cost": priced})
    return ReviewFacts(
        project=describe_project(opened, place),
        environment=request.environment,
        baseline=opened.baseline,
        identity=parts.identity,
        changes=parts.changes,
        backfill=parts.backfill,
        work=parts.work,
        restatements=parts.restatements,
        statements=parts.statements,
        lineage=parts.lineage,
        cost=add_unneeded_rebuilds_to_cost(parts.cost, parts.work, impact),
        short_window=parts.short_window,
        stages=parts.stages,
        prod_plan=merged,
        findings=found,
        impact=impact,
        executions=change.executions,
        checks=checked,
        options=list(plan_request.said),
        environment_now=facts.environment_now(),
        environment_holds_plan=facts.environment_holds_plan(),
        notes=facts.list_notes(),
        versions=stamp,
        timings=dict(clock.phases),
        base_failures=list(opened.base_failures),
        scoped=scoped,
        exposed=exposed,
        acceptances=facts.list_acceptances(),
        prod_restatements=restated.items,
        refused_wish=restated.refused,
        prod_not_found=opened.prod_not_found,
        base_models=opened.base_models,
    )


def open_for_review(request: ReviewRequest, ports: ReviewPorts) -> OpenProject:
    """Opens the project on the requested baseline; the bot has resolved `auto` before.

    Raises:
        BadInput, RequestRefused: the configuration or the state cannot be used.
        NotLoaded: the project does not load.
    """
    place = make_project_place(request, request.projects)
    if request.baseline != "base-branch":
        changed = set(request.changed_files or ())
        return opening.open_project(
            place,
            write=False,
            clock=ports.clock,
            on_spark_start=ports.on_spark_start,
            # Files that the pull request changes are always read; the cache holds the others.
            known=[file for file in request.known_files if file.path not in changed],
        )
    if request.base_repository is None:
        raise BadInput(
            "A review against the base branch needs the base commit, which the checkout lacks.",
            hint=sqlmesh_compat.NO_BASE_HINT,
            reason_code="no_base",
        )
    base = make_project_place(
        request, request.base_projects, cache_name="base", root=Path(request.base_repository)
    )
    execution = (
        report_times.to_milliseconds(request.execution_time)
        if request.execution_time
        else report_times.read_milliseconds_now()
    )
    return base_branch.open_project_on_base_branch(
        place, base, execution=execution, clock=ports.clock, on_spark_start=ports.on_spark_start
    )


def _plan_review_or_fail(
    opened: OpenProject, plan_request: PlanRequest, repository: Path
) -> BuiltPlan | None:
    """Plans the project; if the base branch fails too, the failure names both."""
    try:
        return make_plan.plan_against_prod(opened.context, plan_request)
    except SQLMeshError as error:
        if not opened.base_failures:
            raise
        failure = make_failure_of_error(error, stage="plan", repository=repository)
        raise NotLoaded([failure], base=opened.base_failures) from error


# Notes what the default branch's files define, so that reviews do not read it again.


def note_base_cache_for_reviews(
    request: RememberRequest, clock: WorkerPhaseClock, on_spark_start: Callable[[], None]
) -> BaseCache:
    """Loads the project on its state, and lists the files that define prod's models. Read-only.

    Raises:
        BadInput, RequestRefused: the configuration or the state cannot be used.
        NotLoaded: the project does not load.
    """
    place = make_project_place(request, request.projects)
    with sqlmesh_compat.note_files_that_sqlmesh_loads() as found:
        opened = opening.open_project(
            place, write=False, clock=clock, on_spark_start=on_spark_start
        )
    try:
        files = sqlmesh_compat.list_known_files_of_sqlmesh(opened.context, found, place.repository)
        return BaseCache(files=files, models=len(opened.context.models))
    finally:
        opened.close_state()


def run_base_tests(request: BaseTestsRequest, ports: ReviewPorts) -> BaseTests:
    """Runs the tests that the request names, without state and plan.

    Raises:
        BadInput: the base branch's configuration cannot be read.
        NotLoaded: its project does not load.
    """
    base = Path(request.base_repository)
    imports.move_search_paths_of_worker(
        request.workplace.python_path, Path(request.workplace.repository), base
    )
    place = make_project_place(request, request.projects, cache_name="base-tests", root=base)
    context = load_project_alone(place, ports.clock, ports.on_spark_start, name="base-tests")
    ports.progress("tests", f"running {len(request.tests)} unit tests on the base branch")
    chosen = {
        name: _find_test_on_base_branch(context, name, place.repository) for name in request.tests
    }
    check = unit_tests.run_unit_tests_of(
        context, [test for test in chosen.values() if test is not None], place.repository
    )
    failed = {(failure.path, failure.name) for failure in check.failures}
    return BaseTests(
        outcomes=[
            TestOutcome(
                path=name.path,
                name=name.name,
                result="absent"
                if test is None
                else "failed"
                if (_get_path_of_unit_test(test, place.repository), test.test_name) in failed
                else "passed",
            )
            for name, test in chosen.items()
        ]
    )


def _find_test_on_base_branch(context: Context, wanted: TestName, repository: Path) -> Any:
    """Finds the test on the base branch: in the same file, else by its name in another one."""
    named = [
        test
        for test in sqlmesh_compat.list_tests_that_sqlmesh_loaded(context)
        if test.test_name == wanted.name
    ]
    same = [test for test in named if _get_path_of_unit_test(test, repository) == wanted.path]
    return next(iter(same or named), None)


def _get_path_of_unit_test(test: ModelTestMetadata, repository: Path) -> str | None:
    path = Path(test.path)
    return str(path.relative_to(repository)) if path.is_relative_to(repository) else path.name
