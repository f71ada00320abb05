"""A review's facts of one plan: its work, its cost, the effect of a merge, and notes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
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
from ci_bot.worker.cost import add_reused_tables_to_cost, collect_known_costs, predict_plan_cost
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import (
    BuiltPlan,
    Interval,
    PlannedBaseDrift,
    PlanRequest,
    describe_plan,
    describe_plan_stages,
    describe_reworded_code,
    find_short_window_of_plan,
    identify_plan,
    list_models_removed_by_others,
    list_models_with_reworded_code,
    make_plan,
    prod_plan,
    whole_work,
)
from ci_bot.worker.project import OpenProject, PlanSettings
from ci_bot.worker.review.rule_inputs import read_known_rows
from ci_bot.worker.rules import inputs
from ci_bot.worker.runtime import load_trace
from ci_bot.worker.sql import list_column_changes
from ci_bot.worker.state_store import (
    HIDDEN_TABLES_HINT,
    CostLedger,
    Ledger,
    find_refusal_by_ledger,
    read_environment_records_of_ledger,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model

    from ci_bot.protocol.environment import EnvironmentName


@dataclass(frozen=True)
class ReviewedPlanParts:
    """A review's parts that come from the plan itself; empty without a plan."""

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


# Other environments of the same state that use or change the models of a plan.
#
# An apply makes a pull request's environment, and closing the pull request removes it, so the
# ledger's environments belong to open ones. A pull request that was never applied is not known
# here.


SnapshotKey = tuple[str, str]


def find_concurrent_pull_requests(
    context: Context, ledger: Ledger, planned: BuiltPlan, owner: Owner, environment: EnvironmentName
) -> Mapping[str, list[str]]:
    """Finds the other pull requests (`#141`) that change a model that this plan changes directly or
    removes.

    A pull request does not count if it has the same change, such as one that is stacked on this
    one, or if the model only follows another one there.

    Returns:
        The pull requests by the model's fully qualified name.
    """
    own = _list_directly_changed_snapshots(context, planned)
    others = {
        row.environment: row
        for row in (ledger.list_rows_of_owner(owner.name) if own else ())
        if row.environment != environment and row.pr_number is not None
    }
    recorded = {
        name: {(item.name, item.identifier) for item in row.snapshots if item.name in own}
        for name, row in others.items()
    }
    used = {
        name: keys & _list_snapshots_used_by_environment(context, name)
        for name, keys in recorded.items()
        if keys
    }
    theirs = sqlmesh_compat.read_full_sqlmesh_snapshots(
        context, {key for keys in used.values() for key in keys}
    )
    found: dict[str, list[str]] = {}
    for name, keys in sorted(used.items(), key=lambda item: others[item[0]].pr_number or 0):
        for key in keys & theirs.keys():
            new, prod = own[key[0]]
            if not _is_same_definition(theirs[key], prod) and not (
                new and _is_same_definition(theirs[key], new)
            ):
                found.setdefault(key[0], []).append(f"#{others[name].pr_number}")
    return found


def _list_directly_changed_snapshots(
    context: Context, planned: BuiltPlan
) -> dict[str, tuple[Snapshot | None, Snapshot]]:
    """Lists the models that the plan changes directly or removes: (new snapshot, prod's) by
    name.
    """
    diff = planned.plan.context_diff
    changed: dict[str, tuple[Snapshot | None, Snapshot]] = {
        name: (new, old)
        for name, (new, old) in diff.modified_snapshots.items()
        if diff.directly_modified(name) and new.is_model
    }
    removed = context.state_reader.get_snapshots(diff.removed_snapshots.values())
    return changed | {item.name: (None, item) for item in removed.values() if item.is_model}


def _list_snapshots_used_by_environment(context: Context, environment: str) -> set[SnapshotKey]:
    """Lists the snapshots that an environment of the state consists of now."""
    stored = context.state_reader.get_environment(environment)
    return {(info.name, info.identifier) for info in stored.snapshots} if stored else set()


def _is_same_definition(one: Snapshot, other: Snapshot) -> bool:
    """Whether two versions of a model have one definition, whatever their parents are."""
    mine, its = one.fingerprint, other.fingerprint
    return bool(mine.data_hash == its.data_hash and mine.metadata_hash == its.metadata_hash)


def find_environments_that_share_restated(
    context: Context, planned: BuiltPlan, environment: EnvironmentName
) -> Mapping[str, list[str]]:
    """Finds the other environments that use a table in which this plan restates intervals, by the
    model's fully qualified name.

    It reads all environments, so call it only if something is restated.
    """
    restated = {
        s_id.name: planned.plan_snapshots[s_id]
        for s_id in planned.plan.restatements
        if planned.flags.restate_models and s_id in planned.plan_snapshots
    }
    if not restated:
        return {}
    found: dict[str, list[str]] = {}
    for name, infos in sorted(sqlmesh_compat.list_sqlmesh_environment_snapshots(context).items()):
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
class ReviewedPlanFacts:
    """The parts of a review's answer that come from one plan, computed on request."""

    opened: OpenProject
    planned: BuiltPlan | None
    names: MessageNames
    repository: Path
    request: ReviewRequest
    plan_request: PlanRequest
    settings: PlanSettings

    @cached_property
    def base_drift(self) -> PlannedBaseDrift:
        """The differences that come from the base branch and not from the pull request."""
        if self.planned is None:
            return PlannedBaseDrift(None)
        nodes = {snapshot.name: snapshot.node for snapshot in self.planned.plan_snapshots.values()}
        request = self.request
        found = PlannedBaseDrift.from_changed_files(
            nodes, request.changed_files, self.repository, load_trace.list_files_in_load_trace()
        )
        if self.opened.baseline != "state" or request.changed_files is None:
            return found  # against the base branch, every difference is the pull request's
        removed = list_models_removed_by_others(
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
    def _reworded_models(self) -> set[str]:
        if self.planned is None:
            return set()
        return list_models_with_reworded_code(self.planned.plan.context_diff.modified_snapshots)

    def _has_other_cause(self, name: str, change: ChangeType, path: str | None) -> bool:
        """Whether a difference has another cause than the pull request."""
        is_reworded = change == "direct" and name in self._reworded_models
        return is_reworded or self.base_drift.is_from_base(name, change, path)

    def _make_column_comparer(self) -> Callable[[Snapshot, Snapshot | None], list[ColumnChange]]:
        """Makes the comparison of a model's columns, with the models that still read removed
        columns.
        """
        models = self.opened.context.models
        readers: dict[str, list[Model]] = {}
        for model in models.values():
            for parent in model.depends_on:
                readers.setdefault(parent, []).append(model)

        def compare_columns(new: Snapshot, old: Snapshot | None) -> list[ColumnChange]:
            if old is None or not new.is_model or not old.is_model:
                return []
            found = list_column_changes(old.model, new.model, readers.get(new.name, ()))
            return [
                change.model_copy(
                    update={"readers": [self.names.short_name(r) for r in change.readers]}
                )
                for change in found
            ]

        return compare_columns

    def plan_parts(self) -> ReviewedPlanParts:
        """Collects everything that comes from the plan; the stages last, because they change its
        snapshots.
        """
        planned = self.planned
        if planned is None:
            return ReviewedPlanParts()
        uncategorized = bool(planned.plan.uncategorized)
        work = describe_plan.list_remaining_work_of_plan(planned, self.names)
        return ReviewedPlanParts(
            identity=None
            if uncategorized or self.opened.baseline == "base-branch"
            else identify_plan(
                self.opened.context,
                planned,
                state_schema_version=self.opened.state.schema_version,
                repository=self.repository,
            ),
            changes=describe_plan.list_planned_changes(
                planned,
                self.names,
                repository=self.repository,
                columns=self._make_column_comparer(),
                is_from_base=self._has_other_cause,
                also_in=self._map_also_changed(planned),
            ),
            backfill=describe_plan.list_planned_backfill(
                planned, self._built_intervals, self.names, reused=lambda snapshot: True
            ),
            work=work,
            restatements=describe_plan.list_planned_restatements(
                planned,
                self.names,
                find_environments_that_share_restated(
                    self.opened.context, planned, self.request.environment
                ),
            ),
            statements=describe_plan.list_environment_statements_of_plan(planned),
            lineage=describe_plan.make_lineage_of_plan(planned, self.names),
            cost=self.estimate_cost(work),
            short_window=find_short_window_of_plan(
                planned,
                self.plan_request,
                self._built_intervals,
                self.names,
                previews=sqlmesh_compat.sqlmesh_previews_forward_only(self.opened.context),
            ),
            stages=[]
            if uncategorized
            else describe_plan_stages(
                make_plan.build_stages_of_plan(self.opened.context, planned), self.names
            ),
        )

    def _map_also_changed(self, planned: BuiltPlan) -> Mapping[str, list[str]]:
        if self.opened.baseline != "state":
            return {}
        return find_concurrent_pull_requests(
            self.opened.context,
            self.read_ledger,
            planned,
            self.request.owner,
            self.request.environment,
        )

    def row_counts(self) -> Mapping[str, int]:
        """Reads the known numbers of rows of the changed models that are built whole, by fully
        qualified name.
        """
        if self.planned is None or self.opened.baseline != "state":
            return {}
        return read_known_rows(self.planned, self._cost_ledger, self.names)

    def estimate_cost(self, work: list[Backfill]) -> Cost:
        """Estimates the cost of building, from the ledger's earlier runs."""
        price = self.request.executor_hour_price
        if self.opened.baseline != "state":
            return predict_plan_cost(work, hour_price=price)
        context, planned = self.opened.context, self.planned
        known = collect_known_costs(work, self._cost_ledger, context, self.names)
        cost = predict_plan_cost(work, known, hour_price=price)
        if planned is None:
            return cost
        built = {self.names.short_name(s_id.name) for s_id in self._built_intervals}
        return add_reused_tables_to_cost(
            cost, planned, built, self._cost_ledger, context, self.names
        )

    @cached_property
    def _cost_ledger(self) -> CostLedger:
        return CostLedger(sqlmesh_compat.get_sqlmesh_state_adapter(self.opened.context))

    @cached_property
    def read_ledger(self) -> Ledger:
        """The ledger, only to read it."""
        return Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(self.opened.context))

    @property
    def is_deployment(self) -> bool:
        """Whether the plan is that of merged pull requests, not of an open one."""
        return self.request.owner.pr_number is None and bool(self.request.restated_by)

    @cached_property
    def _built_intervals(self) -> dict[SnapshotId, list[Interval]]:
        """The intervals that the environment gets. Read it before the stages, which change the
        snapshots.
        """
        return whole_work.list_planned_environment_build(self.planned) if self.planned else {}

    def prod_plan(self, restated: Sequence[Backfill] = ()) -> ProdPlan | None:
        """Plans the merge; None without a plan.

        Args:
            restated: The work of restatements after it.
        """
        if self.planned is None:
            return (
                prod_plan.plan_restatements_alone(restated, self.estimate_cost)
                if restated
                else None
            )
        return prod_plan.plan_prod(
            self.opened.context,
            self.planned,
            self.names,
            built=self._built_intervals,
            estimate=self.estimate_cost,
            restated=restated,
            repository=None if self.opened.baseline == "base-branch" else self.repository,
        )

    def environment_now(self) -> str | None:
        """Describes how the plan differs from the environment now; None if not comparable."""
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
        """The numbers of the environment's views that would change and be removed; None if they
        cannot be compared.
        """
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
        """Lists the findings that owners accepted in this pull request; empty without prod's
        state.
        """
        owner = self.request.owner
        if self.opened.baseline != "state" or owner.pr_number is None:
            return []
        return self.read_ledger.list_acceptances(owner.name, owner.pr_number)

    def list_notes(self) -> list[str]:
        """Lists notes on the whole review: its comparison base, and obstacles to an apply."""
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
            stored, row = read_environment_records_of_ledger(
                self.opened.context.state_reader, self.read_ledger, self.request.environment
            )
            refused = find_refusal_by_ledger(
                self.request.environment, self.request.owner, row, stored
            )
            if refused is not None:
                notes.append(f"{refused.message} So an apply will be refused.")
            hidden = self.read_ledger.describe_hidden_tables()
            if hidden is not None:
                notes.append(
                    f"{hidden}, so accepted findings and restatements are unknown here. "
                    f"{HIDDEN_TABLES_HINT}"
                )
        if self._reworded_models:
            otherwise = [self.names.short_name(name) for name in self._reworded_models]
            notes.append(describe_reworded_code(otherwise, platform.python_version()))
        if self.opened.spark_started:
            notes.append("Spark was started for this review.")
        return notes
