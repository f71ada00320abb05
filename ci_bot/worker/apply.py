"""An apply: the reviewed plan, and no other, on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlmesh.core.config import EnvironmentSuffixTarget
from sqlmesh.core.environment import Environment
from sqlmesh.core.plan.stages import PlanStage

from ci_bot.contracts.apply import ApplyDocument, AuditTotals, View
from ci_bot.contracts.base import Failure
from ci_bot.contracts.identity import PlanIdentity, difference, matches
from ci_bot.contracts.messages import ApplyAsk
from ci_bot.contracts.plan import Backfill
from ci_bot.errors import BadInput, Refused
from ci_bot.worker import (
    compat,
    describe,
    evidence,
    guard,
    history,
    objects,
    planning,
    project,
    review,
    times,
)
from ci_bot.worker.apply_record import Record
from ci_bot.worker.attempts import Attempts
from ci_bot.worker.catalog import SESSION_CATALOG, AdapterSql, Catalog
from ci_bot.worker.hold import Hold
from ci_bot.worker.ledger import Ledger
from ci_bot.worker.names import Names
from ci_bot.worker.planning import Planned, Wish
from ci_bot.worker.project import Clock, OpenProject
from ci_bot.worker.recorder import Recorder
from ci_bot.worker.review import place_of
from ci_bot.worker.statements.project import check_statements


@dataclass(frozen=True)
class Ports:
    """What an apply needs from its surroundings.

    `stop` answers whether the run was asked to stop; it is asked between batches. `brief` is called
    before Spark starts where its process is not expected to live long.
    """

    clock: Clock
    progress: Callable[[str, str, int | None, int | None], None]
    on_spark_start: Callable[[], None]
    stop: Callable[[], bool]
    brief: Callable[[], None] = lambda: None


def apply(ask: ApplyAsk, ports: Ports) -> ApplyDocument:
    """Plans again, compares with the review, and builds the PR environment.

    Raises:
        BadInput: prod does not exist yet, or the project cannot be applied on Spark.
        Refused: the plan is not the reviewed one, it would write prod, or another run holds the
            environment.
        SQLMeshError: the project does not load.
    """
    started = ports.clock.now()
    opened = project.open_project(
        place_of(ask, ask.projects),
        write=True,
        clock=ports.clock,
        on_spark_start=ports.on_spark_start,
    )
    try:
        return _Run(ask, ports, opened, started).execute()
    finally:
        opened.close()


class _Run:
    """One apply, from the re-plan to the evidence."""

    def __init__(self, ask: ApplyAsk, ports: Ports, opened: OpenProject, started: float) -> None:
        self.ask = ask
        self.ports = ports
        self.opened = opened
        self.context = opened.context
        self.started = started
        self.names = Names(self.context.default_catalog, self.context.default_dialect)
        self.catalog = Catalog(AdapterSql(self.context.engine_adapter))
        self.ledger = Ledger(compat.state_adapter(self.context))
        self.plan_id: str | None = None
        self.work: list[Backfill] = []
        self.hold = Hold(opened.context, ask.environment, ask.owner, stopped=ports.stop)
        self.record = Record(ask, self.context, self.ledger, self.catalog, self.hold)
        self.attempts = Attempts(
            self.context,
            self.hold,
            ports.clock,
            ports.progress,
            names=self.names,
            repository=place_of(ask, ask.projects).repository,
            replan=self._replan,
        )

    def execute(self) -> ApplyDocument:
        self._check_prerequisites()
        try:
            seen = self.hold.look()
            ready = self._ready()
            if isinstance(ready, ApplyDocument):
                return ready
            with self.ports.clock.phase("lease"):
                self.hold.take(self.ports.progress)
            if self.hold.moved_since(seen):
                compat.forget_cached_snapshots(self.context)
                ready = self._ready()
            return ready if isinstance(ready, ApplyDocument) else self._build(*ready)
        finally:
            self.hold.end()

    def _ready(self) -> ApplyDocument | tuple[Planned, Any, list[PlanStage]]:
        """The plan of now, its estimate and its stages; a document where nothing is to be built."""
        self.ports.progress("plan", "planning again on the current commit", None, None)
        planned = self._plan()
        if planned is None:
            return self._document("nothing_to_apply", reason_code="no_changes")
        identity = planning.identity_of(
            self.context,
            planned,
            state_schema_version=self.opened.state.schema_version,
            repository=Path(self.ask.workplace.repository),
        )
        self.plan_id = identity.plan_id()
        refused = self._compare(identity)
        if refused is not None:
            return refused
        missing = {item.snapshot_id: item.intervals for item in planned.plan.missing_intervals}
        self.work = work = describe.work_left(planned, self.names)
        _check_window(planned, missing, self.names)
        stages = planning.stages_of(self.context, planned)
        guard.check_prod_untouched(planned, stages, self.names)
        check_statements(self.context, planned, self.names)
        if not work and self._already_promoted(planned):
            return self._document("nothing_to_apply", reason_code="already_applied")
        return planned, history.of_work(work, self.ledger), stages

    def _check_prerequisites(self) -> None:
        if self.opened.baseline == "empty" or not self.opened.has_prod:
            raise BadInput(
                "There is no prod environment yet, so there is nothing that a PR environment could "
                "be compared with.",
                hint="Build prod first: `sqlmesh plan`.",
                reason_code="no_prod",
            )
        if self.context.config.environment_suffix_target is EnvironmentSuffixTarget.CATALOG:
            raise BadInput(
                "`environment_suffix_target: catalog` does not work on Spark: Spark cannot create "
                "or drop catalogs, so such an environment could never be removed.",
                hint="Use `schema` (the default) or `table`.",
                reason_code="suffix_target",
            )
        row = self.ledger.get(self.ask.environment)
        if row is not None:
            row.check_owner(self.ask.owner.name)

    def _plan(self) -> Planned | None:
        ask = self.ask
        wish = Wish(
            environment=ask.environment,
            flags=ask.flags,
            start=ask.start,
            end=ask.end,
            window=ask.window,
        )
        with self.ports.clock.phase("plan"):
            planned = planning.plan_against_prod(self.context, wish)
        if planned is not None and planned.plan.uncategorized:
            waiting = ", ".join(self.names.of(s.name) for s in planned.plan.uncategorized)
            raise Refused(
                f"These changes have no category, so SQLMesh cannot apply them: {waiting}.",
                hint="Switch automatic categorization on for them, or apply from a terminal with "
                "`sqlmesh plan`, which asks.",
                reason_code="uncategorized",
            )
        return planned

    def _compare(self, identity: PlanIdentity) -> ApplyDocument | None:
        """A refusal where the plan of now is not the one that was asked for."""
        asked = self.ask.plan_id
        if asked is None or matches(asked, identity.plan_id()):
            return None
        reviewed = self.ask.reviewed
        changed = difference(reviewed, identity) if reviewed else None
        return self._document(
            "refused",
            reason_code="plan_changed",
            difference=changed,
            failure=Failure(
                stage="compare",
                reason_code="plan_changed",
                exit_code=3,
                message=f"The plan is no longer the reviewed one: asked for {asked[:12]}, the plan "
                f"of now is {identity.plan_id()[:12]}.",
                hint="Review again, then apply the new plan id.",
            ),
        )

    def _already_promoted(self, planned: Planned) -> bool:
        stored = self.context.state_reader.get_environment(self.ask.environment)
        if stored is None or stored.expired or not stored.finalized_ts:
            return False
        return {info.snapshot_id for info in stored.promoted_snapshots} == {
            info.snapshot_id for info in planned.plan.environment.promoted_snapshots
        }

    def _build(self, planned: Planned, estimate: Any, stages: list[PlanStage]) -> ApplyDocument:
        environment = planned.plan.environment
        recorder = self._recorder()
        if not history.builds_long(self.ledger):
            self.ports.brief()
        with self.ports.clock.phase("spark"):
            self._check_views(environment)
            self.record.begin(planned, self.plan_id)
        self.ports.progress("apply", f"building {self.ask.environment}", None, None)
        failure = self.attempts.build(planned, recorder)
        views: list[View] = []
        shown = evidence.Evidence()
        if failure is None:
            try:
                views = self._verify(environment)
                shown = self._evidence(planned)
            except Exception:
                if self.hold.ended is None:
                    raise
            if self.hold.ended is not None:
                failure = self.hold.failure()
        if failure is not None:
            self.record.end("failed")
            return self._unfinished(failure, planned, recorder, estimate)
        models = recorder.applied(shown.rows)
        executors = compat.executor_count(self.context)
        self.record.runs(
            planned,
            models,
            plan_id=self.plan_id,
            wall_seconds=self.ports.clock.phases.get("apply", 0.0),
            executors=executors,
        )
        self.record.end("applied")
        unresolved = [view for view in views if not view.resolves]
        audits: AuditTotals = recorder.audit_totals(_expected_audits(planned))
        return self._document(
            "failed" if unresolved else "applied",
            reason_code="views_do_not_resolve" if unresolved else None,
            models=models,
            views=views,
            audits=audits,
            table_diff=shown.diffs,
            estimate=estimate,
            executor_hours=round(self.ports.clock.phases.get("apply", 0.0) * executors / 3_600, 5),
            failure=_unresolved(unresolved),
        )

    def _check_views(self, environment: Environment) -> None:
        """Every catalog of the environment holds views, of which it will consist."""
        views = objects.views_of(self.context, environment)
        # Spark's own catalog always does, and needs no question.
        places = {view.catalog: view.schema for view in views.values()}
        places.pop(SESSION_CATALOG, None)
        for catalog, schema in sorted(places.items()):
            if not self.catalog.holds_views(catalog, schema):
                raise BadInput(
                    f"The catalog {catalog} does not hold views, and every environment consists "
                    "of views. Nothing was built.",
                    hint="Use a gateway whose catalog does: Hive's, or Iceberg's through REST or "
                    "JDBC.",
                    reason_code="no_views",
                )

    def _unfinished(
        self, failure: Failure, planned: Planned, recorder: Recorder, estimate: Any
    ) -> ApplyDocument:
        cancelled = failure.reason_code in ("cancelled", "stop_requested")
        after = (
            "The cleanup that asked for the stop removes it."
            if failure.reason_code == "stop_requested"
            else "Applying again completes it; a cleanup removes it."
        )
        return self._document(
            "cancelled" if cancelled else "failed",
            reason_code=failure.reason_code,
            models=recorder.applied({}),
            audits=recorder.audit_totals(_expected_audits(planned)),
            estimate=estimate,
            failure=failure,
            partial=[
                f"{self.ask.environment} may be half built: tables of the models above may "
                f"hold data, and some of its views may be missing. {after}"
            ],
        )

    def _evidence(self, planned: Planned) -> evidence.Evidence:
        with self.ports.clock.phase("evidence"):
            return evidence.collect(
                self.ask,
                self.context,
                planned,
                self.names,
                self.catalog,
                evidence.Ports(self.ports.progress, self.hold.stop, self.ports.clock.now),
            )

    def _recorder(self) -> Recorder:
        def report(message: str, done: int, total: int) -> None:
            self.ports.progress("apply", message, done, total)

        recorder = Recorder(self.names, report)
        for item in self.work:
            recorder.expect(item)
        return recorder

    def _replan(self) -> Planned | None:
        """A fresh plan for a retry; the snapshots of the failed one carry stale intervals."""
        planned = self._plan()
        if planned is not None:
            guard.check_prod_untouched(
                planned, planning.stages_of(self.context, planned), self.names
            )
        return planned

    def _verify(self, environment: Environment) -> list[View]:
        self.ports.progress("verify", "asking Spark to resolve every view", None, None)
        relations = objects.views_of(self.context, environment)
        with self.ports.clock.phase("verify"):
            answers = self.catalog.resolve(relations.values())
        return [
            View(view=relation.shown, resolves=error is None, error=error)
            for relation, error in answers.items()
        ]

    def _document(self, result: Any, **parts: Any) -> ApplyDocument:
        return ApplyDocument(
            environment=self.ask.environment,
            plan_id=self.plan_id,
            result=result,
            attempts=self.attempts.made,
            seconds=round(self.ports.clock.now() - self.started, 3),
            timings=dict(self.ports.clock.phases),
            versions=review.versions(self.opened),
            **parts,
        )


def _check_window(planned: Planned, missing: Any, names: Names) -> None:
    """Refuses work that lies outside the reviewed window."""
    window = planned.window
    for s_id, intervals in missing.items():
        if not intervals or not planned.snapshots[s_id].is_incremental:
            continue
        late = window.end is not None and intervals[-1][1] > times.milliseconds(window.end)
        early = window.start is not None and intervals[0][0] < times.milliseconds(window.start)
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


def _unresolved(views: list[View]) -> Failure | None:
    if not views:
        return None
    return Failure(
        stage="verify",
        reason_code="views_do_not_resolve",
        exit_code=4,
        message=f"{len(views)} of the environment's views do not resolve on Spark: "
        f"{', '.join(view.view for view in views[:5])}.",
        hint="Apply again; if it stays, look at the physical tables that the views point at.",
    )


def _expected_audits(planned: Planned) -> int:
    built = {item.snapshot_id for item in planned.plan.missing_intervals}
    return sum(
        len(snapshot.model.audits_with_args)
        for snapshot in planned.changed
        if snapshot.is_model and snapshot.snapshot_id in built
    )
