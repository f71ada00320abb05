"""The environments for which statements are rendered: the pull request's, and prod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.environment import EnvironmentNamingInfo
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot
from sqlmesh.core.snapshot.definition import to_view_mapping

from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.sql_effects import effects as names
from ci_bot.worker.sql_effects.effects import ObjectName, OwnObjects

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model
    from sqlmesh.core.snapshot import Node


class StatementRenderArguments(TypedDict, total=False):
    """The arguments with which SQLMesh renders a statement.

    An argument is left out if the environment or the model does not have it.
    """

    start: str | None
    end: str | None
    execution_time: str
    snapshot: Snapshot
    snapshots: dict[str, Snapshot]
    deployability_index: DeployabilityIndex
    table_mapping: dict[str, str]
    environment_naming_info: EnvironmentNamingInfo


@dataclass(frozen=True)
class StatementRenderSite:
    """One environment, with everything that SQLMesh needs to render statements for it.

    Without a plan there are no snapshots, and names stay as the project writes them.

    Attributes:
        catalog: the catalog of a name without one; empty if there are no catalogs.
        default_dialect: the dialect of the default engine.
        gateways: the dialects of the gateways' engines, by the gateway's name.
        naming: how the environment names its views; `prod_naming` is the same for prod.
        shown: names of models in messages.
    """

    catalog: str
    default_dialect: str
    gateways: Mapping[str, str] = field(default_factory=dict)
    naming: EnvironmentNamingInfo = field(default_factory=EnvironmentNamingInfo)
    prod_naming: EnvironmentNamingInfo = field(default_factory=EnvironmentNamingInfo)
    planned: BuiltPlan | None = None
    shown: MessageNames = field(default_factory=lambda: MessageNames(None, None))

    def find_dialect(self, model: Model) -> str:
        """Returns the dialect of the engine that runs a model's statements."""
        return self.gateways.get(model.gateway or "", self.default_dialect)

    @cached_property
    def snapshots_by_name(self) -> dict[str, Snapshot]:
        snapshots = self.planned.plan_snapshots.values() if self.planned is not None else ()
        return {snapshot.name: snapshot for snapshot in snapshots}

    @cached_property
    def deployability_index(self) -> DeployabilityIndex:
        if self.planned is None or not self.naming.is_dev:
            return DeployabilityIndex.all_deployable()
        return self.planned.deployable

    @cached_property
    def _time_arguments(self) -> StatementRenderArguments:
        if self.planned is None:
            return {}
        window = self.planned.window
        return {"start": window.start, "end": window.end, "execution_time": window.execution_time}

    def make_evaluation_arguments(
        self, name: str, others: Iterable[str] | None = None
    ) -> StatementRenderArguments:
        """Makes the arguments for the statements around a model's query.

        The engine is left out, so no macro can query it or write to it.

        Args:
            others: other models whose names SQLMesh replaces by their tables; None means all that
                this model reads, which can be many.
        """
        snapshot = self.snapshots_by_name.get(name)
        if snapshot is None:
            return {}
        read = [name, *(parent.name for parent in snapshot.parents)]
        return {
            **self._time_arguments,
            "snapshot": snapshot,
            "snapshots": self._select_snapshots(read, name, others),
            "deployability_index": self.deployability_index,
        }

    def make_promotion_arguments(
        self, name: str, others: Iterable[str] | None = None
    ) -> StatementRenderArguments:
        """Makes the arguments for the on_virtual_update statements of a model.

        Args:
            others: as in `make_evaluation_arguments`; None means all models of the plan.
        """
        if name not in self.snapshots_by_name:
            return {}
        found = self._select_snapshots(self.snapshots_by_name, name, others)
        views = to_view_mapping(
            found.values(),
            self.naming,
            default_catalog=self.catalog or None,
            dialect=self.default_dialect,
        )
        return {
            **self._time_arguments,
            "snapshots": found,
            "deployability_index": self.deployability_index,
            "table_mapping": views,
        }

    def _select_snapshots(
        self, possible: Iterable[str], name: str, others: Iterable[str] | None
    ) -> dict[str, Snapshot]:
        wanted = None if others is None else {name, *others}
        return {
            one: self.snapshots_by_name[one]
            for one in possible
            if one in self.snapshots_by_name and (wanted is None or one in wanted)
        }

    def make_environment_arguments(self) -> StatementRenderArguments:
        """Makes the arguments for before_all and after_all."""
        return {
            **self._time_arguments,
            "snapshots": self.snapshots_by_name,
            "environment_naming_info": self.naming,
        }

    def name_view(self, snapshot: Snapshot) -> ObjectName:
        """Returns the name of a model's view in this environment."""
        name, dialect = snapshot.qualified_view_name, self.default_dialect
        parts = (
            name.catalog_for_environment(self.naming, dialect=dialect) or self.catalog,
            name.schema_for_environment(self.naming, dialect=dialect),
            name.table_name_for_environment(self.naming, dialect=dialect),
        )
        return tuple(part.lower() for part in parts)

    def name_table(self, snapshot: Snapshot) -> ObjectName:
        """Returns the table that `@this_model` means: for a forward-only change the preview."""
        if not snapshot.is_model or not snapshot.version:
            return self.parse_object_name(snapshot.name)
        return self.parse_object_name(
            snapshot.table_name(self.deployability_index.is_representative(snapshot))
        )

    def parse_object_name(self, name: str) -> ObjectName:
        """Parses a name in SQLMesh's form; a name without a catalog gets the environment's."""
        table = exp.to_table(name)
        found = names.read_table_name(table) or (name.lower(),)
        return found if table.catalog else (self.catalog, *found)

    @cached_property
    def own_objects(self) -> OwnObjects:
        """The objects that before_all and after_all may change in this environment."""
        if self.planned is None:
            return OwnObjects("the environment", self.catalog)
        models = [s for s in self.snapshots_by_name.values() if s.is_model and not s.is_symbolic]
        prod = replace(self, naming=self.prod_naming)
        prod_views = {prod.name_view(snapshot) for snapshot in models}
        prod_schemas = {view[:2] for view in prod_views}
        own = OwnObjects(
            self.naming.name, self.catalog, whose=_ObjectOwners((self, prod)).find_owner
        )
        tables = self._list_plan_tables()
        if not self.naming.is_dev:
            return replace(own, objects=tables, described=frozenset(prod_views | prod_schemas))
        views = {self.name_view(snapshot) for snapshot in models}
        return replace(
            own,
            # A schema that also holds prod's views is shared, so only the single views are own.
            schemas=frozenset({view[:2] for view in views} - prod_schemas),
            objects=frozenset(views | tables) - prod_views,
        )

    def select_own_objects(self, node: Node) -> OwnObjects:
        """Returns the objects that a model's statements may change, also its table and view."""
        snapshot = self.snapshots_by_name.get(node.fqn if node.is_model else node.name)
        if snapshot is None:
            return replace(self.own_objects, objects=frozenset({self.parse_object_name(node.fqn)}))
        mine = {self.name_table(snapshot)}
        if not self.naming.is_dev and snapshot.is_model:
            mine.add(self.name_view(snapshot))
        return replace(self.own_objects, objects=self.own_objects.objects | mine)

    def _list_plan_tables(self) -> frozenset[ObjectName]:
        """Lists the physical tables that the plan makes, and that prod does not read."""
        planned = self.planned
        if planned is None:
            return frozenset()
        return frozenset(
            self.parse_object_name(snapshot.table_name(planned.deployable.is_deployable(snapshot)))
            for snapshot in planned.changed_snapshots
            if snapshot.is_model
            and not snapshot.is_symbolic
            and snapshot.version
            and not planned.shares_prod_table(snapshot)
        )


class _ObjectOwners:
    """The model of each table and view; the map is made when a message first needs it."""

    def __init__(self, sites: tuple[StatementRenderSite, ...]) -> None:
        self._sites = sites

    def find_owner(self, name: ObjectName) -> str | None:
        return self._known_owners.get(name)

    @cached_property
    def _known_owners(self) -> dict[ObjectName, str]:
        found = {}
        for site in self._sites:
            for snapshot in site.snapshots_by_name.values():
                if snapshot.is_model and not snapshot.is_symbolic:
                    shown = site.shown.short_name(snapshot.name)
                    found[site.name_view(snapshot)] = found[site.name_table(snapshot)] = shown
        return found


def make_statement_sites_of_plan(
    context: Context, planned: BuiltPlan
) -> tuple[StatementRenderSite, StatementRenderSite]:
    """Makes the sites of the pull request's environment, and of prod with the same project."""
    here = planned.plan.environment_naming_info
    in_prod = EnvironmentNamingInfo.from_environment_catalog_mapping(
        context.config.environment_catalog_mapping,
        name=c.PROD,
        suffix_target=here.suffix_target,
        normalize_name=here.normalize_name,
        gateway_managed=here.gateway_managed,
    )
    site = StatementRenderSite(
        catalog=str(context.default_catalog or "").lower(),
        default_dialect=str(context.engine_adapter.dialect),
        gateways={
            name: str(gateway.connection.DIALECT)
            for name, gateway in context.config.gateways.items()
            if gateway.connection is not None
        },
        naming=here,
        prod_naming=in_prod,
        planned=planned,
        shown=MessageNames(context.default_catalog, context.default_dialect),
    )
    return site, replace(site, naming=in_prod)


def make_statement_site_without_plan(model: Model, dialect: str) -> StatementRenderSite:
    """Makes the site without a plan, with the project's names and no environment's suffix."""
    return StatementRenderSite(
        catalog=str(model.default_catalog or "").lower(), default_dialect=dialect
    )
