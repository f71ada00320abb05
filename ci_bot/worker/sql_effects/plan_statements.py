"""The effects of all statements of a plan: around its changed models, before all and after all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlglot.errors import SqlglotError
from sqlmesh.core.audit import StandaloneAudit

from ci_bot.errors import RequestRefused
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.sql_effects import render_site, statement_sources
from ci_bot.worker.sql_effects.effects import OwnObjects
from ci_bot.worker.sql_effects.judgement import (
    EffectKey,
    JudgedEffect,
    RenderedStatement,
    judge_hidden_literals,
    judge_statements,
    list_effect_keys,
    make_effect_key,
)
from ci_bot.worker.sql_effects.render_site import StatementRenderSite

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.snapshot import Node


def judge_statement_effects_of_plan(context: Context, planned: BuiltPlan) -> list[JudgedEffect]:
    """Judges the statements that this plan would execute.

    Each statement is rendered for the pull request's environment, and for prod, because a merge
    would execute it there. An effect in both is reported once. If the plan does not change a model,
    its statements are not executed, so they are not checked. The engine is not asked.
    """
    diff = planned.plan.context_diff
    both = render_site.make_statement_sites_of_plan(context, planned)
    found: list[JudgedEffect] = []
    for snapshot in planned.changed_snapshots:
        _, old = diff.modified_snapshots.get(snapshot.name, (None, None))
        found += _judge_node_statements(snapshot.node, old.node if old is not None else None, both)
    now = partial(_list_environment_statements, diff.environment_statements)
    then = partial(_list_environment_statements, diff.previous_environment_statements)
    return [*found, *_judge_new_statements(now, then, attrgetter("own_objects"), both)]


def judge_statement_effects_of_models(
    pairs: Iterable[tuple[Any, Any]], dialect: str
) -> list[JudgedEffect]:
    """Judges the statements of models without a plan; names stay as the project writes them.

    Args:
        pairs: a model, and the same model of prod or None.
    """
    return [
        item
        for model, old in pairs
        for item in _judge_node_statements(
            model,
            old,
            [render_site.make_statement_site_without_plan(model, dialect or model.dialect)],
        )
    ]


def check_statement_effects_of_plan(
    context: Context, planned: BuiltPlan, names: MessageNames
) -> None:
    """Refuses a plan with a new statement that writes elsewhere, loads code or cannot be judged.

    A statement that prod's version of the project already executes is not new.

    Raises:
        RequestRefused: names the first such statement with its model, slot, kind and target.
    """
    for item in judge_statement_effects_of_plan(context, planned):
        if item.severity == "blocker" and not item.in_prod:
            statement, action = item.statement, item.effect.action
            loads, unknown, fails = (action == each for each in ("code", "unknown", "fails"))
            where = f" of {names.short_name(statement.model)}" if statement.model else ""
            raise RequestRefused(
                f"The {statement.slot}{where} is new or changed and {item.description}. "
                f"Nothing was built.",
                hint="Write the statement as this message says, or take it out."
                if fails
                else "An apply changes only the views and tables of its own environment. Take the "
                "statement out, or let a person run it once.",
                reason_code="loads_code"
                if loads
                else "unknown_statement"
                if unknown
                else "statement_fails"
                if fails
                else "writes_elsewhere",
            )


def _judge_node_statements(
    node: Node, old: Node | None, where: Sequence[StatementRenderSite]
) -> list[JudgedEffect]:
    """Judges the statements of one model or audit.

    A query does not contain the environment's name, so it is rendered for one environment only.
    """

    def list_statements(of: Node | None, site: StatementRenderSite) -> Iterator[RenderedStatement]:
        if isinstance(of, StandaloneAudit):
            yield from (
                statement_sources.list_standalone_statements(of, site) if site is where[0] else ()
            )
        elif of is not None:
            yield from statement_sources.list_model_statements(of, site)
            yield from statement_sources.list_inner_statements(of, site) if site is where[0] else ()

    return _judge_new_statements(
        partial(list_statements, node),
        partial(list_statements, old),
        lambda s: s.select_own_objects(node),
        where,
    )


def _list_environment_statements(
    items: Iterable[EnvironmentStatements], site: StatementRenderSite
) -> Iterator[RenderedStatement]:
    for item in items:
        yield from statement_sources.list_project_statements(item, site)


def _judge_new_statements(
    now: Callable[[StatementRenderSite], Iterable[RenderedStatement]],
    then: Callable[[StatementRenderSite], Iterable[RenderedStatement]],
    own: Callable[[StatementRenderSite], OwnObjects],
    where: Sequence[StatementRenderSite],
) -> list[JudgedEffect]:
    """Judges the statements of `now` for each environment; an effect in several is reported once.

    Own objects, and the statements of prod (`then`), are listed only if there is an effect: a
    project can have thousands of models, and most have no statements.
    """
    found: list[JudgedEffect] = []
    literal: list[RenderedStatement] = []
    done: set[EffectKey] = set()
    for site in where:
        texts, literal_of_site = _split_off_literals(now(site))
        literal = literal or literal_of_site  # the same for each environment
        if literal or any(e.action != "nothing" for each in texts for e in each.effects):
            ours = own(site)
            done |= list_effect_keys(texts, ours)
            found += _mark_effects_of_prod(
                judge_statements(texts, ours),
                partial(_list_prod_effects, then, site, ours),
            )
    if literal:
        here = where[0]
        found += _mark_effects_of_prod(
            judge_hidden_literals(literal, own(here), done),
            partial(_list_prod_literals, then, here),
        )
    return _merge_equal_effects(found)


def _split_off_literals(
    statements: Iterable[RenderedStatement],
) -> tuple[list[RenderedStatement], list[RenderedStatement]]:
    """Splits statements into those that were rendered, and the literal SQL in sources."""
    every = list(statements)
    return [s for s in every if s.literal is None], [s for s in every if s.literal is not None]


def _mark_effects_of_prod(
    items: Iterable[JudgedEffect], known: Callable[[], set[tuple[str, str]]]
) -> list[JudgedEffect]:
    """Marks each effect that prod's version of the project already has."""
    found = list(items)
    try:
        before = known() if found else set()
    except SqlglotError:  # an older SQLMesh stored text that this one cannot parse
        before = set()
    return [replace(item, in_prod=make_effect_key(item) in before) for item in found]


def _list_prod_effects(
    then: Callable[[StatementRenderSite], Iterable[RenderedStatement]],
    site: StatementRenderSite,
    own: OwnObjects,
) -> set[tuple[str, str]]:
    return {
        make_effect_key(item) for item in judge_statements(_split_off_literals(then(site))[0], own)
    }


def _list_prod_literals(
    then: Callable[[StatementRenderSite], Iterable[RenderedStatement]],
    site: StatementRenderSite,
) -> set[tuple[str, str]]:
    return {(statement.slot, statement.source) for statement in _split_off_literals(then(site))[1]}


def _merge_equal_effects(found: Iterable[JudgedEffect]) -> list[JudgedEffect]:
    """Keeps each effect of a statement once, even if the statement is rendered several times."""
    kept: dict[Any, JudgedEffect] = {}
    for item in found:
        effect = item.effect
        target = effect.target if item.severity == "blocker" else None
        what = (effect.action, effect.kind, effect.detail, target)
        kept.setdefault((item.statement.slot, item.in_prod, what), item)
    return list(kept.values())
