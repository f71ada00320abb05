"""What all statements of a plan do: those of its changed models, and those around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ci_bot.errors import Refused
from ci_bot.worker.names import Names
from ci_bot.worker.planning import Planned
from ci_bot.worker.statements import rendered, sites
from ci_bot.worker.statements.effects import Own
from ci_bot.worker.statements.judging import Judged, Statement, judged, key
from ci_bot.worker.statements.sites import Site

_CODES = {"code": "loads_code", "unknown": "unknown_statement"}


def judge_plan(context: Any, planned: Planned) -> list[Judged]:
    """What the statements that this plan would execute do outside the environment, or to it.

    Each statement is rendered for the pull request's environment, and for prod, where a merge would
    execute it; what both do is told once. Statements of models that the plan leaves alone are not
    executed, so they are not looked at. Nothing asks the engine.
    """
    diff = planned.plan.context_diff
    here, in_prod = sites.of_plan(context, planned)
    found: list[Judged] = []
    for snapshot in planned.changed:
        _, old = diff.modified_snapshots.get(snapshot.name, (None, None))
        old_node = old.node if old is not None else None
        for site in (here, in_prod):
            # Environment names do not reach queries, so one rendering of them is enough.
            inner = site is here
            found += _of_node(snapshot.node, old_node, site, inner=inner)
    for site in (here, in_prod):
        found += _judged(
            partial(_around, diff.environment_statements, site),
            partial(_around, diff.previous_environment_statements, site),
            partial(getattr, site, "own"),
        )
    return _once(found)


def judge_models(pairs: Iterable[tuple[Any, Any]], dialect: str) -> list[Judged]:
    """The same without a plan, for (model, model of prod or None): names stay the project's."""
    found: list[Judged] = []
    for model, old in pairs:
        site = sites.without_plan(model, dialect or model.dialect)
        found += _of_node(model, old, site, inner=True)
    return _once(found)


def check_statements(context: Any, planned: Planned, names: Names) -> None:
    """Refuses a plan with a new statement that writes elsewhere, loads code or cannot be judged.

    What prod's version of the project executes already is not this plan's doing.

    Raises:
        Refused: names the first such statement with its model, slot, kind and target.
    """
    for item in judge_plan(context, planned):
        if item.severity == "blocker" and not item.standing:
            statement = item.statement
            where = f" of {names.of(statement.model)}" if statement.model else ""
            raise Refused(
                f"The {statement.slot}{where} is new or changed and {item.said}. Nothing was "
                f"built.",
                hint="An apply changes only the views and tables of its own environment. Take the "
                "statement out, or let a person run it once.",
                reason_code=_CODES.get(item.effect.action, "writes_elsewhere"),
            )


def _of_node(node: Any, old: Any, site: Site, *, inner: bool) -> list[Judged]:
    return _judged(
        partial(_inside, node, site, inner),
        partial(_inside, old, site, inner),
        partial(site.own_of, node),
    )


def _inside(node: Any, site: Site, inner: bool) -> Iterator[Statement]:
    if node is not None and node.is_audit:
        yield from rendered.of_standalone(node, site)
    elif node is not None:
        yield from rendered.of_model(node, site)
        if inner:
            yield from rendered.inside_model(node, site)


def _around(items: Iterable[Any], site: Site) -> Iterator[Statement]:
    for item in items:
        yield from rendered.around_plan(item, site)


def _judged(
    now: Callable[[], Iterable[Statement]],
    then: Callable[[], Iterable[Statement]],
    own: Callable[[], Own],
) -> list[Judged]:
    """What of `now` is worth telling.

    What is own, and prod's side, `then`, are looked at only where something is done: there are
    projects of thousands of models, and most have no statements.
    """
    statements = list(now())
    if all(effect.action == "nothing" for each in statements for effect in each.effects):
        return []
    ours = own()
    found = list(judged(statements, ours))
    known = {key(item) for item in judged(then(), ours)} if found else set()
    return [replace(item, standing=key(item) in known) for item in found]


def _once(found: Iterable[Judged]) -> list[Judged]:
    """The same deed of the same place is told once, however often it is rendered."""
    kept: dict[Any, Judged] = {}
    for item in found:
        effect = item.effect
        target = effect.target if item.severity == "blocker" else None
        what = (effect.action, effect.kind, effect.detail, target)
        kept.setdefault((item.statement.slot, item.statement.model, item.standing, what), item)
    return list(kept.values())
