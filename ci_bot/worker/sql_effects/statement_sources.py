"""The environments that statements are rendered for: the pull request's, and prod."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.environment import EnvironmentNamingInfo
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot
from sqlmesh.core.snapshot.definition import to_view_mapping

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import ModelNames
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.runtime import silence_log
from ci_bot.worker.sql_effects import effects as names
from ci_bot.worker.sql_effects.effects import (
    NOT_PARSED,
    RUNS_JAVA,
    SPARK,
    Action,
    ObjectName,
    OwnObjects,
    display_name,
)
from ci_bot.worker.sql_effects.jinja_templates import literal_parts
from ci_bot.worker.sql_effects.judgement import PLACEHOLDER, RenderedStatement

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.context import Context
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.model import Model
    from sqlmesh.core.snapshot import Node


class RenderArguments(TypedDict, total=False):
    """What SQLMesh renders a statement with; what an environment or a model does not have, it is
    not given."""

    start: str | None
    end: str | None
    execution_time: str
    snapshot: Snapshot
    snapshots: dict[str, Snapshot]
    deployability_index: DeployabilityIndex
    table_mapping: dict[str, str]
    environment_naming_info: EnvironmentNamingInfo


@dataclass(frozen=True)
class RenderSite:
    """One environment with all that rendering for it needs.

    Without a plan there are no snapshots, and names stay those of the project.

    Attributes:
        catalog: of names that do not say one; empty if there are no catalogs.
        default_dialect: of the engine.
        gateways: dialects of other gateways' engines, by the gateway's name.
        naming: how the environment names its views; `prod_naming` is how prod does.
        shown: how models are called in messages.
    """

    catalog: str
    default_dialect: str
    gateways: Mapping[str, str] = field(default_factory=dict)
    naming: EnvironmentNamingInfo = field(default_factory=EnvironmentNamingInfo)
    prod_naming: EnvironmentNamingInfo = field(default_factory=EnvironmentNamingInfo)
    planned: BuiltPlan | None = None
    shown: ModelNames = field(default_factory=lambda: ModelNames(None, None))

    def dialect_of(self, model: Model) -> str:
        """The dialect of the engine that runs a model's statements."""
        return self.gateways.get(model.gateway or "", self.default_dialect)

    @cached_property
    def by_name(self) -> dict[str, Snapshot]:
        snapshots = self.planned.plan_snapshots.values() if self.planned is not None else ()
        return {snapshot.name: snapshot for snapshot in snapshots}

    @cached_property
    def deployability_index(self) -> DeployabilityIndex:
        if self.planned is None or not self.naming.is_dev:
            return DeployabilityIndex.all_deployable()
        return self.planned.deployable

    @cached_property
    def _time_arguments(self) -> RenderArguments:
        if self.planned is None:
            return {}
        window = self.planned.window
        return {"start": window.start, "end": window.end, "execution_time": window.execution_time}

    def evaluation_arguments(
        self, name: str, others: Iterable[str] | None = None
    ) -> RenderArguments:
        """What SQLMesh renders the statements around a model's query with.

        The engine is left out, so that no macro can ask it anything, and nothing is written.

        Args:
            others: the models besides whose names may lead to tables; None for all that it reads,
                of which there can be many.
        """
        snapshot = self.by_name.get(name)
        if snapshot is None:
            return {}
        read = [name, *(parent.name for parent in snapshot.parents)]
        return {
            **self._time_arguments,
            "snapshot": snapshot,
            "snapshots": self._snapshots_among(read, name, others),
            "deployability_index": self.deployability_index,
        }

    def promotion_arguments(
        self, name: str, others: Iterable[str] | None = None
    ) -> RenderArguments:
        """What SQLMesh renders the statements on a model's virtual update with; see above."""
        if name not in self.by_name:
            return {}
        found = self._snapshots_among(self.by_name, name, others)
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

    def _snapshots_among(
        self, possible: Iterable[str], name: str, others: Iterable[str] | None
    ) -> dict[str, Snapshot]:
        wanted = None if others is None else {name, *others}
        return {
            one: self.by_name[one]
            for one in possible
            if one in self.by_name and (wanted is None or one in wanted)
        }

    def environment_context(self) -> RenderArguments:
        """What SQLMesh renders the statements around a plan with."""
        return {
            **self._time_arguments,
            "snapshots": self.by_name,
            "environment_naming_info": self.naming,
        }

    def view_name(self, snapshot: Snapshot) -> ObjectName:
        """The view of a model in this environment."""
        name, dialect = snapshot.qualified_view_name, self.default_dialect
        parts = (
            name.catalog_for_environment(self.naming, dialect=dialect) or self.catalog,
            name.schema_for_environment(self.naming, dialect=dialect),
            name.table_name_for_environment(self.naming, dialect=dialect),
        )
        return tuple(part.lower() for part in parts)

    def table_name(self, snapshot: Snapshot) -> ObjectName:
        """What `@this_model` stands for: of a forward-only change the preview, not prod's table."""
        if not snapshot.is_model or not snapshot.version:
            return self.parse_object_name(snapshot.name)
        return self.parse_object_name(
            snapshot.table_name(self.deployability_index.is_representative(snapshot))
        )

    def parse_object_name(self, name: str) -> ObjectName:
        """A name in SQLMesh's own form, as ours; with its catalog, if there are any."""
        table = exp.to_table(name)
        found = names.of_table(table) or (name.lower(),)
        return found if table.catalog else (self.catalog, *found)

    @cached_property
    def own_objects(self) -> OwnObjects:
        """What statements of the project may change in this environment."""
        if self.planned is None:
            return OwnObjects("the environment", self.catalog)
        models = [s for s in self.by_name.values() if s.is_model and not s.is_symbolic]
        prod = replace(self, naming=self.prod_naming)
        prod_views = {prod.view_name(snapshot) for snapshot in models}
        prod_schemas = {view[:2] for view in prod_views}
        own = OwnObjects(
            self.naming.name, self.catalog, whose=_ObjectOwners((self, prod)).find_owner
        )
        tables = self._tables_of_the_plan()
        if not self.naming.is_dev:
            return replace(own, objects=tables, described=frozenset(prod_views | prod_schemas))
        views = {self.view_name(snapshot) for snapshot in models}
        return replace(
            own,
            # A schema that also holds prod's views is nobody's own; there, each view is.
            schemas=frozenset({view[:2] for view in views} - prod_schemas),
            objects=frozenset(views | tables) - prod_views,
        )

    def own_of(self, node: Node) -> OwnObjects:
        """What the statements of one model may change: its own table and view, too."""
        snapshot = self.by_name.get(node.fqn if node.is_model else node.name)
        if snapshot is None:
            return replace(self.own_objects, objects=frozenset({self.parse_object_name(node.fqn)}))
        mine = {self.table_name(snapshot)}
        if not self.naming.is_dev and snapshot.is_model:
            mine.add(self.view_name(snapshot))
        return replace(self.own_objects, objects=self.own_objects.objects | mine)

    def _tables_of_the_plan(self) -> frozenset[ObjectName]:
        """The physical tables that the plan makes, and that prod does not read."""
        planned = self.planned
        return frozenset(
            self.parse_object_name(snapshot.table_name(planned.deployable.is_deployable(snapshot)))
            for snapshot in (planned.changed_snapshots if planned is not None else ())
            if planned is not None
            and snapshot.is_model
            and not snapshot.is_symbolic
            and snapshot.version
            and not planned.shares_prod_table(snapshot)
        )


class _ObjectOwners:
    """The model of each table and view, looked up when a message asks for the first."""

    def __init__(self, sites: tuple[RenderSite, ...]) -> None:
        self._sites = sites

    def find_owner(self, name: ObjectName) -> str | None:
        return self._known_owners.get(name)

    @cached_property
    def _known_owners(self) -> dict[ObjectName, str]:
        found = {}
        for site in self._sites:
            for snapshot in site.by_name.values():
                if snapshot.is_model and not snapshot.is_symbolic:
                    shown = site.shown.short_name(snapshot.name)
                    found[site.view_name(snapshot)] = found[site.table_name(snapshot)] = shown
        return found


def of_plan(context: Context, planned: BuiltPlan) -> tuple[RenderSite, RenderSite]:
    """The pull request's environment, and prod with the same project."""
    here = planned.plan.environment_naming_info
    in_prod = EnvironmentNamingInfo.from_environment_catalog_mapping(
        context.config.environment_catalog_mapping,
        name=c.PROD,
        suffix_target=here.suffix_target,
        normalize_name=here.normalize_name,
        gateway_managed=here.gateway_managed,
    )
    site = RenderSite(
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
        shown=ModelNames(context.default_catalog, context.default_dialect),
    )
    return site, replace(site, naming=in_prod)


def without_plan(model: Model, dialect: str) -> RenderSite:
    """If there is no plan: the names of the project, of which none is an environment's own."""
    return RenderSite(catalog=str(model.default_catalog or "").lower(), default_dialect=dialect)


# Where statements stand, what renders them, and what rendering must be asked for.


_BUILDING = (RuntimeStage.CREATING, RuntimeStage.EVALUATING)

_JINJA = re.compile(r"\{\{|\{%|JINJA_", re.IGNORECASE)

_DEEDS = frozenset(get_args(Action)) - {"nothing", "unknown"}

_STAGE = re.compile(r"runtime_stage", re.IGNORECASE)


class StatementPlace:
    """Where statements stand: what they have in common."""

    def __init__(self, model: str | None, dialect: str, code: str) -> None:
        self.model = model
        self.dialect = dialect
        self._code = code

    def render_statements(
        self,
        slot: str,
        source: str,
        renders: Iterable[Callable[[], Any]],
        *,
        part: bool = False,
    ) -> Iterator[RenderedStatement]:
        """What a statement becomes, each text once; without a text where it does not render.

        Args:
            renders: give text or trees, one or a list; None where rendering must ask the engine.
        """
        texts: dict[str | None, str] = {}
        for render in renders:
            try:
                with silence_log("sqlmesh.core.renderer"):
                    given = render()
                if given is None:
                    texts.setdefault(None, "it asks the engine")
                    continue
                for tree in given if isinstance(given, list) else [given]:
                    texts.setdefault(self._render_text(tree), "")
            except Exception as error:  # the project's own macros run in here
                texts.setdefault(None, f"{type(error).__name__} without the engine")
        for text, problem in texts.items():
            yield RenderedStatement(
                slot,
                self.model,
                source if text is not None else f"{source}\n{self._code}",
                text,
                self.dialect,
                problem=f"it cannot be rendered: {problem}" if problem else "",
                part=part,
            )

    def list_hidden_statements(
        self, slot: str, dialect: str, tree: exp.Expr, *, part: bool = False
    ) -> Iterator[RenderedStatement]:
        """What stands in a statement with macros or Jinja literally, whatever it renders to."""
        found, undecided = literal_parts(tree, dialect)
        # Inside a query no statement can be executed, whatever a macro's arguments hold.
        counts = ("code",) if part else _DEEDS
        effects = tuple(effect for effect in found if effect.action in counts)
        if undecided and effects:
            source = tree.sql(dialect=dialect)
            yield RenderedStatement(
                slot, self.model, source, None, dialect, part=part, literal=effects
            )

    def unreadable_statement(self, slot: str, source: str) -> RenderedStatement:
        """A statement that is no SQL."""
        return RenderedStatement(slot, self.model, source, None, self.dialect, NOT_PARSED)

    def _render_text(self, tree: exp.Expr | str) -> str:
        return tree if isinstance(tree, str) else sqlmesh_compat.executed_text(tree, self.dialect)


def code_of(node: EnvironmentStatements | Node) -> str:
    """What stands for the code that a node's macros run."""
    macros = getattr(node, "jinja_macros", None)
    code = [(name, item.payload) for name, item in sorted((node.python_env or {}).items())]
    jinja = list(macros.data_hash_values) if macros is not None else []
    return hashlib.sha256(repr((code, jinja)).encode()).hexdigest()


def calls_nothing(node: Node, source: str) -> bool:
    """Whether no code of the project takes part in rendering, beyond SQLMesh's own macros."""
    code = any(not item.is_value for item in node.python_env.values())
    return not code and not _JINJA.search(source)


def stages_of(node: Node, source: str) -> tuple[RuntimeStage, ...]:
    """The stages to render for: both where the text, or code that takes part, may ask for it."""
    asks = _STAGE.search(source) or not calls_nothing(node, source)
    return _BUILDING if asks else _BUILDING[-1:]


# What of a project becomes a part of SQLMesh's own statements: queries, audits, conditions of
# merges, and the properties of tables. A program, or a location, can stand there too.


_SLOTS = ("pre_statements_", "post_statements_", "on_virtual_update_")
# What composes names out of pieces; SQLMesh's other macros only move what stands there literally.
_COMPOSES = re.compile(r"\w@|@\W|@\w+@|@(?:SQL|EVAL|RESOLVE_TEMPLATE)\b", re.IGNORECASE)

_MAY_RUN_CODE = re.compile(
    "|".join(sorted(RUNS_JAVA)) + r"|transform\b.*\busing\b|\$\{",
    re.IGNORECASE | re.DOTALL,
)


def inside_model(model: Model, site: RenderSite) -> Iterator[RenderedStatement]:
    """What becomes a part of SQLMesh's own statements: query, audits, merges, table properties."""
    place = StatementPlace(model.fqn, site.dialect_of(model), code_of(model))
    yield from _query_statements(model, site, place)
    for audit, arguments in model.audits_with_args:
        yield from _audit_statements(model, audit, arguments, site, place)
    yield from _merge_statements(model, place)
    if place.dialect in SPARK:
        yield from _clause_statements(model, site, place)


def of_standalone(audit: StandaloneAudit, site: RenderSite) -> Iterator[RenderedStatement]:
    """The query of an audit that is a node by itself."""
    place = StatementPlace(audit.name, site.default_dialect, code_of(audit))
    if may_run_code(audit.query_.sql, audit):
        render = partial(
            audit.render_audit_query,
            **site.evaluation_arguments(audit.name),
            runtime_stage=RuntimeStage.AUDITING,
        )
        yield from place.render_statements("audit", audit.query_.sql, [render], part=True)


def _query_statements(
    model: Model, site: RenderSite, place: StatementPlace
) -> Iterator[RenderedStatement]:
    if not sqlmesh_compat.is_sql_model(model) or not may_run_code(model.query_.sql, model):
        return
    query = model.query_
    others = () if calls_nothing(model, query.sql) else None
    evaluation = site.evaluation_arguments(model.fqn, others)
    renders = [
        partial(
            model.render_query_or_raise,
            **evaluation,
            needs_optimization=False,
            runtime_stage=stage,
        )
        for stage in stages_of(model, query.sql)
    ]
    yield from place.render_statements("query", query.sql, renders, part=True)
    yield from place.list_hidden_statements("query", model.dialect, model.query, part=True)


def _audit_statements(
    model: Model,
    audit: ModelAudit | StandaloneAudit,
    arguments: Mapping[str, exp.Expr],
    site: RenderSite,
    place: StatementPlace,
) -> Iterator[RenderedStatement]:
    given = " ".join(str(value) for value in arguments.values())
    own = "" if audit.name in BUILT_IN_AUDITS else audit.query_.sql
    if not may_run_code(f"{own} {given}", model):
        return
    # What a model gives to its audit may have any name and type, and wins over what a run gives.
    kwargs: dict[str, Any] = {
        **site.evaluation_arguments(model.fqn),
        "runtime_stage": RuntimeStage.AUDITING,
        **{name: value for name, value in arguments.items() if name != "blocking"},
    }
    render = partial(model.render_audit_query, audit, **kwargs)
    yield from place.render_statements(
        f"audit {audit.name}", f"{audit.query_.sql} {given}", [render], part=True
    )


def _merge_statements(model: Model, place: StatementPlace) -> Iterator[RenderedStatement]:
    """Conditions and assignments of a MERGE that SQLMesh makes, as queries of their own."""
    for name in ("merge_filter", "when_matched", "unique_key"):
        given = getattr(model, name, None)
        trees = given if isinstance(given, list) else [given] if given is not None else []
        for part in (part for tree in trees for part in _iterate_expressions(tree)):
            text = part.sql(dialect=place.dialect)
            if may_run_code(text, model):
                yield from place.render_statements(
                    "merge", text, [partial(_expression_as_query, text)], part=True
                )


def _expression_as_query(expression: str) -> str:
    if "@" in expression:
        raise ValueError("a macro")
    return f"SELECT {expression}"


def _iterate_expressions(tree: exp.Expr) -> Iterator[exp.Expr]:
    if tree.key != "whens":
        yield tree
        return
    for when in tree.expressions:
        for part in (when.args.get("condition"), *_iterate_assigned(when.args.get("then"))):
            if part is not None:
                yield part


def _iterate_assigned(then: exp.Expr) -> Iterator[exp.Expr]:
    for part in (then.args.get("expression"), *then.expressions) if then is not None else ():
        if part is not None:
            yield part


def _clause_statements(
    model: Model, site: RenderSite, place: StatementPlace
) -> Iterator[RenderedStatement]:
    """Format and properties of the table, and properties of the view, as CREATE has them."""
    evaluation = {
        **site.evaluation_arguments(model.fqn, ()),
        "runtime_stage": RuntimeStage.CREATING,
    }
    for slot, method in (
        ("table properties", "render_physical_properties"),
        ("view properties", "render_virtual_properties"),
    ):
        render = partial(
            _render_create, model, partial(getattr(model, method), **evaluation), place
        )
        yield from place.render_statements(slot, slot, [render], part=True)


def _render_create(model: Model, properties: Callable[[], Any], place: StatementPlace) -> str:
    clauses = sqlmesh_compat.table_clauses(model, properties(), place.dialect)
    return f"CREATE TABLE {display_name(PLACEHOLDER)} (a INT) {clauses}"


def may_run_code(sql: str, node: Node) -> bool:
    """Whether a query must be rendered to know; most say by their text alone that they do not.

    The values of variables, and the definitions beside a query, are what its variables put in.
    """
    values = [item.payload for item in node.python_env.values() if item.is_value]
    for attribute in _SLOTS:
        values += [item.sql for item in getattr(node, attribute, None) or ()]
    whole = " ".join((sql, *values))
    if _COMPOSES.search(sql) or not calls_nothing(node, sql):
        return True
    return bool(_MAY_RUN_CODE.search(whole))
