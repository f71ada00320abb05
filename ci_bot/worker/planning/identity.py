"""A plan's identity, equal at any time and in any place: its id is the hash of these facts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core.environment import EnvironmentStatements
from sqlmesh.core.plan import Plan
from sqlmesh.core.snapshot import Snapshot

from ci_bot.protocol.files import PrivateDirectories
from ci_bot.protocol.plan_identity import (
    PlanIdentity,
    ProdIdentity,
    ProdSnapshot,
    RestatedRange,
    StatementIdentity,
    TargetSnapshot,
)
from ci_bot.worker.messages import report_times
from ci_bot.worker.planning.make_plan import (
    BuiltPlan,
    Interval,
    list_target_intervals_of_plan,
    name_plan_category,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context


def identify_plan(
    context: Context, planned: BuiltPlan, *, state_schema_version: int, repository: Path
) -> PlanIdentity:
    """Makes the plan's identity from the environment's final content, not from the remaining work.

    Args:
        repository: Root of the checkout. Its path is removed from statements: a `config.py` may
            write it, and each run copies the checkout to another place.
    """
    plan = planned.plan
    environment = plan.environment
    promoted = {info.snapshot_id for info in environment.promoted_snapshots}
    changed = {snapshot.snapshot_id: snapshot for snapshot in planned.changed_snapshots}
    covered = {
        s_id: snapshot
        for s_id, snapshot in planned.plan_snapshots.items()
        if s_id in changed or (planned.flags.include_unmodified and s_id in promoted)
    }
    windows = list_target_intervals_of_plan(planned, changed.values())
    naming = environment.naming_info
    identity = PlanIdentity(
        environment=environment.name,
        gateway=context.selected_gateway,
        suffix_target=str(naming.suffix_target.value),
        catalog_mapping={
            pattern.pattern: catalog
            for pattern, catalog in context.config.environment_catalog_mapping.items()
        },
        state_schema_version=state_schema_version,
        flags=planned.flags,
        window=planned.window,
        snapshots=[
            _make_target_snapshot_of_plan(
                snapshot, planned, windows.get(s_id), s_id in promoted, s_id in changed
            )
            for s_id, snapshot in sorted(covered.items())
        ],
        removed=sorted(info.name for info in plan.context_diff.removed_snapshots.values()),
        restatements=[
            RestatedRange(
                model=s_id.name,
                start=report_times.format_iso_in_message(start),
                end=report_times.format_iso_in_message(end),
            )
            for s_id, (start, end) in plan.restatements.items()
            if planned.flags.restate_models
        ],
        statements=_list_statement_identities_of_plan(plan),
    )
    return PrivateDirectories({repository: ""}).hide_in_document(identity)


def identify_prod_plan(plan: Plan, *, repository: Path) -> ProdIdentity:
    """Makes the identity of a plan of prod from prod's final content.

    Args:
        repository: As for `identify_plan`.
    """
    diff = plan.context_diff
    identity = ProdIdentity(
        snapshots=[
            ProdSnapshot(
                model=snapshot.name,
                fingerprint=_compute_fingerprint_with_parents(snapshot),
                category=name_plan_category(snapshot),
                forward_only=snapshot.is_forward_only,
            )
            for s_id, snapshot in plan.snapshots.items()
            if s_id in diff.added or snapshot.name in diff.modified_snapshots
        ],
        removed=sorted(info.name for info in diff.removed_snapshots.values()),
        statements=_list_statement_identities_of_plan(plan),
    )
    return PrivateDirectories({repository: ""}).hide_in_document(identity)


def _compute_fingerprint_with_parents(snapshot: Snapshot) -> str:
    fingerprint = snapshot.fingerprint
    return "-".join(
        (
            fingerprint.data_hash,
            fingerprint.metadata_hash,
            fingerprint.parent_data_hash,
            fingerprint.parent_metadata_hash,
        )
    )


def _make_target_snapshot_of_plan(
    snapshot: Snapshot,
    planned: BuiltPlan,
    intervals: list[Interval] | None,
    promoted: bool,
    changed: bool,
) -> TargetSnapshot:
    return TargetSnapshot(
        model=snapshot.name,
        fingerprint=_compute_fingerprint_with_parents(snapshot),
        category=name_plan_category(snapshot) if changed else None,
        preview=not planned.deployable.is_representative(snapshot),
        promoted=promoted,
        start=report_times.format_iso_in_message(intervals[0][0]) if intervals else None,
        end=report_times.format_iso_in_message(intervals[-1][1]) if intervals else None,
    )


def _list_statement_identities_of_plan(plan: Plan) -> list[StatementIdentity]:
    return [
        _make_statement_identity_of_plan(item) for item in plan.context_diff.environment_statements
    ]


def _make_statement_identity_of_plan(statements: EnvironmentStatements) -> StatementIdentity:
    environment = {name: item.payload for name, item in statements.python_env.items()}
    macros = statements.jinja_macros.data_hash_values if statements.jinja_macros else []
    text = json.dumps([environment, list(macros)], sort_keys=True, default=str)
    return StatementIdentity(
        before_all=list(statements.before_all),
        after_all=list(statements.after_all),
        python_env_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
