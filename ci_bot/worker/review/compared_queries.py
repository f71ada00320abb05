"""Compares two versions of a query, and makes a unit test for rows that differ.

The queries of two files are compared without a project. SQLMesh runs the test of a changed model
before the review offers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.schema import MappingSchema
from sqlmesh.core import dialect as d
from sqlmesh.core.model import create_external_model, create_sql_model

from ci_bot.errors import BadInput
from ci_bot.protocol.messages import SameRequest
from ci_bot.protocol.review_inputs import ModelExecution, SameAnswer, WitnessTest
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.duckdb_trials import DuckdbFields, FoundDuckdbExample
from ci_bot.worker.messages import extract_headline_of_error
from ci_bot.worker.rules import RuleInputs, compare_models
from ci_bot.worker.sql import SENTINEL_END, SENTINEL_NOW, SENTINEL_START, plain_name
from ci_bot.yaml_reader import UnfitYaml, read_yaml

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model


_DIALECT = "spark"
_SPARKS = ("spark", "spark2", "databricks")
_NAME = "compared.result"
_QUERY_HINT = "A file has one query in Spark's SQL, alone or below a MODEL block."
_SCHEMA_HINT = (
    "It is a list as in SQLMesh's external_models.yaml, such as "
    "`[{name: db.orders, columns: {id: int, day: date}}]`."
)


def answer_compared_queries_request(request: SameRequest) -> SameAnswer:
    """Checks whether the queries of two files give the same result.

    No project is loaded, so a query with a project's macro gives "not known".

    Raises:
        BadInput: a file has no query, or several, or the schema cannot be read.
    """
    schema = _read_schema(request)
    before = _load_compared_query(request.before, request.before_name, schema)
    after = _load_compared_query(request.after, request.after_name, schema)
    return compare_models(before, after)


def _load_compared_query(text: str, name: str, schema: MappingSchema) -> Any:
    query = _read_compared_query(text, name)
    try:
        model = create_sql_model(_NAME, query, dialect=_DIALECT, kind={"name": "FULL"})
        model.update_schema(schema)
    except Exception as error:  # SQLMesh's checks of a model raise many kinds
        raise _make_unfit_compared_query_error(
            name, f"SQLMesh does not take its query: {extract_headline_of_error(error)}"
        ) from error
    return model


def _read_compared_query(text: str, name: str) -> Any:
    """Reads the one query of a file, without the MODEL block above it."""
    try:
        parsed = d.parse(text, default_dialect=_DIALECT)
    except Exception as error:  # for `MAP(a)`, the parser itself fails with an IndexError
        raise _make_unfit_compared_query_error(
            name, f"it cannot be read as SQL: {extract_headline_of_error(error)}"
        ) from error
    for block in parsed:
        if isinstance(block, d.Model):
            _check_dialect(block, name)
    queries = [
        one for one in parsed if one is not None and not isinstance(one, d.Model | exp.Semicolon)
    ]
    if not queries:
        raise _make_unfit_compared_query_error(name, "it has no SQL")
    if len(queries) > 1:
        raise _make_unfit_compared_query_error(
            name, f"it has {len(queries)} statements, and one query is compared"
        )
    if not isinstance(queries[0], exp.Query | d.JinjaQuery):
        raise _make_unfit_compared_query_error(name, "its statement is no query")
    return queries[0]


def _check_dialect(block: Any, name: str) -> None:
    for item in block.expressions:
        if item.name.lower() == "dialect":
            value = item.args["value"]
            dialect = str(getattr(value, "name", value)).lower()
            if dialect not in _SPARKS:
                raise _make_unfit_compared_query_error(
                    name, f"its dialect is {dialect}, and Spark's is compared"
                )


def _read_schema(request: SameRequest) -> MappingSchema:
    schema = MappingSchema(normalize=False)
    if request.schema_text is None:
        return schema
    name = request.schema_name or "the schema"
    try:
        tables = read_yaml(request.schema_text)
    except UnfitYaml as error:
        raise _make_unfit_compared_schema_error(name, "it is not YAML") from error
    if not isinstance(tables, list):
        raise _make_unfit_compared_schema_error(name, "it is no list of tables")
    for number, table in enumerate(tables, 1):
        columns = table.get("columns") if isinstance(table, dict) else None
        if not isinstance(columns, dict) or not isinstance(table.get("name"), str):
            raise _make_unfit_compared_schema_error(
                name, f"table {number} has no name with columns"
            )
        _add_table_to_compared_schema(schema, table["name"], columns, name)
    return schema


def _add_table_to_compared_schema(
    schema: MappingSchema, table: str, columns: Any, file_name: str
) -> None:
    texts = {str(column): str(kind) for column, kind in columns.items()}
    try:
        source = create_external_model(table, columns=texts, dialect=_DIALECT)
        types = source.columns_to_types
        schema.add_table(source.fqn, types, dialect=_DIALECT, normalize=False, match_depth=False)
    except Exception as error:  # pydantic, SQLGlot and SQLMesh each raise their own errors
        problem = f"table `{table}` cannot be read: {extract_headline_of_error(error)}"
        raise _make_unfit_compared_schema_error(file_name, problem) from error


def _make_unfit_compared_query_error(name: str, why: str) -> BadInput:
    return BadInput(f"`{name}` cannot be compared: {why.rstrip('.')}.", hint=_QUERY_HINT)


def _make_unfit_compared_schema_error(name: str, why: str) -> BadInput:
    return BadInput(f"`{name}` is no schema: {why.rstrip('.')}.", hint=_SCHEMA_HINT)


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


def add_witness_tests_to_review(
    context: Context, inputs: RuleInputs, executions: Iterable[ModelExecution]
) -> list[ModelExecution]:
    """Adds each example as a unit test, if the test distinguishes the two versions of the model.

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
            names = names or _map_compared_tables_by_report_name({**inputs.before, **inputs.after})
            test = _make_witness_test(context, inputs, by_name[one.model], verdict.example, names)
        key = "no_witness" if isinstance(test, str) else "witness"
        found.append(one.model_copy(update={key: test}))
    return found


def _map_compared_tables_by_report_name(models: Mapping[str, Model]) -> dict[str, str]:
    """Maps each model's report name to its table name; call it once, a large project takes time."""
    return {plain_name(fqn): one.name for fqn, one in models.items()}


def _make_witness_test(
    context: Context,
    inputs: RuleInputs,
    fqn: str,
    example: FoundDuckdbExample,
    names: Mapping[str, str],
) -> WitnessTest | str:
    """Makes the test; else returns why there is none, as a clause."""
    before, after = inputs.before.get(fqn), inputs.after.get(fqn)
    if before is None or after is None:
        return "the model has another name"
    if not sqlmesh_compat.do_sqlmesh_tests_run_in_memory(context):
        return "the project's unit tests run on another connection than DuckDB in memory"
    if any(table.rows and not table.columns for table in example.tables):
        return "a table only counts with its rows"
    what = example.differing[0] if example.differing else "rows"
    name = _NO_NAME.sub("_", f"test_{after.view_name}_{what}").strip("_").lower()[:_LONGEST_NAME]
    text = _write_witness_test(name, after, example, names)
    now = sqlmesh_compat.run_sqlmesh_test_alone(context, inputs.after, text)
    if now is not None:
        return f"SQLMesh's unit test does not pass with the change ({now})"
    if sqlmesh_compat.run_sqlmesh_test_alone(context, inputs.before, text) is None:
        return "SQLMesh's unit test passes without the change, too"
    return WitnessTest(path=f"tests/{name}.yaml", text=text)


def _write_witness_test(
    name: str, model: Model, example: FoundDuckdbExample, names: Mapping[str, str]
) -> str:
    """Writes the test as YAML, one table row per line; `names` has the names of its tables."""
    lines = [
        f"{_write_witness_key(name)}:",
        f"  model: {_write_witness_value(model.name)}",
        "  inputs:",
    ]
    for table in example.tables:
        columns = [column for column, _ in table.columns]
        kinds = {column: str(kind) for column, kind in table.columns}
        lines += [f"    {_write_witness_key(names.get(table.name, table.name))}:"]
        lines += [f"      columns: {_write_witness_mapping(kinds.keys(), kinds.values())}"]
        lines += _write_witness_rows(columns, table.rows, 6)
    lines += ["  vars:", f"    start: {SENTINEL_START}", f"    end: {SENTINEL_END}"]
    lines += [f"    execution_time: {SENTINEL_NOW}", "  outputs:"]
    if set(example.columns) != set(model.columns_to_types or {}):
        lines += ["    partial: true"]
    after = [row for _, row in example.rows if row is not None]
    lines += ["    query:", *_write_witness_rows(example.columns, after, 6)]
    return _HEAD + "\n".join([*lines, ""])


def _write_witness_rows(
    columns: Sequence[str], rows: Sequence[Iterable[Any]], indent: int
) -> Iterator[str]:
    yield " " * indent + ("rows:" if rows else "rows: []")
    yield from (" " * (indent + 2) + f"- {_write_witness_mapping(columns, row)}" for row in rows)


def _write_witness_mapping(keys: Iterable[str], items: Iterable[Any]) -> str:
    pairs = zip(keys, items, strict=True)
    written = (f"{_write_witness_key(key)}: {_write_witness_value(item)}" for key, item in pairs)
    return f"{{{', '.join(written)}}}"


def _write_witness_key(name: str) -> str:
    is_plain = _PLAIN_KEY.fullmatch(name) and name.lower() not in _YAML_WORDS
    return name if is_plain else json.dumps(name)


def _write_witness_parts(value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> str:
    """Writes an array as a sequence, a struct or a map as a mapping."""
    if isinstance(value, dict | DuckdbFields):
        return _write_witness_mapping(map(str, dict(value)), dict(value).values())
    return f"[{', '.join(map(_write_witness_value, value))}]"


def _write_witness_value(value: Any) -> str:
    """Writes a value in YAML, with the quotes of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return str(value) if Decimal(str(float(value))) == value else json.dumps(str(value))
    if isinstance(value, list | tuple | dict):
        return _write_witness_parts(value)
    if isinstance(value, datetime) or not isinstance(value, int | float | date):
        text = str(value)
        is_plain = isinstance(value, str) and _PLAIN_TEXT.fullmatch(text)
        return text if is_plain and text.lower() not in _YAML_WORDS else json.dumps(text)
    return str(value)
