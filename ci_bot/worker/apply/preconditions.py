"""Checks whether a plan may be built: an apply's first plan, and every plan of a retry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmesh.core.config import EnvironmentSuffixTarget
from sqlmesh.core.environment import Environment

from ci_bot.errors import EXIT_REFUSED, BadInput, RequestRefused
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.environment import EnvironmentName, normalize_environment_name
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.protocol.plan import Backfill
from ci_bot.protocol.plan_identity import PlanIdentity, compare_identities, matches_plan_id
from ci_bot.protocol.reasons import (
    REVIEW_AGAIN,
    UNCATEGORIZED_HINT,
    describe_other_plan,
    describe_uncategorized,
)
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply.attempts import PlanMovedDuringApplyError
from ci_bot.worker.apply.progress_report import ApplyProgressReport
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning import (
    BuiltPlan,
    Missing,
    PlanRequest,
    describe_plan,
    identify_plan,
    make_plan,
    plan_options,
    prod_guard,
)
from ci_bot.worker.project import (
    UNPIN_HINT,
    OpenProject,
    checks,
    describe_merge_obstacle_in_project,
    is_spark_gateway_of_project,
    list_gateways_of_project,
    read_catalog_settings_of_session,
    read_plan_settings_of_project,
)
from ci_bot.worker.runtime import SESSION_CATALOG, SparkCatalog, WorkerPhaseClock, spark_catalog
from ci_bot.worker.sql_effects import check_statement_effects_of_plan
from ci_bot.worker.state_store import (
    Ledger,
    check_ownership_in_ledger,
    read_environment_records_of_ledger,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context


def check_project_allows_apply(
    context: Context, environment: EnvironmentName, *, pull_request: bool
) -> None:
    """Checks that the project's own configuration allows the environment.

    Raises:
        BadInput: environments of this project could not be removed.
        RequestRefused: others work in the environment, or it is pinned.
    """
    if context.config.environment_suffix_target is EnvironmentSuffixTarget.CATALOG:
        raise BadInput(
            "`environment_suffix_target: catalog` does not work on Spark: Spark cannot create "
            "or drop catalogs, so such an environment could never be removed.",
            hint=checks.SUFFIX_TARGET_HINT,
            reason_code="suffix_target",
        )
    if environment == normalize_environment_name(context.config.default_target_environment):
        raise RequestRefused(
            f"{environment} is where this project's plans go by default, so it is not built from "
            "here.",
            hint="Name an environment of your own; this one is changed with `sqlmesh plan`.",
            reason_code="default_target",
        )
    if pull_request and environment in context.pinned_environments:
        raise RequestRefused(
            f"{environment} is pinned in the project's configuration, so it could not be removed.",
            hint=UNPIN_HINT,
            reason_code="pinned",
        )


def check_categories_before_apply(planned: BuiltPlan, names: MessageNames) -> None:
    """Checks that every change has a category.

    Raises:
        RequestRefused: SQLMesh would ask a person.
    """
    if planned.plan.uncategorized:
        waiting = ", ".join(names.short_name(s.name) for s in planned.plan.uncategorized)
        raise RequestRefused(
            describe_uncategorized(waiting),
            hint=UNCATEGORIZED_HINT,
            reason_code="uncategorized",
        )


def check_work_before_apply(context: Context, planned: BuiltPlan, names: MessageNames) -> None:
    """Checks that the plan's work is on Spark, in the reviewed window, and outside of prod.

    To build the stages changes the plan's snapshots, so everything that reads them must come first.

    Raises:
        BadInput: another engine would build some of it.
        RequestRefused: some of it is outside of the window, or in prod.
    """
    check_engines_before_apply(context, planned, names)
    check_window_before_apply(planned, names)
    prod_guard.check_plan_leaves_prod_untouched(
        planned, make_plan.build_stages_of_plan(context, planned), names
    )
    prod_guard.check_planned_views_apart_from_prod(context, planned)
    check_statement_effects_of_plan(context, planned, names)


def check_engines_before_apply(context: Context, planned: BuiltPlan, names: MessageNames) -> None:
    """Refuses models of a gateway with another engine.

    Nobody could count, compare or remove their tables.

    Raises:
        BadInput: the plan has such models.
    """
    elsewhere = []
    for info in planned.plan.environment.promoted_snapshots:
        if info.model_gateway is None or info.is_symbolic:
            continue
        if not is_spark_gateway_of_project(context, info.model_gateway):
            engine = context.config.get_connection(info.model_gateway).type_
            elsewhere.append(
                f"{names.short_name(info.name)} (gateway `{info.model_gateway}`, {engine})"
            )
    if elsewhere:
        raise BadInput(
            "Environments are built and removed on Spark only, and the plan has models of another "
            f"engine: {', '.join(sorted(elsewhere))}. Nothing was built.",
            hint="Change them in a pull request of their own, and apply that with `sqlmesh plan`.",
            reason_code="not_spark",
        )


def check_window_before_apply(planned: BuiltPlan, names: MessageNames) -> None:
    """Refuses work that is outside of the reviewed window.

    An interval is built as a whole, and a window may begin or end in the middle of one, such as a
    month. Every interval that the window touches is inside.

    Raises:
        RequestRefused: some work is outside.
    """
    window = planned.window
    for item in planned.plan.missing_intervals:
        s_id, intervals = item.snapshot_id, item.intervals
        if not intervals or not planned.plan_snapshots[s_id].is_incremental:
            continue
        late = window.end is not None and intervals[-1][0] >= report_times.to_milliseconds(
            window.end
        )
        early = window.start is not None and intervals[0][1] <= report_times.to_milliseconds(
            window.start
        )
        # Both start before `start` on purpose, and the plan id covers their start.
        least = s_id.name in (planned.plan.start_override_per_model or {})
        preview = s_id in planned.plan.restatements or least
        if late or (early and not preview):
            raise RequestRefused(
                f"The work on {names.short_name(s_id.name)} reaches outside the reviewed window "
                f"({window.start or 'the beginning'} to {window.end}).",
                hint=REVIEW_AGAIN,
                reason_code="outside_window",
            )


def check_merges_before_apply(context: Context, planned: BuiltPlan, names: MessageNames) -> None:
    """Checks that Spark can MERGE into every table into which SQLMesh would merge.

    The running session has the cluster's settings, which the configuration may lack.

    Raises:
        RequestRefused: a later batch, or the next run, would fail.
    """
    merged = [s.model for s in planned.changed_snapshots if s.is_model]
    gateways = list_gateways_of_project(context.config, context.gateway)
    if not any(describe_merge_obstacle_in_project(model, gateways) for model in merged):
        return
    session = sqlmesh_compat.get_spark_session_of_sqlmesh(context.engine_adapter)
    settings = read_catalog_settings_of_session(session.conf.get)
    running = {
        name: replace(facts, settings={**facts.settings, **settings}, complete=True)
        for name, facts in gateways.items()
    }
    failing = {
        names.short_name(m.fqn): why
        for m in merged
        if (why := describe_merge_obstacle_in_project(m, running))
    }
    if failing:
        name, why = min(failing.items())
        more = f", and {len(failing) - 1} more like it" if len(failing) > 1 else ""
        raise RequestRefused(
            f"SQLMesh would merge into {name}{more}, and {why}: the first batch would work and "
            "each later one fail, also in prod. Nothing was built.",
            hint="Give the model, or the model defaults, a `table_format` that takes a MERGE "
            "(iceberg) or `storage_format delta`, or choose another kind.",
            reason_code="merge_unsupported",
        )


def check_views_before_apply(
    context: Context, catalog: SparkCatalog, environment: Environment
) -> None:
    """Checks that every catalog of the environment can hold views.

    Raises:
        BadInput: a catalog cannot hold views.
    """
    views = spark_catalog.list_spark_views_of_environment(context, environment)
    # Spark's own catalog always can.
    places = {view.catalog: view.schema for view in views.values()}
    places.pop(SESSION_CATALOG, None)
    for name, schema in sorted(places.items()):
        if not catalog.holds_views(name, schema):
            raise BadInput(
                f"The catalog {name} does not hold views, and every environment consists "
                "of views. Nothing was built.",
                hint="Use a gateway whose catalog does: Hive's, or Iceberg's through REST or JDBC.",
                reason_code="no_views",
            )


def is_apply_promoted_already(context: Context, planned: BuiltPlan) -> bool:
    """Whether the environment in the state is already the plan's result."""
    stored = context.state_reader.get_environment(planned.plan.environment.name)
    if stored is None or stored.expired or not stored.finalized_ts:
        return False
    return {info.snapshot_id for info in stored.promoted_snapshots} == {
        info.snapshot_id for info in planned.plan.environment.promoted_snapshots
    }


def make_plan_changed_before_apply_failure(message: str) -> Failure:
    """Makes the failure of a plan that is not the requested one."""
    return Failure(
        stage="compare",
        reason_code="plan_changed",
        exit_code=EXIT_REFUSED,
        message=message,
        hint=REVIEW_AGAIN,
    )


# The current plan, and the check that it is the reviewed one.


@dataclass(frozen=True)
class PlanReadyToApply:
    """The work of an apply; `promoted` if everything is built but not checked yet.

    `missing` are the ranges of `work` from before the plan's stages were checked. Views that the
    state has promoted and Spark lost are promoted again.
    """

    planned: BuiltPlan
    work: list[Backfill]
    missing: Missing
    promoted: bool


class ApplyPlanRepetition:
    """Plans as often as the apply needs, and records the plan's identity in the report."""

    def __init__(
        self,
        request: ApplyRequest,
        opened: OpenProject,
        ledger: Ledger,
        report: ApplyProgressReport,
        *,
        names: MessageNames,
        clock: WorkerPhaseClock,
        progress: Callable[[str, str, int | None, int | None], None],
        list_lost_views: Callable[[BuiltPlan], list[str]],
    ) -> None:
        """Takes the parts of an apply.

        Args:
            list_lost_views: Lists the views of a promoted environment that Spark lacks.
        """
        self._request = request
        self._opened = opened
        self._context = opened.context
        self._ledger = ledger
        self._report = report
        self._names = names
        self._clock = clock
        self._progress = progress
        self._list_lost_views = list_lost_views
        self._options = plan_options.read_plan_options_of_request(
            self._context, request, read_plan_settings_of_project(self._context.configs)
        )

    def plan_ready(self) -> ApplyDocument | PlanReadyToApply:
        """Makes the current plan; returns a document if there is nothing to do."""
        self._check_ownership()
        self._progress("plan", "planning again on the current commit", None, None)
        planned = self._plan_in_window(self._request.window)
        if planned is None:
            return self._report.make_document("nothing_to_apply", reason_code="no_changes")
        identity = self._identify_plan(planned)
        refused = self._compare_identity(identity)
        if refused is not None:
            return refused
        work = describe_plan.list_remaining_work_of_plan(planned, self._names)
        missing = planned.list_missing() if work else {}
        check_work_before_apply(self._context, planned, self._names)
        promoted = not work and is_apply_promoted_already(self._context, planned)
        # A probe makes no view.
        if promoted and not self._request.probe:
            self._report.lost_views = self._list_lost_views(planned)
            promoted = not self._report.lost_views
        if promoted and self._is_proven():
            return self._report.make_document("nothing_to_apply", reason_code="already_applied")
        return PlanReadyToApply(planned, work, missing, promoted)

    def _check_ownership(self) -> None:
        stored, row = read_environment_records_of_ledger(
            self._context.state_reader, self._ledger, self._request.environment
        )
        check_ownership_in_ledger(
            self._request.environment, self._request.owner, row, stored, claim=self._request.claim
        )

    def _is_proven(self) -> bool:
        """Whether the ledger records that exactly this plan was applied and fully checked."""
        row = self._ledger.read_row(self._request.environment)
        return row is not None and row.phase == "applied" and row.plan_id == self._report.plan_id

    def _plan_in_window(self, window: Any) -> BuiltPlan | None:
        plan_request = PlanRequest.from_options(
            self._request.environment, self._options, window=window
        )
        with self._clock.time_phase("plan"):
            planned = make_plan.plan_against_prod(self._context, plan_request)
        if planned is not None:
            check_categories_before_apply(planned, self._names)
        return planned

    def _identify_plan(self, planned: BuiltPlan) -> PlanIdentity:
        return identify_plan(
            self._context,
            planned,
            state_schema_version=self._opened.state.schema_version,
            repository=Path(self._request.workplace.repository),
        )

    def _compare_identity(self, identity: PlanIdentity) -> ApplyDocument | None:
        """Refuses if the current plan is not the requested one; else None."""
        requested_id, now = self._request.plan_id, identity.plan_id()
        self._report.plan_id, self._report.identity = now, identity
        if requested_id is None or matches_plan_id(requested_id, now):
            return None
        if self._request.reviewed is not None:
            self._report.difference = compare_identities(self._request.reviewed, identity)
        failure = make_plan_changed_before_apply_failure(describe_other_plan(requested_id, now))
        return self._report.make_refused_document(failure)

    def plan_again(self) -> BuiltPlan:
        """Makes a fresh plan for a retry: the same plan, with less work left.

        The snapshots of a failed plan have outdated intervals.

        Raises:
            PlanMovedDuringApplyError: it would be a different plan, which nobody has reviewed.
            RequestRefused: see `check_work_before_apply`.
        """
        first = self._report.identity
        sqlmesh_compat.forget_cached_sqlmesh_snapshots(self._context)
        planned = self._plan_in_window(first.window if first else None)
        identity = self._identify_plan(planned) if planned else None
        if planned is None or identity is None or identity.plan_id() != self._report.plan_id:
            if first is not None and identity is not None:
                self._report.difference = compare_identities(first, identity)
            raise PlanMovedDuringApplyError
        check_work_before_apply(self._context, planned, self._names)
        return planned
