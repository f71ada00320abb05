"""The referee itself: the cases that actions/runner's own tests decide, in our words."""

from __future__ import annotations

import pytest

from tests.oracle.runner import (
    KNOWN_COMMANDS,
    Command,
    Reading,
    RunnerLog,
    lines_of,
    parse_v1,
    parse_v2,
    read_file_command,
)

KNOWN = KNOWN_COMMANDS | {"do-something"}
ORDINAL = Reading.ORDINAL


@pytest.mark.parametrize(
    ("line", "properties", "data"),
    [
        ("::do-something k1=v1,::msg", {"k1": "v1"}, "msg"),
        ("::do-something::", {}, ""),
        (
            "::do-something k1=;=%2C=%0D=%0A=]=%3A,::;-%0D-%0A-]",
            {"k1": ";=,=\r=\n=]=:"},
            ";-\r-\n-]",
        ),
        ("::do-something k1=%252C=%253A::%250D", {"k1": "%2C=%3A"}, "%0D"),
        ("::do-something k1=,k2=,::", {}, ""),
        ("   ::do-something k1=v1::msg", {"k1": "v1"}, "msg"),
        ("::DO-something K1==v1::msg", {"k1": "v1"}, "msg"),
    ],
)
def test_parse_v2__cases_of_the_runner(line: str, properties: dict[str, str], data: str) -> None:
    command = parse_v2(line, KNOWN, ORDINAL)
    assert command is not None
    assert (command.properties, command.data) == (properties, data)


@pytest.mark.parametrize(
    "line", ["", "x ::do-something::", "::do-something", "::unknown::x", ":do-something::x"]
)
def test_parse_v2__not_a_command(line: str) -> None:
    assert parse_v2(line, KNOWN, ORDINAL) is None


@pytest.mark.parametrize(
    ("line", "properties", "data"),
    [
        ("##[do-something k1=v1;]msg", {"k1": "v1"}, "msg"),
        ("##[do-something]", {}, ""),
        ("##[do-something k1=%3B=%0D=%0A=%5D;]%3B%5D", {"k1": ";=\r=\n=]"}, ";]"),
        ("##[do-something k1=%253B;]%255D", {"k1": "%3B"}, "%5D"),
        ("##[do-something k1=;k2=;]", {}, ""),
        (">>>   ##[do-something k1=v1;]msg", {"k1": "v1"}, "msg"),
    ],
)
def test_parse_v1__cases_of_the_runner(line: str, properties: dict[str, str], data: str) -> None:
    assert parse_v1(line, KNOWN, ORDINAL) == Command("do-something", properties, data)


def test_parse_v2__linguistic_comparison_skips_zero_width_characters() -> None:
    line = "\u200b::"
    assert parse_v2(line + "notice::x", KNOWN, ORDINAL) is None
    # The offset of the name does not move with the match, so this still is no known command.
    assert parse_v2(line + "notice::x", KNOWN, Reading.LINGUISTIC) is None
    # Where the skipped character stands behind the marks, it becomes part of the name.
    assert parse_v1("##\u200b[notice]x", KNOWN, Reading.LINGUISTIC) is None
    assert parse_v1("a\u00ad ##[notice]x", KNOWN, Reading.LINGUISTIC) is not None


def test_stop_commands__only_the_token_resumes() -> None:
    log = RunnerLog().read(
        "::stop-commands::Tok3n\n::notice::no\n##[warning]no\n::tok3n::\n::notice::yes\n"
    )
    assert [command.data for command in log.named("notice", "warning")] == ["yes"]
    assert log.output == ["::notice::no", "##[warning]no"]


@pytest.mark.parametrize("token", ["", "notice", "Pause-Logging"])
def test_stop_commands__bad_token_fails_the_step(token: str) -> None:
    with pytest.raises(ValueError, match="stop token"):
        RunnerLog().read(f"::stop-commands::{token}\n")


def test_lines_of__every_line_break_of_dotnet() -> None:
    assert lines_of("a\rb\r\nc\nd\u2028e\n") == ["a", "b", "c", "d\u2028e"]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("A=my value\n\nB=\nC==x=y=\n", [("A", "my value"), ("B", ""), ("C", "=x=y=")]),
        ("A<<EOF\none\ntwo\nEOF\n", [("A", "one\ntwo")]),
        ("A<<EOF\nEOF\n", [("A", "")]),
        ("A<<EOF\n\nthree\n\nEOF\nB<<=X\n1\n=X", [("A", "\nthree\n"), ("B", "1")]),
        ("A<<<EOF\nx\n<EOF\n", [("A", "x")]),
        ("A<<EOF\n EOF\nb=c\r\nEOF\n", [("A", " EOF\nb=c\r")]),
        ("A=x<<EOF\n", [("A", "x<<EOF")]),
    ],
)
def test_read_file_command__cases_of_the_runner(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read_file_command(text) == pairs


@pytest.mark.parametrize("text", ["A<<EOF\nx\n", "A<<EOF\nx", "nothing\n", "<<EOF\nEOF\n", "A<<\n"])
def test_read_file_command__what_fails_the_step(text: str) -> None:
    with pytest.raises(ValueError, match=r"heredoc|delimiter|line"):
        read_file_command(text)
