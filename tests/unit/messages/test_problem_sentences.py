"""What is left of an exception when a reader gets it: a sentence, a place, a next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot.errors import ParseError

from ci_bot.errors import BadInput
from ci_bot.protocol.base import Failure
from ci_bot.worker.messages.problems import (
    MAX_LINES,
    SPARK_IS_GONE,
    MacroRefusedError,
    extract_headline_of_error,
    extract_sentence_of_error,
    find_position_in_error_message,
    find_root_cause_of_error,
    make_cancelled_failure,
    make_failure_of_error,
)

# As py4j gives it, shortened.
PY4J = """\
An error occurred while calling o65.sql.
: org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure
	at org.apache.iceberg.jdbc.JdbcTableOperations.doCommit(JdbcTableOperations.java:145)
	at java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.lang.RuntimeException: in between
	... 12 more
Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked
	at org.sqlite.core.DB.newSQLException(DB.java:1179)
	... 53 more
"""


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT a FROM WHERE b", "Expected table name but got 'WHERE'. Line 1, Col: 19."),
        ("SELECT a FROM x JOIN", "Expected table name but got the end. Line 1, Col: 20."),
        (
            "SELECT a FROM /* [b]> */ WHERE b",
            "Expected table name but got 'WHERE'. Line 1, Col: 30.",
        ),
    ],
)
def test_sentence__of_a_query_that_cannot_be_parsed__names_the_word(sql: str, told: str) -> None:
    with pytest.raises(ParseError) as caught:
        sqlglot.parse_one(sql, dialect="spark")

    first, *_ = extract_sentence_of_error(caught.value).splitlines()
    assert first == told


def test_sentence__of_a_java_exception__is_its_message_and_its_last_cause() -> None:
    assert extract_sentence_of_error(RuntimeError(PY4J)).splitlines() == [
        "org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure",
        "Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked",
    ]


def test_sentence__without_a_stack__is_the_whole_message() -> None:
    assert (
        extract_sentence_of_error(ValueError("a\n\nat best b  \nCaused by: c"))
        == "a\nat best b\nCaused by: c"
    )


def test_sentence__of_a_long_message__is_cut_and_keeps_the_cause() -> None:
    text = "\n".join([*"abcdefghijklmnopqrstuvwxyz", "\tat org.apache.Some(Some.java:1)", ""])
    lines = extract_sentence_of_error(
        RuntimeError(f"{text}Caused by: java.io.IOException: full")
    ).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[-1] == "Caused by: java.io.IOException: full"


def test_sentence__of_macros_that_fail__leaves_out_the_query_and_keeps_the_cause() -> None:
    query = "\n".join(["SELECT", *(f"  column_{number}," for number in range(40)), "FROM a"])
    said = f"Failed to resolve macros for\n\n{query}\n\nMacro 'one_more' does not exist.\n"
    assert extract_sentence_of_error(ValueError(said)) == (
        "Failed to resolve its macros: Macro 'one_more' does not exist."
    )
    inside = "Failed to load model from file 'a.sql':\n\n  " + said.replace("\n", "\n  ")
    assert extract_sentence_of_error(ValueError(inside)).endswith(
        "\n  Failed to resolve its macros: Macro 'one_more' does not exist."
    )


def test_sentence__of_an_empty_message__is_the_name_of_the_exception() -> None:
    assert extract_sentence_of_error(KeyError()) == "KeyError"


REPOSITORY = Path("/checkout")


def told(error: BaseException, **parts: Any) -> Failure:
    return make_failure_of_error(error, stage="load", repository=REPOSITORY, **parts)


def test_failure__of_our_own_error__keeps_its_words() -> None:
    error = BadInput("No.", hint="Yes.", reason_code="bad_date", path="a.sql", line=3)
    failure = told(error)
    assert (failure.message, failure.hint, failure.reason_code) == ("No.", "Yes.", "bad_date")
    assert (failure.path, failure.line, failure.exit_code) == ("a.sql", 3, 2)


@pytest.mark.parametrize(
    ("message", "path", "line"),
    [
        ("Failed in '/checkout/models/a.sql': Line 12, Col: 9.", "models/a.sql", 12),
        ("/checkout/config.yaml is wrong", "config.yaml", None),
        ("'/elsewhere/models/a.sql' line 4", None, None),
        ("nothing of a file", None, None),
    ],
)
def test_place__is_a_file_of_the_repository_and_its_line(
    message: str, path: str | None, line: int | None
) -> None:
    assert find_position_in_error_message(message, REPOSITORY, []) == (path, line)


def test_place__prefers_the_file_that_the_exception_knows() -> None:
    known = [REPOSITORY / "models/odd name.sql"]
    assert find_position_in_error_message(f"{known[0]} line 7", REPOSITORY, known) == (
        "models/odd name.sql",
        7,
    )
    outside = [Path("/elsewhere/b.sql")]
    assert find_position_in_error_message("/elsewhere/b.sql", REPOSITORY, outside) == (
        "/elsewhere/b.sql",
        None,
    )


def test_failure__with_a_location__names_that_file_and_no_path_of_the_copy() -> None:
    error = RuntimeError("Cannot read /checkout/models/a.sql")
    error.location = REPOSITORY / "models/a.sql"  # type: ignore[attr-defined]
    failure = told(error, exit_code=2)
    assert failure.path == "models/a.sql"
    assert "/checkout" not in failure.message
    assert failure.reason_code == "bad_input"


def test_failure__of_a_refused_macro__says_so_whatever_became_of_it() -> None:
    refused = MacroRefusedError("it imports os")
    failure = told(RuntimeError(f"Failed to load:\n{refused}\nand more"))
    assert failure.message == str(refused)
    assert "Do not load this branch elsewhere" in (failure.hint or "")


def test_root_cause__is_the_first_of_the_chain_and_a_loop_ends() -> None:
    first, last = ValueError("first"), RuntimeError("last")
    last.__cause__ = KeyError("between")
    last.__cause__.__context__ = first
    assert find_root_cause_of_error(last) is first
    last.__cause__.__suppress_context__ = True
    assert find_root_cause_of_error(last) is last.__cause__
    first.__context__ = first
    assert find_root_cause_of_error(first) is first


def test_sentence__where_py4j_lost_its_process__says_that_java_is_gone() -> None:
    code = compile(
        "def call():\n    raise ConnectionRefusedError('111')", "java_gateway.py", "exec"
    )
    module: dict[str, Any] = {"__name__": "py4j.java_gateway"}
    exec(code, module)  # noqa: S102 - a frame that is called as py4j's are
    with pytest.raises(ConnectionError) as lost:
        module["call"]()
    assert extract_sentence_of_error(lost.value) == SPARK_IS_GONE
    assert extract_sentence_of_error(ConnectionRefusedError("111")) == "ConnectionRefusedError: 111"


def test_cancelled__says_what_and_that_it_goes_on() -> None:
    failure = make_cancelled_failure("apply")
    assert (failure.exit_code, failure.message) == (130, "The apply was cancelled.")


def test_headline__of_an_error_in_java_is_what_java_says_first() -> None:
    told = extract_headline_of_error(RuntimeError(PY4J))
    assert told == "org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure"
