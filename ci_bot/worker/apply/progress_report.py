"""What an apply has to tell, at every moment: it can end at any, and not always by itself."""

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
from ci_bot.protocol.plan_identity import PlanDifference, PlanIdentity, full_id
from ci_bot.worker.apply.evidence import ApplyEvidence
from ci_bot.worker.apply.recorder import ConsoleRecorder
from ci_bot.worker.cost import MeteredModel
from ci_bot.worker.messages import cancelled_failure
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.project import OpenProject, versions_of
from ci_bot.worker.state_store import Say

# A document of a thousand models takes milliseconds to write, and batches may be many: of the time
# of an apply this share goes into it at most.
_KEEP_SHARE = 0.05
# Ends at which a batch may have been in the middle of its work.
_CUT_OFF = frozenset({"cancelled", "stop_requested", "lease_lost", "worker_ended"})


class RunReport:
    """Everything that is known of one apply, and the documents that can be made of it.

    Args:
        keep: Takes a document that is the answer if this process ends without a word.
        started: When it began, by the clock of `opened`.
        attempts: The tries at building, as they are made.
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
        self._recorder: ConsoleRecorder | None = None
        self._audits = 0
        self.plan_id: PlanId | None = full_id(request.plan_id, request.reviewed)
        self.identity: PlanIdentity | None = None
        self.difference: PlanDifference | None = None
        self.estimate: Cost | None = None
        self.promoted = False
        self.lost_views: list[str] = []
        self.views: list[View] = []
        self.evidence = ApplyEvidence()
        self.cost: ActualCost | None = None
        self.metered: Callable[[], Mapping[str, MeteredModel]] = dict

    def begin_writing(self, planned: BuiltPlan, recorder: ConsoleRecorder, estimate: Cost) -> None:
        """From now on something is written, so every end has something to tell."""
        self._recorder = recorder
        self._audits = _expected_audits(planned)
        self.estimate = estimate

    def look_back(self, look: Callable[[ConsoleRecorder], None]) -> None:
        """Something that adds to what was recorded of building."""
        if self._recorder is not None:
            look(self._recorder)

    @property
    def has_begun(self) -> bool:
        return self._recorder is not None

    def report_progress(
        self, phase: str, message: str, done: int | None = None, total: int | None = None
    ) -> None:
        """One step, remembered and told, in this order; from any thread."""
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
                    self._keep(self.ended_without_a_word())
                took = self._clock.now() - before
                self._keep_next = (phase, before + took / _KEEP_SHARE)
        self._tell(phase, message, done, total)

    def make_document(self, result: Any, **parts: Any) -> ApplyDocument:
        """A document with what is known now."""
        if self._recorder is not None:
            parts = {
                "models": self.list_built_models(),
                "audits": self._recorder.audit_totals(self._audits),
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
        """The models that were built, with what they have cost if that is known by now."""
        if self._recorder is None:
            return []
        found = (
            self._recorder.list_applied_models(self.evidence.rows)
            if self.promoted
            else self._recorder.so_far()
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

    def applied_document(self) -> ApplyDocument:
        """The document of an apply that came to its end."""
        if not self._attempts:
            return self.make_document("applied", reason_code="evidence_collected")
        return self.make_document(
            "applied", reason_code="views_made_again" if self.lost_views else None
        )

    def refused_document(self, failure: Failure, **parts: Any) -> ApplyDocument:
        """The document of an apply that ended before its first write."""
        return self.make_document(
            "refused", reason_code=failure.reason_code, failure=failure, **parts
        )

    def unfinished_document(self, failure: Failure, *, then: str | None = None) -> ApplyDocument:
        """The document of an apply that did not come to its end.

        Args:
            then: See `Step.left`.
        """
        stopped = failure.reason_code in ("cancelled", "stop_requested")
        # Of a batch that was cut off nobody knows how far it got; one that failed is not there.
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

    def ended_without_a_word(self) -> ApplyDocument:
        """What is reported where this process ends now and cannot say why."""
        step = self._step
        doing = f"{step.phase}: {step.message}" if step else "it began"
        return self.unfinished_document(
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

    def stopped_document(self) -> ApplyDocument:
        """The last words of a run that was asked to stop."""
        return self.unfinished_document(cancelled_failure("apply"))

    @property
    def has_built(self) -> bool:
        """Whether anything is there that was not there before, or not checked before."""
        return self.promoted or (self._recorder is not None and self._recorder.has_built)

    @cached_property
    def _current_versions(self) -> Versions:
        return versions_of(self._opened)


def _expected_audits(planned: BuiltPlan) -> int:
    built = {item.snapshot_id for item in planned.plan.missing_intervals}
    return sum(
        len(snapshot.model.audits_with_args)
        for snapshot in planned.changed_snapshots
        if snapshot.is_model and snapshot.snapshot_id in built
    )
