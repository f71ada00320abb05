"""What a review tells of one plan: its work, its cost, what a merge does, and what to note."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core.snapshot import Snapshot, SnapshotId

from ci_bot.protocol.environment import PROD
from ci_bot.protocol.messages import Owner, ReviewRequest
from ci_bot.protocol.plan import (
    Backfill,
    Change,
    ChangeType,
    ColumnChange,
    Cost,
    EnvironmentStatement,
    Lineage,
    ProdPlan,
    Restatement,
    ShortWindow,
    Stage,
)
from ci_bot.protocol.plan_identity import PlanIdentity
from ci_bot.protocol.review_report import Acceptance
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost import known_of, predict_plan_cost, with_reused
from ci_bot.worker.messages import ModelNames, same_code
from ci_bot.worker.planning import (
    BaseDrift,
    BuiltPlan,
    Interval,
    PlanRequest,
    describe_plan,
    describe_stages,
    first_build,
    identity_of,
    make_plan,
    prod_plan,
    removed_by_others,
    short_window,
)
from ci_bot.worker.project import OpenProject, PlanSettings
from ci_bot.worker.review.rule_inputs import known_rows
from ci_bot.worker.rules import inputs
from ci_bot.worker.runtime import load_trace
from ci_bot.worker.sql import list_column_changes
from ci_bot.worker.state_store import CostLedger, Ledger, ownership

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model

    from ci_bot.protocol.environment import EnvironmentName


@dataclass(frozen=True)
class PlanParts:
    """What the plan itself gives to a review; empty if there is none."""

    identity: PlanIdentity | None = None
    changes: list[Change] = field(default_factory=list)
    backfill: list[Backfill] = field(default_factory=list)
    work: list[Backfill] = field(default_factory=list)
    restatements: list[Restatement] = field(default_factory=list)
    statements: list[EnvironmentStatement] = field(default_factory=list)
    lineage: Lineage = field(default_factory=Lineage)
    cost: Cost = field(default_factory=lambda: predict_plan_cost([]))
    short_window: ShortWindow | None = None
    stages: list[Stage] = field(default_factory=list)


# What other environments of the same state have to do with the models of a plan.
#
# An environment of a pull request is made by an apply and removed when the pull request is closed,
# so those that the ledger has are of open ones. One that was never applied is not known here.


Key = tuple[str, str]


def also_changed(
    context: Context, ledger: Ledger, planned: BuiltPlan, owner: Owner, environment: EnvironmentName
) -> Mapping[str, list[str]]:
    """The other pull requests (`#141`) that change what this plan changes directly or removes.

    By fully qualified name. A pull request that makes the same change, as one does that is
    stacked on this one, is none; nor is one in which the model only follows another.
    """
    own = _own_changes(context, planned)
    others = {
        row.environment: row
        for row in (ledger.of_owner(owner.name) if own else ())
        if row.environment != environment and row.pr_number is not None
    }
    recorded = {
        name: {(item.name, item.identifier) for item in row.snapshots if item.name in own}
        for name, row in others.items()
    }
    used = {name: keys & _in_use(context, name) for name, keys in recorded.items() if keys}
    theirs = sqlmesh_compat.full_snapshots(context, {key for keys in used.values() for key in keys})
    found: dict[str, list[str]] = {}
    for name, keys in sorted(used.items(), key=lambda item: others[item[0]].pr_number or 0):
        for key in keys & theirs.keys():
            new, prod = own[key[0]]
            if not _is_same_definition(theirs[key], prod) and not (
                new and _is_same_definition(theirs[key], new)
            ):
                found.setdefault(key[0], []).append(f"#{others[name].pr_number}")
    return found


def _own_changes(
    context: Context, planned: BuiltPlan
) -> dict[str, tuple[Snapshot | None, Snapshot]]:
    """What the plan changes directly or removes: (new snapshot, prod's) by name."""
    diff = planned.plan.context_diff
    changed: dict[str, tuple[Snapshot | None, Snapshot]] = {
        name: (new, old)
        for name, (new, old) in diff.modified_snapshots.items()
        if diff.directly_modified(name) and new.is_model
    }
    removed = context.state_reader.get_snapshots(diff.removed_snapshots.values())
    return changed | {item.name: (None, item) for item in removed.values() if item.is_model}


def _in_use(context: Context, environment: str) -> set[Key]:
    """The snapshots that an environment of the state consists of now."""
    stored = context.state_reader.get_environment(environment)
    return {(info.name, info.identifier) for info in stored.snapshots} if stored else set()


def _is_same_definition(one: Snapshot, other: Snapshot) -> bool:
    """Whether two versions of a model have one definition, whatever they read."""
    mine, its = one.fingerprint, other.fingerprint
    return bool(mine.data_hash == its.data_hash and mine.metadata_hash == its.metadata_hash)


def users_of_restated(
    context: Context, planned: BuiltPlan, environment: EnvironmentName
) -> Mapping[str, list[str]]:
    """The other environments that use a table of which this plan restates intervals.

    By fully qualified name. Asked only if something is restated: it reads all environments.
    """
    restated = {
        s_id.name: planned.plan_snapshots[s_id]
        for s_id in planned.plan.restatements
        if planned.flags.restate_models and s_id in planned.plan_snapshots
    }
    if not restated:
        return {}
    found: dict[str, list[str]] = {}
    for name, infos in sorted(sqlmesh_compat.environment_snapshots(context).items()):
        for info in infos if name not in (environment, PROD) else ():
            ours = restated.get(info.name)
            if ours is not None and (
                info.version == ours.version
                if planned.deployable.is_deployable(ours)
                else info.dev_version == ours.dev_version
            ):
                found.setdefault(info.name, []).append(name)
    return found


@dataclass
class PlanFacts:
    """The parts of the answer that are computed from one plan."""

    opened: OpenProject
    planned: BuiltPlan | None
    names: ModelNames
    repository: Path
    request: ReviewRequest
    plan_request: PlanRequest
    settings: PlanSettings

    @cached_property
    def base_drift(self) -> BaseDrift:
        """Which differences the base branch has made, not the pull request."""
        if self.planned is None:
            return BaseDrift(None)
        nodes = {snapshot.name: snapshot.node for snapshot in self.planned.plan_snapshots.values()}
        request = self.request
        found = BaseDrift.from_changed_files(
            nodes, request.changed_files, self.repository, load_trace.list_opened_files()
        )
        if self.opened.baseline != "state" or request.changed_files is None:
            return found  # against the base branch, every difference is the pull request's
        removed = removed_by_others(
            [info.name for info in self.planned.plan.context_diff.removed_snapshots.values()],
            nodes,
            caused=found.caused,
            changed_files=request.changed_files,
            # No directory: the base branch has none of the changed files.
            before=inputs.make_base_reader(request.before_dir, request.unread_files),
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
        return told or self.base_drift.is_from_base(name, change, path)

    def _column_comparer(self) -> Callable[[Snapshot, Snapshot | None], list[ColumnChange]]:
        """Column changes of a model, with the models that still read what is gone."""
        models = self.opened.context.models
        readers: dict[str, list[Model]] = {}
        for model in models.values():
            for parent in model.depends_on:
                readers.setdefault(parent, []).append(model)

        def columns(new: Snapshot, old: Snapshot | None) -> list[ColumnChange]:
            if old is None or not new.is_model or not old.is_model:
                return []
            found = list_column_changes(old.model, new.model, readers.get(new.name, ()))
            return [
                change.model_copy(
                    update={"readers": [self.names.short_name(r) for r in change.readers]}
                )
                for change in found
            ]

        return columns

    def plan_parts(self) -> PlanParts:
        """Everything that the plan gives; the stages last, because they change its snapshots."""
        planned = self.planned
        if planned is None:
            return PlanParts()
        uncategorized = bool(planned.plan.uncategorized)
        work = describe_plan.work_left(planned, self.names)
        return PlanParts(
            identity=None
            if uncategorized or self.opened.baseline == "base-branch"
            else identity_of(
                self.opened.context,
                planned,
                state_schema_version=self.opened.state.schema_version,
                repository=self.repository,
            ),
            changes=describe_plan.list_changes(
                planned,
                self.names,
                repository=self.repository,
                columns=self._column_comparer(),
                is_from_base=self._is_not_ours,
                also_in=self._also_changed(planned),
            ),
            backfill=describe_plan.list_backfill(
                planned, self._built_intervals, self.names, reused=lambda snapshot: True
            ),
            work=work,
            restatements=describe_plan.list_restatements(
                planned,
                self.names,
                users_of_restated(self.opened.context, planned, self.request.environment),
            ),
            statements=describe_plan.list_environment_statements(planned),
            lineage=describe_plan.make_lineage(planned, self.names),
            cost=self._estimate_cost(work),
            short_window=short_window(
                planned,
                self.plan_request,
                self._built_intervals,
                self.names,
                previews=sqlmesh_compat.previews_forward_only(self.opened.context),
            ),
            stages=[]
            if uncategorized
            else describe_stages(make_plan.stages_of(self.opened.context, planned), self.names),
        )

    def _also_changed(self, planned: BuiltPlan) -> Mapping[str, list[str]]:
        if self.opened.baseline != "state":
            return {}
        return also_changed(
            self.opened.context,
            self._read_ledger,
            planned,
            self.request.owner,
            self.request.environment,
        )

    def row_counts(self) -> Mapping[str, int]:
        """Known rows of the changed models that are built whole, by fully qualified name."""
        if self.planned is None or self.opened.baseline != "state":
            return {}
        return known_rows(self.planned, self._cost_ledger, self.names)

    def _estimate_cost(self, work: list[Backfill]) -> Cost:
        price = self.request.executor_hour_price
        if self.opened.baseline != "state":
            return predict_plan_cost(work, hour_price=price)
        context, planned = self.opened.context, self.planned
        known = known_of(work, self._cost_ledger, context, self.names)
        cost = predict_plan_cost(work, known, hour_price=price)
        if planned is None:
            return cost
        built = {self.names.short_name(s_id.name) for s_id in self._built_intervals}
        return with_reused(cost, planned, built, self._cost_ledger, context, self.names)

    @cached_property
    def _cost_ledger(self) -> CostLedger:
        return CostLedger(sqlmesh_compat.state_adapter(self.opened.context))

    @cached_property
    def _read_ledger(self) -> Ledger:
        return Ledger(sqlmesh_compat.state_adapter(self.opened.context))

    @cached_property
    def _built_intervals(self) -> dict[SnapshotId, list[Interval]]:
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
            built=self._built_intervals,
            estimate=self._estimate_cost,
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

    def list_acceptances(self) -> list[Acceptance]:
        """What owners have accepted in this pull request; without prod's state nobody knows."""
        owner = self.request.owner
        if self.opened.baseline != "state" or owner.pr_number is None:
            return []
        return self._read_ledger.list_acceptances(owner.name, owner.pr_number)

    def list_notes(self) -> list[str]:
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
            stored, row = ownership.read_environment_records(
                self.opened.context.state_reader, self._read_ledger, self.request.environment
            )
            refused = ownership.find_refusal(
                self.request.environment, self.request.owner, row, stored
            )
            if refused is not None:
                notes.append(f"{refused.message} So an apply will be refused.")
        if self._written_otherwise:
            otherwise = [self.names.short_name(name) for name in self._written_otherwise]
            notes.append(same_code.describe_same_code(otherwise, platform.python_version()))
        if self.opened.spark_started:
            notes.append("Spark was started for this review.")
        return notes
