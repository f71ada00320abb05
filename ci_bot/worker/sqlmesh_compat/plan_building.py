"""Reduces the plan builder's work from the whole project to its changed part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from sqlmesh.core.model.definition import SqlModel
from sqlmesh.core.plan import Plan, PlanBuilder
from sqlmesh.utils.dag import DAG

from ci_bot.worker.sqlmesh_compat.lazy_queries import is_pure, lists_columns


def build_plan(builder: PlanBuilder) -> Plan:
    """Builds the plan as `PlanBuilder.build` does, faster.

    Raises:
        PlanError: whatever that raises.
    """
    made: Any = builder
    categorize = made._categorize_snapshots

    def narrowed(dag: DAG[Any], *others: Any) -> Any:
        return categorize(_KindsAbove.from_builder(dag, made) or dag, *others)

    made._categorize_snapshots = narrowed
    try:
        with _delay_column_types():
            return builder.build()
    finally:
        del made._categorize_snapshots


class _KindsAbove(DAG[Any]):
    """A DAG of snapshots in which a snapshot's upstream is its parents, and one new snapshot of
    each kind for all others.

    To categorize a snapshot SQLMesh walks through all above it, and with them the work grows with
    the square of a project. It keeps sets of their categories, and whether they are forward-only;
    those of the ones that are not new it leaves out. They are settled by then: it goes from the
    top. (`PlanBuilder._categorize_snapshots`)
    """

    @classmethod
    def from_builder(cls, dag: DAG[Any], builder: Any) -> _KindsAbove | None:
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
        """One snapshot's id by its kind."""
        found = self._kinds.get(node)
        if found is None:
            found = self._kinds[node] = {}
            for parent in self._dag.get(node, ()):
                found |= self._kinds_above(parent)
                snapshot = self._builder._context_diff.snapshots.get(parent)
                if snapshot and self._builder._is_new_snapshot(snapshot):
                    found[snapshot.change_category, snapshot.is_forward_only] = parent
        return found


# What `_categorize_snapshot` names from 0.227 to 0.236.
_LOOKED_AT = """
AutoCategorizationMode BREAKING FULL INDIRECT_BREAKING INDIRECT_NON_BREAKING METADATA OFF
SnapshotChangeCategory _auto_categorization_enabled _categorizer_config _context_diff
_get_orphaned_indirect_change_category _is_new_snapshot add categorize_as categorize_change
change_category columns_to_types dict directly_modified forward_only get indirectly_modified
intersection is_breaking_kind_change is_forward_only is_materialized_view is_model model
modified_snapshots name parents set snapshot_id snapshots source_type upstream
"""


@contextmanager
def _delay_column_types() -> Iterator[None]:
    """The builder checks whether columns of models below an edited one are known, for which SQLMesh
    optimizes each query. (`PlanBuilder._categorize_snapshot`)

    The column names are mostly visible in the file; their types are computed on use.
    """
    kind: Any = SqlModel
    plain = kind.columns_to_types

    def columns(self: Any) -> Mapping[str, Any] | None:
        if are_columns_known(self):
            return _LaterColumns(lambda: plain.fget(self))
        found: Mapping[str, Any] | None = plain.fget(self)
        return found

    kind.columns_to_types = property(columns)
    try:
        yield
    finally:
        kind.columns_to_types = plain


def are_columns_known(model: SqlModel) -> bool:
    """Whether the text alone shows that SQLMesh knows the model's columns.

    False also if that is no work: they are declared, or the query is optimized already.
    A query is optimized with no column more or less but for a star, and each keeps its name but
    for its case. (`SqlModel.columns_to_types`, `QueryRenderer._optimize_query`)
    """
    if model.columns_to_types_ is not None or model._columns_to_types is not None:
        return False
    renderer = model.__dict__.get("_query_renderer")
    if renderer is not None and renderer._optimized_cache is not None:
        return False
    return is_pure(model) and lists_columns(model)


class _LaterColumns(Mapping[str, Any]):
    """Columns that exist for sure; their types are computed on use."""

    def __init__(self, ask: Callable[[], Mapping[str, Any] | None]) -> None:
        self._ask = ask

    @cached_property
    def _found(self) -> Mapping[str, Any]:
        return self._ask() or {}

    def __getitem__(self, name: str) -> Any:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
