"""A probe: the newest batch of models of the reviewed plan, to know what the whole will cost.

It goes the way of an apply up to the plan, under the same lease, and stops before there is an
environment. What it builds is in the ledger before it is built, so a cleanup finds it, and in
SQLMesh's state, so the apply that follows reuses it. The plan's identity says what the environment
will be and not what is left to do, so that is the same plan.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ci_bot.protocol.apply_report import ApplyDocument, NotProbed
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.protocol.plan import tables_of
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply import apply_plan, preconditions
from ci_bot.worker.apply.apply_plan import ApplyPorts, ApplyRun
from ci_bot.worker.apply.preconditions import ReadyPlan
from ci_bot.worker.apply.recorder import ConsoleRecorder, recorder_of
from ci_bot.worker.cost import PlanProbe, choose_probe, over_budget, past_of


def probe_plan(request: ApplyRequest, ports: ApplyPorts) -> ApplyDocument:
    """Builds the newest batches of the reviewed plan, and says what all of it will cost.

    Raises:
        BadInput, Refused, SQLMeshError: see `applying.apply`.
    """
    return apply_plan.run_apply(request, ports, _ProbeRun)


class _ProbeRun(ApplyRun):
    """One probe, from the re-plan to the estimate."""

    def _build_environment(self, ready: ReadyPlan) -> ApplyDocument:
        planned = ready.planned
        chosen = choose_probe(planned, ready.missing, self.names)
        if not chosen.batches:
            return self._estimate_whole_plan(ready, chosen, ())
        recorder = recorder_of(chosen.work, self.names, self._report_built)
        self.ports.brief()
        with self.ports.clock.time_phase("spark"):
            # The probe makes no view, but what it builds is for an apply that does.
            preconditions.check_views(self.context, self.catalog, planned.plan.environment)
            preconditions.check_merges(self.context, planned, self.names)
            expected = self._estimate_work(planned, chosen.work, chosen.missing_ranges)
            refused = over_budget(
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
            ready, chosen, [model.model for model in recorder.so_far() if model.batches]
        )

    def _estimate_whole_plan(
        self, ready: ReadyPlan, chosen: PlanProbe, built: Collection[str]
    ) -> ApplyDocument:
        """The answer: what all of the plan costs, of which the batches that are built are a part.

        Args:
            built: The models of which there is a batch now.
        """
        estimator = replace(self.estimator, probed=past_of(self.cost_record.rows))
        with self.ports.clock.time_phase("estimate"):
            whole = self._estimate_work(ready.planned, ready.work, ready.missing, estimator)
            # The plan of prod is another one now that snapshots and intervals are recorded.
            sqlmesh_compat.forget_cached_snapshots(self.context)
            after_merge = estimator.of_merge(ready.planned)
        not_ready = [
            NotProbed(model=item.model, why="its signals say that its newest batch is not ready")
            for item in tables_of(chosen.work)
            if item.model not in built
        ]
        return self.report.make_document(
            "probed",
            reason_code="probed" if built else "nothing_to_probe",
            estimate=whole,
            prod_estimate=after_merge,
            not_probed=sorted([*chosen.left_out, *not_ready], key=lambda item: item.model),
        )
