"""Failures of SQLMesh, Spark and the state as sentences with a fix, and texts that rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.messages import names_and_times, same_code
    from ci_bot.worker.messages.load_failures import cause_of, iterate_causes, unit_of
    from ci_bot.worker.messages.names_and_times import ModelNames, file_name, file_name_or_last
    from ci_bot.worker.messages.problems import (
        LINE_NUMBER,
        MacroRefusedError,
        NotLoaded,
        cancelled_failure,
        error_headline,
        error_sentence,
        failure_of,
        headline_with_cause,
        make_encodable,
        root_cause,
        spark_not_started,
    )
    from ci_bot.worker.messages.same_code import is_written_otherwise
    from ci_bot.worker.messages.state_failures import (
        missing_variables,
        other_version,
        unset_variables,
        unusable_state,
    )

__all__ = [
    "LINE_NUMBER",
    "MacroRefusedError",
    "ModelNames",
    "NotLoaded",
    "cancelled_failure",
    "cause_of",
    "error_headline",
    "error_sentence",
    "failure_of",
    "file_name",
    "file_name_or_last",
    "headline_with_cause",
    "is_written_otherwise",
    "iterate_causes",
    "make_encodable",
    "missing_variables",
    "names_and_times",
    "other_version",
    "root_cause",
    "same_code",
    "spark_not_started",
    "unit_of",
    "unset_variables",
    "unusable_state",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "load_failures": ["cause_of", "iterate_causes", "unit_of"],
        "names_and_times": ["ModelNames", "file_name", "file_name_or_last"],
        "problems": [
            "LINE_NUMBER",
            "MacroRefusedError",
            "NotLoaded",
            "cancelled_failure",
            "failure_of",
            "error_headline",
            "headline_with_cause",
            "root_cause",
            "error_sentence",
            "spark_not_started",
            "make_encodable",
        ],
        "same_code": ["is_written_otherwise"],
        "state_failures": [
            "missing_variables",
            "other_version",
            "unset_variables",
            "unusable_state",
        ],
    },
)
