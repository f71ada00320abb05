"""A plan in the report's terms: changes, who removed a model, backfill, statements, lineage.

A model that the base branch has removed stays in prod until prod is deployed. The pull request
removes it if a file that it changes can have defined the model before. If that cannot be known, it
counts as the pull request's, because the other mistake would hide a danger.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp
from sqlmesh.core.snapshot import Snapshot, SnapshotId, SnapshotTableInfo, merge_intervals

from ci_bot.protocol.base import replace_undecodable_bytes
from ci_bot.protocol.plan import (
    Backfill,
    BackfillAction,
    Change,
    ChangeType,
    ColumnChange,
    EnvironmentStatement,
    Lineage,
    LineageNode,
    Restatement,
)
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning.make_plan import BuiltPlan, Interval, name_plan_category

if TYPE_CHECKING:
    from sqlmesh.core.snapshot import Node


_DEFINING = (".sql", ".py", ".yaml", ".yml")
# A path without an extension may be a link or a submodule, with models below it. These names are
# neither.
_PLAIN_FILES = re.compile(r"^(?:\..*|LICEN[CS]E|NOTICE|CODEOWNERS|[A-Z]\w*file)$")
# Signs of names that are computed: by blueprints, by macros, or from the path of the file.
_COMPUTED = re.compile(r"@\{|\bblueprints\b|\bname\s+@", re.IGNORECASE)
_DECORATOR = re.compile(r"@(?:\w+\.)*model\b")
_NAMED_DECORATOR = re.compile(r"@(?:\w+\.)*model\(\s*(?:name\s*=\s*)?[\"']")


def list_models_removed_by_others(
    removed: Iterable[str],
    nodes: Mapping[str, Node],
    *,
    caused: Collection[str] | None,
    changed_files: Iterable[str],
    before: Callable[[str], bytes | None],
    unread: Collection[str],
) -> frozenset[str]:
    """Lists the removed models that no changed file can have defined.

    Args:
        removed: Fully qualified names of models that prod has and the project lacks.
        nodes: The project's models and audits by fully qualified name.
        caused: The models that the changed files reach; None if they may reach all.
        before: Returns the base branch's version of a changed file; None if it has none.
        unread: Changed files that are too large to be read.
    """
    if caused is None:
        return frozenset()
    texts: dict[PurePosixPath, str] = {}
    for path in changed_files:
        file = PurePosixPath(path)
        if path in unread or "\ufffd" in path:
            return frozenset()
        if not file.suffix and not _PLAIN_FILES.match(file.name):
            return frozenset()
        if file.suffix.lower() in _DEFINING and (content := before(path)) is not None:
            texts[file] = content.decode("utf-8", errors="replace")
    if any(_computes_names_of_planned_models(file, text) for file, text in texts.items()):
        return frozenset()
    return frozenset(
        name
        for name in removed
        if not any(_may_define_planned_model(name, file, text) for file, text in texts.items())
        and not any(name in nodes[reader].depends_on for reader in caused if reader in nodes)
    )


def list_schemas_of_models(names: Iterable[str]) -> frozenset[str]:
    """Lists the schemas, with their catalogs, of fully qualified names."""
    return frozenset(_cut_planned_name_to_schema(name) for name in names)


def is_in_foreign_schema(name: str, schemas: Collection[str]) -> bool:
    """Whether a model is in a schema that holds none of the project's models."""
    return _cut_planned_name_to_schema(name) not in schemas


def _cut_planned_name_to_schema(name: str) -> str:
    table = exp.to_table(name)
    return f"{table.catalog}.{table.db}".lower()


def _computes_names_of_planned_models(file: PurePosixPath, text: str) -> bool:
    if file.suffix.lower() == ".py":
        return len(_DECORATOR.findall(text)) != len(_NAMED_DECORATOR.findall(text)) or (
            bool(_DECORATOR.search(text)) and bool(_COMPUTED.search(text))
        )
    return file.suffix.lower() == ".sql" and bool(_COMPUTED.search(text))


def _may_define_planned_model(name: str, file: PurePosixPath, text: str) -> bool:
    last = exp.to_table(name).name
    if file.stem.lower() == last.lower():
        return True  # a name may be inferred from the path
    return bool(re.search(rf"(?<!\w){re.escape(last)}(?!\w)", text, re.IGNORECASE))


# A model's definition in prod and in the project, as text to compare.


# The report shortens diffs by importance; this limit keeps one huge diff from filling the answer.
MAX_DIFF_CHARS = 100_000


def render_diff_of_planned_model(
    planned: BuiltPlan, snapshot: Snapshot, kind: ChangeType
) -> str | None:
    """Renders how a model's definition differs from prod's, as a unified diff; None if equal."""
    if kind == "indirect":
        return None
    if kind == "added":
        lines = (
            _read_source_of_planned_model(snapshot) or _render_definition_of_planned_model(snapshot)
        ).splitlines()
        added = "\n".join(difflib.unified_diff([], lines, n=0, lineterm=""))
        return _limit_text_of_model_diff(_drop_headers_of_model_diff(added)) or None
    text = _drop_headers_of_model_diff(planned.plan.context_diff.text_diff(snapshot.name))
    return _limit_text_of_model_diff(text) if text.strip() else None


def _drop_headers_of_model_diff(diff: str) -> str:
    """Removes the nameless file headers and the blank lines after headers from a unified diff.

    SQLMesh joins lines by line ends, and difflib's headers already have one.
    """
    kept: list[str] = []
    after_header = True
    for line in diff.splitlines():
        if line.rstrip() in ("---", "+++"):
            continue
        if after_header and not line.strip():
            continue
        after_header = line.startswith("@@")
        kept.append(line)
    return "\n".join(kept)


def _read_source_of_planned_model(snapshot: Snapshot) -> str | None:
    """Returns the text of a model's file if the file holds no other model; else None.

    Rendering a definition instead takes 10 ms, and a first review has thousands.
    """
    path = snapshot.node._path
    if path is None or path.suffix not in (".sql", ".py"):
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    # The file of a blueprint, or of several models, would show more than this model.
    alone = "@" not in str(snapshot.node.name) and "blueprints" not in text
    return text if alone and text.upper().count("MODEL (") <= 1 else None


def _render_definition_of_planned_model(snapshot: Snapshot) -> str:
    node = snapshot.node
    try:
        expressions = node.render_definition(include_python=True)
    except Exception:
        # A node that cannot be rendered is still an added node; the file link shows it.
        return ""
    return ";\n\n".join(
        expression.sql(pretty=True, dialect=node.dialect) for expression in expressions
    )


def _limit_text_of_model_diff(text: str) -> str:
    if len(text) <= MAX_DIFF_CHARS:
        return text
    kept = text[:MAX_DIFF_CHARS].rsplit("\n", 1)[0]
    return f"{kept}\n[{len(text) - len(kept)} characters left out]"


def find_planned_change_type(planned: BuiltPlan, snapshot: Snapshot) -> ChangeType:
    """Finds how a snapshot of the new project differs from prod's."""
    diff = planned.plan.context_diff
    if snapshot.snapshot_id in diff.added:
        return "added"
    if diff.directly_modified(snapshot.name):
        return "direct"
    # A snapshot below a changed one often has new metadata as well; the data matters more.
    return "indirect" if diff.indirectly_modified(snapshot.name) else "metadata"


def list_planned_changes(
    planned: BuiltPlan,
    names: MessageNames,
    *,
    repository: Path,
    columns: Callable[[Snapshot, Snapshot | None], list[ColumnChange]],
    is_from_base: Callable[[str, ChangeType, str | None], bool],
    also_in: Mapping[str, list[str]],
) -> list[Change]:
    """Lists every model that differs from prod, removed ones last.

    Args:
        columns: Column changes between the new snapshot and prod's (None for an added model).
        is_from_base: Whether a difference (model, change, path) comes from the base branch rather
            than from this pull request.
        also_in: The other pull requests that change a model, by its fully qualified name.
    """
    diff = planned.plan.context_diff
    found: list[Change] = []
    for snapshot in planned.changed_snapshots:
        kind = find_planned_change_type(planned, snapshot)
        old = diff.modified_snapshots[snapshot.name][1] if kind != "added" else None
        path = get_path_of_planned_model(snapshot, repository)
        found.append(
            Change(
                model=names.short_name(snapshot.name),
                change=kind,
                category=None if kind == "added" else name_plan_category(snapshot),
                kind=name_planned_model_kind(snapshot),
                path=path,
                owner=snapshot.node.owner,
                tags=sorted(snapshot.node.tags),
                fingerprint=compute_planned_fingerprint(snapshot),
                diff=render_diff_of_planned_model(planned, snapshot, kind),
                columns=columns(snapshot, old),
                insert_overwrite=snapshot.is_model
                and bool(getattr(snapshot.model.kind, "insert_overwrite", False)),
                statements_changed=old is not None
                and _list_planned_statements(snapshot) != _list_planned_statements(old),
                from_base=is_from_base(snapshot.name, kind, path),
                also_in=also_in.get(snapshot.name, []),
            )
        )
    removed: Iterable[SnapshotTableInfo] = diff.removed_snapshots.values()
    schemas = list_schemas_of_models(s.name for s in planned.plan_snapshots.values())
    for info in sorted(removed, key=lambda item: str(item.name)):
        found.append(
            Change(
                model=names.short_name(info.name),
                change="removed",
                category=None,
                kind=_read_planned_kind_value(info.kind_name),
                path=None,
                owner=None,
                diff=None,
                readers=sorted(
                    names.short_name(s.name)
                    for s in planned.plan_snapshots.values()
                    if info.name in s.node.depends_on
                ),
                from_base=is_from_base(info.name, "removed", None),
                lies_elsewhere=is_in_foreign_schema(info.name, schemas),
                also_in=also_in.get(info.name, []),
            )
        )
    return found


def _list_planned_statements(snapshot: Snapshot) -> list[str]:
    node = snapshot.node
    return [
        item.sql
        for name in ("pre_statements_", "post_statements_")
        for item in getattr(node, name, None) or ()
    ]


def compute_planned_fingerprint(snapshot: Snapshot) -> str:
    """Returns the fingerprint of a model and of the data it reads, without its parents'
    metadata.
    """
    found = snapshot.fingerprint
    return "-".join((found.data_hash, found.metadata_hash, found.parent_data_hash))


def name_planned_model_kind(snapshot: Snapshot) -> str:
    """Returns SQLMesh's name of the model kind; AUDIT for a standalone audit."""
    return _read_planned_kind_value(snapshot.model_kind_name) if snapshot.is_model else "AUDIT"


def _read_planned_kind_value(kind: Any) -> str:
    return str(getattr(kind, "value", kind) or "UNKNOWN")


def get_path_of_planned_model(snapshot: Snapshot, repository: Path) -> str | None:
    """Returns the file that defines a model, relative to the repository's root."""
    path = snapshot.node._path
    if path is None:
        return None
    path = Path(path)
    inside = path.is_relative_to(repository)
    return replace_undecodable_bytes(str(path.relative_to(repository)) if inside else path.name)


def choose_backfill_action(snapshot: Snapshot) -> BackfillAction:
    """Chooses the action that builds `snapshot`: full rebuild, interval backfill, view and so
    on.
    """
    if snapshot.is_seed:
        return "seed"
    if snapshot.is_view:
        return "recreate_view"
    return "incremental" if snapshot.is_incremental else "full_refresh"


def list_planned_backfill(
    planned: BuiltPlan,
    intervals: Mapping[SnapshotId, Sequence[Interval]],
    names: MessageNames,
    *,
    reused: Callable[[Snapshot], bool],
) -> list[Backfill]:
    """Lists one entry per snapshot that has data to build, sorted by the size of the work."""
    found = []
    for s_id, wanted in intervals.items():
        snapshot = planned.plan_snapshots[s_id]
        if not snapshot.is_model or not snapshot.version:
            continue
        action = choose_backfill_action(snapshot)
        preview = not planned.deployable.is_deployable(snapshot)
        dated = action == "incremental" and wanted
        count = count_planned_intervals(snapshot, wanted) if dated else 1
        found.append(
            Backfill(
                model=names.short_name(snapshot.name),
                kind=name_planned_model_kind(snapshot),
                action=action,
                start=report_times.format_iso_in_message(wanted[0][0]) if dated else None,
                end=report_times.format_iso_in_message(wanted[-1][1]) if dated else None,
                intervals=count,
                batches=count_planned_batches(snapshot, wanted) if dated else 1,
                preview=preview,
                reused_in_prod=not preview and reused(snapshot),
                table=names.table_name(snapshot, deployable=not preview),
            )
        )
    return sorted(found, key=lambda item: (-item.intervals, item.model))


def list_remaining_work_of_plan(planned: BuiltPlan, names: MessageNames) -> list[Backfill]:
    """Lists the work of a plan that is not built yet; a review and an apply share it."""
    if planned.plan.skip_backfill or planned.plan.uncategorized:
        return []
    return list_planned_backfill(
        planned, planned.list_missing(), names, reused=lambda snapshot: True
    )


def count_planned_intervals(snapshot: Snapshot, intervals: Iterable[Interval]) -> int:
    """Counts the intervals in the ranges, in the model's own interval unit."""
    unit = snapshot.node.interval_unit
    if unit.is_month or unit.is_year:
        months = 12 if unit.is_year else 1
        return sum(
            math.ceil(_count_planned_months(start, end) / months) for start, end in intervals
        )
    return sum(math.ceil((end - start) / unit.milliseconds) for start, end in intervals)


def _count_planned_months(start: int, end: int) -> int:
    """Counts the calendar months that a range touches; SQLMesh's own month has 28 days."""
    first = datetime.fromtimestamp(start / 1_000, timezone.utc)
    last = datetime.fromtimestamp((end - 1) / 1_000, timezone.utc)
    if end <= start:
        return 0
    return (last.year - first.year) * 12 + last.month - first.month + 1


def count_planned_batches(snapshot: Snapshot, intervals: Iterable[Interval]) -> int:
    """Counts the statements that fill the ranges: by the model's batch_size, else one per range."""
    ranges = merge_intervals(list(intervals))
    size = snapshot.node.batch_size if snapshot.is_model else None
    if not size:
        return len(ranges)
    return sum(math.ceil(count_planned_intervals(snapshot, [span]) / size) for span in ranges)


def list_planned_restatements(
    planned: BuiltPlan, names: MessageNames, users: Mapping[str, list[str]]
) -> list[Restatement]:
    """Lists the ranges that a person asked to restate. Previews of forward-only changes count as
    backfill.

    Args:
        users: The other environments that use a restated model, by its fully qualified name.
    """
    if not planned.flags.restate_models:
        return []
    return [
        Restatement(
            model=names.short_name(s_id.name),
            start=report_times.format_iso_in_message(start),
            end=report_times.format_iso_in_message(end),
            environments=users.get(s_id.name, []),
        )
        for s_id, (start, end) in sorted(planned.plan.restatements.items())
    ]


def list_environment_statements_of_plan(planned: BuiltPlan) -> list[EnvironmentStatement]:
    """Lists the before_all and after_all statements; they run in a PR environment, too."""
    diff = planned.plan.context_diff
    found: list[EnvironmentStatement] = []
    moments: tuple[Literal["before_all"], Literal["after_all"]] = ("before_all", "after_all")
    for when in moments:
        new = [sql for item in diff.environment_statements for sql in getattr(item, when)]
        old = [sql for item in diff.previous_environment_statements for sql in getattr(item, when)]
        found += [
            EnvironmentStatement(
                when=when,
                sql=_shorten_statement_of_plan(sql),
                change="unchanged" if sql in old else "added",
            )
            for sql in new
        ]
        found += [
            EnvironmentStatement(when=when, sql=_shorten_statement_of_plan(sql), change="removed")
            for sql in old
            if sql not in new
        ]
    return found


def _shorten_statement_of_plan(text: str, limit: int = 4_000) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def make_lineage_of_plan(planned: BuiltPlan, names: MessageNames) -> Lineage:
    """Makes the graph of the changed models, the models they read directly, and the edges."""
    diff = planned.plan.context_diff
    kinds: dict[str, ChangeType] = {
        s.name: find_planned_change_type(planned, s) for s in planned.changed_snapshots
    }
    kinds |= {info.name: "removed" for info in diff.removed_snapshots.values()}
    nodes: dict[str, ChangeType | None] = dict(kinds)
    edges: list[tuple[str, str]] = []
    by_name = {snapshot.name: snapshot for snapshot in planned.plan_snapshots.values()}
    for name in kinds:
        snapshot = by_name.get(name)
        if snapshot is None:
            continue
        for parent in sorted(snapshot.node.depends_on):
            nodes.setdefault(parent, None)
            edges.append((names.short_name(parent), names.short_name(name)))
    return Lineage(
        nodes=[
            LineageNode(model=names.short_name(name), change=kind)
            for name, kind in sorted(nodes.items())
        ],
        edges=sorted(edges),
    )
