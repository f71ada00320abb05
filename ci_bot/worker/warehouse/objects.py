"""Which schemas, views and physical tables an environment consists of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from sqlmesh.core.environment import Environment
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot

from ci_bot.worker.records.ledger import LedgerObject
from ci_bot.worker.warehouse.catalog import Catalog, Relation


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


def ledger_objects(
    views: Iterable[Relation], tables: Iterable[Relation], catalog: Catalog
) -> list[LedgerObject]:
    """Every object of an apply with whether it is there now, asked schema by schema."""
    views, tables = list(views), list(tables)
    schemas = sorted({(relation.catalog, relation.schema) for relation in [*views, *tables]})
    present: dict[tuple[str, str], set[str]] = {}
    found: list[LedgerObject] = []
    for where in schemas:
        names = catalog.names(*where)
        present[where] = {name.lower() for name in names or ()}
        found.append(
            LedgerObject(kind="schema", catalog=where[0], db=where[1], existed=names is not None)
        )
    groups: tuple[tuple[Literal["view", "table"], list[Relation]], ...] = (
        ("view", views),
        ("table", tables),
    )
    for kind, relations in groups:
        for relation in relations:
            found.append(
                LedgerObject(
                    kind=kind,
                    catalog=relation.catalog,
                    db=relation.schema,
                    name=relation.name,
                    existed=relation.name.lower() in present[(relation.catalog, relation.schema)],
                )
            )
    return found
