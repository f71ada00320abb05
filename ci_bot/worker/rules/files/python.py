"""Macros and other project code: side effects, and values that change from run to run."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.clock import CurrentTime, RandomValue
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.place import line_of
from ci_bot.worker.rules.registry import on_file
from ci_bot.worker.rules.sql.python_code import (
    clock_calls_in,
    parse,
    random_calls_in,
    side_effects_in,
)

SIDE_EFFECT = rule("macro-side-effect")


@on_file(SIDE_EFFECT, CurrentTime.spec, RandomValue.spec)
def macros(inputs: RuleInputs) -> Iterator[Observation]:
    """Changed macro files: each rule looks at what the change adds."""
    for path in inputs.changed_files or ():
        tree, old = _trees(inputs, path)
        if tree is not None:
            yield from _found(path, inputs.text_after(path) or "", tree, old)


def list_new_calls(
    inputs: RuleInputs, path: str, calls_in: Callable[[list[ast.AST]], list[str]]
) -> list[str]:
    """The calls that a changed file of macros has more often than before."""
    tree, old = _trees(inputs, path)
    return _more(calls_in([tree]), calls_in([old])) if tree is not None else []


def _trees(inputs: RuleInputs, path: str) -> tuple[ast.AST | None, ast.AST]:
    """A file of macros after and before the change; no tree where it is none or does not parse."""
    nothing = ast.Module(body=[], type_ignores=[])
    inside = inputs.in_project(path)
    is_python = PurePosixPath(path).suffix == ".py"
    if inside is None or not is_python or "macros" not in PurePosixPath(inside).parts:
        return None, nothing
    text = inputs.text_after(path)
    tree = parse(text) if text is not None else None
    return tree, parse(inputs.text_before(path) or "") or nothing


def _found(path: str, text: str, tree: ast.AST, old: ast.AST) -> Iterator[Observation]:
    effects = _more(side_effects_in(tree), side_effects_in(old))
    if effects:
        yield Observation(
            SIDE_EFFECT,
            f"{names(effects)}: macros run while the project is loaded, for every model that uses "
            "them, also on laptops and in CI.",
            "the macro returns SQL and does nothing else",
            path=path,
            line=line_of(text, _anchors(effects)),
            subject=tuple(effects),
        )
    clocks = _more(clock_calls_in([tree]), clock_calls_in([old]))
    if clocks:
        yield Observation(
            CurrentTime.spec,
            f"A macro reads the clock ({names(clocks)}), so the query that it makes, and the "
            "fingerprint of each model that uses it, changes from load to load.",
            "the macro uses @execution_ts or start and end",
            path=path,
            line=line_of(text, _anchors(clocks)),
            subject=tuple(clocks),
        )
    chances = _more(random_calls_in([tree]), random_calls_in([old]))
    if chances:
        yield Observation(
            RandomValue.spec,
            f"A macro uses chance ({names(chances)}), so each load makes another query.",
            "the macro returns the same SQL for the same arguments",
            path=path,
            line=line_of(text, _anchors(chances)),
            subject=tuple(chances),
        )


def _more(new: list[str], old: list[str]) -> list[str]:
    """The calls that are there more often than before."""
    return list((Counter(new) - Counter(old)).elements())


def _anchors(calls: list[str]) -> tuple[str, ...]:
    return tuple(part for call in calls for part in (call, call.rpartition(".")[2]))
