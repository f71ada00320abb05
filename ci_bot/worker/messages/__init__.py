"""Failures of SQLMesh, Spark and the state as sentences with a fix, and texts that rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.messages import report_times, same_code
    from ci_bot.worker.messages.load_failures import (
        find_failed_file,
        find_load_cause,
        iterate_causes,
    )
    from ci_bot.worker.messages.names import ModelNames, file_name, name_file_or_last_part
    from ci_bot.worker.messages.problems import (
        LINE_NUMBER,
        MacroRefusedError,
        NotLoaded,
        describe_missing_variables,
        extract_headline,
        extract_headline_with_cause,
        extract_sentence,
        find_root_cause,
        list_unset_variables,
        make_cancelled_failure,
        make_encodable,
        make_failure_of_error,
        make_other_version_error,
        make_spark_start_error,
        make_state_error,
    )
    from ci_bot.worker.messages.same_code import is_reworded

__all__ = [
    "LINE_NUMBER",
    "MacroRefusedError",
    "ModelNames",
    "NotLoaded",
    "describe_missing_variables",
    "extract_headline",
    "extract_headline_with_cause",
    "extract_sentence",
    "file_name",
    "find_failed_file",
    "find_load_cause",
    "find_root_cause",
    "is_reworded",
    "iterate_causes",
    "list_unset_variables",
    "make_cancelled_failure",
    "make_encodable",
    "make_failure_of_error",
    "make_other_version_error",
    "make_spark_start_error",
    "make_state_error",
    "name_file_or_last_part",
    "report_times",
    "same_code",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "load_failures": ["find_load_cause", "iterate_causes", "find_failed_file"],
        "names": ["ModelNames", "file_name", "name_file_or_last_part"],
        "problems": [
            "LINE_NUMBER",
            "MacroRefusedError",
            "NotLoaded",
            "make_cancelled_failure",
            "make_failure_of_error",
            "extract_headline",
            "extract_headline_with_cause",
            "find_root_cause",
            "extract_sentence",
            "make_spark_start_error",
            "make_encodable",
            "describe_missing_variables",
            "make_other_version_error",
            "list_unset_variables",
            "make_state_error",
        ],
        "report_times": [],
        "same_code": ["is_reworded"],
    },
)
