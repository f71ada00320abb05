"""The plan of now, and whether it is the one that was reviewed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_bot.contracts.base import short
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.contracts.documents.plan import Backfill
from ci_bot.contracts.documents.plan_identity import PlanIdentity, difference, matches
from ci_bot.contracts.messages import ApplyRequest
from ci_bot.worker import compat
from ci_bot.worker.apply import preconditions
from ci_bot.worker.apply.account.progress_report import RunReport
from ci_bot.worker.apply.attempts import PlanMovedError
from ci_bot.worker.plan import planning, requested
from ci_bot.worker.plan.identity import identity_of
from ci_bot.worker.plan.in_words import describe
from ci_bot.worker.plan.planning import Missing, Planned, PlanRequest
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project.opening import OpenProject
from ci_bot.worker.project.plan_settings import plan_settings
from ci_bot.worker.records import ownership
from ci_bot.worker.records.ledger import Ledger
from ci_bot.worker.words.names import Names


@dataclass(frozen=True)
class Ready:
    """What is to be done: `promoted` where everything is built, and was not looked at yet.

    `missing` are the ranges of `work`, as they were before the plan's stages were looked at. Where
    views are lost that the state has promoted, they are promoted anew.
    """

    planned: Planned
    work: list[Backfill]
    missing: Missing
    promoted: bool


class Replanning:
    """Plans as often as the apply needs it, and tells the report which plan that is."""

    def __init__(
        self,
        request: ApplyRequest,
        opened: OpenProject,
        ledger: Ledger,
        report: RunReport,
        *,
        names: Names,
        clock: Clock,
        progress: Callable[[str, str, int | None, int | None], None],
        list_lost_views: Callable[[Planned], list[str]],
    ) -> None:
        """
        Args:
            list_lost_views: Asks Spark which views of a promoted environment are not there.
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
        self._options = requested.options_of(
            self._context, request, plan_settings(self._context.configs)
        )

    def ready(self) -> ApplyDocument | Ready:
        """The plan of now; a document where nothing is to be done."""
        self._check_ownership()
        self._progress("plan", "planning again on the current commit", None, None)
        planned = self._plan(self._request.window)
        if planned is None:
            return self._report.document("nothing_to_apply", reason_code="no_changes")
        identity = self._identity(planned)
        refused = self._compare(identity)
        if refused is not None:
            return refused
        work = describe.work_left(planned, self._names)
        missing = planned.lacks() if work else {}
        preconditions.check_work(self._context, planned, self._names)
        promoted = not work and preconditions.is_promoted(self._context, planned)
        # A probe makes no view.
        if promoted and not self._request.probe:
            self._report.lost_views = self._list_lost_views(planned)
            promoted = not self._report.lost_views
        if promoted and self._is_proven():
            return self._report.document("nothing_to_apply", reason_code="already_applied")
        return Ready(planned, work, missing, promoted)

    def _check_ownership(self) -> None:
        # In this order: see `ownership.refusal`.
        stored = self._context.state_reader.get_environment(self._request.environment)
        row = self._ledger.get(self._request.environment)
        ownership.check(
            self._request.environment, self._request.owner, row, stored, claim=self._request.claim
        )

    def _is_proven(self) -> bool:
        """Whether the ledger says that this very plan was applied and looked at to the end."""
        row = self._ledger.get(self._request.environment)
        return row is not None and row.phase == "applied" and row.plan_id == self._report.plan_id

    def _plan(self, window: Any) -> Planned | None:
        plan_request = PlanRequest.of(self._request.environment, self._options, window=window)
        with self._clock.phase("plan"):
            planned = planning.plan_against_prod(self._context, plan_request)
        if planned is not None:
            preconditions.check_category(planned, self._names)
        return planned

    def _identity(self, planned: Planned) -> PlanIdentity:
        return identity_of(
            self._context,
            planned,
            state_schema_version=self._opened.state.schema_version,
            repository=Path(self._request.workplace.repository),
        )

    def _compare(self, identity: PlanIdentity) -> ApplyDocument | None:
        """A refusal where the plan of now is not the one that was asked for."""
        asked, now = self._request.plan_id, identity.plan_id()
        self._report.plan_id, self._report.identity = now, identity
        if asked is None or matches(asked, now):
            return None
        if self._request.reviewed is not None:
            self._report.difference = difference(self._request.reviewed, identity)
        failure = preconditions.plan_changed(
            f"The plan is no longer the reviewed one: asked for {short(asked)}, the current plan "
            f"is {short(now)}."
        )
        return self._report.refused(failure)

    def again(self) -> Planned:
        """A fresh plan for a retry: the same one, with less to do. The snapshots of a plan that
        failed carry stale intervals.

        Raises:
            PlanMovedError: it would be another one by now, which nobody has reviewed.
            Refused: see `preconditions.check_work`.
        """
        first = self._report.identity
        compat.forget_cached_snapshots(self._context)
        planned = self._plan(first.window if first else None)
        identity = self._identity(planned) if planned else None
        if planned is None or identity is None or identity.plan_id() != self._report.plan_id:
            if first is not None and identity is not None:
                self._report.difference = difference(first, identity)
            raise PlanMovedError
        preconditions.check_work(self._context, planned, self._names)
        return planned
