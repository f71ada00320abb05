"""The environments that statements are rendered for: the pull request's, and prod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.environment import EnvironmentNamingInfo
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot, SnapshotId
from sqlmesh.core.snapshot.definition import parent_snapshots_by_name, to_view_mapping

from ci_bot.worker.names import Names
from ci_bot.worker.planning import Planned
from ci_bot.worker.statements import names
from ci_bot.worker.statements.effects import Name, Own


@dataclass(frozen=True)
class Site:
    """One environment with all that rendering for it needs.

    Without a plan there are no snapshots, and names stay those of the project.

    Attributes:
        own: what the environment may change.
        default_dialect: of the engine.
        gateways: dialects of other gateways' engines, by the gateway's name.
        naming: how the environment names its views; None without a plan.
        times: start, end and execution time of the plan.
    """

    own: Own
    default_dialect: str
    gateways: Mapping[str, str]
    naming: EnvironmentNamingInfo | None = None
    snapshots: Mapping[SnapshotId, Snapshot] | None = None
    deployable: DeployabilityIndex | None = None
    times: Mapping[str, Any] | None = None

    def dialect_of(self, model: Any) -> str:
        """The dialect of the engine that runs a model's statements."""
        return self.gateways.get(model.gateway or "", self.default_dialect)

    @cached_property
    def by_name(self) -> dict[str, Snapshot]:
        return {snapshot.name: snapshot for snapshot in (self.snapshots or {}).values()}

    @cached_property
    def views(self) -> Any:
        """The view of each model, which names lead to while views are updated."""
        return to_view_mapping(
            self.by_name.values(),
            self.naming or EnvironmentNamingInfo(),
            default_catalog=self.own.catalog or None,
            dialect=self.default_dialect,
        )

    def evaluation(self, name: str) -> dict[str, Any]:
        """What SQLMesh renders the statements around a model's query with.

        The engine is left out, so that no macro can ask it anything, and nothing is written.
        """
        snapshot = self.by_name.get(name)
        if snapshot is None:
            return {}
        return {
            **(self.times or {}),
            "snapshot": snapshot,
            "snapshots": parent_snapshots_by_name(snapshot, dict(self.snapshots or {})),
            "deployability_index": self.deployable,
        }

    def promotion(self, name: str) -> dict[str, Any]:
        """What SQLMesh renders the statements on a model's virtual update with."""
        if name not in self.by_name:
            return {}
        return {
            **(self.times or {}),
            "snapshots": self.by_name,
            "deployability_index": self.deployable,
            "table_mapping": self.views,
        }

    def around(self) -> dict[str, Any]:
        """What SQLMesh renders the statements around a plan with."""
        return {
            **(self.times or {}),
            "snapshots": self.by_name,
            "environment_naming_info": self.naming,
        }

    def own_of(self, snapshot: Snapshot) -> Own:
        """What the statements of one model may change: its own table and view, too."""
        return replace(self.own, objects=self.own.objects | self._objects_of(snapshot))

    def _objects_of(self, snapshot: Snapshot) -> frozenset[Name]:
        if not snapshot.is_model or not snapshot.version or self.deployable is None:
            return frozenset({parsed(snapshot.name, self.own.catalog)})
        # What @this_model stands for: of a forward-only change the preview, and not prod's table.
        mine = snapshot.table_name(self.deployable.is_representative(snapshot))
        found = {parsed(mine, self.own.catalog)}
        if self.naming is not None and not self.naming.is_dev:
            found.add(_view(snapshot, self.naming, self.own.catalog))
        return frozenset(found)


def parsed(name: str, catalog: str) -> Name:
    """A name in SQLMesh's own form, as ours; with its catalog, where there are any."""
    table = exp.to_table(name)
    found = names.of_table(table) or (name.lower(),)
    return found if table.catalog else (catalog.lower(), *found)


def _view(snapshot: Snapshot, naming_info: EnvironmentNamingInfo, catalog: str) -> Name:
    return parsed(snapshot.qualified_view_name.for_environment(naming_info), catalog)


def of_plan(context: Any, planned: Planned) -> tuple[Site, Site]:
    """The pull request's environment, and prod with the same project."""
    environment = planned.plan.environment.naming_info
    catalog = str(context.default_catalog or "").lower()
    shown = Names(context.default_catalog, context.default_dialect)
    models = [s for s in planned.snapshots.values() if s.is_model and not s.is_symbolic]
    prod = EnvironmentNamingInfo.from_environment_catalog_mapping(
        context.config.environment_catalog_mapping,
        name=c.PROD,
        suffix_target=environment.suffix_target,
        normalize_name=environment.normalize_name,
        gateway_managed=environment.gateway_managed,
    )
    prod_views = {_view(snapshot, prod, catalog): snapshot for snapshot in models}
    views = {_view(snapshot, environment, catalog): snapshot for snapshot in models}
    prod_schemas = {view[:2] for view in prod_views}
    # A schema that also holds prod's views is nobody's own; there, each view is.
    schemas = frozenset(view[:2] for view in views) - prod_schemas
    tables = _tables(planned, catalog)
    known = {name: shown.of(s.name) for name, s in {**views, **prod_views}.items()}
    known |= {
        parsed(s.table_name(flag), catalog): shown.of(s.name)
        for s in models
        if s.version
        for flag in (False, True)
    }
    gateways = {
        name: str(gateway.connection.DIALECT)
        for name, gateway in context.config.gateways.items()
        if gateway.connection is not None
    }
    times = {
        "start": planned.window.start,
        "end": planned.window.end,
        "execution_time": planned.window.execution_time,
    }
    own = Own(
        environment=environment.name,
        catalog=catalog,
        schemas=schemas,
        objects=(frozenset(views) | tables) - prod_views.keys(),
        models=known,
    )
    site = Site(
        own,
        default_dialect=str(context.engine_adapter.dialect),
        gateways=gateways,
        naming=environment,
        snapshots=planned.snapshots,
        deployable=planned.deployable,
        times=times,
    )
    in_prod = Own(
        environment=c.PROD,
        catalog=catalog,
        objects=tables,
        described=frozenset(prod_views) | prod_schemas,
        models=known,
    )
    as_prod = replace(
        site, own=in_prod, naming=prod, deployable=DeployabilityIndex.all_deployable()
    )
    return site, as_prod


def _tables(planned: Planned, catalog: str) -> frozenset[Name]:
    """The physical tables that the plan makes, and that prod does not read."""
    return frozenset(
        parsed(snapshot.table_name(planned.deployable.is_deployable(snapshot)), catalog)
        for snapshot in planned.changed
        if snapshot.is_model
        and not snapshot.is_symbolic
        and snapshot.version
        and not planned.shares_prod_table(snapshot)
    )


def without_plan(models: Iterable[Any], dialect: str) -> Site:
    """Where there is no plan: the names of the project, of which none is an environment's own."""
    catalogs = {str(model.default_catalog or "").lower() for model in models}
    catalog = catalogs.pop() if len(catalogs) == 1 else ""
    return Site(Own("the environment", catalog), default_dialect=dialect, gateways={})
