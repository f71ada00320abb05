"""What the worker prints and reports, from bytes in any pieces to lines and messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.sandbox.worker_output import SandboxedLogReader, SandboxedProgressReader
from ci_bot.protocol.messages import Progress
from ci_bot.redaction import Redactor

SECRET = "s3cret-value-of-the-warehouse"


def reader(**limits: int) -> SandboxedLogReader:
    return SandboxedLogReader(
        Redactor([SECRET]), **({"line_characters": 100, "limit_bytes": 10_000} | limits)
    )


def read(log: SandboxedLogReader, text: bytes, size: int) -> list[str]:
    lines = [
        line for at in range(0, len(text), size) for line in log.feed_bytes(text[at : at + size])
    ]
    return lines + log.finish_line()


@given(st.text(alphabet="ab\né😀\r", max_size=60), st.integers(1, 9))
def test_log__lines_whatever_the_reads(text: str, size: int) -> None:
    wanted = text.split("\n")
    assert read(reader(), text.encode(), size) == (wanted[:-1] if wanted[-1] == "" else wanted)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_log__secrets_over_two_reads(size: int) -> None:
    assert read(reader(), f"a {SECRET} b\n".encode(), size) == ["a *** b"]


def test_log__long_lines_are_shortened_after_redaction() -> None:
    text = ("x" * 90 + SECRET + "y" * 200 + "\nnext\n").encode()
    assert read(reader(), text, 50) == [
        "x" * 90 + "***" + "y" * 7 + " … (193 more characters)",
        "next",
    ]


def test_log__bytes_that_are_no_text() -> None:
    assert read(reader(), b"a\xff\xfeb\n\xe2\x82", 1) == ["a\ufffd\ufffdb", "\ufffd"]


def test_log__flood_ends_with_a_word() -> None:
    lines = read(reader(limit_bytes=25), b"0123456789\n" * 1000, 100)
    assert lines == [
        "0123456789",
        "0123456789",
        "012",
        "(the worker printed more than is kept; the rest is left out)",
    ]


def message(text: str) -> bytes:
    return json.dumps({"phase": "apply", "message": text, "done": 1, "total": 2}).encode() + b"\n"


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_progress__messages_whatever_the_reads(size: int) -> None:
    progress = SandboxedProgressReader(line_bytes=200, lines=10)
    text = message("one") + b"not json\n" + message("two") + b'{"phase":"x"}\n' + b"\n"
    found = [
        item
        for at in range(0, len(text), size)
        for item in progress.feed_bytes(text[at : at + size])
    ]
    assert found == [
        Progress(phase="apply", message=name, done=1, total=2) for name in ("one", "two")
    ]
    assert progress.dropped == 3


@pytest.mark.parametrize("size", [7, 100_000])
def test_progress__long_lines_are_dropped_whole(size: int) -> None:
    progress = SandboxedProgressReader(line_bytes=200, lines=10)
    text = message("x" * 5000) + message("short")
    found = [
        item
        for at in range(0, len(text), size)
        for item in progress.feed_bytes(text[at : at + size])
    ]
    assert [item.message for item in found] == ["short"]
    assert progress.dropped == 1


def test_progress__only_so_many_are_kept() -> None:
    progress = SandboxedProgressReader(line_bytes=200, lines=3)
    assert len(progress.feed_bytes(message("x") * 10)) == 3
    assert progress.dropped == 7


@pytest.mark.parametrize(
    "forged",
    [
        b'{"phase":"a","message":"b","pr":8}',
        b'{"phase":"a","message":"b","done":-1}',
        b'{"phase":"a","message":"b","seconds":NaN}',
        b'{"phase":"","message":"b"}',
        b"[" * 150,
    ],
)
def test_progress__forged_messages_are_dropped(forged: bytes) -> None:
    progress = SandboxedProgressReader(line_bytes=200, lines=10)
    assert progress.feed_bytes(forged + b"\n") == []
    assert progress.dropped == 1
