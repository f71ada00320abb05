"""What SQLMesh executes of a plan, and with it the audits that an earlier attempt did not pass."""

from __future__ import annotations

from sqlmesh.core.plan import Plan
from sqlmesh.core.plan.definition import EvaluatablePlan
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.core.state_sync import StateReader


def evaluatable(plan: Plan, state_reader: StateReader) -> EvaluatablePlan:
    """The plan as SQLMesh evaluates it. Reads the state; writes nothing.

    SQLMesh runs changed audits on data that is there already for new snapshots only, and an apply
    records its snapshots before it runs them. An apply that such an audit has stopped would
    promote at the next try without asking it again. So a snapshot whose change is metadata counts
    as new until the environment has it. (`PlanStagesBuilder._get_audit_only_snapshots`)
    """
    found = plan.to_evaluatable()
    unproven = _unproven(plan, found, state_reader)
    if not unproven:
        return found
    return found.copy(update={"new_snapshots": [*found.new_snapshots, *unproven]})


def _unproven(plan: Plan, found: EvaluatablePlan, state_reader: StateReader) -> list[Snapshot]:
    new = {snapshot.snapshot_id for snapshot in found.new_snapshots}
    recorded = [
        snapshot
        for snapshot_id in sorted(found.metadata_updated_snapshots)
        if snapshot_id not in new
        and (snapshot := plan.snapshots.get(snapshot_id)) is not None
        and snapshot.is_metadata
    ]
    if not recorded:
        return []
    environment = state_reader.get_environment(found.environment.name)
    promoted = {info.snapshot_id for info in environment.snapshots} if environment else set()
    return [snapshot for snapshot in recorded if snapshot.snapshot_id not in promoted]
