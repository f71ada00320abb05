"""What a review tells of one plan: its work, its cost, what a merge does, and what to note."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlmesh.core.snapshot import Snapshot, SnapshotId

from ci_bot.contracts.documents.plan import Backfill, ChangeType, ColumnChange, Cost, ProdPlan
from ci_bot.contracts.documents.policy import Acceptance
from ci_bot.contracts.messages import ReviewRequest
from ci_bot.worker import compat
from ci_bot.worker.cost.estimate import estimate
from ci_bot.worker.cost.known import known_of
from ci_bot.worker.cost.savings import with_reused
from ci_bot.worker.plan import first_build, planning, prod_plan
from ci_bot.worker.plan.drift import Drift
from ci_bot.worker.plan.identity import identity_of
from ci_bot.worker.plan.in_words import describe
from ci_bot.worker.plan.in_words.short_window import short_window
from ci_bot.worker.plan.in_words.stage_list import describe_stages
from ci_bot.worker.plan.planning import Interval, Planned, PlanRequest
from ci_bot.worker.plan.removals import removed_by_others
from ci_bot.worker.process import load_trace
from ci_bot.worker.project.opening import OpenProject
from ci_bot.worker.project.plan_settings import PlanSettings
from ci_bot.worker.records import ownership
from ci_bot.worker.records.cost_ledger import CostLedger
from ci_bot.worker.records.ledger import Ledger
from ci_bot.worker.review import elsewhere
from ci_bot.worker.review.refused import no_plan
from ci_bot.worker.review.rule_inputs import known_rows
from ci_bot.worker.rules import column_changes, reading
from ci_bot.worker.words import same_code
from ci_bot.worker.words.names import Names


@dataclass
class PlanFacts:
    """The parts of the answer that are computed from one plan."""

    opened: OpenProject
    planned: Planned | None
    names: Names
    repository: Path
    request: ReviewRequest
    plan_request: PlanRequest
    settings: PlanSettings

    @cached_property
    def drift(self) -> Drift:
        """Which differences the base branch has made, not the pull request."""
        if self.planned is None:
            return Drift(None)
        nodes = {snapshot.name: snapshot.node for snapshot in self.planned.snapshots.values()}
        request = self.request
        found = Drift.of(nodes, request.changed_files, self.repository, load_trace.opened())
        if self.opened.baseline != "state" or request.changed_files is None:
            return found  # against the base branch, every difference is the pull request's
        removed = removed_by_others(
            [info.name for info in self.planned.plan.context_diff.removed_snapshots.values()],
            nodes,
            caused=found.caused,
            changed_files=request.changed_files,
            # No directory: the base branch has none of the changed files.
            before=reading.before(request.before_dir, request.unread_files),
            unread=request.unread_files,
        )
        return replace(found, removed_by_others=removed)

    @cached_property
    def _written_otherwise(self) -> set[str]:
        if self.planned is None:
            return set()
        return same_code.written_otherwise(self.planned.plan.context_diff.modified_snapshots)

    def _is_not_ours(self, name: str, change: ChangeType, path: str | None) -> bool:
        """Whether a difference has another cause than the pull request."""
        told = change == "direct" and name in self._written_otherwise
        return told or self.drift.is_from_base(name, change, path)

    def _columns(self) -> Callable[[Snapshot, Snapshot | None], list[ColumnChange]]:
        """Column changes of a model, with the models that still read what is gone."""
        models = self.opened.context.models
        readers: dict[str, list[Any]] = {}
        for model in models.values():
            for parent in model.depends_on:
                readers.setdefault(parent, []).append(model)

        def columns(new: Snapshot, old: Snapshot | None) -> list[ColumnChange]:
            if old is None or not new.is_model or not old.is_model:
                return []
            found = column_changes(old.node, new.node, readers.get(new.name, ()))
            return [
                change.model_copy(update={"readers": [self.names.of(r) for r in change.readers]})
                for change in found
            ]

        return columns

    def plan_parts(self) -> dict[str, Any]:
        """Everything that the plan gives; the stages last, because they change its snapshots."""
        planned = self.planned
        if planned is None:
            return no_plan()
        uncategorized = bool(planned.plan.uncategorized)
        work = describe.work_left(planned, self.names)
        parts: dict[str, Any] = {
            "identity": None
            if uncategorized or self.opened.baseline == "base-branch"
            else identity_of(
                self.opened.context,
                planned,
                state_schema_version=self.opened.state.schema_version,
                repository=self.repository,
            ),
            "changes": describe.changes(
                planned,
                self.names,
                repository=self.repository,
                columns=self._columns(),
                is_from_base=self._is_not_ours,
                also_in=self._also_changed(planned),
            ),
            "backfill": describe.backfill(
                planned, self._built, self.names, reused=lambda snapshot: True
            ),
            "work": work,
            "restatements": describe.restatements(
                planned,
                self.names,
                elsewhere.users_of_restated(self.opened.context, planned, self.request.environment),
            ),
            "statements": describe.statements(planned),
            "lineage": describe.lineage(planned, self.names),
            "cost": self._cost(work),
            "short_window": short_window(
                planned,
                self.plan_request,
                self._built,
                self.names,
                previews=compat.previews_forward_only(self.opened.context),
            ),
        }
        parts["stages"] = (
            []
            if uncategorized
            else describe_stages(planning.stages_of(self.opened.context, planned), self.names)
        )
        return parts

    def _also_changed(self, planned: Planned) -> Mapping[str, list[str]]:
        if self.opened.baseline != "state":
            return {}
        return elsewhere.also_changed(
            self.opened.context,
            self._ledger,
            planned,
            self.request.owner,
            self.request.environment,
        )

    def row_counts(self) -> Mapping[str, int]:
        """Known rows of the changed models that are built whole, by fully qualified name."""
        if self.planned is None or self.opened.baseline != "state":
            return {}
        return known_rows(self.planned, self._costs, self.names)

    def _cost(self, work: list[Backfill]) -> Cost:
        price = self.request.executor_hour_price
        if self.opened.baseline != "state":
            return estimate(work, hour_price=price)
        context, planned = self.opened.context, self.planned
        known = known_of(work, self._costs, context, self.names)
        cost = estimate(work, known, hour_price=price)
        if planned is None:
            return cost
        built = {self.names.of(s_id.name) for s_id in self._built}
        return with_reused(cost, planned, built, self._costs, context, self.names)

    @cached_property
    def _costs(self) -> CostLedger:
        return CostLedger(compat.state_adapter(self.opened.context))

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(compat.state_adapter(self.opened.context))

    @cached_property
    def _built(self) -> dict[SnapshotId, list[Interval]]:
        """What the environment gets. Asked for before the stages, which change the snapshots."""
        return first_build.of_environment(self.planned) if self.planned else {}

    def prod_plan(self) -> ProdPlan | None:
        """What a merge would do."""
        if self.planned is None:
            return None
        return prod_plan.plan_prod(
            self.opened.context,
            self.planned,
            self.names,
            built=self._built,
            estimate=self._cost,
            repository=None if self.opened.baseline == "base-branch" else self.repository,
        )

    def environment_now(self) -> str | None:
        """How the plan differs from what the environment holds already."""
        found = self._views_that_differ
        if found is None:
            return None
        different, gone = found
        if not different and not gone:
            return f"{self.request.environment} already holds exactly this plan's models."
        return (
            f"{self.request.environment} exists: {different} of its views would change and {gone} "
            "would be removed."
        )

    def environment_holds_plan(self) -> bool:
        """Whether the environment's views are exactly those of this plan."""
        return self.planned is not None and self._views_that_differ == (0, 0)

    @cached_property
    def _views_that_differ(self) -> tuple[int, int] | None:
        """How many views of the environment would change, and be removed; None where it is new."""
        stored = self.opened.context.state_reader.get_environment(self.request.environment)
        if stored is None or self.opened.baseline != "state":
            return None
        if self.planned is not None and self.planned.plan.uncategorized:
            return None  # without a category a model has no table that could be compared
        held = {info.name: info.snapshot_id for info in stored.promoted_snapshots}
        wanted = (
            {
                info.name: info.snapshot_id
                for info in self.planned.plan.environment.promoted_snapshots
            }
            if self.planned
            else {}
        )
        different = sum(held.get(name) != s_id for name, s_id in wanted.items())
        return different, len(held.keys() - wanted.keys())

    def acceptances(self) -> list[Acceptance]:
        """What owners have accepted in this pull request; without prod's state nobody knows."""
        owner = self.request.owner
        if self.opened.baseline != "state" or owner.pr_number is None:
            return []
        return self._ledger.acceptances(owner.name, owner.pr_number)

    def notes(self) -> list[str]:
        """What a reader has to know of the whole: what it was compared with, and what stands in the
        way of an apply."""
        notes = [*self.settings.notes, *(self.planned.notes if self.planned else ())]
        if self.opened.baseline == "empty":
            notes.append("No prod was found: everything counts as new.")
        elif self.opened.base_failures:
            notes.append(
                "The base branch does not load, so there was nothing to compare with: every model "
                "counts as new."
            )
        elif self.opened.baseline == "base-branch" and not self.opened.has_prod:
            notes.append("The base branch has no SQLMesh project here: everything is new.")
        elif self.opened.baseline == "base-branch":
            notes.append(
                "Compared with the base branch's project, not with prod's state: nothing is known "
                "of prod's data, and this plan can be applied only after a review with state. "
                "Intervals are counted as if prod were built from each model's start up to now."
            )
        else:
            stored = self.opened.context.state_reader.get_environment(self.request.environment)
            row = self._ledger.get(self.request.environment)
            refused = ownership.refusal(self.request.environment, self.request.owner, row, stored)
            if refused is not None:
                notes.append(f"{refused.message} So an apply will be refused.")
        if self._written_otherwise:
            otherwise = [self.names.of(name) for name in self._written_otherwise]
            notes.append(same_code.note(otherwise, platform.python_version()))
        if self.opened.spark_started:
            notes.append("Spark was started for this review.")
        return notes
