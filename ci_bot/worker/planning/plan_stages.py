"""The stages of a plan as sentences.

The sentences are those of `plan --explain`, complete and not shortened. SQLMesh's own
explainer needs a terminal, cuts every level to ten entries, and leaves out the statements of
before_all and after_all, so this module describes the stages itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlmesh.core.plan import stages
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot

from ci_bot.protocol.plan import Stage
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning.describe_plan import choose_backfill_action

_ACTIONS = {
    "seed": "load the seed",
    "recreate_view": "recreate the view",
    "full_refresh": "refresh the whole table",
    "incremental": "insert",
}


def describe_plan_stages(found: Iterable[stages.PlanStage], names: MessageNames) -> list[Stage]:
    """Describes each stage in one entry, in the order of execution."""
    return [_DESCRIBE[type(stage)](stage, names) for stage in found]


def _render_preview_note_of_stage(snapshot: Snapshot, index: DeployabilityIndex) -> str:
    return "" if index.is_deployable(snapshot) else " (preview, not reused in prod)"


def _name_table_of_stage(snapshot: Snapshot, index: DeployabilityIndex, names: MessageNames) -> str:
    return names.table_name(snapshot, deployable=index.is_deployable(snapshot))


def _describe_before_all_stage(stage: stages.BeforeAllStage, names: MessageNames) -> Stage:
    sql = [text for item in stage.statements for text in item.before_all]
    return Stage(stage="before_all", title="Run the before_all statements", items=sql)


def _describe_after_all_stage(stage: stages.AfterAllStage, names: MessageNames) -> Stage:
    sql = [text for item in stage.statements for text in item.after_all]
    return Stage(stage="after_all", title="Run the after_all statements", items=sql)


def _describe_records_stage(stage: stages.CreateSnapshotRecordsStage, names: MessageNames) -> Stage:
    return Stage(
        stage="create_snapshot_records",
        title="Record the new snapshots in the state",
        items=sorted(names.short_name(snapshot.name) for snapshot in stage.snapshots),
    )


def _describe_schemas_stage(
    stage: stages.PhysicalLayerSchemaCreationStage, names: MessageNames
) -> Stage:
    schemas = {
        _name_table_of_stage(s, stage.deployability_index, names).rpartition(".")[0]
        for s in stage.snapshots
        if s.is_model and not s.is_symbolic
    }
    return Stage(
        stage="physical_layer_schema_creation",
        title="Make sure that the physical schemas are there",
        items=sorted(schemas),
    )


def _describe_tables_stage(stage: stages.PhysicalLayerUpdateStage, names: MessageNames) -> Stage:
    index = stage.deployability_index
    items = [
        f"{names.short_name(s.name)} → {_name_table_of_stage(s, index, names)}"
        f"{_render_preview_note_of_stage(s, index)}"
        for s in sorted(stage.snapshots, key=lambda item: str(item.name))
        if s.is_model and not s.is_symbolic
    ]
    return Stage(
        stage="physical_layer_update",
        title="Make sure that the physical tables and views are there",
        items=items,
    )


def _describe_audits_stage(stage: stages.AuditOnlyRunStage, names: MessageNames) -> Stage:
    return Stage(
        stage="audit_only_run",
        title="Run the changed audits on data that is already there",
        items=sorted(names.short_name(snapshot.name) for snapshot in stage.snapshots),
    )


def _describe_restatement_stage(stage: stages.RestatementStage, names: MessageNames) -> Stage:
    return Stage(
        stage="restatement",
        title="Clear the restated intervals in other environments",
        items=sorted(names.short_name(name) for name in stage.all_snapshots),
    )


def _describe_backfill_stage(stage: stages.BackfillStage, names: MessageNames) -> Stage:
    index = stage.deployability_index
    items = []
    for snapshot, intervals in stage.snapshot_to_intervals.items():
        if not snapshot.is_model:
            items.append(f"{names.short_name(snapshot.name)}: run the standalone audit")
            continue
        action = choose_backfill_action(snapshot)
        span = (
            f" {report_times.format_iso_in_message(intervals[0][0])} to "
            f"{report_times.format_iso_in_message(intervals[-1][1])}"
            if action == "incremental" and intervals
            else ""
        )
        audits = ", ".join(name for name, _ in snapshot.model.audits)
        checks = f"; audits: {audits}" if audits else ""
        table = _name_table_of_stage(snapshot, index, names)
        items.append(
            f"{names.short_name(snapshot.name)} → {table}: {_ACTIONS[action]}{span}"
            f"{_render_preview_note_of_stage(snapshot, index)}{checks}"
        )
    title = "Backfill" if items else "Backfill: nothing to do"
    return Stage(stage="backfill", title=title, items=sorted(items))


def _describe_environment_stage(
    stage: stages.EnvironmentRecordUpdateStage, names: MessageNames
) -> Stage:
    return Stage(stage="environment_record_update", title="Record the environment in the state")


def _describe_migrate_stage(stage: stages.MigrateSchemasStage, names: MessageNames) -> Stage:
    return Stage(
        stage="migrate_schemas",
        title="Alter prod's physical tables for forward-only changes",
        items=sorted(
            f"{names.short_name(s.name)} → {names.table_name(s, deployable=True)}"
            for s in stage.snapshots
        ),
    )


def _describe_virtual_layer_stage(
    stage: stages.VirtualLayerUpdateStage, names: MessageNames
) -> Stage:
    index = stage.deployability_index
    promoted = sorted(
        f"{names.short_name(s.name)} → {names.table_name(s, deployable=index.is_representative(s))}"
        for s in stage.promoted_snapshots
    )
    demoted = sorted(
        f"{names.short_name(s.name)}: remove the view" for s in stage.demoted_snapshots
    )
    return Stage(
        stage="virtual_layer_update",
        title="Point the environment's views at the physical tables",
        items=promoted + demoted,
    )


def _describe_unpause_stage(stage: stages.UnpauseStage, names: MessageNames) -> Stage:
    return Stage(
        stage="unpause",
        title="Let scheduled runs take over the promoted snapshots",
        items=sorted(names.short_name(s.name) for s in stage.promoted_snapshots),
    )


def _describe_finalize_stage(stage: stages.FinalizeEnvironmentStage, names: MessageNames) -> Stage:
    return Stage(stage="finalize_environment", title="Mark the environment as complete")


_DESCRIBE: dict[type, Callable[[Any, MessageNames], Stage]] = {
    stages.BeforeAllStage: _describe_before_all_stage,
    stages.AfterAllStage: _describe_after_all_stage,
    stages.CreateSnapshotRecordsStage: _describe_records_stage,
    stages.PhysicalLayerSchemaCreationStage: _describe_schemas_stage,
    stages.PhysicalLayerUpdateStage: _describe_tables_stage,
    stages.AuditOnlyRunStage: _describe_audits_stage,
    stages.RestatementStage: _describe_restatement_stage,
    stages.BackfillStage: _describe_backfill_stage,
    stages.EnvironmentRecordUpdateStage: _describe_environment_stage,
    stages.MigrateSchemasStage: _describe_migrate_stage,
    stages.VirtualLayerUpdateStage: _describe_virtual_layer_stage,
    stages.UnpauseStage: _describe_unpause_stage,
    stages.FinalizeEnvironmentStage: _describe_finalize_stage,
}
