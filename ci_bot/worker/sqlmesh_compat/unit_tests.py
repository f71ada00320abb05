"""Running a unit test that is in no file."""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlmesh.core.config.connection import BaseDuckDBConnectionConfig
from sqlmesh.core.test.definition import ModelTest
from sqlmesh.utils import UniqueKeyDict, yaml

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model


def do_sqlmesh_tests_run_in_memory(context: Context) -> bool:
    """Whether the project's unit tests run on an in-memory DuckDB."""
    connection = context.test_connection_config
    if not isinstance(connection, BaseDuckDBConnectionConfig) or connection.type_ != "duckdb":
        return False
    places = [connection.database, *(connection.catalogs or {}).values()]
    return all(place in (None, ":memory:") for place in places)


def run_sqlmesh_test_alone(context: Context, models: Mapping[str, Model], text: str) -> str | None:
    """Runs the one test of a YAML text on other models; returns its failure in a line, None if it
    passes.

    (`ModelTest.create_test`, which `Context.test` calls)
    """
    ((name, body),) = yaml.load(text).items()
    adapter = context.test_connection_config.create_engine_adapter(register_comments_override=False)
    try:
        test = ModelTest.create_test(
            body=body,
            test_name=name,
            models=UniqueKeyDict("models", **models),
            engine_adapter=adapter,
            dialect=context.default_dialect,
            path=None,
            default_catalog=context.default_catalog,
        )
        if test is None:
            return "the model is not known"
        result = unittest.TestResult()
        test.run(result)
    except Exception as error:  # the model's code runs in it, and may raise anything
        return _read_first_line_of_test(str(error)) or type(error).__name__
    finally:
        adapter.close()
    failed = [*result.failures, *result.errors]
    return (
        _read_first_line_of_test(failed[0][1].strip().rpartition("Error: ")[2]) if failed else None
    )


def _read_first_line_of_test(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
