"""The example of a changed model as a unit test, which SQLMesh runs before it is offered."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from ci_bot.protocol.executions import ModelExecution, WitnessTest
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.execution import FoundExample
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.sql import SENTINEL_END, SENTINEL_NOW, SENTINEL_START, plain_name

# Of a review with more examples the first ones become tests.
MOST_WITNESSES = 4
_LONGEST_NAME = 80
_NO_NAME = re.compile(r"\W+")
_HEAD = "# Generated rows. It passes with the change and fails without it.\n"


def add_witnesses(
    context: Any, inputs: RuleInputs, executions: Iterable[ModelExecution]
) -> list[ModelExecution]:
    """The executions, their examples as unit tests if these tell the two versions apart.

    Args:
        context: SQLMesh's, of the head; its test connection runs them.
    """
    by_name = {inputs.names.short_name(fqn): fqn for fqn in inputs.judged_models.found}
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
            test = _make_witness(context, inputs, by_name[one.model], verdict.example)
        key = "no_witness" if isinstance(test, str) else "witness"
        found.append(one.model_copy(update={key: test}))
    return found


def _make_witness(
    context: Any, inputs: RuleInputs, fqn: str, example: FoundExample
) -> WitnessTest | str:
    """The test, or why there is none, as a part of a sentence."""
    before, after = inputs.before.get(fqn), inputs.after.get(fqn)
    if before is None or after is None:
        return "the model has another name"
    if not sqlmesh_compat.tests_in_memory(context):
        return "the project's unit tests run on another connection than DuckDB in memory"
    if any(table.rows and not table.columns for table in example.tables):
        return "a table only counts with its rows"
    what = example.differing[0] if example.differing else "rows"
    name = _NO_NAME.sub("_", f"test_{after.view_name}_{what}").strip("_").lower()[:_LONGEST_NAME]
    text = _write_test(name, after, example, {**inputs.before, **inputs.after})
    now = sqlmesh_compat.run_test_alone(context, inputs.after, text)
    if now is not None:
        return f"SQLMesh's unit test does not pass with the change ({now})"
    if sqlmesh_compat.run_test_alone(context, inputs.before, text) is None:
        return "SQLMesh's unit test passes without the change, too"
    return WitnessTest(path=f"tests/{name}.yaml", text=text)


def _write_test(name: str, model: Any, example: FoundExample, models: Mapping[str, Any]) -> str:
    names = {plain_name(fqn): one.name for fqn, one in models.items()}
    inputs = {}
    for table in example.tables:
        columns = [column for column, _ in table.columns]
        inputs[names.get(table.name, table.name)] = {
            "columns": {column: str(kind) for column, kind in table.columns},
            "rows": [_in_one_line(columns, row) for row in table.rows],
        }
    rows = [_in_one_line(example.columns, after) for _, after in example.rows if after is not None]
    outputs: dict[str, Any] = {"query": {"rows": rows}}
    if set(example.columns) != set(model.columns_to_types or {}):
        outputs = {"partial": True, **outputs}
    times = {"start": SENTINEL_START, "end": SENTINEL_END, "execution_time": SENTINEL_NOW}
    body = {"model": model.name, "inputs": inputs, "vars": times, "outputs": outputs}
    stream = io.StringIO()
    writer = YAML()
    writer.width = 1_000_000
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.dump({name: body}, stream)
    return _HEAD + stream.getvalue()


def _in_one_line(columns: Iterable[str], row: Iterable[Any]) -> CommentedMap:
    found = CommentedMap(
        (column, _write_value(value)) for column, value in zip(columns, row, strict=True)
    )
    found.fa.set_flow_style()
    return found


def _write_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value) if Decimal(str(float(value))) == value else str(value)
    if isinstance(value, datetime):
        return str(value)
    if isinstance(value, list | tuple):
        return [_write_value(item) for item in value]
    return value
