"""May this plan be built? Asked of the first plan of an apply, and of every one for a retry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlmesh.core.config import EnvironmentSuffixTarget
from sqlmesh.core.environment import Environment

from ci_bot.contracts.base import Failure
from ci_bot.contracts.environment import EnvironmentName, normalised
from ci_bot.errors import EXIT_REFUSED, BadInput, Refused
from ci_bot.worker.plan import guard, planning
from ci_bot.worker.plan.planning import Planned
from ci_bot.worker.project.configuring import is_spark
from ci_bot.worker.project.merge_support import (
    list_gateways,
    read_catalog_settings,
    why_no_merge,
)
from ci_bot.worker.statements.plan_statements import check_statements
from ci_bot.worker.warehouse import objects
from ci_bot.worker.warehouse.catalog import SESSION_CATALOG, Catalog
from ci_bot.worker.words import times
from ci_bot.worker.words.names import Names


def check_project(context: Any, environment: EnvironmentName, *, pull_request: bool) -> None:
    """The project's own configuration does not stand against the environment.

    Raises:
        BadInput: environments of this project could not be removed.
        Refused: the environment is one that others work in, or that is to stay.
    """
    if context.config.environment_suffix_target is EnvironmentSuffixTarget.CATALOG:
        raise BadInput(
            "`environment_suffix_target: catalog` does not work on Spark: Spark cannot create "
            "or drop catalogs, so such an environment could never be removed.",
            hint="Use `schema` (the default) or `table`.",
            reason_code="suffix_target",
        )
    if environment == normalised(context.config.default_target_environment):
        raise Refused(
            f"{environment} is where this project's plans go by default, so it is not built from "
            "here.",
            hint="Name an environment of your own; this one is changed with `sqlmesh plan`.",
            reason_code="default_target",
        )
    if pull_request and environment in context.pinned_environments:
        raise Refused(
            f"{environment} is pinned in the project's configuration, so it could not be removed.",
            hint="Take it out of `pinned_environments` first.",
            reason_code="pinned",
        )


def check_category(planned: Planned, names: Names) -> None:
    """Every change has a category.

    Raises:
        Refused: SQLMesh would ask a person.
    """
    if planned.plan.uncategorized:
        waiting = ", ".join(names.of(s.name) for s in planned.plan.uncategorized)
        raise Refused(
            f"These changes have no category, so SQLMesh cannot apply them: {waiting}.",
            hint="Switch automatic categorization on for them, or apply from a terminal with "
            "`sqlmesh plan`, which asks.",
            reason_code="uncategorized",
        )


def check_work(context: Any, planned: Planned, names: Names) -> None:
    """What the plan would write is on Spark, inside the reviewed window, and outside of prod.
    Building the stages changes the plan's snapshots, so what is computed from those comes first.

    Raises:
        BadInput: another engine would build some of it.
        Refused: it lies elsewhere.
    """
    check_engines(context, planned, names)
    check_window(planned, names)
    guard.check_prod_untouched(planned, planning.stages_of(context, planned), names)
    guard.check_own_place(context, planned)
    check_statements(context, planned, names)


def check_engines(context: Any, planned: Planned, names: Names) -> None:
    """Refuses models that belong to a gateway of another engine, where nobody could count, compare
    or remove what was built."""
    elsewhere = []
    for info in planned.plan.environment.promoted_snapshots:
        if info.model_gateway is None or info.is_symbolic:
            continue
        if not is_spark(context, info.model_gateway):
            engine = context.config.get_connection(info.model_gateway).type_
            elsewhere.append(f"{names.of(info.name)} (gateway `{info.model_gateway}`, {engine})")
    if elsewhere:
        raise BadInput(
            "Environments are built and removed on Spark only, and the plan has models of another "
            f"engine: {', '.join(sorted(elsewhere))}. Nothing was built.",
            hint="Change them in a pull request of their own, and apply that with `sqlmesh plan`.",
            reason_code="not_spark",
        )


def check_window(planned: Planned, names: Names) -> None:
    """Refuses work that lies outside the reviewed window.

    An interval is built as a whole, and a window may begin or end in the middle of one: of a month,
    where a model is filled by months. What the window touches is inside.
    """
    window = planned.window
    for item in planned.plan.missing_intervals:
        s_id, intervals = item.snapshot_id, item.intervals
        if not intervals or not planned.snapshots[s_id].is_incremental:
            continue
        late = window.end is not None and intervals[-1][0] >= times.milliseconds(window.end)
        early = window.start is not None and intervals[0][1] <= times.milliseconds(window.start)
        # Both reach further back than `start` on purpose, and the plan id covers how far.
        least = s_id.name in (planned.plan.start_override_per_model or {})
        preview = s_id in planned.plan.restatements or least
        if late or (early and not preview):
            raise Refused(
                f"The work on {names.of(s_id.name)} reaches outside the reviewed window "
                f"({window.start or 'the beginning'} to {window.end}).",
                hint="Review again, then apply the new plan id.",
                reason_code="outside_window",
            )


def check_merges(context: Any, planned: Planned, names: Names) -> None:
    """Spark can MERGE into every table that SQLMesh would merge into.

    What the configuration leaves open, the running session knows: settings of the cluster.

    Raises:
        Refused: a later batch, or the next run, would fail.
    """
    merged = [s.model for s in planned.changed if s.is_model]
    gateways = list_gateways(context.config, context.gateway)
    if not any(why_no_merge(model, gateways) for model in merged):
        return
    settings = read_catalog_settings(context.engine_adapter.spark.conf.get)
    running = {
        name: replace(facts, settings={**facts.settings, **settings}, complete=True)
        for name, facts in gateways.items()
    }
    failing = {names.of(m.fqn): why for m in merged if (why := why_no_merge(m, running))}
    if failing:
        name, why = min(failing.items())
        more = f", and {len(failing) - 1} more like it" if len(failing) > 1 else ""
        raise Refused(
            f"SQLMesh would merge into {name}{more}, and {why}: the first batch would work and "
            "each later one fail, also in prod. Nothing was built.",
            hint="Give the model, or the model defaults, a `table_format` that takes a MERGE "
            "(iceberg) or `storage_format delta`, or choose another kind.",
            reason_code="merge_unsupported",
        )


def check_views(context: Any, catalog: Catalog, environment: Environment) -> None:
    """Every catalog of the environment holds views, of which it will consist.

    Raises:
        BadInput: one does not.
    """
    views = objects.views_of(context, environment)
    # Spark's own catalog always does, and needs no question.
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


def is_promoted(context: Any, planned: Planned) -> bool:
    """Whether the environment in the state is what the plan makes of it."""
    stored = context.state_reader.get_environment(planned.plan.environment.name)
    if stored is None or stored.expired or not stored.finalized_ts:
        return False
    return {info.snapshot_id for info in stored.promoted_snapshots} == {
        info.snapshot_id for info in planned.plan.environment.promoted_snapshots
    }


def plan_changed(message: str) -> Failure:
    """The failure of a plan that is not the one that was asked for."""
    return Failure(
        stage="compare",
        reason_code="plan_changed",
        exit_code=EXIT_REFUSED,
        message=message,
        hint="Review again, then apply the new plan id.",
    )
