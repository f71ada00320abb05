"""The query of one batch of a model, as it would run now: on tables that exist.

A table that the plan will build is missing or not complete, so prod's table replaces it; columns
that prod's table lacks are null. Nothing is executed to get the query.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.utils.date import make_inclusive

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.planning import BuiltPlan, Interval

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_BATCH = "_batch"


class BatchQueries:
    """Queries of the models of one plan.

    Args:
        prod: The snapshots of prod, by fully qualified name.
        building: The models whose tables the plan will fill, by fully qualified name.
        dialect: The engine's.
    """

    def __init__(
        self,
        planned: BuiltPlan,
        prod: Callable[[Collection[str]], Mapping[str, Snapshot]],
        building: Collection[str],
        dialect: str,
    ) -> None:
        self._planned, self._prod = planned, prod
        self._building, self._dialect = frozenset(building), dialect

    @cached_property
    def _by_name(self) -> dict[str, Snapshot]:
        return {snapshot.name: snapshot for snapshot in self._planned.plan_snapshots.values()}

    def batch_query(self, snapshot: Snapshot, span: Interval) -> str | None:
        """Renders the query's text; None for a Python model, or if a parent is not built and not in
        prod.
        """
        model = snapshot.model
        if not model.is_sql:
            return None
        read, views = self._list_read_tables(snapshot)
        stand_ins = self._prod([name for name in read if name in self._building])
        if any(
            name not in stand_ins and not parent.is_seed
            for name, parent in read.items()
            if name in self._building
        ):
            return None
        tables = {
            name: stand_ins[name].table_name()
            for name in read
            if name in self._building and name in stand_ins
        }
        query = model.render_query(
            start=span[0],
            end=span[1],
            execution_time=self._planned.plan.execution_time,
            snapshots={**read, **{name: self._by_name[name] for name in views}},
            table_mapping=tables,
            expand=views,
            deployability_index=self._planned.deployable,
            runtime_stage=RuntimeStage.EVALUATING,
        )
        if query is None:
            return None
        for name, parent in read.items():
            if name in self._building:
                query = _fit_prod_columns(query, parent, stand_ins.get(name))
        return sqlmesh_compat.render_executed_text(
            self._bound_query(query, model, span), self._dialect
        )

    def _list_read_tables(self, snapshot: Snapshot) -> tuple[dict[str, Snapshot], set[str]]:
        """Lists the tables that a snapshot reads, and the views in between that do not exist
        yet.
        """
        tables: dict[str, Snapshot] = {}
        views: set[str] = set()
        changed = {item.name for item in self._planned.changed_snapshots}
        waiting = list(snapshot.model.depends_on)
        while waiting:
            name = waiting.pop()
            parent = self._by_name.get(name)
            if parent is None or name in tables or name in views or not parent.is_model:
                continue
            if parent.is_embedded or (parent.is_view and name in changed):
                views.add(name)
                waiting += parent.model.depends_on
            else:
                tables[name] = parent
        return tables, views

    def _bound_query(self, query: exp.Query, model: Model, span: Interval) -> exp.Query:
        """Limits the query to the batch's rows, as SQLMesh does.
        (`insert_overwrite_by_time_partition`)
        """
        if model.time_column is None or not model.kind.is_incremental_by_time_range:
            return query
        low, high = (
            model.convert_to_time_column(moment)
            for moment in make_inclusive(span[0], span[1], self._dialect)
        )
        inside = exp.Between(this=model.time_column.column.copy(), low=low, high=high)
        bounded: exp.Query = exp.select("*").from_(query.subquery(_BATCH)).where(inside)
        return bounded


def _fit_prod_columns(query: exp.Query, parent: Snapshot, prod: Snapshot | None) -> exp.Query:
    """Gives prod's table of a parent the columns that the parent will have."""
    wanted = parent.model.columns_to_types or {}
    there = (prod.model.columns_to_types or {}) if prod is not None else {}
    missing = {name: kind for name, kind in wanted.items() if name not in there}
    if prod is not None and (not missing or not there):
        return query
    nulls = [
        exp.alias_(exp.cast(exp.null(), kind), name, quoted=True) for name, kind in missing.items()
    ]
    table = exp.to_table(prod.table_name() if prod is not None else parent.table_name())

    # The subqueries contain the table, too, so list the nodes before replacing any.
    for node in [
        each for each in query.find_all(exp.Table) if _table_parts(each) == _table_parts(table)
    ]:
        shaped = exp.select(*nulls) if prod is None else exp.select("*", *nulls).from_(table.copy())
        node.replace(shaped.subquery(node.alias or table.name))
    return query


def _table_parts(table: exp.Table) -> tuple[str, ...]:
    return tuple(part.name for part in table.parts)
