"""Execution as a judge: DuckDB runs two versions of a Spark query on generated rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.duckdb_trials.plain_parser import parse_duckdb_plainly
    from ci_bot.worker.duckdb_trials.queries import write_duckdb_query
    from ci_bot.worker.duckdb_trials.query_scopes import SourceTable
    from ci_bot.worker.duckdb_trials.value_types import UntriedError, ValueType, read_duckdb_columns
    from ci_bot.worker.duckdb_trials.verdict import (
        DATA_SETS,
        SECONDS_FOR_A_MODEL,
        DuckdbExampleTable,
        DuckdbFields,
        DuckdbTrialVerdict,
        FoundDuckdbExample,
        judge_queries_on_duckdb,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "queries": ["write_duckdb_query"],
        "plain_parser": ["parse_duckdb_plainly"],
        "query_scopes": ["SourceTable"],
        "value_types": ["ValueType", "UntriedError", "read_duckdb_columns"],
        "verdict": [
            "DATA_SETS",
            "SECONDS_FOR_A_MODEL",
            "DuckdbExampleTable",
            "FoundDuckdbExample",
            "DuckdbFields",
            "DuckdbTrialVerdict",
            "judge_queries_on_duckdb",
        ],
    },
)
