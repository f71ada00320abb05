"""What is left of an exception's text when a reader gets it."""

from __future__ import annotations

from ci_bot.worker.words.problems import MAX_LINES, sentence

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


def test_sentence__of_a_java_exception__is_its_message_and_its_last_cause() -> None:
    assert sentence(RuntimeError(PY4J)).splitlines() == [
        "org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure",
        "Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked",
    ]


def test_sentence__without_a_stack__is_the_whole_message() -> None:
    assert sentence(ValueError("a\n\nat best b  \nCaused by: c")) == "a\nat best b\nCaused by: c"


def test_sentence__of_a_long_message__is_cut_and_keeps_the_cause() -> None:
    text = "\n".join([*"abcdefghijklmnopqrstuvwxyz", "\tat org.apache.Some(Some.java:1)", ""])
    lines = sentence(RuntimeError(f"{text}Caused by: java.io.IOException: full")).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[-1] == "Caused by: java.io.IOException: full"


def test_sentence__of_an_empty_message__is_the_name_of_the_exception() -> None:
    assert sentence(KeyError()) == "KeyError"
