"""What all statements of a plan do: those of its changed models, and those around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlglot.errors import SqlglotError

from ci_bot.errors import RequestRefused
from ci_bot.worker.messages import ModelNames
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.sql_effects import render_site, rendered, statement_sources
from ci_bot.worker.sql_effects.effects import OwnObjects
from ci_bot.worker.sql_effects.judgement import (
    EffectKey,
    JudgedEffect,
    RenderedStatement,
    effect_key,
    judge_hidden_literals,
    judge_statements,
    list_effect_keys,
)
from ci_bot.worker.sql_effects.render_site import RenderSite

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.snapshot import Node


def judge_plan(context: Context, planned: BuiltPlan) -> list[JudgedEffect]:
    """What the statements that this plan would execute do outside the environment, or to it.

    Each statement is rendered for the pull request's environment, and for prod, where a merge would
    execute it; what both do is reported once. Statements of models that the plan leaves alone are
    not executed, so they are not checked. Nothing asks the engine.
    """
    diff = planned.plan.context_diff
    both = render_site.make_plan_sites(context, planned)
    found: list[JudgedEffect] = []
    for snapshot in planned.changed_snapshots:
        _, old = diff.modified_snapshots.get(snapshot.name, (None, None))
        found += _judge_node(snapshot.node, old.node if old is not None else None, both)
    now = partial(_list_environment_statements, diff.environment_statements)
    then = partial(_list_environment_statements, diff.previous_environment_statements)
    return [*found, *_judge_new_statements(now, then, attrgetter("own_objects"), both)]


def judge_models(pairs: Iterable[tuple[Any, Any]], dialect: str) -> list[JudgedEffect]:
    """The same without a plan, for (model, model of prod or None): names stay the project's."""
    return [
        item
        for model, old in pairs
        for item in _judge_node(
            model, old, [render_site.make_site_without_plan(model, dialect or model.dialect)]
        )
    ]


def check_statements(context: Context, planned: BuiltPlan, names: ModelNames) -> None:
    """Refuses a plan with a new statement that writes elsewhere, loads code or cannot be judged.

    What prod's version of the project executes already is not this plan's doing.

    Raises:
        Refused: names the first such statement with its model, slot, kind and target.
    """
    for item in judge_plan(context, planned):
        if item.severity == "blocker" and not item.standing:
            statement, action = item.statement, item.effect.action
            loads, unknown, fails = (action == each for each in ("code", "unknown", "fails"))
            where = f" of {names.short_name(statement.model)}" if statement.model else ""
            raise RequestRefused(
                f"The {statement.slot}{where} is new or changed and {item.said}. Nothing was "
                f"built.",
                hint="Write the statement in the way that is named, or take it out."
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


def _judge_node(node: Node, old: Any, where: Sequence[RenderSite]) -> list[JudgedEffect]:
    """One model or audit. Names of environments do not reach its query: one rendering is enough."""

    def read(of: Any, site: RenderSite) -> Iterator[RenderedStatement]:
        if of is not None and of.is_audit:
            yield from (
                statement_sources.list_standalone_statements(of, site) if site is where[0] else ()
            )
        elif of is not None:
            yield from rendered.list_model_statements(of, site)
            yield from statement_sources.list_inner_statements(of, site) if site is where[0] else ()

    return _judge_new_statements(
        partial(read, node), partial(read, old), lambda s: s.own_of(node), where
    )


def _list_environment_statements(
    items: Iterable[EnvironmentStatements], site: RenderSite
) -> Iterator[RenderedStatement]:
    for item in items:
        yield from rendered.list_environment_statements_of_site(item, site)


def _judge_new_statements(
    now: Callable[[RenderSite], Iterable[RenderedStatement]],
    then: Callable[[RenderSite], Iterable[RenderedStatement]],
    own: Callable[[RenderSite], OwnObjects],
    where: Sequence[RenderSite],
) -> list[JudgedEffect]:
    """What of `now` is worth telling, in each environment; what two do is reported once.

    What is own, and prod's side, `then`, are checked only if something is done: there are
    projects of thousands of models, and most have no statements.
    """
    found: list[JudgedEffect] = []
    literal: list[RenderedStatement] = []
    done: set[EffectKey] = set()
    for site in where:
        texts, stands = _sort_statements(now(site))
        literal = literal or stands  # the same wherever it is rendered for
        if literal or any(e.action != "nothing" for each in texts for e in each.effects):
            ours = own(site)
            done |= list_effect_keys(texts, ours)
            found += _mark_known(
                judge_statements(texts, ours), partial(_keys_of_kept, then, site, ours)
            )
    if literal:
        here = where[0]
        found += _mark_known(
            judge_hidden_literals(literal, own(here), done), partial(_keys_of_written, then, here)
        )
    return _merge_equal_effects(found)


def _sort_statements(
    statements: Iterable[RenderedStatement],
) -> tuple[list[RenderedStatement], list[RenderedStatement]]:
    """Those that were rendered, and what stands literally in their sources."""
    every = list(statements)
    return [s for s in every if s.literal is None], [s for s in every if s.literal is not None]


def _mark_known(
    items: Iterable[JudgedEffect], known: Callable[[], set[tuple[str, str]]]
) -> list[JudgedEffect]:
    """The same, with what prod's version of the project does already marked as standing."""
    found = list(items)
    try:
        before = known() if found else set()
    except SqlglotError:  # an older version of SQLMesh stored what this one cannot parse
        before = set()
    return [replace(item, standing=effect_key(item) in before) for item in found]


def _keys_of_kept(
    then: Callable[[RenderSite], Iterable[RenderedStatement]], site: RenderSite, own: OwnObjects
) -> set[tuple[str, str]]:
    return {effect_key(item) for item in judge_statements(_sort_statements(then(site))[0], own)}


def _keys_of_written(
    then: Callable[[RenderSite], Iterable[RenderedStatement]], site: RenderSite
) -> set[tuple[str, str]]:
    return {(statement.slot, statement.source) for statement in _sort_statements(then(site))[1]}


def _merge_equal_effects(found: Iterable[JudgedEffect]) -> list[JudgedEffect]:
    """The same effect of the same place is reported once, however often it is rendered."""
    kept: dict[Any, JudgedEffect] = {}
    for item in found:
        effect = item.effect
        target = effect.target if item.severity == "blocker" else None
        what = (effect.action, effect.kind, effect.detail, target)
        kept.setdefault((item.statement.slot, item.standing, what), item)
    return list(kept.values())
