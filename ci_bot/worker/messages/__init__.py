"""Failures of SQLMesh, Spark and the state as sentences with a fix, and texts that rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.messages import report_times
    from ci_bot.worker.messages.load_failures import (
        find_file_named_by_load_failure,
        find_load_cause,
        iterate_causes_of_error,
    )
    from ci_bot.worker.messages.names import (
        MessageNames,
        name_file_in_message,
        name_file_in_message_or_last_part,
    )
    from ci_bot.worker.messages.problems import (
        LINE_NUMBER,
        MacroRefusedError,
        NotLoaded,
        describe_missing_variables_in_hint,
        extract_headline_of_error,
        extract_headline_of_error_with_cause,
        extract_sentence_of_error,
        find_root_cause_of_error,
        list_unset_variables_for_state_error,
        make_cancelled_failure,
        make_failure_of_error,
        make_other_version_error,
        make_spark_start_error,
        make_state_error,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "load_failures": [
            "find_load_cause",
            "iterate_causes_of_error",
            "find_file_named_by_load_failure",
        ],
        "names": ["MessageNames", "name_file_in_message", "name_file_in_message_or_last_part"],
        "problems": [
            "LINE_NUMBER",
            "MacroRefusedError",
            "NotLoaded",
            "make_cancelled_failure",
            "make_failure_of_error",
            "extract_headline_of_error",
            "extract_headline_of_error_with_cause",
            "find_root_cause_of_error",
            "extract_sentence_of_error",
            "make_spark_start_error",
            "describe_missing_variables_in_hint",
            "make_other_version_error",
            "list_unset_variables_for_state_error",
            "make_state_error",
        ],
        "report_times": [],
    },
)
