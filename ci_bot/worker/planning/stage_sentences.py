"""The stages of a plan as sentences: what `plan --explain` prints, complete and without elision.

SQLMesh's own explainer needs a terminal, cuts every level to ten entries, and leaves out the
statements of before_all and after_all, so the stages are walked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlmesh.core.plan import stages
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot

from ci_bot.protocol.plan import Stage
from ci_bot.worker.messages import Names, names_and_times
from ci_bot.worker.planning.describe_plan import action_of

_ACTIONS = {
    "seed": "load the seed",
    "recreate_view": "recreate the view",
    "full_refresh": "refresh the whole table",
    "incremental": "insert",
}


def describe_stages(found: Iterable[stages.PlanStage], names: Names) -> list[Stage]:
    """One entry per stage, in the order of execution."""
    return [_DESCRIBE[type(stage)](stage, names) for stage in found]


def _preview(snapshot: Snapshot, index: DeployabilityIndex) -> str:
    return "" if index.is_deployable(snapshot) else " (preview, not reused in prod)"


def _table(snapshot: Snapshot, index: DeployabilityIndex, names: Names) -> str:
    return names.table(snapshot, deployable=index.is_deployable(snapshot))


def _before_all(stage: stages.BeforeAllStage, names: Names) -> Stage:
    sql = [text for item in stage.statements for text in item.before_all]
    return Stage(stage="before_all", title="Run the before_all statements", items=sql)


def _after_all(stage: stages.AfterAllStage, names: Names) -> Stage:
    sql = [text for item in stage.statements for text in item.after_all]
    return Stage(stage="after_all", title="Run the after_all statements", items=sql)


def _records(stage: stages.CreateSnapshotRecordsStage, names: Names) -> Stage:
    return Stage(
        stage="create_snapshot_records",
        title="Record the new snapshots in the state",
        items=sorted(names.of(snapshot.name) for snapshot in stage.snapshots),
    )


def _schemas(stage: stages.PhysicalLayerSchemaCreationStage, names: Names) -> Stage:
    schemas = {
        _table(s, stage.deployability_index, names).rpartition(".")[0]
        for s in stage.snapshots
        if s.is_model and not s.is_symbolic
    }
    return Stage(
        stage="physical_layer_schema_creation",
        title="Make sure that the physical schemas are there",
        items=sorted(schemas),
    )


def _tables(stage: stages.PhysicalLayerUpdateStage, names: Names) -> Stage:
    index = stage.deployability_index
    items = [
        f"{names.of(s.name)} → {_table(s, index, names)}{_preview(s, index)}"
        for s in sorted(stage.snapshots, key=lambda item: str(item.name))
        if s.is_model and not s.is_symbolic
    ]
    return Stage(
        stage="physical_layer_update",
        title="Make sure that the physical tables and views are there",
        items=items,
    )


def _audits(stage: stages.AuditOnlyRunStage, names: Names) -> Stage:
    return Stage(
        stage="audit_only_run",
        title="Run the changed audits on data that is already there",
        items=sorted(names.of(snapshot.name) for snapshot in stage.snapshots),
    )


def _restatement(stage: stages.RestatementStage, names: Names) -> Stage:
    return Stage(
        stage="restatement",
        title="Clear the restated intervals in other environments",
        items=sorted(names.of(name) for name in stage.all_snapshots),
    )


def _backfill(stage: stages.BackfillStage, names: Names) -> Stage:
    index = stage.deployability_index
    items = []
    for snapshot, intervals in stage.snapshot_to_intervals.items():
        if not snapshot.is_model:
            items.append(f"{names.of(snapshot.name)}: run the standalone audit")
            continue
        action = action_of(snapshot)
        span = (
            f" {names_and_times.iso(intervals[0][0])} to {names_and_times.iso(intervals[-1][1])}"
            if action == "incremental" and intervals
            else ""
        )
        audits = ", ".join(name for name, _ in snapshot.model.audits)
        checks = f"; audits: {audits}" if audits else ""
        table = _table(snapshot, index, names)
        items.append(
            f"{names.of(snapshot.name)} → {table}: {_ACTIONS[action]}{span}"
            f"{_preview(snapshot, index)}{checks}"
        )
    title = "Backfill" if items else "Backfill: nothing to do"
    return Stage(stage="backfill", title=title, items=sorted(items))


def _environment(stage: stages.EnvironmentRecordUpdateStage, names: Names) -> Stage:
    return Stage(stage="environment_record_update", title="Record the environment in the state")


def _migrate(stage: stages.MigrateSchemasStage, names: Names) -> Stage:
    return Stage(
        stage="migrate_schemas",
        title="Alter prod's physical tables for forward-only changes",
        items=sorted(
            f"{names.of(s.name)} → {names.table(s, deployable=True)}" for s in stage.snapshots
        ),
    )


def _virtual(stage: stages.VirtualLayerUpdateStage, names: Names) -> Stage:
    index = stage.deployability_index
    promoted = sorted(
        f"{names.of(s.name)} → {names.table(s, deployable=index.is_representative(s))}"
        for s in stage.promoted_snapshots
    )
    demoted = sorted(f"{names.of(s.name)}: remove the view" for s in stage.demoted_snapshots)
    return Stage(
        stage="virtual_layer_update",
        title="Point the environment's views at the physical tables",
        items=promoted + demoted,
    )


def _unpause(stage: stages.UnpauseStage, names: Names) -> Stage:
    return Stage(
        stage="unpause",
        title="Let scheduled runs take over the promoted snapshots",
        items=sorted(names.of(s.name) for s in stage.promoted_snapshots),
    )


def _finalize(stage: stages.FinalizeEnvironmentStage, names: Names) -> Stage:
    return Stage(stage="finalize_environment", title="Mark the environment as complete")


_DESCRIBE: dict[type, Callable[[Any, Names], Stage]] = {
    stages.BeforeAllStage: _before_all,
    stages.AfterAllStage: _after_all,
    stages.CreateSnapshotRecordsStage: _records,
    stages.PhysicalLayerSchemaCreationStage: _schemas,
    stages.PhysicalLayerUpdateStage: _tables,
    stages.AuditOnlyRunStage: _audits,
    stages.RestatementStage: _restatement,
    stages.BackfillStage: _backfill,
    stages.EnvironmentRecordUpdateStage: _environment,
    stages.MigrateSchemasStage: _migrate,
    stages.VirtualLayerUpdateStage: _virtual,
    stages.UnpauseStage: _unpause,
    stages.FinalizeEnvironmentStage: _finalize,
}
