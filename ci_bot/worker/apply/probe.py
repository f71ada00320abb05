"""A probe: builds the newest batch of some models of the reviewed plan, to measure the cost.

It runs as an apply does up to the plan, under the same lease, and stops before there is an
environment. The ledger lists each table before it is built, so a cleanup finds it. SQLMesh's state
has it, so a later apply reuses it. That apply builds the same plan, because a plan's identity does
not depend on the work left.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ci_bot.protocol.apply_report import ApplyDocument, NotProbed
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.protocol.plan import select_tables
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply import apply_plan, preconditions
from ci_bot.worker.apply.apply_plan import ApplyPorts, ApplyRun
from ci_bot.worker.apply.preconditions import ReadyPlan
from ci_bot.worker.apply.recorder import ConsoleRecorder, make_recorder
from ci_bot.worker.cost import PlanProbe, choose_probe, find_budget_failure, list_past_runs


def probe_plan(request: ApplyRequest, ports: ApplyPorts) -> ApplyDocument:
    """Builds the newest batches of the reviewed plan, and estimates the cost of all of it.

    Raises:
        BadInput, Refused, SQLMeshError: see `apply_plan.apply_plan`.
    """
    return apply_plan.run_apply(request, ports, _ProbeRun)


class _ProbeRun(ApplyRun):
    """One probe, from the re-plan to the estimate."""

    def _build_environment(self, ready: ReadyPlan) -> ApplyDocument:
        planned = ready.planned
        chosen = choose_probe(planned, ready.missing, self.names)
        if not chosen.batches:
            return self._estimate_whole_plan(ready, chosen, ())
        recorder = make_recorder(chosen.work, self.names, self._report_built)
        self.ports.brief()
        with self.ports.clock.time_phase("spark"):
            # The probe makes no view, but the apply after it does.
            preconditions.check_views(self.context, self.catalog, planned.plan.environment)
            preconditions.check_merges(self.context, planned, self.names)
            expected = self._estimate_work(planned, chosen.work, chosen.missing_ranges)
            refused = find_budget_failure(
                expected,
                self.request.max_executor_hours,
                self.request.environment,
                what="The probe of",
            )
            if refused is not None:
                return self.report.refused_document(refused, estimate=expected)
            self.record.write_begin(planned, self.report.plan_id, made=chosen.made_snapshots)
        self._begin_writing(planned, recorder, expected)
        return self._report_work(lambda: self._build_and_estimate(ready, chosen, recorder))

    def _build_and_estimate(
        self, ready: ReadyPlan, chosen: PlanProbe, recorder: ConsoleRecorder
    ) -> ApplyDocument:
        part = sqlmesh_compat.PartOfPlan(chosen.batches, chosen.views)
        ended = self._attempt_build(ready.planned, recorder, part)
        if ended is not None:
            return ended
        self.record.write_end("probed")
        self._record_cost("probed")
        return self._estimate_whole_plan(
            ready, chosen, [model.model for model in recorder.list_models_so_far() if model.batches]
        )

    def _estimate_whole_plan(
        self, ready: ReadyPlan, chosen: PlanProbe, built: Collection[str]
    ) -> ApplyDocument:
        """Makes the answer: the cost of the whole plan, with the batches that are built.

        Args:
            built: The models that have a batch now.
        """
        estimator = replace(self.estimator, probed=list_past_runs(self.cost_record.rows))
        with self.ports.clock.time_phase("estimate"):
            whole = self._estimate_work(ready.planned, ready.work, ready.missing, estimator)
            # Recorded snapshots and intervals change the plan of prod.
            sqlmesh_compat.forget_cached_snapshots(self.context)
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
