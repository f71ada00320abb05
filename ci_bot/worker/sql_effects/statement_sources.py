"""Every statement that SQLMesh makes for a model, an audit or the project, as the engine gets it.

The list was made by reading SQLMesh's evaluator and scheduler. Some Python code sends statements to
the engine itself: Python models, custom materializations, signals, and macros that use the engine's
adapter. These statements are not known before they run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql_effects.effects import NOT_PARSED, RUNS_JAVA, SPARK, Action
from ci_bot.worker.sql_effects.judgement import PLACEHOLDER, RenderedStatement
from ci_bot.worker.sql_effects.render_site import StatementRenderArguments, StatementRenderSite
from ci_bot.worker.sql_effects.unrendered_sql import read_effects_of_literal_parts

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.model import Model
    from sqlmesh.core.snapshot import Node


_BUILDING = (RuntimeStage.CREATING, RuntimeStage.EVALUATING)
_JINJA = re.compile(r"\{\{|\{%|JINJA_", re.IGNORECASE)
_ACTIONS = frozenset(get_args(Action)) - {"nothing", "unknown"}
_STAGE = re.compile(r"runtime_stage", re.IGNORECASE)


class StatementRenderer:
    """A renderer of the statements of one model, audit or project."""

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
        """Renders a statement, and yields each text once; a failed rendering has no text.

        Args:
            renders: functions that return a text or a tree, or a list of these; None if rendering
                must query the engine.
        """
        texts: dict[str | None, str] = {}
        for render in renders:
            try:
                with silence_worker_log("sqlmesh.core.renderer"):
                    given = render()
                if given is None:
                    texts.setdefault(None, "it queries the engine")
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
        """Lists the literal SQL in a statement with macros or Jinja, also if it is not rendered."""
        found, undecided = read_effects_of_literal_parts(tree, dialect)
        # A query cannot execute a statement inside it, also not one in a macro's arguments.
        counts = ("code",) if part else _ACTIONS
        effects = tuple(effect for effect in found if effect.action in counts)
        if undecided and effects:
            source = tree.sql(dialect=dialect)
            yield RenderedStatement(
                slot, self.model, source, None, dialect, part=part, literal=effects
            )

    def make_unreadable_statement(self, slot: str, source: str) -> RenderedStatement:
        """Makes the record of a statement that cannot be parsed."""
        return RenderedStatement(slot, self.model, source, None, self.dialect, NOT_PARSED)

    def _render_text(self, tree: exp.Expr | str) -> str:
        return (
            tree
            if isinstance(tree, str)
            else sqlmesh_compat.render_as_sqlmesh_executes(tree, self.dialect)
        )


def render_code_key(node: EnvironmentStatements | Node) -> str:
    """Renders a key of the code that a node's macros run; it changes if the code changes."""
    macros = getattr(node, "jinja_macros", None)
    code = [(name, item.payload) for name, item in sorted((node.python_env or {}).items())]
    jinja = list(macros.data_hash_values) if macros is not None else []
    return hashlib.sha256(repr((code, jinja)).encode()).hexdigest()


def renders_without_project_code(node: Node, source: str) -> bool:
    """Whether rendering runs no code of the project; SQLMesh's own macros may run."""
    code = any(not item.is_value for item in node.python_env.values())
    return not code and not _JINJA.search(source)


def list_render_stages(node: Node, source: str) -> tuple[RuntimeStage, ...]:
    """Lists the stages to render for: both if the text or the project's code may read it."""
    reads_stage = _STAGE.search(source) or not renders_without_project_code(node, source)
    return _BUILDING if reads_stage else _BUILDING[-1:]


def list_model_statements(model: Model, site: StatementRenderSite) -> Iterator[RenderedStatement]:
    """Lists the statements around a model's query and on its virtual update, each text once."""
    renderer = StatementRenderer(model.fqn, site.find_dialect(model), render_code_key(model))
    evaluation = partial(site.make_evaluation_arguments, model.fqn)
    promotion = partial(site.make_promotion_arguments, model.fqn)
    for slot, trees, context in (
        ("pre-statement", model.pre_statements, evaluation),
        ("post-statement", model.post_statements, evaluation),
        ("on-virtual-update", model.on_virtual_update, promotion),
    ):
        for tree in trees:
            if not isinstance(tree, d.MacroDef):
                source = tree.sql(dialect=model.dialect)
                stages = list_render_stages(model, source)
                # Only code of the project can use models that the statement does not name.
                names_all = renders_without_project_code(model, source)
                renders = [
                    partial(_render_statement, context, model, tree, stage, names_all=names_all)
                    for stage in (stages if context is evaluation else (RuntimeStage.PROMOTING,))
                ]
                yield from renderer.render_statements(slot, source, renders)
            yield from renderer.list_hidden_statements(slot, model.dialect, tree)


def _render_statement(
    context: Callable[..., StatementRenderArguments],
    model: Model,
    tree: exp.Expr,
    stage: RuntimeStage,
    *,
    names_all: bool,
) -> list[exp.Expr] | None:
    """Renders a statement; None if that needs the engine.

    SQLMesh needs a second for each statement to replace the names of a thousand models. If a
    statement names all models that it uses, only these are replaced by tables.
    """
    render = partial(sqlmesh_compat.render_sqlmesh_statement, model, tree, runtime_stage=stage)
    if not names_all:
        return render(**context())
    first = render(**context(()))
    tables = {
        exp.table_name(table, identify=True)
        for one in first or ()
        for table in one.find_all(exp.Table)
    }
    led = context(tables)
    return first if len(led.get("snapshots", ())) <= 1 else render(**led)


def list_project_statements(
    item: EnvironmentStatements, site: StatementRenderSite
) -> Iterator[RenderedStatement]:
    """Lists the before_all and after_all statements of one project (`EnvironmentStatements`)."""
    renderer = StatementRenderer(None, site.default_dialect, render_code_key(item))
    for stage in (RuntimeStage.BEFORE_ALL, RuntimeStage.AFTER_ALL):
        for source in getattr(item, stage.value):
            try:
                trees = d.parse(source, default_dialect=renderer.dialect)
            except Exception:  # it is no SQL, or SQL on which the parser itself fails
                yield renderer.make_unreadable_statement(stage.value, source)
                continue
            for tree in trees:
                render = partial(
                    sqlmesh_compat.render_sqlmesh_environment_statements,
                    item,
                    tree,
                    renderer.dialect,
                    site.catalog or None,
                    **site.make_environment_arguments(),
                    runtime_stage=stage,
                )
                yield from renderer.render_statements(stage.value, source, [render])
                yield from renderer.list_hidden_statements(stage.value, renderer.dialect, tree)


# Parts of a project that SQLMesh puts into its own statements: queries, audits, conditions of
# merges, and the properties of tables. They can also contain a program or a location.


_SLOTS = ("pre_statements_", "post_statements_", "on_virtual_update_")
# Macros that compose a name from pieces. SQLMesh's other macros only move literal SQL.
_COMPOSES = re.compile(r"\w@|@\W|@\w+@|@(?:SQL|EVAL|RESOLVE_TEMPLATE)\b", re.IGNORECASE)

_MAY_RUN_CODE = re.compile(
    "|".join(sorted(RUNS_JAVA)) + r"|\$\{",
    re.IGNORECASE,
)
# TRANSFORM … USING. There are two patterns, because one pattern would search the rest of the text
# from each TRANSFORM.
_TRANSFORM, _USING = (re.compile(word, re.IGNORECASE) for word in (r"transform\b", r"\busing\b"))


def list_inner_statements(model: Model, site: StatementRenderSite) -> Iterator[RenderedStatement]:
    """Lists the parts of SQLMesh's own statements: query, audits, merges, table properties."""
    renderer = StatementRenderer(model.fqn, site.find_dialect(model), render_code_key(model))
    yield from _list_query_statements(model, site, renderer)
    for audit, arguments in model.audits_with_args:
        yield from _list_audit_statements(model, audit, arguments, site, renderer)
    yield from _list_merge_statements(model, renderer)
    if renderer.dialect in SPARK:
        yield from _list_table_clauses(model, site, renderer)


def list_standalone_statements(
    audit: StandaloneAudit, site: StatementRenderSite
) -> Iterator[RenderedStatement]:
    """Lists the query of a standalone audit."""
    renderer = StatementRenderer(audit.name, site.default_dialect, render_code_key(audit))
    if may_run_code(audit.query_.sql, audit):
        render = partial(
            audit.render_audit_query,
            **site.make_evaluation_arguments(audit.name),
            runtime_stage=RuntimeStage.AUDITING,
        )
        yield from renderer.render_statements("audit", audit.query_.sql, [render], part=True)


def _list_query_statements(
    model: Model, site: StatementRenderSite, renderer: StatementRenderer
) -> Iterator[RenderedStatement]:
    if not sqlmesh_compat.is_sql_model(model) or not may_run_code(model.query_.sql, model):
        return
    query = model.query_
    others = () if renders_without_project_code(model, query.sql) else None
    evaluation = site.make_evaluation_arguments(model.fqn, others)
    renders = [
        partial(
            model.render_query_or_raise,
            **evaluation,
            needs_optimization=False,
            runtime_stage=stage,
        )
        for stage in list_render_stages(model, query.sql)
    ]
    yield from renderer.render_statements("query", query.sql, renders, part=True)
    yield from renderer.list_hidden_statements("query", model.dialect, model.query, part=True)


def _list_audit_statements(
    model: Model,
    audit: ModelAudit | StandaloneAudit,
    arguments: Mapping[str, exp.Expr],
    site: StatementRenderSite,
    renderer: StatementRenderer,
) -> Iterator[RenderedStatement]:
    given = " ".join(str(value) for value in arguments.values())
    own = "" if audit.name in BUILT_IN_AUDITS else audit.query_.sql
    if not may_run_code(f"{own} {given}", model):
        return
    # A model's arguments to its audit may have any name and type, and replace those of a run.
    kwargs: dict[str, Any] = {
        **site.make_evaluation_arguments(model.fqn),
        "runtime_stage": RuntimeStage.AUDITING,
        **{name: value for name, value in arguments.items() if name != "blocking"},
    }
    render = partial(model.render_audit_query, audit, **kwargs)
    yield from renderer.render_statements(
        f"audit {audit.name}", f"{audit.query_.sql} {given}", [render], part=True
    )


def _list_merge_statements(
    model: Model, renderer: StatementRenderer
) -> Iterator[RenderedStatement]:
    """Lists the conditions and assignments of a MERGE that SQLMesh makes, each as a query."""
    for name in ("merge_filter", "when_matched", "unique_key"):
        given = getattr(model, name, None)
        trees = given if isinstance(given, list) else [given] if given is not None else []
        for part in (part for tree in trees for part in _iterate_merge_expressions(tree)):
            text = part.sql(dialect=renderer.dialect)
            if may_run_code(text, model):
                yield from renderer.render_statements(
                    "merge", text, [partial(_wrap_in_query, text)], part=True
                )


def _wrap_in_query(expression: str) -> str:
    if "@" in expression:
        raise ValueError("a macro")
    return f"SELECT {expression}"


def _iterate_merge_expressions(tree: exp.Expr) -> Iterator[exp.Expr]:
    if tree.key != "whens":
        yield tree
        return
    for when in tree.expressions:
        for part in (
            when.args.get("condition"),
            *_iterate_assignments(when.args.get("then")),
        ):
            if part is not None:
                yield part


def _iterate_assignments(then: exp.Expr) -> Iterator[exp.Expr]:
    for part in (then.args.get("expression"), *then.expressions) if then is not None else ():
        if part is not None:
            yield part


def _list_table_clauses(
    model: Model, site: StatementRenderSite, renderer: StatementRenderer
) -> Iterator[RenderedStatement]:
    """Lists format and properties of the table and of the view, as clauses of CREATE."""
    evaluation = {
        **site.make_evaluation_arguments(model.fqn, ()),
        "runtime_stage": RuntimeStage.CREATING,
    }
    for slot, method in (
        ("table properties", "render_physical_properties"),
        ("view properties", "render_virtual_properties"),
    ):
        render = partial(
            _render_create_statement, model, partial(getattr(model, method), **evaluation), renderer
        )
        yield from renderer.render_statements(slot, slot, [render], part=True)


def _render_create_statement(
    model: Model, properties: Callable[[], Any], renderer: StatementRenderer
) -> str:
    clauses = sqlmesh_compat.render_sqlmesh_table_clauses(model, properties(), renderer.dialect)
    return f"CREATE TABLE {'.'.join(PLACEHOLDER)} (a INT) {clauses}"


def may_run_code(sql: str, node: Node) -> bool:
    """Whether a query could run code, so it must be rendered; most texts show that they cannot.

    The values of variables, and the definitions beside a query, count as its text.
    """
    values = [item.payload for item in node.python_env.values() if item.is_value]
    for attribute in _SLOTS:
        values += [item.sql for item in getattr(node, attribute, None) or ()]
    whole = " ".join((sql, *values))
    if _COMPOSES.search(sql) or not renders_without_project_code(node, sql):
        return True
    transform = _TRANSFORM.search(whole)
    uses = transform is not None and _USING.search(whole, transform.end()) is not None
    return uses or bool(_MAY_RUN_CODE.search(whole))
