"""What all statements of a plan do: those of its changed models, and those around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from sqlglot.errors import SqlglotError

from ci_bot.errors import Refused
from ci_bot.worker.messages import Names
from ci_bot.worker.planning import Planned
from ci_bot.worker.sql_effects import rendered, statement_sources
from ci_bot.worker.sql_effects.effects import Own
from ci_bot.worker.sql_effects.judgement import (
    Deed,
    JudgedEffect,
    Statement,
    deeds,
    hidden,
    judged,
    key,
)
from ci_bot.worker.sql_effects.statement_sources import Site


def judge_plan(context: Any, planned: Planned) -> list[JudgedEffect]:
    """What the statements that this plan would execute do outside the environment, or to it.

    Each statement is rendered for the pull request's environment, and for prod, where a merge would
    execute it; what both do is told once. Statements of models that the plan leaves alone are not
    executed, so they are not looked at. Nothing asks the engine.
    """
    diff = planned.plan.context_diff
    both = statement_sources.of_plan(context, planned)
    found: list[JudgedEffect] = []
    for snapshot in planned.changed:
        _, old = diff.modified_snapshots.get(snapshot.name, (None, None))
        found += _of_node(snapshot.node, old.node if old is not None else None, both)
    now = partial(_of_environment, diff.environment_statements)
    then = partial(_of_environment, diff.previous_environment_statements)
    return [*found, *_judged(now, then, attrgetter("own"), both)]


def judge_models(pairs: Iterable[tuple[Any, Any]], dialect: str) -> list[JudgedEffect]:
    """The same without a plan, for (model, model of prod or None): names stay the project's."""
    return [
        item
        for model, old in pairs
        for item in _of_node(
            model, old, [statement_sources.without_plan(model, dialect or model.dialect)]
        )
    ]


def check_statements(context: Any, planned: Planned, names: Names) -> None:
    """Refuses a plan with a new statement that writes elsewhere, loads code or cannot be judged.

    What prod's version of the project executes already is not this plan's doing.

    Raises:
        Refused: names the first such statement with its model, slot, kind and target.
    """
    for item in judge_plan(context, planned):
        if item.severity == "blocker" and not item.standing:
            statement, action = item.statement, item.effect.action
            loads, unknown, fails = (action == each for each in ("code", "unknown", "fails"))
            where = f" of {names.of(statement.model)}" if statement.model else ""
            raise Refused(
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


def _of_node(node: Any, old: Any, where: Sequence[Site]) -> list[JudgedEffect]:
    """One model or audit. Names of environments do not reach its query: one rendering is enough."""

    def read(of: Any, site: Site) -> Iterator[Statement]:
        if of is not None and of.is_audit:
            yield from statement_sources.of_standalone(of, site) if site is where[0] else ()
        elif of is not None:
            yield from rendered.of_model(of, site)
            yield from statement_sources.inside_model(of, site) if site is where[0] else ()

    return _judged(partial(read, node), partial(read, old), lambda s: s.own_of(node), where)


def _of_environment(items: Iterable[Any], site: Site) -> Iterator[Statement]:
    for item in items:
        yield from rendered.environment_statements(item, site)


def _judged(
    now: Callable[[Site], Iterable[Statement]],
    then: Callable[[Site], Iterable[Statement]],
    own: Callable[[Site], Own],
    where: Sequence[Site],
) -> list[JudgedEffect]:
    """What of `now` is worth telling, in each environment; what two do is told once.

    What is own, and prod's side, `then`, are looked at only where something is done: there are
    projects of thousands of models, and most have no statements.
    """
    found: list[JudgedEffect] = []
    literal: list[Statement] = []
    done: set[Deed] = set()
    for site in where:
        texts, stands = _sorted(now(site))
        literal = literal or stands  # the same wherever it is rendered for
        if literal or any(e.action != "nothing" for each in texts for e in each.effects):
            ours = own(site)
            done |= deeds(texts, ours)
            found += _marked(judged(texts, ours), partial(_kept, then, site, ours))
    if literal:
        here = where[0]
        found += _marked(hidden(literal, own(here), done), partial(_written, then, here))
    return _once(found)


def _sorted(statements: Iterable[Statement]) -> tuple[list[Statement], list[Statement]]:
    """Those that were rendered, and what stands literally in their sources."""
    every = list(statements)
    return [s for s in every if s.literal is None], [s for s in every if s.literal is not None]


def _marked(
    items: Iterable[JudgedEffect], known: Callable[[], set[tuple[str, str]]]
) -> list[JudgedEffect]:
    """The same, with what prod's version of the project does already marked as standing."""
    found = list(items)
    try:
        before = known() if found else set()
    except SqlglotError:  # an older version of SQLMesh stored what this one cannot parse
        before = set()
    return [replace(item, standing=key(item) in before) for item in found]


def _kept(
    then: Callable[[Site], Iterable[Statement]], site: Site, own: Own
) -> set[tuple[str, str]]:
    return {key(item) for item in judged(_sorted(then(site))[0], own)}


def _written(then: Callable[[Site], Iterable[Statement]], site: Site) -> set[tuple[str, str]]:
    return {(statement.slot, statement.source) for statement in _sorted(then(site))[1]}


def _once(found: Iterable[JudgedEffect]) -> list[JudgedEffect]:
    """The same deed of the same place is told once, however often it is rendered."""
    kept: dict[Any, JudgedEffect] = {}
    for item in found:
        effect = item.effect
        target = effect.target if item.severity == "blocker" else None
        what = (effect.action, effect.kind, effect.detail, target)
        kept.setdefault((item.statement.slot, item.standing, what), item)
    return list(kept.values())
