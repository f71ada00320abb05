"""Every statement that SQLMesh makes of a model, an audit or the project, as the engine gets it.

The places were found by reading SQLMesh's evaluator and scheduler. Python code that speaks with the
engine by itself (Python models, custom materializations, signals, macros with the engine's adapter)
makes statements that nobody can see before they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d
from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.sql_effects.judgement import RenderedStatement
from ci_bot.worker.sql_effects.render_site import RenderArguments, RenderSite
from ci_bot.worker.sql_effects.statement_sources import (
    StatementPlace,
    calls_nothing,
    list_render_stages,
    render_code_key,
)

if TYPE_CHECKING:
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.model import Model


def list_model_statements(model: Model, site: RenderSite) -> Iterator[RenderedStatement]:
    """Lists the statements around a model's query and on its virtual update, each text once."""
    place = StatementPlace(model.fqn, site.dialect_of(model), render_code_key(model))
    evaluation = partial(site.evaluation_arguments, model.fqn)
    for slot, trees in (
        ("pre-statement", model.pre_statements),
        ("post-statement", model.post_statements),
    ):
        for tree in trees:
            source = tree.sql(dialect=model.dialect)
            yield from _render_statement_variants(
                place, slot, model, tree, evaluation, list_render_stages(model, source)
            )
    promotion = partial(site.promotion_arguments, model.fqn)
    stages = (RuntimeStage.PROMOTING,)
    for tree in model.on_virtual_update:
        yield from _render_statement_variants(
            place, "on-virtual-update", model, tree, promotion, stages
        )


def _render_statement_variants(
    place: StatementPlace,
    slot: str,
    model: Model,
    tree: exp.Expr,
    context: Callable[..., RenderArguments],
    stages: tuple[RuntimeStage, ...],
) -> Iterator[RenderedStatement]:
    if not isinstance(tree, d.MacroDef):
        source = tree.sql(dialect=model.dialect)
        # Only code of the project can ask for models that a statement does not name.
        led = _named_only if calls_nothing(model, source) else _with_all
        renders = [partial(led, context, model, tree, stage) for stage in stages]
        yield from place.render_statements(slot, source, renders)
    yield from place.list_hidden_statements(slot, model.dialect, tree)


def _with_all(
    context: Callable[..., RenderArguments], model: Model, tree: exp.Expr, stage: RuntimeStage
) -> list[exp.Expr] | None:
    return sqlmesh_compat.render_statement(model, tree, **context(), runtime_stage=stage)


def _named_only(
    context: Callable[..., RenderArguments], model: Model, tree: exp.Expr, stage: RuntimeStage
) -> list[exp.Expr] | None:
    """Rendering with the names of those models led to tables that the statement names.

    To lead the names of a thousand models takes SQLMesh a second for each statement.
    """
    first = sqlmesh_compat.render_statement(model, tree, **context(()), runtime_stage=stage)
    tables = {
        exp.table_name(table, identify=True)
        for one in first or ()
        for table in one.find_all(exp.Table)
    }
    led = context(tables)
    if len(led.get("snapshots", ())) <= 1:
        return first
    return sqlmesh_compat.render_statement(model, tree, **led, runtime_stage=stage)


def list_environment_statements_of_site(
    item: EnvironmentStatements, site: RenderSite
) -> Iterator[RenderedStatement]:
    """The before_all and after_all statements of one project (`EnvironmentStatements`)."""
    place = StatementPlace(None, site.default_dialect, render_code_key(item))
    for stage in (RuntimeStage.BEFORE_ALL, RuntimeStage.AFTER_ALL):
        for source in getattr(item, stage.value):
            try:
                trees = d.parse(source, default_dialect=place.dialect)
            except SqlglotError:
                yield place.unreadable_statement(stage.value, source)
                continue
            for tree in trees:
                render = partial(
                    sqlmesh_compat.render_environment_statements,
                    item,
                    tree,
                    place.dialect,
                    site.catalog or None,
                    **site.environment_context(),
                    runtime_stage=stage,
                )
                yield from place.render_statements(stage.value, source, [render])
                yield from place.list_hidden_statements(stage.value, place.dialect, tree)
