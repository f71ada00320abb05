"""Work of the plan builder that grows with the whole project and not with what changed in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from sqlmesh.core.model.definition import SqlModel
from sqlmesh.core.plan import Plan, PlanBuilder
from sqlmesh.utils.dag import DAG

from ci_bot.worker.compat.shortcuts.plain_models import is_pure, lists_columns


def build(builder: PlanBuilder) -> Plan:
    """The plan, as `PlanBuilder.build` makes it.

    Raises:
        PlanError: what that raises.
    """
    made: Any = builder
    make_dag = made._build_dag

    def united() -> DAG[Any]:
        dag: DAG[Any] = make_dag()
        dag.__class__ = _UnitedDag
        return dag

    made._build_dag = united
    try:
        with _columns_when_asked():
            return builder.build()
    finally:
        del made._build_dag


class _UnitedDag(DAG[Any]):
    """Sets of what stands above a node are united as they are: one by one, each member is hashed
    again for every model below it, and to hash a snapshot's id is a call of Python."""

    def upstream(self, node: Any) -> set[Any]:
        known = self._upstream
        if node not in known:
            parents = self._dag.get(node, set())
            known[node] = parents.union(*(self.upstream(parent) for parent in parents))
        return known[node]


@contextmanager
def _columns_when_asked() -> Iterator[None]:
    """Of models below an edited one the builder asks whether their columns are known, for which
    SQLMesh optimizes each of their queries. (`PlanBuilder._categorize_snapshot`)

    Which columns there are can mostly be seen in the file; their types are worked out where
    somebody asks for them.
    """
    kind: Any = SqlModel
    plain = kind.columns_to_types

    def columns(self: Any) -> Mapping[str, Any] | None:
        if are_known(self):
            return _LaterColumns(lambda: plain.fget(self))
        found: Mapping[str, Any] | None = plain.fget(self)
        return found

    kind.columns_to_types = property(columns)
    try:
        yield
    finally:
        kind.columns_to_types = plain


def are_known(model: Any) -> bool:
    """Whether the text alone shows that SQLMesh knows the model's columns.

    False also where that is no work: they are declared, or the query is optimized already.
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
    """Columns that are known to be known."""

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
