"""Which schemas, views and physical tables an environment consists of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlmesh.core.environment import Environment
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot

from ci_bot.worker.warehouse.catalog import Relation


def views_of(context: Any, environment: Environment) -> dict[str, Relation]:
    """The view of each promoted model of an environment, by SQLMesh's own naming rule."""
    naming = environment.naming_info
    catalog, dialect = str(context.default_catalog), context.engine_adapter.dialect
    found = {}
    for info in sorted(environment.promoted_snapshots, key=lambda item: str(item.name)):
        if not info.is_model or info.is_symbolic:
            continue
        name = info.qualified_view_name.for_environment(naming, dialect=dialect)
        found[str(info.name)] = Relation.parse(name, catalog)
    return found


def physical_tables(
    snapshots: Iterable[Snapshot], deployable: DeployabilityIndex, default_catalog: str
) -> list[Relation]:
    """The tables that building `snapshots` fills: prod's to be, or the `__dev` preview."""
    return sorted(
        {
            Relation.parse(snapshot.table_name(deployable.is_deployable(snapshot)), default_catalog)
            for snapshot in snapshots
            if snapshot.is_model and not snapshot.is_symbolic and snapshot.version
        }
    )
