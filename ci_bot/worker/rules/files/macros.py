"""Macros in Python that read the clock or chance while they write a model's query.

The query that they write shows a date or a number, and not where it is from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlmesh.core import dialect as d

from ci_bot.worker.rules.files.python import list_new_calls
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.clock import CurrentTime, RandomValue
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.rules.sql.python_code import clock_calls_in, parse, random_calls_in
from ci_bot.worker.rules.sql.queries import Queries

_FROM_THE_RUN = "the macro writes @execution_ts (or start and end) into the query"
_FROM_ITS_ARGUMENTS = "the macro returns the same SQL for the same arguments"
_JINJA_CALL = re.compile(r"\b(\w+)\s*\(")


@dataclass(frozen=True)
class Macro:
    """A function that helps to write a query; `imports` are those of all code of its model."""

    source: str
    imports: str
    path: str | None


@on_change(CurrentTime.spec, RandomValue.spec)
def macros_of_changed(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """What the macros of a model read now and did not read before."""
    yield from _observe(pair.after, pair.before, inputs, pair.queries)


@on_new_model(CurrentTime.spec, RandomValue.spec)
def macros_of_new(model: Any, inputs: RuleInputs) -> Iterator[Observation]:
    """What the macros of a new model read."""
    yield from _observe(model, None, inputs, Queries())


def _observe(
    after: Any, before: Any, inputs: RuleInputs, queries: Queries
) -> Iterator[Observation]:
    if not after.is_sql:
        return
    now = _list_macros(after, queries)
    was = _list_macros(before, queries) if before is not None else {}
    own_file = inputs.path_of(after) in (inputs.changed_files or ())
    for spec, calls_in, told, clears in (
        (CurrentTime.spec, clock_calls_in, "reads the clock", _FROM_THE_RUN),
        (RandomValue.spec, random_calls_in, "uses chance", _FROM_ITS_ARGUMENTS),
    ):
        old = Counter(_calls(was.values(), calls_in))
        found: dict[str, list[str]] = {}
        for name, macro in now.items():
            calls = Counter(_calls([macro], calls_in)) - old
            # A file of macros that changes says it once, for all models that use them.
            if calls and (own_file or not _is_told_of_file(macro, inputs, calls_in)):
                found[name] = sorted(calls)
        if found:
            yield Observation(
                spec,
                f"The macro {names(f'@{name}' for name in found)} {told} "
                f"({names(call for calls in found.values() for call in calls)}) while it writes "
                "the query: each load makes another query, so every plan may find a change, and "
                "prod keeps what was true when its plan was made.",
                clears,
                model=after,
                subject=tuple(
                    f"@{name}: {call}" for name, calls in found.items() for call in calls
                ),
                anchors=tuple(f"@{name}" for name in found),
            )


def _list_macros(model: Any, queries: Queries) -> Mapping[str, Macro]:
    """The code that writes a model's query: the macros that it calls, and what these call.

    Signals and the macros of audits and statements are stored with the model as well.
    """
    code = {name: item for name, item in model.python_env.items() if _kind(item) == "definition"}
    if not code:
        return {}
    imported = "\n".join(
        item.payload for item in model.python_env.values() if _kind(item) == "import"
    )
    query = queries.of(model)
    if query is None:
        return {}
    if query.written is None:
        used = {name.lower() for name in _JINJA_CALL.findall(str(model.query_.sql))}
    else:
        used = {str(c.this.name or c.name).lower() for c in query.written_tree.all(d.MacroFunc)}
    waiting = [name for name in code if name.lower() in used]
    found: dict[str, Macro] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = Macro(code[name].payload, imported, code[name].path)
            words = set(re.findall(r"\w+", code[name].payload))
            waiting += [other for other in code if other in words]
    return found


def _kind(item: Any) -> str:
    return str(getattr(item.kind, "value", item.kind))


def _calls(macros: Iterable[Macro], calls_in: Callable[[list[Any]], list[str]]) -> list[str]:
    texts = [text for macro in macros for text in (macro.imports, macro.source)]
    return calls_in([tree for tree in map(parse, texts) if tree is not None])


def _is_told_of_file(
    macro: Macro, inputs: RuleInputs, calls_in: Callable[[list[Any]], list[str]]
) -> bool:
    return any(
        bool(list_new_calls(inputs, path, calls_in))
        for path in inputs.changed_files or ()
        if macro.path is not None and inputs.in_project(path) == macro.path
    )
