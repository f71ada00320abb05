"""An estimate on request: what building the plan will cost, with Spark awake. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci_bot.contracts.documents.apply import EstimateDocument
from ci_bot.contracts.messages import EstimateRequest
from ci_bot.errors import BadInput, Refused
from ci_bot.worker import compat
from ci_bot.worker.cost.estimate import estimate
from ci_bot.worker.cost.input_size.estimator import Estimator
from ci_bot.worker.plan import planning, requested
from ci_bot.worker.plan.identity import identity_of
from ci_bot.worker.plan.in_words import describe
from ci_bot.worker.plan.planning import PlanRequest
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project import opening
from ci_bot.worker.project.directories import place_of
from ci_bot.worker.project.opening import OpenProject, versions_of
from ci_bot.worker.project.plan_settings import plan_settings
from ci_bot.worker.records.cost_ledger import CostLedger
from ci_bot.worker.words.names import Names


@dataclass(frozen=True)
class EstimatePorts:
    """What an estimate needs from its surroundings."""

    clock: Clock
    progress: Callable[[str, str], None]
    on_spark_start: Callable[[], None]
    stop: Callable[[], bool]


def estimate_plan(request: EstimateRequest, ports: EstimatePorts) -> EstimateDocument:
    """The expected cost of what the plan has still to build, and of what prod then builds.

    Raises:
        BadInput: there is no prod yet, or the project is not for Spark.
        Refused: a change has no category.
        SQLMeshError: the project does not load, or SQLMesh refuses to plan it.
    """
    started = ports.clock.now()
    opened = opening.open_project(
        place_of(request, request.projects),
        write=False,
        only_spark=True,
        clock=ports.clock,
        on_spark_start=ports.on_spark_start,
    )
    try:
        if opened.baseline == "empty":
            missing = opened.prod_not_found
            raise BadInput(
                f"{missing.sentence() if missing else 'There is no prod.'} So no run has told what "
                "anything costs.",
                hint=f"{missing.hint if missing else ''} `sqlmesh plan` builds prod.".strip(),
                reason_code="no_prod",
            )
        return _estimated(request, ports, opened, started)
    finally:
        opened.close()


def _estimated(
    request: EstimateRequest, ports: EstimatePorts, opened: OpenProject, started: float
) -> EstimateDocument:
    context = opened.context
    names = Names(context.default_catalog, context.default_dialect)
    options = requested.options_of(context, request, plan_settings(context.configs))
    ports.progress("plan", f"planning {len(context.models)} models against prod")
    with ports.clock.phase("plan"):
        planned = planning.plan_against_prod(
            context, PlanRequest.of(request.environment, options, window=request.window)
        )
    plan_id, cost, after_merge = None, estimate([]), None
    if planned is not None and planned.plan.uncategorized:
        waiting = ", ".join(names.of(s.name) for s in planned.plan.uncategorized)
        raise Refused(
            f"These changes have no category, so nobody can say what they will build: {waiting}.",
            hint="Switch automatic categorization on for them.",
            reason_code="uncategorized",
        )
    if planned is not None:
        identity = identity_of(
            context,
            planned,
            state_schema_version=opened.state.schema_version,
            repository=Path(request.workplace.repository),
        )
        plan_id = identity.plan_id()
        estimator = Estimator(
            context,
            CostLedger(compat.state_adapter(context)),
            names,
            hour_price=request.executor_hour_price,
            say=lambda message: ports.progress("estimate", message),
            stop=ports.stop,
        )
        with ports.clock.phase("estimate"):
            cost = estimator.of(planned, describe.work_left(planned, names))
            ports.progress("estimate", "the same for prod, after the merge")
            after_merge = estimator.of_merge(planned)
    return EstimateDocument(
        environment=request.environment,
        plan_id=plan_id,
        cost=cost,
        after_merge=after_merge,
        seconds=round(ports.clock.now() - started, 3),
        timings=dict(ports.clock.phases),
        versions=versions_of(opened),
    )
