"""An apply: the reviewed plan, and no other, on Spark; and a probe, which builds a part of it.

A probe builds the newest batch of some models, to measure the cost. It runs like an apply up to the
plan, under the same lease, and stops before an environment exists. The ledger lists each table
before it is built, so a cleanup finds it. SQLMesh's state records it, so a later apply reuses it.
That apply builds the same plan, because a plan's identity does not depend on the work left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from sqlmesh.core.snapshot import Snapshot

from ci_bot.errors import BotError
from ci_bot.protocol.apply_report import ApplyDocument, NotProbed
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.protocol.plan import Backfill, Cost, select_tables
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply import evidence, preconditions
from ci_bot.worker.apply.attempts import ApplyAttempts
from ci_bot.worker.apply.preconditions import ApplyPlanRepetition, PlanReadyToApply
from ci_bot.worker.apply.progress_report import ApplyProgressReport
from ci_bot.worker.apply.recorder import ApplyRecorder, make_apply_recorder
from ci_bot.worker.apply.run_record import ApplyCostRecord, ApplyRecord
from ci_bot.worker.apply.verification import AppliedEnvironmentVerification
from ci_bot.worker.cost import (
    BatchMeter,
    CostProbe,
    PlanCostEstimator,
    SparkCostCounterStore,
    choose_cost_probe,
    find_cost_budget_failure,
    is_cost_from_long_build,
    list_past_runs_for_cost,
)
from ci_bot.worker.messages import MessageNames, extract_sentence_of_error, make_failure_of_error
from ci_bot.worker.planning import BuiltPlan, Missing, describe_plan
from ci_bot.worker.project import (
    OpenProject,
    make_missing_prod_of_project_error,
    make_project_place,
    opening,
)
from ci_bot.worker.runtime import (
    SparkCatalog,
    SparkCatalogAdapterSql,
    WorkerPhaseClock,
    spark_catalog,
    write_worker_log_line,
)
from ci_bot.worker.sqlmesh_compat import PartOfSqlmeshPlan
from ci_bot.worker.state_store import CostLedger, LeaseHold, Ledger, Outcome


@dataclass(frozen=True)
class ApplyPorts:
    """The clock and callbacks that an apply gets from its caller.

    Attributes:
        stop: whether the run was asked to stop; checked between batches.
        choose_java: called before Spark is used; its argument is whether Spark's process will live
            only for seconds. A Spark that was started early for the other case is not used.
        keep: takes the document to answer with if the process dies without an answer.
        last_words: takes a function that makes the document to answer with on a request to stop.
        at_the_end: takes an action to run at that moment, after everything else.
        pause: waits, in seconds.
    """

    clock: WorkerPhaseClock
    progress: Callable[[str, str, int | None, int | None], None]
    on_spark_start: Callable[[], None]
    stop: Callable[[], bool]
    choose_java: Callable[[bool], None] = lambda _brief: None
    keep: Callable[[ApplyDocument], None] = lambda _document: None
    last_words: Callable[[Callable[[], ApplyDocument]], None] = lambda _words: None
    at_the_end: Callable[[Callable[[], None]], None] = lambda _action: None
    pause: Callable[[float], None] = time.sleep


# From this number of models on, Java's optimizing compiler is worth its time: the queries that
# build, resolve, count and compare 300 models take minutes, even with little data.
MANY_MODELS = 100
_SHOWN = 5


def apply_plan(request: ApplyRequest, ports: ApplyPorts) -> ApplyDocument:
    """Plans again, compares with the review, and builds the PR environment.

    Once something is written, every end returns a document, even a failure.

    Raises:
        BadInput: prod does not exist yet, or the project cannot be applied on Spark.
        RequestRefused: the environment is somebody else's, the plan would write prod, or another
            run holds the environment.
        SQLMeshError: the project does not load.
    """
    return run_apply(request, ports, ApplyRun)


def run_apply(request: ApplyRequest, ports: ApplyPorts, kind: type[ApplyRun]) -> ApplyDocument:
    """Opens the project and runs an apply of one kind; raises the errors of `apply_plan`.

    Args:
        kind: the whole apply, or a probe.
    """
    started = ports.clock.now()
    opened = opening.open_project(
        make_project_place(request, request.projects),
        write=True,
        only_spark=True,
        clock=ports.clock,
        on_spark_start=ports.on_spark_start,
    )
    try:
        return kind(request, ports, opened, started).execute_run()
    finally:
        _run_quietly_during_apply("closing the state", opened.close_state)


class ApplyRun:
    """One apply, from the re-plan to the evidence."""

    def __init__(
        self, request: ApplyRequest, ports: ApplyPorts, opened: OpenProject, started: float
    ) -> None:
        self.request = request
        self.ports = ports
        self.opened = opened
        self.context = opened.context
        self.names = MessageNames(self.context.default_catalog, self.context.default_dialect)
        self.catalog = SparkCatalog(SparkCatalogAdapterSql(self.context.engine_adapter))
        self.ledger = Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(self.context))
        self.costs = CostLedger(sqlmesh_compat.get_sqlmesh_state_adapter(self.context))
        self.meter = BatchMeter(
            lambda: SparkCostCounterStore(self.context.engine_adapter.spark),
            time.time,
            # An earlier apply may have used this Spark, and its store still lists those jobs.
            f"ci-bot/{request.environment}/{time.time_ns()}",
        )
        self.cost_record = ApplyCostRecord(
            request.environment,
            self.context,
            self.costs,
            self.meter,
            request.executor_hour_price,
        )
        self.hold = LeaseHold(
            opened.context, request.environment, request.owner, stopped=ports.stop
        )
        self.estimator = PlanCostEstimator(
            self.context,
            self.costs,
            self.names,
            hour_price=request.executor_hour_price,
            say=lambda message: ports.progress("estimate", message, None, None),
            stop=self.hold.should_stop,
        )
        self.record = ApplyRecord(request, self.context, self.ledger, self.catalog, self.hold)
        self.attempts = ApplyAttempts(
            self.context,
            self.hold,
            ports.clock,
            self._report_progress,
            names=self.names,
            repository=make_project_place(request, request.projects).repository,
            replan=self._plan_again,
            around_batch=self._around_batch,
        )
        self.report = ApplyProgressReport(
            request,
            opened,
            progress=ports.progress,
            keep=ports.keep,
            started=started,
            attempts=self.attempts.made,
        )
        self.report.metered = self.meter.list_models
        self.replanning = ApplyPlanRepetition(
            request,
            opened,
            self.ledger,
            self.report,
            names=self.names,
            clock=ports.clock,
            progress=ports.progress,
            list_lost_views=self._list_lost_views,
        )
        self.versions: dict[str, str] = {}
        self.proof = AppliedEnvironmentVerification(
            request,
            self.context,
            self.catalog,
            names=self.names,
            hold=self.hold,
            record=self.record,
            report=self.report,
            clock=ports.clock,
            looking=evidence.ApplyEvidencePorts(
                self.report.report_progress, self.hold.should_stop, ports.clock.now, ports.pause
            ),
            count=lambda: self._record_cost("applied"),
        )

    def execute_run(self) -> ApplyDocument:
        self._check_prerequisites()
        try:
            seen = self.hold.read_state_facts()
            ready = self.replanning.plan_ready()
            if isinstance(ready, ApplyDocument):
                return ready
            with self.ports.clock.time_phase("lease"):
                self.hold.take_lease(self.ports.progress)
            if self.hold.has_moved_since(seen):
                sqlmesh_compat.forget_cached_sqlmesh_snapshots(self.context)
                ready = self.replanning.plan_ready()
            return ready if isinstance(ready, ApplyDocument) else self._build_environment(ready)
        finally:
            _run_quietly_during_apply("releasing the lease", self.hold.end_lease)

    def _check_prerequisites(self) -> None:
        if self.opened.baseline == "empty":
            raise make_missing_prod_of_project_error(
                self.opened.prod_not_found,
                "So there is nothing that a PR environment could be compared with.",
            )
        pull_request = self.request.owner.pr_number is not None
        preconditions.check_project_allows_apply(
            self.context, self.request.environment, pull_request=pull_request
        )

    def _plan_again(self) -> BuiltPlan:
        return self.replanning.plan_again()

    def _list_lost_views(self, planned: BuiltPlan) -> list[str]:
        """Lists the views of a promoted environment that somebody has dropped from Spark."""
        self.ports.choose_java(True)
        self._report_progress("plan", "asking Spark whether its views are there", None, None)
        views = spark_catalog.list_spark_views_of_environment(
            self.context, planned.plan.environment
        )
        with self.ports.clock.time_phase("spark"):
            lost = [view.shown_name for view in self.catalog.list_absent(views.values())]
        if lost:
            these = "1 view is" if len(lost) == 1 else f"{len(lost)} views are"
            names = ", ".join(lost[:_SHOWN])
            self._report_progress("plan", f"{these} gone, to be made again: {names}", None, None)
        return lost

    def _build_environment(self, ready: PlanReadyToApply) -> ApplyDocument:
        planned = ready.planned
        recorder = make_apply_recorder(ready.work, self.names, self._report_built)
        if not is_cost_from_long_build(self.costs) and len(planned.changed_snapshots) < MANY_MODELS:
            self.ports.choose_java(True)
        with self.ports.clock.time_phase("spark"):
            preconditions.check_views_before_apply(
                self.context, self.catalog, planned.plan.environment
            )
            preconditions.check_merges_before_apply(self.context, planned, self.names)
            expected = self._estimate_work(planned, ready.work, ready.missing)
            limit, after_merge = self.request.max_executor_hours, self._estimate_merge(ready)
            refused = find_cost_budget_failure(
                expected, limit, self.request.environment, after_merge=after_merge
            )
            if refused is not None:
                return self.report.make_refused_document(
                    refused, estimate=expected, prod_estimate=after_merge
                )
            self.record.write_begin(planned, self.report.plan_id)
        self._begin_writing(planned, recorder, expected)
        return self._report_work(lambda: self._build_and_prove(ready, recorder))

    def _begin_writing(self, planned: BuiltPlan, recorder: ApplyRecorder, expected: Cost) -> None:
        """Marks the first write: after it, every document reports and counts what was built."""
        self.report.begin_writing(planned, recorder, expected)
        self.versions = {
            self.names.short_name(snapshot.name): str(snapshot.version)
            for snapshot in planned.changed_snapshots
            if snapshot.version
        }
        self.ports.last_words(self.report.make_stopped_document)
        self.ports.at_the_end(lambda: self._record_cost("cancelled"))

    def _report_work(self, work: Callable[[], ApplyDocument]) -> ApplyDocument:
        """Runs `work`; if it fails, returns a document with the built models."""
        try:
            return work()
        except Exception as error:
            if not isinstance(error, BotError):
                sys.excepthook(type(error), error, error.__traceback__)
            if not self.report.promoted:
                self.record.write_end("failed")
            self._record_cost("failed")
            return self._make_unfinished_document(self._make_failure(error))

    def _build_and_prove(self, ready: PlanReadyToApply, recorder: ApplyRecorder) -> ApplyDocument:
        if not ready.promoted:
            ended = self._attempt_build(ready.planned, recorder)
            if ended is not None:
                return ended
        failure = self.proof.verify_environment(ready.planned, self.attempts.made)
        self._record_cost("applied")
        return (
            self._make_unfinished_document(failure)
            if failure
            else self.report.make_applied_document()
        )

    def _estimate_work(
        self,
        planned: BuiltPlan,
        work: Sequence[Backfill],
        missing: Missing,
        estimator: PlanCostEstimator | None = None,
    ) -> Cost:
        """Estimates the cost with the facts that a started Spark adds. Writes nothing."""
        estimator = estimator or self.estimator
        try:
            return estimator.estimate_work(planned, work, missing)
        except Exception as error:
            # Unknown sizes stay unknown; the build goes on.
            write_worker_log_line(f"Sizes of inputs: {extract_sentence_of_error(error)}")
            return estimator.estimate_by_runs(work)

    def _estimate_merge(self, ready: PlanReadyToApply) -> Cost | None:
        """Estimates prod's work after a merge; None without a limit on executor hours.

        It does so even if the environment builds nothing: a forward-only change may cost only
        prod's next run.
        """
        if self.request.max_executor_hours is None:
            return None
        return self.estimator.estimate_merge(ready.planned)

    def _attempt_build(
        self, planned: BuiltPlan, recorder: ApplyRecorder, part: PartOfSqlmeshPlan | None = None
    ) -> ApplyDocument | None:
        """Builds the plan, or a part of it; returns the document of a failure, else None."""
        what = "building" if part is None else "probing"
        self._report_progress("apply", f"{what} {self.request.environment}", None, None)
        self.meter.start_metering()
        try:
            failure = self.attempts.build_plan(planned, recorder, part)
        finally:
            self.meter.finish_metering()
        if failure is None:
            return None
        self.record.write_end("failed")
        stopped = failure.reason_code in ("cancelled", "stop_requested")
        self._record_cost("cancelled" if stopped else "failed")
        return self._make_unfinished_document(failure)

    def _around_batch(
        self, snapshot: Snapshot, span: tuple[int, int]
    ) -> AbstractContextManager[None]:
        if snapshot.is_view:
            return nullcontext()
        intervals = (
            describe_plan.count_planned_intervals(snapshot, [span])
            if snapshot.is_incremental
            else 1
        )
        return self.meter.meter_batch(self.names.short_name(snapshot.name), intervals)

    def _record_cost(self, outcome: Outcome) -> None:
        """Records the cost of building; only the first call counts.

        Args:
            outcome: How building ended; if the environment was promoted, it is `applied` instead.
        """
        if not self.meter.has_started:
            return
        cost = self.cost_record.write_cost(
            "applied" if self.report.promoted else outcome,
            self.report.list_built_models(),
            versions=self.versions,
            plan_id=self.report.plan_id,
            expected=self.report.estimate,
            wall_seconds=self.ports.clock.phases.get("apply", 0.0),
        )
        self.report.cost = cost or self.report.cost
        self.ports.clock.phases["counting"] = round(self.meter.seconds, 3)

    def _make_unfinished_document(self, failure: Failure) -> ApplyDocument:
        stopped = failure.reason_code == "stop_requested"
        then = "The cleanup that asked for the stop removes it." if stopped else None
        return self.report.make_unfinished_document(failure, then=then)

    def _make_failure(self, error: Exception) -> Failure:
        if self.hold.should_stop():
            return self.hold.make_failure()
        return make_failure_of_error(
            error,
            stage="apply",
            repository=make_project_place(self.request, self.request.projects).repository,
            hint="Apply again: what is built is kept, and the rest is done.",
        )

    def _report_built(self, message: str, done: int, total: int) -> None:
        self._report_progress("apply", message, done, total)

    def _report_progress(
        self, phase: str, message: str, done: int | None, total: int | None
    ) -> None:
        self.report.report_progress(phase, message, done, total)


def _run_quietly_during_apply(what: str, action: Callable[[], None]) -> None:
    """Runs an action whose failure must not lose the answer; logs it."""
    try:
        action()
    except Exception as error:
        write_worker_log_line(f"{what}: {extract_sentence_of_error(error)}")


def apply_probe_of_plan(request: ApplyRequest, ports: ApplyPorts) -> ApplyDocument:
    """Builds the newest batches of the reviewed plan, and estimates the cost of all of it.

    Raises:
        BadInput, RequestRefused, SQLMeshError: see `apply_plan`.
    """
    return run_apply(request, ports, _ApplyProbeRun)


class _ApplyProbeRun(ApplyRun):
    """One probe, from the re-plan to the estimate."""

    def _build_environment(self, ready: PlanReadyToApply) -> ApplyDocument:
        planned = ready.planned
        chosen = choose_cost_probe(planned, ready.missing, self.names)
        if not chosen.batches:
            return self._estimate_whole_plan(ready, chosen, ())
        recorder = make_apply_recorder(chosen.work, self.names, self._report_built)
        self.ports.choose_java(True)
        with self.ports.clock.time_phase("spark"):
            # The probe makes no view, but the apply after it does.
            preconditions.check_views_before_apply(
                self.context, self.catalog, planned.plan.environment
            )
            preconditions.check_merges_before_apply(self.context, planned, self.names)
            expected = self._estimate_work(planned, chosen.work, chosen.missing_ranges)
            refused = find_cost_budget_failure(
                expected,
                self.request.max_executor_hours,
                self.request.environment,
                what="The probe of",
            )
            if refused is not None:
                return self.report.make_refused_document(refused, estimate=expected)
            self.record.write_begin(planned, self.report.plan_id, made=chosen.made_snapshots)
        self._begin_writing(planned, recorder, expected)
        return self._report_work(lambda: self._build_and_estimate(ready, chosen, recorder))

    def _build_and_estimate(
        self, ready: PlanReadyToApply, chosen: CostProbe, recorder: ApplyRecorder
    ) -> ApplyDocument:
        part = sqlmesh_compat.PartOfSqlmeshPlan(chosen.batches, chosen.views)
        ended = self._attempt_build(ready.planned, recorder, part)
        if ended is not None:
            return ended
        self.record.write_end("probed")
        self._record_cost("probed")
        return self._estimate_whole_plan(
            ready, chosen, [model.model for model in recorder.list_models_so_far() if model.batches]
        )

    def _estimate_whole_plan(
        self, ready: PlanReadyToApply, chosen: CostProbe, built: Collection[str]
    ) -> ApplyDocument:
        """Makes the answer: the cost of the whole plan, with the batches that are built.

        Args:
            built: The models that have a batch now.
        """
        estimator = replace(self.estimator, probed=list_past_runs_for_cost(self.cost_record.rows))
        with self.ports.clock.time_phase("estimate"):
            whole = self._estimate_work(ready.planned, ready.work, ready.missing, estimator)
            # Recorded snapshots and intervals change the plan of prod.
            sqlmesh_compat.forget_cached_sqlmesh_snapshots(self.context)
            after_merge = estimator.estimate_merge(ready.planned)
        not_ready = [
            NotProbed(model=item.model, why="its signals say that its newest batch is not ready")
            for item in select_tables(chosen.work)
            if item.model not in built
        ]
        return self.report.make_document(
            "probed",
            reason_code="probed" if built else "nothing_to_probe",
            estimate=whole,
            prod_estimate=after_merge,
            not_probed=sorted([*chosen.left_out, *not_ready], key=lambda item: item.model),
        )
