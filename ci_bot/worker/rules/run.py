"""Running every rule on a change, each on its own, and giving every sight its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ci_bot.contracts.plan import Finding
from ci_bot.worker.rules.changes import CHANGE_RULES
from ci_bot.worker.rules.changes.exposure import exposed_by
from ci_bot.worker.rules.files import PROJECT_RULES
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models import MODEL_RULES
from ci_bot.worker.rules.models.base import ProjectView
from ci_bot.worker.rules.pair import pairs, touched
from ci_bot.worker.rules.place import line_of
from ci_bot.worker.rules.queries import Queries
from ci_bot.worker.rules.registry import CRASHED
from ci_bot.worker.rules.sight import Sight, finding
from ci_bot.worker.rules.statements import statements

# Rules that the plan, with its real intervals and batches, answers better.
_LEFT_TO_THE_PLAN = frozenset({"batch-size-missing"})


def find(inputs: RuleInputs) -> list[Finding]:
    """Every finding on the change, in a stable order.

    A rule that fails becomes an info finding, `rule-crashed`, and the others go on.
    """
    sights = list(_all(inputs))
    texts: dict[str, str | None] = {}
    found = [_placed(sight, inputs, texts) for sight in sights]
    unique = {(f.rule, f.model, f.path, f.line, f.evidence): f for f in found}
    return sorted(
        unique.values(),
        key=lambda f: (f.rule, f.model or "", f.path or "", f.line or 0, f.evidence),
    )


def _all(inputs: RuleInputs) -> Iterator[Sight]:
    queries = Queries()
    for project_rule in PROJECT_RULES:
        yield from _safely(partial(project_rule, inputs), _name(project_rule), None)
    yield from _safely(partial(statements, inputs), "statements", None)
    changed = list(_safely_pairs(inputs, queries))
    for pair in changed:
        for change_rule in CHANGE_RULES:
            yield from _safely(
                partial(change_rule, pair, inputs),
                _name(change_rule),
                pair.after,
            )
    yield from _model_rules(inputs, changed, queries)


def _safely_pairs(inputs: RuleInputs, queries: Queries) -> Iterator[Any]:
    if inputs.loaded:
        yield from pairs(inputs, queries)


def _model_rules(inputs: RuleInputs, changed: list[Any], queries: Queries) -> Iterator[Sight]:
    if not inputs.loaded:
        return
    now = ProjectView(
        inputs.after,
        variables=_variables(inputs.config_after),
        row_counts=inputs.row_counts,
        queries=queries,
    )
    then = ProjectView(
        inputs.before,
        variables=_variables(inputs.config_before or inputs.config_after),
        row_counts=inputs.row_counts,
        queries=queries,
    )
    for rule_type in MODEL_RULES:
        if rule_type.spec.id in _LEFT_TO_THE_PLAN:
            continue
        new, old = rule_type(now), rule_type(then)
        for before, after in touched(inputs, changed):
            sights = list(_safely(partial(new.see, after), rule_type.spec.id, after))
            if sights and before is not None:
                known = {
                    sight.evidence
                    for sight in _safely(partial(old.see, before), rule_type.spec.id, before)
                }
                sights = [sight for sight in sights if sight.evidence not in known]
            yield from sights
    for before, after in touched(inputs, changed):
        if before is None:
            yield from _safely(
                partial(exposed_by, after, None, None, inputs), "personal-data-exposed", after
            )


def _variables(config: Any) -> frozenset[str] | None:
    if config is None:
        return None
    names = set(getattr(config, "variables", {}) or {})
    for gateway in (getattr(config, "gateways", {}) or {}).values():
        names |= set(getattr(gateway, "variables", {}) or {})
    return frozenset(name.lower() for name in names)


def _name(rule: Callable[..., Any]) -> str:
    return f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}"


def _safely(run: Callable[[], Iterable[Sight] | None], name: str, model: Any) -> list[Sight]:
    try:
        return list(run() or ())
    except Exception as error:  # the project's own code runs in here, and may raise anything
        return [
            Sight(
                CRASHED,
                f"{name} could not look at this: {type(error).__name__}.",
                "nothing to do; please report it with the model's definition",
                model=model,
            )
        ]


def _placed(sight: Sight, inputs: RuleInputs, texts: dict[str, str | None]) -> Finding:
    path, line = sight.path, sight.line
    if path is None and sight.model is not None:
        path = inputs.path_of(sight.model)
        if path is None:
            twin = inputs.after.get(sight.model.fqn)
            path = inputs.path_of(twin) if twin is not None else None
    if path is not None and line is None:
        if path not in texts:
            texts[path] = inputs.text_after(path)
        text = texts[path]
        if text is not None:
            name = sight.model.name if sight.model is not None else None
            line = line_of(text, sight.anchors, name)
    return finding(replace(sight), path, line)
