"""SQLMesh's planner: its builder, selections, and the ranges of its plans.

The builder's work is reduced from the whole project to its changed part.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlmesh
from sqlmesh.core.context import Context
from sqlmesh.core.model.definition import SqlModel
from sqlmesh.core.plan import Plan, PlanBuilder
from sqlmesh.core.plan.common import should_force_rebuild
from sqlmesh.core.selector import parse
from sqlmesh.core.snapshot import Snapshot, SnapshotId
from sqlmesh.utils import UniqueKeyDict
from sqlmesh.utils.dag import DAG
from sqlmesh.utils.date import TimeLike, make_exclusive, to_datetime, to_timestamp

from ci_bot.errors import BadInput
from ci_bot.redaction import quote_value
from ci_bot.worker.sqlmesh_compat.skipped_work import (
    is_sqlmesh_model_pure,
    let_sqlmesh_reuse_loaded_nodes,
    lists_columns,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import GenericContext
    from sqlmesh.core.model import Model


def build_sqlmesh_plan(builder: PlanBuilder) -> Plan:
    """Builds the plan as `PlanBuilder.build` does, faster.

    Raises:
        PlanError: whatever that raises.
    """
    made: Any = builder
    categorize = made._categorize_snapshots

    def categorize_changed_part(dag: DAG[Any], *others: Any) -> Any:
        return categorize(_SqlmeshKindsAbove.from_builder(dag, made) or dag, *others)

    made._categorize_snapshots = categorize_changed_part
    try:
        with _delay_sqlmesh_column_types():
            return builder.build()
    finally:
        del made._categorize_snapshots


class _SqlmeshKindsAbove(DAG[Any]):
    """A DAG in which a snapshot's upstream is its parents, and one new snapshot of each kind for
    all other ancestors.

    To categorize a snapshot, SQLMesh walks through all its ancestors, so that the work grows with
    the square of a project. It keeps only the sets of their categories and of whether they are
    forward-only, and ignores ancestors that are not new. Both are final by then, because it starts
    at the top. (`PlanBuilder._categorize_snapshots`)
    """

    @classmethod
    def from_builder(cls, dag: DAG[Any], builder: Any) -> _SqlmeshKindsAbove | None:
        """Makes the DAG; None if the installed version reads other fields than the known
        versions.
        """
        if set(PlanBuilder._categorize_snapshot.__code__.co_names) - set(_LOOKED_AT.split()):
            return None
        made = cls()
        made._dag, made._builder = dag._dag, builder
        return made

    def __init__(self) -> None:
        super().__init__()
        self._builder: Any = None
        self._kinds: dict[Any, dict[Any, Any]] = {}

    def upstream(self, node: Any) -> set[Any]:
        return {*self._dag.get(node, ()), *self._kinds_above(node).values()}

    def _kinds_above(self, node: Any) -> dict[Any, Any]:
        """Returns the id of one new snapshot above `node` for each kind."""
        found = self._kinds.get(node)
        if found is None:
            found = self._kinds[node] = {}
            for parent in self._dag.get(node, ()):
                found |= self._kinds_above(parent)
                snapshot = self._builder._context_diff.snapshots.get(parent)
                if snapshot and self._builder._is_new_snapshot(snapshot):
                    found[snapshot.change_category, snapshot.is_forward_only] = parent
        return found


# The names in the code of `_categorize_snapshot` from 0.227 to 0.236.
_LOOKED_AT = """
AutoCategorizationMode BREAKING FULL INDIRECT_BREAKING INDIRECT_NON_BREAKING METADATA OFF
SnapshotChangeCategory _auto_categorization_enabled _categorizer_config _context_diff
_get_orphaned_indirect_change_category _is_new_snapshot add categorize_as categorize_change
change_category columns_to_types dict directly_modified forward_only get indirectly_modified
intersection is_breaking_kind_change is_forward_only is_materialized_view is_model model
modified_snapshots name parents set snapshot_id snapshots source_type upstream
"""


@contextmanager
def _delay_sqlmesh_column_types() -> Iterator[None]:
    """Delays the column types of models while a plan is built in this block.

    The builder checks whether the columns of models below an edited one are known, for which
    SQLMesh optimizes each query. (`PlanBuilder._categorize_snapshot`) The column names are mostly
    visible in the file; their types are computed on use.
    """
    kind: Any = SqlModel
    plain = kind.columns_to_types

    def give_columns_later(self: Any) -> Mapping[str, Any] | None:
        if are_columns_known_to_sqlmesh(self):
            return _LaterSqlmeshColumns(lambda: plain.fget(self))
        found: Mapping[str, Any] | None = plain.fget(self)
        return found

    kind.columns_to_types = property(give_columns_later)
    try:
        yield
    finally:
        kind.columns_to_types = plain


def are_columns_known_to_sqlmesh(model: SqlModel) -> bool:
    """Whether the text alone shows that SQLMesh knows the model's columns.

    Also False if SQLMesh knows them without work: they are declared, or the query is already
    optimized. Optimizing adds or removes columns only for a star, and changes names only in their
    case. (`SqlModel.columns_to_types`, `QueryRenderer._optimize_query`)
    """
    if model.columns_to_types_ is not None or model._columns_to_types is not None:
        return False
    renderer = model.__dict__.get("_query_renderer")
    if renderer is not None and renderer._optimized_cache is not None:
        return False
    return is_sqlmesh_model_pure(model) and lists_columns(model)


class _LaterSqlmeshColumns(Mapping[str, Any]):
    """Columns that exist for sure; their types are computed on use."""

    def __init__(self, compute_columns: Callable[[], Mapping[str, Any] | None]) -> None:
        self._compute_columns = compute_columns

    @cached_property
    def _types_by_name(self) -> Mapping[str, Any]:
        return self._compute_columns() or {}

    def __getitem__(self, name: str) -> Any:
        return self._types_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types_by_name)

    def __len__(self) -> int:
        return len(self._types_by_name)


NO_BASE_HINT = "Check out with `fetch-depth: 2`, so that the merge commit has its first parent."


def make_sqlmesh_plan_builder(context: Context, environment: str, **options: Any) -> PlanBuilder:
    """Makes SQLMesh's plan builder with these options, without those that are None.

    Older versions do not have all of them. (`Context.plan_builder`)

    Raises:
        BadInput: the installed version does not know one of the given options.
    """
    given = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(given.keys() - inspect.signature(context.plan_builder).parameters.keys())
    if unknown:
        named = ", ".join(f"`{name.replace('_', '-')}`" for name in unknown)
        raise BadInput(
            f"SQLMesh {sqlmesh.__version__} does not know {named}.",
            hint="Leave it out, or pin a newer version in `requirements`.",
        )
    with let_sqlmesh_reuse_loaded_nodes(context):
        return context.plan_builder(environment, **given)


def read_prod_interval_ends_of_sqlmesh(context: Context) -> dict[str, datetime]:
    """Reads how far prod's tables reach, by model name; empty without prod.

    The frontier of a plan is the latest of them. (`_get_max_interval_end_per_model`, which reads
    the snapshots only to find what some models read)
    """
    ends: dict[str, datetime] = context._get_max_interval_end_per_model({}, None)
    return ends


def sqlmesh_previews_forward_only(context: Context) -> bool:
    """Whether plans of this project compute previews of forward-only models.

    (`_plan_preview_enabled`)
    """
    return bool(context._plan_preview_enabled)


def let_sqlmesh_keep_model_caps(builder: PlanBuilder) -> None:
    """Keeps every model's own end at prod's frontier, or at the plan's end if that is earlier.

    With an explicit `end` SQLMesh drops the caps per model (`override_end`), and then backfills
    unmodified models into the tables that prod reads. If it has caps, it takes them and not the
    plan's end, so they must not be later. (`missing_intervals`)
    """
    builder.override_end = False
    if builder.end is not None:
        end = make_exclusive(builder.end)
        caps = builder._end_override_per_model or {}
        builder._end_override_per_model = {name: min(cap, end) for name, cap in caps.items()}


def let_sqlmesh_give_last_intervals(builder: PlanBuilder) -> dict[str, tuple[int, int]]:
    """Gives changed models that are computed whole their last interval if the window has none.

    A table that is filled by months has no interval in a window of a week: SQLMesh would leave it
    empty, and its readers would be computed from nothing. `min_intervals` would fix it, but for all
    models. If the window holds an interval, the plan and its identity stay as they are. Call it
    before the plan is built.

    Returns:
        By model name, the interval that it gets: start and end in milliseconds since 1970. It
        depends on the plan's window, and on how far prod's table reaches if that is less.

    (`GenericContext._calculate_start_override_per_model`, `PlanBuilder._build_restatements`)
    """
    if builder.start is None or builder.end is None:
        return {}
    overrides = dict(builder._start_override_per_model or {})
    diff, given = builder._context_diff, {}
    for snapshot in diff.snapshots.values():
        changed = snapshot.snapshot_id in diff.added or snapshot.name in diff.modified_snapshots
        whole = snapshot.is_model and (snapshot.is_full or snapshot.is_seed)
        if not changed or not whole or snapshot.name in overrides:
            continue
        # Past this moment SQLMesh fills nothing of the model. (`missing_intervals`)
        until = (builder._end_override_per_model or {}).get(snapshot.name, builder.end)
        if _window_has_interval(builder, snapshot, builder.start, until):
            continue
        node, unit = snapshot.node, snapshot.node.interval_unit
        last = min(to_datetime(make_exclusive(until)), node.cron_floor(builder.execution_time))
        start, end = unit.cron_floor(node.cron_prev(last)), to_timestamp(unit.cron_floor(last))
        if not _window_has_interval(builder, snapshot, start, until):
            continue  # there is no interval yet, also not in prod
        overrides[snapshot.name] = start
        given[snapshot.name] = (to_timestamp(start), end)
    if given:
        builder._start_override_per_model = overrides
        _give_sqlmesh_previews_last_intervals(builder, given)
    return given


def _window_has_interval(
    builder: PlanBuilder, snapshot: Snapshot, start: TimeLike, until: TimeLike
) -> bool:
    """Whether SQLMesh itself fills an interval of an empty table of `snapshot` in a window. A
    window that is shorter than an interval has none, at any place in time.
    """
    begins = max(to_datetime(start), to_datetime(snapshot.node.start or start))
    if begins >= to_datetime(make_exclusive(until)):
        return False
    empty: Snapshot = snapshot.copy(update={"intervals": [], "dev_intervals": []})
    return bool(empty.missing_intervals(begins, until, execution_time=builder.execution_time))


def _give_sqlmesh_previews_last_intervals(
    builder: PlanBuilder, given: Mapping[str, tuple[int, int]]
) -> None:
    """Sets the last intervals of previews: SQLMesh restates them, which ignores a model's start."""
    build = builder._build_restatements

    def with_last_intervals(*arguments: Any) -> dict[SnapshotId, tuple[int, int]]:
        found = build(*arguments)
        if builder._restate_models:
            return found
        return {
            s_id: given[s_id.name] if given.get(s_id.name, interval) < interval else interval
            for s_id, interval in found.items()
        }

    patched: Any = builder
    patched._build_restatements = with_last_intervals


def expand_sqlmesh_selection(context: Context, text: str) -> set[str]:
    """Expands one selection to models, by fully qualified name.

    (`GenericContext._new_selector`)
    """
    found: set[str] = context._new_selector().expand_model_selections([text])
    return found


def parse_sqlmesh_selection(text: str) -> None:
    """Checks that SQLMesh can read one selection.

    Raises:
        Exception: SQLMesh cannot read it; its parser raises more than one kind.

    (`sqlmesh.core.selector.parse`)
    """
    parse(f"({text})")


def make_sqlmesh_selector(
    context: GenericContext[Any], models: Mapping[str, Model], *, lineage: bool
) -> Callable[..., Any]:
    """Makes the function that expands a list of selections over these models, by fully qualified
    name.

    Args:
        lineage: Whether a selection asks for the models that others read or are read by. For a
            stored model this has to be computed.

    (`GenericContext._new_selector`)
    """
    known: UniqueKeyDict[str, Model] = UniqueKeyDict("models", **models)
    dag: DAG[str] = DAG()
    for name, model in models.items() if lineage else ():
        dag.add(name, model.depends_on)
    selector = context._new_selector(models=known, dag=dag)

    def expand_selections(selections: Sequence[str]) -> set[str]:
        found: set[str] = selector.expand_model_selections(selections, models=dict(models))
        return found & models.keys()

    return expand_selections


@dataclass(frozen=True)
class RefusedSqlmeshChange:
    """A model whose table a plan would have to alter, and the statements that would do it."""

    model: str
    statements: tuple[str, ...]


def note_changes_that_sqlmesh_refuses(builder: PlanBuilder) -> list[RefusedSqlmeshChange]:
    """Returns a list that will hold the destructive or additive change that `build` refuses.

    The exception names neither the model nor the columns; SQLMesh only prints them to its console.
    (`PlanBuilder._check_destructive_additive_changes`)
    """
    refused: list[RefusedSqlmeshChange] = []
    builder_console: Any = builder._console

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return getattr(builder_console, name)

        def log_destructive_change(
            self, model: str, operations: Any, dialect: str, error: bool = True
        ) -> None:
            if error:
                statements = tuple(operation.expression.sql(dialect) for operation in operations)
                refused.append(RefusedSqlmeshChange(model, statements))

        log_additive_change = log_destructive_change

    listening: Any = Noting()
    builder._console = listening
    return refused


def sqlmesh_snapshot_inherits_intervals(old: Snapshot, new: Snapshot) -> bool:
    """Whether a new snapshot starts with the data of the one that it replaces: the same version,
    and nothing that has to be filled again. (`PlanBuilder._adjust_snapshot_intervals`)
    """
    same = bool(new.version) and old.version_get_or_generate() == new.version
    return same and new.is_model and old.is_model and not should_force_rebuild(old, new)


def list_first_restatements_of_sqlmesh(
    builder: PlanBuilder, plan: Plan
) -> dict[SnapshotId, tuple[int, int]]:
    """Lists the ranges that `plan` restates in its first apply, previews included.

    SQLMesh computes previews of forward-only models whose snapshots are new to the state, so once
    they are recorded the same plan restates nothing. (`PlanBuilder._build_restatements`)
    """
    if builder._restate_models:
        return dict(plan.restatements)
    diff = plan.context_diff
    changed = {
        s_id: snapshot
        for s_id, snapshot in diff.snapshots.items()
        if s_id in diff.added or snapshot.name in diff.modified_snapshots
    }
    builder._context_diff = diff.model_copy(update={"new_snapshots": changed})
    try:
        return dict(
            builder._build_restatements(builder._build_dag(), plan._earliest_interval_start)
        )
    finally:
        builder._context_diff = diff


def limit_sqlmesh_backfill(plan: Plan, names: set[str]) -> Plan:
    """Returns the same plan, limited to building data for `names`. Views are not limited."""
    restricted: Plan = plan.model_copy(update={"models_to_backfill": names})
    return restricted


# Selections of models changed since a branch (`git:main`), without git.


class _SqlmeshGitClient:
    """A selector's git client that already knows the changed files.

    (`GitClient`; a selector calls only these three methods)
    """

    def __init__(self, files: Iterable[Path] | None, bases: Collection[str]) -> None:
        # A deleted file defines no model; SQLMesh leaves it out, too.
        self._files = None if files is None else [path for path in files if path.exists()]
        self._bases = bases

    def list_untracked_files(self) -> list[Path]:
        return []

    def list_uncommitted_changed_files(self) -> list[Path]:
        return []

    def list_committed_changed_files(self, target_branch: str = "main") -> list[Path]:
        known = " or ".join(f"`git:{name}`" for name in self._bases)
        if target_branch not in self._bases:
            raise BadInput(
                f"A selection names {quote_value(f'git:{target_branch}')}, and what is known is "
                "what the pull request changes against its own base branch.",
                hint=f"Write {known}.",
                reason_code="bad_selection",
            )
        if self._files is None:
            raise BadInput(
                f"Which files the pull request changes is not known, so {known} selects nothing.",
                hint=NO_BASE_HINT,
                reason_code="no_base",
            )
        return self._files


def let_sqlmesh_select_by_changed_files(
    context: Context, files: Iterable[Path] | None, bases: Collection[str]
) -> None:
    """Makes `git:<base>` in this context's selections mean these files.

    Without this SQLMesh asks git, in the project's directory. (`GenericContext._new_selector`,
    `Selector._git_client`)

    Args:
        files: absolute paths, as the context's models have theirs; None: not known.
        bases: the names of the base in a selection.
    """
    made: Any = context._new_selector
    known = _SqlmeshGitClient(files, bases)

    def make_git_selector(*args: Any, **more: Any) -> Any:
        found = made(*args, **more)
        found._git_client = known
        return found

    patched: Any = context
    patched._new_selector = make_git_selector
