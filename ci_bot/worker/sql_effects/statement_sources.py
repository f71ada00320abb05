"""Where statements stand, what renders them, and what rendering must be asked for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from sqlglot import exp
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.runtime import silence_log
from ci_bot.worker.sql_effects.effects import (
    NOT_PARSED,
    RUNS_JAVA,
    SPARK,
    Action,
    display_name,
)
from ci_bot.worker.sql_effects.jinja_templates import literal_parts
from ci_bot.worker.sql_effects.judgement import PLACEHOLDER, RenderedStatement
from ci_bot.worker.sql_effects.render_site import RenderSite

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.model import Model
    from sqlmesh.core.snapshot import Node


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
            renders: give text or trees, one or a list; None if rendering must ask the engine.
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
        return (
            tree
            if isinstance(tree, str)
            else sqlmesh_compat.render_executed_text(tree, self.dialect)
        )


def render_code_key(node: EnvironmentStatements | Node) -> str:
    """Renders a key of the code that a node's macros run."""
    macros = getattr(node, "jinja_macros", None)
    code = [(name, item.payload) for name, item in sorted((node.python_env or {}).items())]
    jinja = list(macros.data_hash_values) if macros is not None else []
    return hashlib.sha256(repr((code, jinja)).encode()).hexdigest()


def calls_nothing(node: Node, source: str) -> bool:
    """Whether no code of the project takes part in rendering, beyond SQLMesh's own macros."""
    code = any(not item.is_value for item in node.python_env.values())
    return not code and not _JINJA.search(source)


def list_render_stages(node: Node, source: str) -> tuple[RuntimeStage, ...]:
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


def list_inner_statements(model: Model, site: RenderSite) -> Iterator[RenderedStatement]:
    """What becomes a part of SQLMesh's own statements: query, audits, merges, table properties."""
    place = StatementPlace(model.fqn, site.dialect_of(model), render_code_key(model))
    yield from _query_statements(model, site, place)
    for audit, arguments in model.audits_with_args:
        yield from _audit_statements(model, audit, arguments, site, place)
    yield from _merge_statements(model, place)
    if place.dialect in SPARK:
        yield from _clause_statements(model, site, place)


def list_standalone_statements(
    audit: StandaloneAudit, site: RenderSite
) -> Iterator[RenderedStatement]:
    """Lists the query of a standalone audit."""
    place = StatementPlace(audit.name, site.default_dialect, render_code_key(audit))
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
        for stage in list_render_stages(model, query.sql)
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
    clauses = sqlmesh_compat.render_table_clauses(model, properties(), place.dialect)
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
