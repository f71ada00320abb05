"""The example of a changed model as a unit test, which SQLMesh runs before it is offered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.executions import ModelExecution, WitnessTest
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.execution import FoundExample
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.sql import SENTINEL_END, SENTINEL_NOW, SENTINEL_START, plain_name

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model

# If a review has more examples, only the first ones become tests.
MOST_WITNESSES = 4
_LONGEST_NAME = 80
_NO_NAME = re.compile(r"\W+")
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# Matches names. A type such as `decimal(10,2)` needs quotes: its comma would end the value.
_PLAIN_TEXT = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
# Words that YAML 1.1 or 1.2 may not read as text.
_YAML_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_HEAD = "# Generated rows. It passes with the change and fails without it.\n"


def add_witnesses(
    context: Context, inputs: RuleInputs, executions: Iterable[ModelExecution]
) -> list[ModelExecution]:
    """Adds each example as a unit test, if the test tells the two versions of the model apart.

    Args:
        context: SQLMesh's context of the head; its test connection runs the tests.
    """
    by_name = {inputs.names.short_name(fqn): fqn for fqn in inputs.judged_models.found}
    names: dict[str, str] = {}
    found: list[ModelExecution] = []
    made = 0
    for one in executions:
        verdict = inputs.judged_models.found.get(by_name.get(one.model, ""))
        if one.example is None or verdict is None or verdict.example is None:
            found.append(one)
            continue
        made += 1
        test: WitnessTest | str = "the review makes tests of its first examples only"
        if made <= MOST_WITNESSES:
            names = names or _name_tables({**inputs.before, **inputs.after})
            test = _make_witness(context, inputs, by_name[one.model], verdict.example, names)
        key = "no_witness" if isinstance(test, str) else "witness"
        found.append(one.model_copy(update={key: test}))
    return found


def _name_tables(models: Mapping[str, Model]) -> dict[str, str]:
    """Maps each model's report name to its table name; call it once, a large project takes time."""
    return {plain_name(fqn): one.name for fqn, one in models.items()}


def _make_witness(
    context: Context, inputs: RuleInputs, fqn: str, example: FoundExample, names: Mapping[str, str]
) -> WitnessTest | str:
    """Makes the test; else returns why there is none, as a part of a sentence."""
    before, after = inputs.before.get(fqn), inputs.after.get(fqn)
    if before is None or after is None:
        return "the model has another name"
    if not sqlmesh_compat.do_tests_run_in_memory(context):
        return "the project's unit tests run on another connection than DuckDB in memory"
    if any(table.rows and not table.columns for table in example.tables):
        return "a table only counts with its rows"
    what = example.differing[0] if example.differing else "rows"
    name = _NO_NAME.sub("_", f"test_{after.view_name}_{what}").strip("_").lower()[:_LONGEST_NAME]
    text = _write_test(name, after, example, names)
    now = sqlmesh_compat.run_test_alone(context, inputs.after, text)
    if now is not None:
        return f"SQLMesh's unit test does not pass with the change ({now})"
    if sqlmesh_compat.run_test_alone(context, inputs.before, text) is None:
        return "SQLMesh's unit test passes without the change, too"
    return WitnessTest(path=f"tests/{name}.yaml", text=text)


def _write_test(name: str, model: Model, example: FoundExample, names: Mapping[str, str]) -> str:
    """Writes the test as YAML, one table row on a line; `names` has the names of its tables."""
    lines = [f"{_write_key(name)}:", f"  model: {_write_value(model.name)}", "  inputs:"]
    for table in example.tables:
        columns = [column for column, _ in table.columns]
        kinds = {column: str(kind) for column, kind in table.columns}
        lines += [f"    {_write_key(names.get(table.name, table.name))}:"]
        lines += [f"      columns: {_write_mapping(kinds.keys(), kinds.values())}"]
        lines += _write_rows(columns, table.rows, 6)
    lines += ["  vars:", f"    start: {SENTINEL_START}", f"    end: {SENTINEL_END}"]
    lines += [f"    execution_time: {SENTINEL_NOW}", "  outputs:"]
    if set(example.columns) != set(model.columns_to_types or {}):
        lines += ["    partial: true"]
    after = [row for _, row in example.rows if row is not None]
    lines += ["    query:", *_write_rows(example.columns, after, 6)]
    return _HEAD + "\n".join([*lines, ""])


def _write_rows(
    columns: Sequence[str], rows: Sequence[Iterable[Any]], indent: int
) -> Iterator[str]:
    yield " " * indent + ("rows:" if rows else "rows: []")
    yield from (" " * (indent + 2) + f"- {_write_mapping(columns, row)}" for row in rows)


def _write_mapping(keys: Iterable[str], items: Iterable[Any]) -> str:
    pairs = zip(keys, items, strict=True)
    return f"{{{', '.join(f'{_write_key(key)}: {_write_value(item)}' for key, item in pairs)}}}"


def _write_key(name: str) -> str:
    is_plain = _PLAIN_KEY.fullmatch(name) and name.lower() not in _YAML_WORDS
    return name if is_plain else json.dumps(name)


def _write_value(value: Any) -> str:
    """Writes a value in YAML, with the quotes of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return str(value) if Decimal(str(float(value))) == value else json.dumps(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write_value, value))}]"
    if isinstance(value, datetime) or not isinstance(value, int | float | date):
        text = str(value)
        is_plain = isinstance(value, str) and _PLAIN_TEXT.fullmatch(text)
        return text if is_plain and text.lower() not in _YAML_WORDS else json.dumps(text)
    return str(value)
