"""Macros and other project code: side effects, and values that change from run to run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.current_time import CurrentTime, RandomValue
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_change, on_file, on_new_model
from ci_bot.worker.rules.statement_rules import SETTING
from ci_bot.worker.sql import (
    ModelQueries,
    find_clock_calls_in,
    find_random_calls_in,
    find_side_effects,
    parse_python,
)
from ci_bot.worker.sql_effects import (
    find_effect_of_setting,
    find_setting_spelling,
    list_statement_effects,
)
from ci_bot.worker.sqlmesh_compat import is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

SIDE_EFFECT = find_rule("macro-side-effect")


@on_file(SIDE_EFFECT, CurrentTime.spec, RandomValue.spec)
def find_changed_macro_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed macro files: each rule checks only the calls that the change adds."""
    for path in inputs.changed_files or ():
        tree, old = _parse_both_sides(inputs, path)
        if tree is not None:
            yield from _observe_call(path, inputs.read_text_after(path) or "", tree, old)


def list_new_calls_in_macro_file(
    inputs: RuleInputs, path: str, calls_in: Callable[[list[ast.AST]], list[str]]
) -> list[str]:
    """Lists the calls that a changed macro file has more often than before; empty for others."""
    tree, old = _parse_both_sides(inputs, path)
    return _list_calls_more_often(calls_in([tree]), calls_in([old])) if tree is not None else []


def _parse_both_sides(inputs: RuleInputs, path: str) -> tuple[ast.AST | None, ast.AST]:
    """Parses a file of macros after and before the change.

    The first is None if the file is gone, cannot be parsed, or is no macro file. The second is
    empty if there was no such code.
    """
    nothing = ast.Module(body=[], type_ignores=[])
    inside = inputs.find_path_in_project(path)
    is_python = PurePosixPath(path).suffix == ".py"
    if inside is None or not is_python or "macros" not in PurePosixPath(inside).parts:
        return None, nothing
    text = inputs.read_text_after(path)
    tree = parse_python(text) if text is not None else None
    return tree, parse_python(inputs.read_text_before(path) or "") or nothing


def _observe_call(path: str, text: str, tree: ast.AST, old: ast.AST) -> Iterator[RuleObservation]:
    effects = _list_calls_more_often(find_side_effects(tree), find_side_effects(old))
    if effects:
        yield RuleObservation(
            SIDE_EFFECT,
            f"{quote_names(effects)}: macros run while the project is loaded, for every model "
            "that uses them, also on laptops and in CI.",
            "the macro returns SQL and does nothing else",
            path=path,
            line=find_anchor_line(text, _list_anchors(effects)),
            subject=tuple(effects),
        )
    clocks = _list_calls_more_often(find_clock_calls_in([tree]), find_clock_calls_in([old]))
    if clocks:
        yield RuleObservation(
            CurrentTime.spec,
            f"A macro reads the clock ({quote_names(clocks)}), so the query that it makes, and the "
            "fingerprint of each model that uses it, changes from load to load.",
            "the macro uses @execution_ts or start and end",
            path=path,
            line=find_anchor_line(text, _list_anchors(clocks)),
            subject=tuple(clocks),
        )
    chances = _list_calls_more_often(find_random_calls_in([tree]), find_random_calls_in([old]))
    if chances:
        yield RuleObservation(
            RandomValue.spec,
            f"A macro uses chance ({quote_names(chances)}), so each load makes another query.",
            _FROM_ITS_ARGUMENTS,
            path=path,
            line=find_anchor_line(text, _list_anchors(chances)),
            subject=tuple(chances),
        )


def _list_calls_more_often(new: list[str], old: list[str]) -> list[str]:
    """Lists the calls that occur more often than before."""
    return list((Counter(new) - Counter(old)).elements())


def _list_anchors(calls: list[str]) -> tuple[str, ...]:
    return tuple(part for call in calls for part in (call, call.rpartition(".")[2]))


# Settings of the Spark session that Python code changes: `spark.conf.set`, and SET in `spark.sql`.


_EXECUTES = frozenset({"sql", "execute"})


@dataclass(frozen=True)
class _SettingCall:
    """One call that changes a setting: its key ("" if the code computes it), and its value."""

    key: str
    value: str
    line: int


@on_file(SETTING)
def find_settings_in_python_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds settings in changed Python files of a project that were not there before."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix != ".py" or inputs.find_path_in_project(path) is None:
            continue
        old = Counter(
            (found.key, found.value) for found in _iterate_settings(inputs.read_text_before(path))
        )
        for found in _iterate_settings(inputs.read_text_after(path)):
            old[found.key, found.value] -= 1
            if old[found.key, found.value] >= 0:
                continue
            key = find_setting_spelling(found.key) or found.key
            yield RuleObservation(
                SETTING,
                (f"Python sets `{key}`" if key else "Python sets a setting whose name it computes")
                + ", which changes what queries give or where they read and write. SQLMesh builds "
                "all models in one session and sets nothing back: it also holds for models that "
                "are built after it.",
                "the setting is in the connection's `config`, where it holds for all models",
                path=path,
                line=found.line,
                subject=(key or "computed", found.value),
            )


def _iterate_settings(text: str | None) -> Iterator[_SettingCall]:
    """Yields the calls in a file that change a setting, except settings known as harmless."""
    tree = parse_python(text) if text is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        for key, value in _list_settings_of_call(node, node.func):
            if not key or find_effect_of_setting(key, value) in ("values", "places", "unknown"):
                yield _SettingCall(key, value, node.lineno)


def _list_settings_of_call(call: ast.Call, function: ast.Attribute) -> Iterator[tuple[str, str]]:
    """Lists (key, value) of the settings in a call; the key is empty if the code computes it."""
    first, second = (_read_constant_argument(call, at) for at in (0, 1))
    if function.attr == "set" and _is_spark_conf(function.value) and call.args:
        yield first or "", second or ""
    elif function.attr in ("set", "config") and first is not None and first.startswith("spark."):
        yield first, second or ""
    elif function.attr in _EXECUTES and first is not None:
        for effect in list_statement_effects(first, "spark"):
            if effect.action == "sets":
                yield effect.detail.partition(":")[0], ""


def _read_constant_argument(call: ast.Call, at: int) -> str | None:
    argument = call.args[at] if at < len(call.args) else None
    return str(argument.value) if isinstance(argument, ast.Constant) else None


def _is_spark_conf(node: ast.expr) -> bool:
    """Whether a node is `spark.conf`, `context.spark.conf`, or `conf`."""
    return (isinstance(node, ast.Attribute) and node.attr == "conf") or (
        isinstance(node, ast.Name) and node.id == "conf"
    )


# Macros in Python that read the clock or draw random values while they write a model's query.
#
# The query shows only a date or a number, and not its source.


_FROM_THE_RUN = "the macro writes @execution_ts (or start and end) into the query"
_FROM_ITS_ARGUMENTS = "the macro returns the same SQL for the same arguments"

_JINJA_CALL = re.compile(r"\b(\w+)\s*\(")


@dataclass(frozen=True)
class MacroFunction:
    """A function that helps to write a query; `imports` are those of the model's whole code."""

    source: str
    imports: str
    path: str | None


@on_change(CurrentTime.spec, RandomValue.spec)
def find_changed_macros(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds clocks and random values that the macros of a model read now, and did not before."""
    yield from _observe_macro_files_of_pair(pair.after, pair.before, inputs, pair.queries)


@on_new_model(CurrentTime.spec, RandomValue.spec)
def find_macros_of_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds clocks and random values that the macros of a new model read."""
    yield from _observe_macro_files_of_pair(model, None, inputs, ModelQueries())


def _observe_macro_files_of_pair(
    after: Model, before: Model | None, inputs: RuleInputs, queries: ModelQueries
) -> Iterator[RuleObservation]:
    if not after.is_sql:
        return
    now = _list_macro_files_of_model(after, queries)
    was = _list_macro_files_of_model(before, queries) if before is not None else {}
    own_file = inputs.find_path(after) in (inputs.changed_files or ())
    for spec, calls_in, effect, clears in (
        (CurrentTime.spec, find_clock_calls_in, "reads the clock", _FROM_THE_RUN),
        (RandomValue.spec, find_random_calls_in, "uses chance", _FROM_ITS_ARGUMENTS),
    ):
        old = Counter(_list_calls_of_macros(was.values(), calls_in))
        found: dict[str, list[str]] = {}
        for name, macro in now.items():
            calls = Counter(_list_calls_of_macros([macro], calls_in)) - old
            # A changed file of macros has one finding for all models that use it.
            if calls and (own_file or not _has_macro_new_calls(macro, inputs, calls_in)):
                found[name] = sorted(calls)
        if found:
            yield RuleObservation(
                spec,
                f"The macro {quote_names(f'@{name}' for name in found)} {effect} "
                f"({quote_names(call for calls in found.values() for call in calls)}) while it "
                "writes the query: each load makes another query, so every plan may find a "
                "change, and prod keeps what was true when its plan was made.",
                clears,
                model=after,
                subject=tuple(
                    f"@{name}: {call}" for name, calls in found.items() for call in calls
                ),
                anchors=tuple(f"@{name}" for name in found),
            )


def _list_macro_files_of_model(model: Model, queries: ModelQueries) -> Mapping[str, MacroFunction]:
    """Maps the names of the macros that write a model's query to their code.

    These are the macros that the query calls, and those that they call. SQLMesh also stores
    signals, and the macros of audits and statements, with the model.
    """
    code = {
        name: item
        for name, item in model.python_env.items()
        if _name_macro_kind(item) == "definition"
    }
    if not code:
        return {}
    imported = "\n".join(
        item.payload for item in model.python_env.values() if _name_macro_kind(item) == "import"
    )
    query = queries.query_of(model)
    if query is None or not is_sql_model(model):
        return {}
    if query.written is None:
        used = {name.lower() for name in _JINJA_CALL.findall(str(model.query_.sql))}
    else:
        used = {
            str(c.this.name or c.name).lower() for c in query.written_tree.find_all(d.MacroFunc)
        }
    waiting = [name for name in code if name.lower() in used]
    found: dict[str, MacroFunction] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = MacroFunction(code[name].payload, imported, code[name].path)
            words = set(re.findall(r"\w+", code[name].payload))
            waiting += [other for other in code if other in words]
    return found


def _name_macro_kind(item: Any) -> str:
    return str(getattr(item.kind, "value", item.kind))


def _list_calls_of_macros(
    macros: Iterable[MacroFunction], calls_in: Callable[[list[Any]], list[str]]
) -> list[str]:
    texts = [text for macro in macros for text in (macro.imports, macro.source)]
    return calls_in([tree for tree in map(parse_python, texts) if tree is not None])


def _has_macro_new_calls(
    macro: MacroFunction, inputs: RuleInputs, calls_in: Callable[[list[Any]], list[str]]
) -> bool:
    return any(
        bool(list_new_calls_in_macro_file(inputs, path, calls_in))
        for path in inputs.changed_files or ()
        if macro.path is not None and inputs.find_path_in_project(path) == macro.path
    )
