"""Settings of the Spark session that Python changes: `spark.conf.set`, and SET in `spark.sql`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.registry import on_file
from ci_bot.worker.rules.sql.python_code import parse
from ci_bot.worker.rules.statements import SETTING
from ci_bot.worker.statements.spark_settings import meaning_of, spelling_of
from ci_bot.worker.statements.text.reading import effects_of

_EXECUTES = frozenset({"sql", "execute"})


@dataclass(frozen=True)
class _Set:
    """One call that changes a setting: its key ("" where it is computed), and its value."""

    key: str
    value: str
    line: int


@on_file(SETTING)
def settings_in_python(inputs: RuleInputs) -> Iterator[Observation]:
    """What changed Python files of a project set that they did not set before."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix != ".py" or inputs.in_project(path) is None:
            continue
        old = Counter((found.key, found.value) for found in _settings(inputs.text_before(path)))
        for found in _settings(inputs.text_after(path)):
            old[found.key, found.value] -= 1
            if old[found.key, found.value] >= 0:
                continue
            key = spelling_of(found.key) or found.key
            yield Observation(
                SETTING,
                (f"Python sets `{key}`" if key else "Python sets a setting whose name it computes")
                + ", which changes what queries give or where they read and write. SQLMesh builds "
                "all models in one session and sets nothing back: it also holds for models that "
                "are built after it.",
                "the setting stands in the connection's `config`, where it holds for all models",
                path=path,
                line=found.line,
                subject=(key or "computed", found.value),
            )


def _settings(text: str | None) -> Iterator[_Set]:
    """The calls in a file that set what is not known to be harmless."""
    tree = parse(text) if text is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        for key, value in _set_by(node, node.func):
            if not key or meaning_of(key, value) in ("values", "places", "unknown"):
                yield _Set(key, value, node.lineno)


def _set_by(call: ast.Call, function: ast.Attribute) -> Iterator[tuple[str, str]]:
    """(key, value) of what a call sets; the key is empty where it is computed."""
    first, second = (_constant(call, at) for at in (0, 1))
    if function.attr == "set" and _is_conf(function.value) and call.args:
        yield first or "", second or ""
    elif function.attr in ("set", "config") and first is not None and first.startswith("spark."):
        yield first, second or ""
    elif function.attr in _EXECUTES and first is not None:
        for effect in effects_of(first, "spark"):
            if effect.action == "sets":
                yield effect.detail.partition(":")[0], ""


def _constant(call: ast.Call, at: int) -> str | None:
    argument = call.args[at] if at < len(call.args) else None
    return str(argument.value) if isinstance(argument, ast.Constant) else None


def _is_conf(node: ast.expr) -> bool:
    """`spark.conf`, `context.spark.conf`, `conf`."""
    return (isinstance(node, ast.Attribute) and node.attr == "conf") or (
        isinstance(node, ast.Name) and node.id == "conf"
    )
