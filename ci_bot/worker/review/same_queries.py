"""Whether two queries give the same result, without a project."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.schema import MappingSchema
from sqlmesh.core import dialect as d
from sqlmesh.core.model import create_external_model, create_sql_model

from ci_bot.errors import BadInput
from ci_bot.protocol.executions import SameAnswer
from ci_bot.protocol.messages import SameRequest
from ci_bot.worker.messages import error_headline
from ci_bot.worker.rules import compare_models
from ci_bot.yaml_reader import UnfitYaml, read_yaml

_DIALECT = "spark"
_SPARKS = ("spark", "spark2", "databricks")
_NAME = "compared.result"
_QUERY_HINT = "A file has one query in Spark's SQL, alone or below a MODEL block."
_SCHEMA_HINT = (
    "It is a list as in SQLMesh's external_models.yaml, such as "
    "`[{name: db.orders, columns: {id: int, day: date}}]`."
)


def answer_same_request(request: SameRequest) -> SameAnswer:
    """Checks whether the queries of two files give the same result.

    No project is loaded, so a query with a project's macro gives "not known".

    Raises:
        BadInput: a file has no query, or several, or the schema cannot be read.
    """
    schema = _read_schema(request)
    before = _load_model(request.before, request.before_name, schema)
    after = _load_model(request.after, request.after_name, schema)
    return compare_models(before, after)


def _load_model(text: str, name: str, schema: MappingSchema) -> Any:
    query = _read_query(text, name)
    try:
        model = create_sql_model(_NAME, query, dialect=_DIALECT, kind={"name": "FULL"})
        model.update_schema(schema)
    except Exception as error:  # SQLMesh's checks of a model raise many kinds
        raise _unfit_query(
            name, f"SQLMesh does not take its query: {error_headline(error)}"
        ) from error
    return model


def _read_query(text: str, name: str) -> Any:
    """Reads the one query of a file, without the MODEL block above it."""
    try:
        parsed = d.parse(text, default_dialect=_DIALECT)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise _unfit_query(name, f"it cannot be read as SQL: {error_headline(error)}") from error
    for block in parsed:
        if isinstance(block, d.Model):
            _check_dialect(block, name)
    queries = [
        one for one in parsed if one is not None and not isinstance(one, d.Model | exp.Semicolon)
    ]
    if not queries:
        raise _unfit_query(name, "it has no SQL")
    if len(queries) > 1:
        raise _unfit_query(name, f"it has {len(queries)} statements, and one query is compared")
    if not isinstance(queries[0], exp.Query | d.JinjaQuery):
        raise _unfit_query(name, "its statement is no query")
    return queries[0]


def _check_dialect(block: Any, name: str) -> None:
    for item in block.expressions:
        if item.name.lower() == "dialect":
            value = item.args["value"]
            dialect = str(getattr(value, "name", value)).lower()
            if dialect not in _SPARKS:
                raise _unfit_query(name, f"its dialect is {dialect}, and Spark's is compared")


def _read_schema(request: SameRequest) -> MappingSchema:
    schema = MappingSchema(normalize=False)
    if request.schema_text is None:
        return schema
    name = request.schema_name or "the schema"
    try:
        tables = read_yaml(request.schema_text)
    except UnfitYaml as error:
        raise _unfit_schema(name, "it is no YAML") from error
    if not isinstance(tables, list):
        raise _unfit_schema(name, "it is no list of tables")
    for number, table in enumerate(tables, 1):
        columns = table.get("columns") if isinstance(table, dict) else None
        if not isinstance(columns, dict) or not isinstance(table.get("name"), str):
            raise _unfit_schema(name, f"table {number} has no name with columns")
        _add_table(schema, table["name"], columns, name)
    return schema


def _add_table(schema: MappingSchema, table: str, columns: Any, file_name: str) -> None:
    texts = {str(column): str(kind) for column, kind in columns.items()}
    try:
        source = create_external_model(table, columns=texts, dialect=_DIALECT)
        types = source.columns_to_types
        schema.add_table(source.fqn, types, dialect=_DIALECT, normalize=False, match_depth=False)
    except Exception as error:  # pydantic, SQLGlot and SQLMesh each have their own
        told = f"table `{table}` cannot be read: {error_headline(error)}"
        raise _unfit_schema(file_name, told) from error


def _unfit_query(name: str, why: str) -> BadInput:
    return BadInput(f"`{name}` cannot be compared: {why.rstrip('.')}.", hint=_QUERY_HINT)


def _unfit_schema(name: str, why: str) -> BadInput:
    return BadInput(f"`{name}` is no schema: {why.rstrip('.')}.", hint=_SCHEMA_HINT)
