"""Execution as a judge: two queries of Spark, run by DuckDB on generated rows, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.execution.names_and_types import (
        SourceTable,
        UntriedError,
        ValueType,
        parse_plain,
        read_columns,
    )
    from ci_bot.worker.execution.queries import write_query
    from ci_bot.worker.execution.verdict import (
        DATA_SETS,
        SECONDS_FOR_A_MODEL,
        ExampleTable,
        ExecutionVerdict,
        Fields,
        FoundExample,
        judge_queries,
    )

__all__ = [
    "DATA_SETS",
    "SECONDS_FOR_A_MODEL",
    "ExampleTable",
    "ExecutionVerdict",
    "Fields",
    "FoundExample",
    "SourceTable",
    "UntriedError",
    "ValueType",
    "judge_queries",
    "parse_plain",
    "read_columns",
    "write_query",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "queries": ["write_query"],
        "names_and_types": [
            "SourceTable",
            "parse_plain",
            "ValueType",
            "UntriedError",
            "read_columns",
        ],
        "verdict": [
            "DATA_SETS",
            "SECONDS_FOR_A_MODEL",
            "ExampleTable",
            "FoundExample",
            "Fields",
            "ExecutionVerdict",
            "judge_queries",
        ],
    },
)
