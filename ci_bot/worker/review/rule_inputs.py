"""Both sides of a change as inputs of the rules, from an opened project and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c

from ci_bot.protocol.messages import ReviewRequest
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost import read_row_counts_for_cost
from ci_bot.worker.messages import MessageNames, name_file_in_message
from ci_bot.worker.planning import (
    BuiltPlan,
    PlannedBaseDrift,
    find_planned_change_type,
    list_environment_statements_of_plan,
    name_plan_category,
)
from ci_bot.worker.project import OpenProject, ProjectConfigFacts
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.rules import inputs as reading
from ci_bot.worker.runtime import load_trace
from ci_bot.worker.sql_effects import judge_statement_effects_of_plan
from ci_bot.worker.state_store import CostLedger

if TYPE_CHECKING:
    from sqlmesh.core.audit import StandaloneAudit
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model


def make_rule_inputs(
    opened: OpenProject,
    planned: BuiltPlan | None,
    drift: PlannedBaseDrift,
    request: ReviewRequest,
    *,
    row_counts: Mapping[str, int],
    flags: PlanFlags,
    config_before: ProjectConfigFacts | None = None,
) -> RuleInputs:
    """Makes the inputs of the rules for a review.

    Without a plan (SQLMesh sees no change) the models are the same on both sides. A password in the
    configuration or a removed linter is still a change, which the rules find in the files.

    Args:
        row_counts: Known numbers of rows of changed models, by fully qualified name.
        flags: The options that the plan is made with.
    """
    context = opened.context
    repository = Path(request.workplace.repository)
    after: dict[str, Model] = dict(context.models)
    before = _list_models_before(opened, planned, after)
    kinds = (
        {s.name: find_planned_change_type(planned, s) for s in planned.changed_snapshots}
        if planned
        else {}
    )
    removed = _list_removed_models(planned)
    return RuleInputs(
        before=before,
        after=after,
        standalone_before=_list_standalone_audits_before(planned, context.standalone_audits),
        standalone_after=dict(context.standalone_audits),
        repository=repository,
        projects=tuple(name_file_in_message(Path(path), repository) for path in request.projects),
        added=_list_models_with_change(kinds, "added"),
        removed=frozenset(removed),
        direct=_list_models_with_change(kinds, "direct"),
        indirect=_list_models_with_change(kinds, "indirect"),
        metadata=_list_models_with_change(kinds, "metadata"),
        categories={s.name: name_plan_category(s) for s in planned.changed_snapshots}
        if planned
        else {},
        forward_only=frozenset(s.name for s in planned.changed_snapshots if s.is_forward_only)
        if planned
        else frozenset(),
        changed_files=tuple(request.changed_files) if request.changed_files is not None else None,
        files_before=reading.make_base_reader(request.before_dir, request.unread_files),
        files_after=reading.make_head_reader(request.workplace, request.unread_files),
        config_before=config_before,
        config_after=ProjectConfigFacts.from_config(context.config, context.gateway),
        statements=_list_statements(planned),
        judged=tuple(judge_statement_effects_of_plan(context, planned)) if planned else (),
        opened=frozenset(
            path
            for path in load_trace.list_files_in_load_trace()
            if Path(path).is_relative_to(repository)
        ),
        readers=_map_readers_of_models(after),
        default_dialect=context.default_dialect or "",
        row_counts=row_counts,
        forward_only_plan=flags.forward_only,
        allowed_destructive=_expand_allowed_destructive(context, flags),
        personal_schemas=None
        if request.personal_schemas is None
        else tuple(request.personal_schemas),
        names=MessageNames(context.default_catalog, context.default_dialect),
        from_base=frozenset(
            name for name, kind in kinds.items() if drift.is_from_base(name, kind, None)
        ),
    )


def make_rule_inputs_of_refused_review(
    opened: OpenProject, drift: PlannedBaseDrift, request: ReviewRequest, flags: PlanFlags
) -> RuleInputs:
    """Makes the inputs if SQLMesh refuses to plan: compares the project with prod's own models."""
    inputs = make_rule_inputs(
        opened,
        None,
        drift,
        request,
        row_counts={},
        flags=flags,
        config_before=opened.config_before,
    )
    return replace(
        inputs,
        before=_list_prod_models(opened),
        standalone_before={},
        judged=None,
        from_base=frozenset(
            name for name in inputs.after if drift.is_from_base(name, "direct", None)
        ),
    )


def _list_prod_models(opened: OpenProject) -> dict[str, Model]:
    """Lists the models of prod by fully qualified name; empty without prod."""
    prod = opened.context.state_reader.get_environment(c.PROD)
    if prod is None:
        return {}
    snapshots = opened.context.state_reader.get_snapshots(prod.snapshots)
    return {s.name: s.model for s in snapshots.values() if s.is_model}


def read_known_rows(planned: BuiltPlan, ledger: CostLedger, names: MessageNames) -> dict[str, int]:
    """Reads the rows that applies counted in changed FULL models, by fully qualified name."""
    full = {
        names.short_name(snapshot.name): str(snapshot.name)
        for snapshot in planned.changed_snapshots
        if snapshot.is_model and snapshot.model.kind.is_full
    }
    return {full[name]: rows for name, rows in read_row_counts_for_cost(ledger, full).items()}


def _expand_allowed_destructive(context: Context, flags: PlanFlags) -> frozenset[str]:
    """Expands `allow-destructive` to models: names, patterns, tags, as SQLMesh reads them."""
    found: set[str] = set()
    for selection in flags.allow_destructive:
        found |= sqlmesh_compat.expand_sqlmesh_selection(context, selection)
    return frozenset(found)


def _list_models_before(
    opened: OpenProject, planned: BuiltPlan | None, after: Mapping[str, Model]
) -> dict[str, Model]:
    if planned is None:
        return dict(after)
    diff = planned.plan.context_diff
    added = {s_id.name for s_id in diff.added}
    found = {name: model for name, model in after.items() if name not in added}
    found |= {name: old.model for name, (_, old) in diff.modified_snapshots.items() if old.is_model}
    stored = opened.context.state_reader.get_snapshots(diff.removed_snapshots.values())
    found |= {snapshot.name: snapshot.model for snapshot in stored.values() if snapshot.is_model}
    return found


def _list_standalone_audits_before(
    planned: BuiltPlan | None, after: Mapping[str, StandaloneAudit]
) -> dict[str, StandaloneAudit]:
    if planned is None:
        return dict(after)
    diff = planned.plan.context_diff
    added = {s_id.name for s_id in diff.added}
    found = {name: audit for name, audit in after.items() if name not in added}
    changed = diff.modified_snapshots.items()
    return found | {name: old.audit for name, (_, old) in changed if old.is_audit}


def _list_removed_models(planned: BuiltPlan | None) -> list[str]:
    if planned is None:
        return []
    return [info.name for info in planned.plan.context_diff.removed_snapshots.values()]


def _list_models_with_change(kinds: Mapping[str, str], wanted: str) -> frozenset[str]:
    return frozenset(name for name, kind in kinds.items() if kind == wanted)


def _list_statements(planned: BuiltPlan | None) -> tuple[tuple[str, str, str], ...]:
    return (
        tuple((s.when, s.sql, s.change) for s in list_environment_statements_of_plan(planned))
        if planned
        else ()
    )


def _map_readers_of_models(models: Mapping[str, Model]) -> dict[str, set[str]]:
    readers: dict[str, set[str]] = {}
    for name, model in models.items():
        for parent in model.depends_on:
            readers.setdefault(parent, set()).add(name)
    return readers
