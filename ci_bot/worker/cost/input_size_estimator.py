"""The cost of a plan's work: from the ledger, and from input sizes if Spark has started.

Input sizes serve models that nobody has built yet. They need Spark, so only an apply that has
started Spark and not yet written anything, and an estimate on request, use them. Nothing here
writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.model import SeedModel
from sqlmesh.core.snapshot import Snapshot

from ci_bot.errors import RequestRefused
from ci_bot.protocol.apply_report import EstimateDocument
from ci_bot.protocol.cost import Price
from ci_bot.protocol.messages import EstimateRequest
from ci_bot.protocol.plan import Backfill, Cost, select_tables
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost.input_size_measurement import (
    InputSizeQueries,
    InputSizes,
    ModelOfUnknownCost,
    measure_input_sizes,
)
from ci_bot.worker.cost.known_costs import (
    collect_known_costs,
    make_past_run_cost_in_prod,
    make_table_key_of_costs,
)
from ci_bot.worker.cost.plan_estimate import KnownCosts, list_past_runs_for_cost, predict_plan_cost
from ci_bot.worker.cost.prediction import (
    BySize,
    CountedRun,
    PastRun,
    cut_batches,
    estimate_cost_by_input_size,
)
from ci_bot.worker.messages import MessageNames, extract_sentence_of_error
from ci_bot.worker.planning import (
    BuiltPlan,
    Interval,
    Missing,
    PlanRequest,
    describe_plan,
    identify_plan,
    list_work_of_merge_plan,
    make_plan,
    plan_merge,
    plan_options,
)
from ci_bot.worker.project import (
    OpenProject,
    collect_versions_of_project,
    make_missing_prod_of_project_error,
    make_project_place,
    opening,
    read_plan_settings_of_project,
)
from ci_bot.worker.runtime import WorkerPhaseClock, write_worker_log_line
from ci_bot.worker.state_store import CostLedger

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

# The newest runs show what a byte costs now; more runs of one model would outweigh the others.
_NEWEST_OF_A_MODEL, _NEWEST = 3, 2_000


@dataclass(frozen=True)
class PlanCostEstimator:
    """Estimates for the plans of one project, from every source that is available.

    Attributes:
        context: SQLMesh's context.
        hour_price: The price of an executor-hour.
        say: Called with a sentence about each step.
        stop: Whether the run was asked to stop; the estimate then uses the facts so far.
        probed: The runs of a probe of exactly this plan, by model; the best source.
    """

    context: Context
    ledger: CostLedger
    names: MessageNames
    hour_price: Price | None
    say: Callable[[str], None]
    stop: Callable[[], bool]
    probed: Mapping[str, Sequence[PastRun]] = field(default_factory=dict)

    def estimate_by_runs(self, work: Sequence[Backfill]) -> Cost:
        """Estimates the work from earlier runs of the models. Does not start Spark."""
        return predict_plan_cost(work, self._collect_known(work), hour_price=self.hour_price)

    def estimate_work(
        self, planned: BuiltPlan, work: Sequence[Backfill], missing: Missing | None = None
    ) -> Cost:
        """Estimates the work from earlier runs, and from input sizes for models without a run.

        Starts Spark, unless every model has a run, or the project has no run to compare with.

        Args:
            work: The work of the plan, or of a part of it.
            missing: The ranges that `work` will build; None: all that the plan lacks.
        """
        known = self._collect_known(work)
        cost = predict_plan_cost(work, known, hour_price=self.hour_price)
        seen = self._list_counted_runs(planned) if cost.unknown else []
        if not seen:
            return cost
        self.say("looking at how much the models will read that were never built")
        ranges = planned.list_missing() if missing is None else missing
        sizes = measure_input_sizes(
            self._list_unknown_models(cost.unknown, work, planned, ranges),
            now=time.monotonic,
            stop=self.stop,
            log=write_worker_log_line,
        )
        found: dict[str, BySize] = {
            model: expected
            for model, size in sizes.items()
            if (expected := estimate_cost_by_input_size(model, size, seen)) is not None
        }
        return predict_plan_cost(work, replace(known, by_size=found), hour_price=self.hour_price)

    def estimate_merge(self, planned: BuiltPlan) -> Cost | None:
        """Estimates the cost of building the changed models in prod after a merge now, with the
        tables that prod's next run computes whole. None if not known, which is logged, or if the
        merge changes nothing.

        A pull request's environment may get a week of data and prod years, so a limit on the
        environment alone would miss most of a change's cost.

        Args:
            planned: The plan of the environment.
        """
        try:
            as_prod = plan_merge(self.context, planned)
            if as_prod is None or as_prod.plan.uncategorized:
                return None
            ranges = list_work_of_merge_plan(as_prod)
            work = describe_plan.list_planned_backfill(
                as_prod, ranges, self.names, reused=lambda _: False
            )
            return self.estimate_work(as_prod, work, ranges)
        except Exception as error:
            # A merge that cannot be planned is the review's finding; its cost is then unknown.
            write_worker_log_line(
                f"The cost of the merge is not known: {extract_sentence_of_error(error)}"
            )
            return None

    def _collect_known(self, work: Sequence[Backfill]) -> KnownCosts:
        known = collect_known_costs(work, self.ledger, self.context, self.names)
        return replace(known, layers={"probe": self.probed, **known.layers})

    def _list_unknown_models(
        self,
        models: Collection[str],
        work: Sequence[Backfill],
        planned: BuiltPlan,
        missing: Missing,
    ) -> list[ModelOfUnknownCost]:
        built = {item.model for item in select_tables(work)}
        queries = InputSizeQueries(
            planned,
            partial(read_prod_snapshots, self.context),
            {
                s.name
                for s in planned.plan_snapshots.values()
                if self.names.short_name(s.name) in built
            },
            self.context.engine_adapter.dialect,
        )
        reading = InputSizes(self.context.engine_adapter.spark)

        def estimate_read_bytes(snapshot: Snapshot, span: Interval) -> int | None:
            if isinstance(snapshot.model, SeedModel):
                return len(snapshot.model.seed.content.encode())
            text = queries.render_batch_query(snapshot, span)
            return None if text is None else reading.estimate_query_bytes(text)

        return [
            ModelOfUnknownCost(
                self.names.short_name(snapshot.name),
                describe_plan.name_planned_model_kind(snapshot),
                cut_batches(snapshot, intervals),
                partial(estimate_read_bytes, snapshot),
            )
            for s_id, intervals in missing.items()
            if (snapshot := planned.plan_snapshots[s_id]).is_model
            and self.names.short_name(snapshot.name) in models
        ]

    def _list_counted_runs(self, planned: BuiltPlan) -> list[CountedRun]:
        """Lists the newest counted runs: of applies, or prod's own for a model without an apply."""
        kinds = {
            self.names.short_name(s.name): describe_plan.name_planned_model_kind(s)
            for s in planned.plan_snapshots.values()
        }
        newest = self.ledger.list_runs(newest=_NEWEST)
        rows = [row for row in newest if row.model in kinds and row.counters]
        runs: dict[str, list[PastRun]] = list_past_runs_for_cost(rows)
        for model, found in self._read_runs_of_prod().items():
            if model in kinds and model not in runs:
                runs[model] = found
        return [
            CountedRun(model, kinds[model], run)
            for model, found in runs.items()
            for run in found[:_NEWEST_OF_A_MODEL]
        ]

    def _read_runs_of_prod(self) -> dict[str, list[PastRun]]:
        reader = self.context.state_reader
        prod = reader.get_environment(c.PROD) if self.ledger.knows_prod else None
        if prod is None:
            return {}
        tables = {
            make_table_key_of_costs(info.table_name()): self.names.short_name(info.name)
            for info in prod.snapshots
            if info.is_model
        }
        found: dict[str, list[PastRun]] = {}
        for row in self.ledger.list_prod_runs(tables, newest=_NEWEST):
            # The number of intervals of a run does not matter for the cost of a byte.
            past = make_past_run_cost_in_prod(row, lambda *_: 1, whole=True)
            found.setdefault(tables[row.table], []).append(past)
        return found


def read_prod_snapshots(context: Context, wanted: Collection[str]) -> Mapping[str, Snapshot]:
    """Reads prod's snapshots of these models, by fully qualified name."""
    prod = context.state_reader.get_environment(c.PROD) if wanted else None
    infos = [info for info in prod.snapshots if info.name in wanted] if prod is not None else []
    return {s.name: s for s in context.state_reader.get_snapshots(infos).values() if s.is_model}


# An estimate on request: the cost of building the plan, with Spark running. Writes nothing.


@dataclass(frozen=True)
class EstimatePorts:
    """The clock and callbacks that an estimate gets from its caller."""

    clock: WorkerPhaseClock
    progress: Callable[[str, str], None]
    on_spark_start: Callable[[], None]
    stop: Callable[[], bool]


def estimate_plan_cost(request: EstimateRequest, ports: EstimatePorts) -> EstimateDocument:
    """Estimates the cost of the plan's remaining work, and of prod's work after a merge.

    Raises:
        BadInput: there is no prod yet, or the project is not for Spark.
        RequestRefused: a change has no category.
        SQLMeshError: the project does not load, or SQLMesh refuses to plan it.
    """
    started = ports.clock.now()
    opened = opening.open_project(
        make_project_place(request, request.projects),
        write=False,
        only_spark=True,
        clock=ports.clock,
        on_spark_start=ports.on_spark_start,
    )
    try:
        if opened.baseline == "empty":
            raise make_missing_prod_of_project_error(
                opened.prod_not_found, "So no run has shown what anything costs."
            )
        return _make_estimate_document(request, ports, opened, started)
    finally:
        opened.close_state()


def _make_estimate_document(
    request: EstimateRequest, ports: EstimatePorts, opened: OpenProject, started: float
) -> EstimateDocument:
    context = opened.context
    names = MessageNames(context.default_catalog, context.default_dialect)
    options = plan_options.read_plan_options_of_request(
        context, request, read_plan_settings_of_project(context.configs)
    )
    ports.progress("plan", f"planning {len(context.models)} models against prod")
    with ports.clock.time_phase("plan"):
        planned = make_plan.plan_against_prod(
            context, PlanRequest.from_options(request.environment, options, window=request.window)
        )
    plan_id, cost, after_merge = None, predict_plan_cost([]), None
    if planned is not None and planned.plan.uncategorized:
        waiting = ", ".join(names.short_name(s.name) for s in planned.plan.uncategorized)
        raise RequestRefused(
            f"These changes have no category, so nobody can say what they will build: {waiting}.",
            hint="Switch automatic categorization on for them.",
            reason_code="uncategorized",
        )
    if planned is not None:
        identity = identify_plan(
            context,
            planned,
            state_schema_version=opened.state.schema_version,
            repository=Path(request.workplace.repository),
        )
        plan_id = identity.plan_id()
        estimator = PlanCostEstimator(
            context,
            CostLedger(sqlmesh_compat.get_sqlmesh_state_adapter(context)),
            names,
            hour_price=request.executor_hour_price,
            say=lambda message: ports.progress("estimate", message),
            stop=ports.stop,
        )
        with ports.clock.time_phase("estimate"):
            cost = estimator.estimate_work(
                planned, describe_plan.list_remaining_work_of_plan(planned, names)
            )
            ports.progress("estimate", "the same for prod, after the merge")
            after_merge = estimator.estimate_merge(planned)
    return EstimateDocument(
        environment=request.environment,
        plan_id=plan_id,
        cost=cost,
        after_merge=after_merge,
        seconds=round(ports.clock.now() - started, 3),
        timings=dict(ports.clock.phases),
        versions=collect_versions_of_project(opened),
    )
