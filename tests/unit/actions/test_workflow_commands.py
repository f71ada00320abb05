"""Workflow commands against the referee; every property is also shown to catch a missing escape."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_bot.bot.actions.workflow_commands import (
    CommandEscapes,
    WorkflowCommands,
    escape_data_of_workflow_command,
    escape_property_of_workflow_command,
    format_workflow_command,
    make_plain_line_of_workflow_log,
)
from ci_bot.redaction import Redactor, list_encodings_of_secret
from tests.oracle.fuzzing import caught, fuzz
from tests.oracle.runner import Reading, RunnerLog

TOKEN = "0123456789abcdef" * 4


def identity(text: str) -> str:
    return text


NO_DATA = CommandEscapes(data=identity)
NO_PROPERTY = CommandEscapes(property=identity)
NO_LINE = CommandEscapes(line=identity)

# Whole commands and their atoms, so that random text meets the grammar often.
ATOMS = [
    *("::", ":", "##[", "##", "[", "]", "%", "%25", "%0A", "%0a", "%3A", "%2C", ",", ";", "=", " "),
    *("\n", "\r", "\r\n", "\t", "\x00", "\x1b[31m", "\x85", "\u200b", "\u00ad", "\u2028", "\ufeff"),
    *("add-mask", "stop-commands", "set-env", "notice", "error", "group", "endgroup", "name=PATH"),
    *(f"::{TOKEN}::\n", "\n::notice::x", "::add-mask::x", "##[add-mask]x"),
    *("::stop-commands::t", f"::{TOKEN}::", TOKEN, "\u202e", "é"),
    *("::set-env name=A::b", "##[set-env name=A;]b", "::error file=a::b", "\ud800", "| ", "::::"),
]
hostile = st.lists(st.one_of(st.sampled_from(ATOMS), st.text(max_size=3)), max_size=12).map("".join)


def commands(escapes: CommandEscapes = CommandEscapes()) -> tuple[WorkflowCommands, io.StringIO]:  # noqa: B008
    stream = io.StringIO()
    return WorkflowCommands(stream, token=lambda: TOKEN, escapes=escapes), stream


def readings(text: str) -> list[RunnerLog]:
    return [RunnerLog(reading).read(text) for reading in Reading]


def clean(text: str) -> str:
    """What can be written as UTF-8; and what is no secret by its shape."""
    return Redactor().redact(text).encode("utf-8", "replace").decode()


# --- properties, as functions of the escapes, so that the tests below can take one away -----------


def annotation_arrives_whole(escapes: CommandEscapes, message: str, title: str) -> bool:
    """One error, with exactly this message and (but for `=` and spaces at the ends) this title."""
    writer, stream = commands(escapes)
    writer.annotate_error(message, title=title)
    wanted = re.sub(r"\A[\s=]+|\s+\Z", "", clean(title))
    expected = {"title": wanted} if wanted else {}
    for log in readings(stream.getvalue()):
        if [(item.name, item.properties, item.data) for item in log.commands] != [
            ("error", expected, clean(message))
        ]:
            return False
    return True


def worker_lines_issue_nothing(escapes: CommandEscapes, lines: list[str], guessed: bool) -> bool:
    """Only the pause itself is a command, and afterwards ours work again.

    `guessed`: the worker knows the token, so only the escape is left to stop it.
    """
    stream = io.StringIO()
    token = TOKEN if guessed else "f" * 64
    writer = WorkflowCommands(stream, token=lambda: token, escapes=escapes)
    for line in lines:
        writer.write_worker_line(line)
    writer.annotate_notice("ours")
    expected = [("stop-commands", token)] if lines else []
    return all(
        [(item.name, item.data) for item in log.commands] == [*expected, ("notice", "ours")]
        for log in readings(stream.getvalue())
    )


def own_lines_issue_nothing(escapes: CommandEscapes, text: str) -> bool:
    writer, stream = commands(escapes)
    writer.write_line(text)
    return not any(log.commands for log in readings(stream.getvalue()))


# --- the properties hold --------------------------------------------------------------------------


@fuzz(30_000)
@given(hostile, hostile)
@example("100%0A::add-mask::x", "a,b:c%2C")
@example("x", "title=1,file=/etc/passwd")
@example("x", "=\u2028= a =")
def test_annotation__arrives_whole(message: str, title: str) -> None:
    assert annotation_arrives_whole(CommandEscapes(), message, title)


@fuzz(30_000)
@given(st.lists(hostile, max_size=4), st.booleans())
@example(["::add-mask::x", "foo ##[add-mask]x", f"::{TOKEN}::", "::set-env name=A::b"], True)
@example(["harmless\r::add-mask::x"], True)
def test_worker_line__issues_nothing(lines: list[str], guessed: bool) -> None:
    assert worker_lines_issue_nothing(CommandEscapes(), lines, guessed)


@fuzz(15_000)
@given(hostile)
@example("  ::warning::x")
def test_own_line__issues_nothing(text: str) -> None:
    assert own_lines_issue_nothing(CommandEscapes(), text)


# --- and each catches a missing escape ------------------------------------------------------------


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("data", lambda pair: not annotation_arrives_whole(NO_DATA, pair[0], "t")),
        ("property", lambda pair: not annotation_arrives_whole(NO_PROPERTY, "m", pair[1])),
        ("line", lambda pair: not worker_lines_issue_nothing(NO_LINE, [pair[0]], True)),
        ("own line", lambda pair: not own_lines_issue_nothing(NO_LINE, pair[0])),
    ],
)
def test_mutation__identity_instead_of_an_escape_is_caught(
    name: str, fails: Callable[[tuple[str, str]], bool]
) -> None:
    assert caught(st.tuples(hostile, hostile), fails), f"nobody misses the escape of {name}"


@pytest.mark.parametrize(
    "broken",
    [
        # gidgethub's bug: a comma written as the escape of a colon
        CommandEscapes(
            property=lambda text: (
                escape_data_of_workflow_command(text).replace(":", "%3A").replace(",", "%3A")
            )
        ),
        # the toolkit's order the other way round
        CommandEscapes(data=lambda text: text.replace("\n", "%0A").replace("%", "%25")),
        # publish-unit-test-result-action's bug: cut at the line break, nothing escaped
        CommandEscapes(data=lambda text: text.split("\n", maxsplit=1)[0]),
    ],
)
def test_mutation__bugs_of_the_models_are_caught(broken: CommandEscapes) -> None:
    assert caught(
        st.tuples(hostile, hostile),
        lambda pair: not annotation_arrives_whole(broken, pair[0], pair[1]),
    )


def test_mutation__a_line_prefix_alone_is_not_enough() -> None:
    prefixed = CommandEscapes(line=lambda text: f"| {text}")
    assert caught(hostile, lambda text: not own_lines_issue_nothing(prefixed, text))


# --- cases ----------------------------------------------------------------------------------------


def test_format_command__order_and_empty_properties() -> None:
    text = format_workflow_command(
        "error", "50% of\r\nx", {"file": "a,b:c", "line": 3, "title": "", "col": None}
    )
    assert text == "::error file=a%2Cb%3Ac,line=3::50%25 of%0D%0Ax"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 100 %", "plain text, 100 %"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("foo ##[add-mask]x", "foo ## [add-mask]x"),
        ("  ::notice::x", "|   ::notice::x"),
        ("a\rb", "a\\u{d}b"),
        ("right\u202eleft\u200b", "right\\u{202e}left\\u{200b}"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_plain_line__cases(text: str, shown: str) -> None:
    assert make_plain_line_of_workflow_log(text) == shown


def test_escape_property__ends_that_the_runner_drops() -> None:
    assert escape_property_of_workflow_command(" ==a b= ") == "a b="


def test_masks__come_before_everything_else() -> None:
    stream = io.StringIO()
    secret = "tok3n/with+signs\nsecond line\nabc"
    writer = WorkflowCommands(stream, token=lambda: TOKEN, secrets=[secret])
    writer.annotate_notice("hello")
    log = RunnerLog().read(stream.getvalue())
    assert [command.name for command in log.commands] == [
        *["add-mask"] * (len(log.commands) - 1),
        "notice",
    ]
    wanted = {
        *list_encodings_of_secret("tok3n/with+signs"),
        *list_encodings_of_secret("second line"),
        secret,
    }
    assert {form for form in wanted if len(form) >= 4} <= set(log.masks)
    assert "abc" not in {command.data for command in log.named("add-mask")}, "too short to mask"


def test_masks__blank_and_short_secrets_are_left_out() -> None:
    stream = io.StringIO()
    WorkflowCommands(stream, token=lambda: TOKEN, secrets=["", "   ", "abc", "\n\n"])
    assert stream.getvalue() == ""


def test_mask__inside_the_workers_part_still_counts() -> None:
    writer, stream = commands()
    writer.write_worker_line("x")
    writer.mask_secret("a new secret")
    assert "a new secret" in RunnerLog().read(stream.getvalue()).masks


def test_group__folds_and_ends_even_after_a_failure() -> None:
    writer, stream = commands()
    with pytest.raises(RuntimeError), writer.fold_lines("Plan: 50%"):
        writer.write_worker_line("::endgroup::")
        raise RuntimeError
    log = RunnerLog().read(stream.getvalue())
    assert [(item.name, item.data) for item in log.commands] == [
        ("group", "Plan: 50%"),
        ("stop-commands", TOKEN),
        ("endgroup", ""),
    ]


def test_commands__secrets_are_redacted_in_text() -> None:
    stream = io.StringIO()
    writer = WorkflowCommands(stream, token=lambda: TOKEN, redactor=Redactor(["s3cret-value"]))
    writer.annotate_error(
        "failed with s3cret-value", title="s3cret-value", file="a/s3cret-value.sql"
    )
    writer.write_line("own s3cret-value")
    writer.write_worker_line("worker s3cret-value")
    writer.end_worker_part()
    assert "s3cret-value" not in stream.getvalue()
    assert stream.getvalue().endswith(f"::{TOKEN}::\n")


@pytest.mark.parametrize("token", ["short", "with space" * 8, ""])
def test_worker_line__weak_token_is_refused(token: str) -> None:
    writer = WorkflowCommands(io.StringIO(), token=lambda: token)
    with pytest.raises(ValueError, match="token"):
        writer.write_worker_line("x")


def test_debug__is_escaped_too() -> None:
    writer, stream = commands()
    writer.write_debug("a\n::notice::b")
    assert [item.name for item in RunnerLog().read(stream.getvalue()).commands] == ["debug"]


def test_commands__whose_stream_is_full__go_on() -> None:
    """A log that takes nothing more is no reason to lose the work, or its exit code."""
    stream = Path("/dev/full").open("w")  # noqa: SIM115 - closed below, where that raises again
    commands = WorkflowCommands(stream, token=lambda: TOKEN, secrets=["a secret word"])
    commands.annotate_warning("one")
    commands.write_worker_line("two")
    commands.end_worker_part()
    stream.close()


def test_commands__whose_reader_has_gone__go_on() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        commands = WorkflowCommands(stream, token=lambda: TOKEN)
        with commands.fold_lines("a"):
            commands.write_line("b" * 100_000)
