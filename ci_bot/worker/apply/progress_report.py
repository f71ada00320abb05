"""The report of an apply at any moment, because it can end, or be stopped, at any moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from ci_bot.errors import EXIT_FAILED, EXIT_INCOMPLETE
from ci_bot.protocol.apply_report import (
    BUILDING,
    AppliedModel,
    ApplyDocument,
    ApplyStep,
    Attempt,
    View,
)
from ci_bot.protocol.base import Failure, PlanId, Versions
from ci_bot.protocol.cost import ActualCost
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.protocol.plan import Cost
from ci_bot.protocol.plan_identity import PlanDifference, PlanIdentity, find_full_plan_id
from ci_bot.worker.apply.evidence import ApplyEvidence
from ci_bot.worker.apply.recorder import ApplyRecorder
from ci_bot.worker.cost import MeteredModel
from ci_bot.worker.messages import make_cancelled_failure
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.project import OpenProject, collect_versions_of_project
from ci_bot.worker.state_store import Say

# The largest share of an apply's time that writing documents may take: one of a thousand models
# takes milliseconds, and there may be many batches.
_KEEP_SHARE = 0.05
# Reasons of an end that can cut off a running batch.
_CUT_OFF = frozenset({"cancelled", "stop_requested", "lease_lost", "worker_ended"})


class ApplyProgressReport:
    """All known facts about one apply, and the documents made from them.

    Args:
        keep: Takes the document to answer with if this process dies without an answer.
        started: When the apply began, by the clock of `opened`.
        attempts: The attempts at building; the caller appends to it.
    """

    def __init__(
        self,
        request: ApplyRequest,
        opened: OpenProject,
        *,
        progress: Say,
        keep: Callable[[ApplyDocument], None],
        started: float,
        attempts: Sequence[Attempt],
    ) -> None:
        self._ask = request
        self._opened = opened
        self._clock = opened.clock
        self._tell = progress
        self._keep = keep
        self._started = started
        self._attempts = attempts
        self._keep_next: tuple[str, float] = ("", 0.0)
        self._step: ApplyStep | None = None
        self._recorder: ApplyRecorder | None = None
        self._audits = 0
        self.plan_id: PlanId | None = find_full_plan_id(request.plan_id, request.reviewed)
        self.identity: PlanIdentity | None = None
        self.difference: PlanDifference | None = None
        self.estimate: Cost | None = None
        self.promoted = False
        self.lost_views: list[str] = []
        self.views: list[View] = []
        self.evidence = ApplyEvidence()
        self.cost: ActualCost | None = None
        self.metered: Callable[[], Mapping[str, MeteredModel]] = dict

    def begin_writing(self, planned: BuiltPlan, recorder: ApplyRecorder, estimate: Cost) -> None:
        """Marks the first write; later documents report the built work."""
        self._recorder = recorder
        self._audits = _count_audits_expected_by_apply(planned)
        self.estimate = estimate

    def amend_record(self, look: Callable[[ApplyRecorder], None]) -> None:
        """Lets `look` add to the record of building; does nothing if building has not begun."""
        if self._recorder is not None:
            look(self._recorder)

    @property
    def has_begun(self) -> bool:
        return self._recorder is not None

    def report_progress(
        self, phase: str, message: str, done: int | None = None, total: int | None = None
    ) -> None:
        """Keeps a document of this step, then reports the step; any thread may call it."""
        if self.has_begun and phase in BUILDING:
            self._step = ApplyStep(
                phase=phase,
                message=message[:2_000],
                done=done,
                total=total,
                probe=self._ask.probe,
            )
            before = self._clock.now()
            if phase != self._keep_next[0] or before >= self._keep_next[1]:
                with suppress(OSError):
                    self._keep(self.make_unexpected_end_document())
                took = self._clock.now() - before
                self._keep_next = (phase, before + took / _KEEP_SHARE)
        self._tell(phase, message, done, total)

    def make_document(self, result: Any, **parts: Any) -> ApplyDocument:
        """Makes a document with the facts that are known now."""
        if self._recorder is not None:
            parts = {
                "models": self.list_built_models(),
                "audits": self._recorder.count_audits_by_result(self._audits),
                "views": self.views,
                "table_diff": self.evidence.diffs,
                "evidence_missing": self.evidence.missing,
                "estimate": self.estimate,
                "executor_hours": self.cost.allocated_hours if self.cost else None,
                "cost": self.cost,
                **parts,
            }
        return ApplyDocument(
            environment=self._ask.environment,
            plan_id=self.plan_id,
            result=result,
            attempts=list(self._attempts),
            difference=self.difference,
            seconds=round(self._clock.now() - self._started, 3),
            timings=dict(self._clock.phases),
            versions=self._current_versions,
            **parts,
        )

    def list_built_models(self) -> list[AppliedModel]:
        """Lists the models that were built, with their cost if it is known."""
        if self._recorder is None:
            return []
        found = (
            self._recorder.list_applied_models(self.evidence.rows)
            if self.promoted
            else self._recorder.list_models_so_far()
        )
        if self.cost is None or self.cost.source != "counters":
            return found
        metered = self.metered()
        return [
            model.model_copy(
                update={
                    "executor_seconds": round(known.allocated.executors, 3),
                    "counters": known.counters,
                }
            )
            if (known := metered.get(model.model)) is not None
            else model
            for model in found
        ]

    def make_applied_document(self) -> ApplyDocument:
        """Makes the document of a complete apply."""
        if not self._attempts:
            return self.make_document("applied", reason_code="evidence_collected")
        return self.make_document(
            "applied", reason_code="views_made_again" if self.lost_views else None
        )

    def make_refused_document(self, failure: Failure, **parts: Any) -> ApplyDocument:
        """Makes the document of an apply that ended before its first write."""
        return self.make_document(
            "refused", reason_code=failure.reason_code, failure=failure, **parts
        )

    def make_unfinished_document(
        self, failure: Failure, *, then: str | None = None
    ) -> ApplyDocument:
        """Makes the document of an apply that did not complete.

        Args:
            then: A sentence about the next step; None for the usual one.
        """
        stopped = failure.reason_code in ("cancelled", "stop_requested")
        # A batch that was cut off may be partly written; a batch that failed is not.
        nothing = not self.has_built and failure.reason_code not in _CUT_OFF
        if self.has_built and not stopped:
            failure = failure.model_copy(update={"exit_code": EXIT_INCOMPLETE})
        return self.make_document(
            "cancelled" if stopped else "failed",
            reason_code=failure.reason_code,
            failure=failure,
            partial=[self._step.describe_state_left(self._ask.environment, then, nothing=nothing)]
            if self._step
            else [],
        )

    def make_unexpected_end_document(self) -> ApplyDocument:
        """Makes the document to report if this process dies now without an answer."""
        step = self._step
        doing = f"{step.phase}: {step.message}" if step else "it began"
        return self.make_unfinished_document(
            Failure(
                stage=step.phase if step else "apply",
                reason_code="worker_ended",
                exit_code=EXIT_FAILED,
                message=f"The apply ended without a word at this step: {doing}. Its process was "
                "killed (perhaps out of memory), or the machine went away.",
                hint="The log of this run says what happened last. Apply again: what is built is "
                "kept, and the rest is done.",
            )
        )

    def make_stopped_document(self) -> ApplyDocument:
        """Makes the document of a run that was asked to stop."""
        return self.make_unfinished_document(make_cancelled_failure("apply"))

    @property
    def has_built(self) -> bool:
        """Whether this apply has built or promoted anything."""
        return self.promoted or (self._recorder is not None and self._recorder.has_built)

    @cached_property
    def _current_versions(self) -> Versions:
        return collect_versions_of_project(self._opened)


def _count_audits_expected_by_apply(planned: BuiltPlan) -> int:
    built = {item.snapshot_id for item in planned.plan.missing_intervals}
    return sum(
        len(snapshot.model.audits_with_args)
        for snapshot in planned.changed_snapshots
        if snapshot.is_model and snapshot.snapshot_id in built
    )
